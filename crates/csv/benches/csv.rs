//! Time of the chunker and the decoder: `cargo bench -p tenaz-csv --bench csv`.
#![allow(missing_docs)]

mod records;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use records::{Case, reviews, transactions};
use tenaz_csv::Decoder;

fn chunker(c: &mut Criterion) {
    let mut group = c.benchmark_group("chunker");
    for (name, case) in [("transactions", transactions(50_000)), ("reviews", reviews(15_000))] {
        group.throughput(Throughput::Bytes(case.file.len() as u64));
        group.bench_function(name, |b| b.iter(|| black_box(case.chunks())));
    }
}

fn decoder(c: &mut Criterion) {
    let mut group = c.benchmark_group("decoder");
    let mut bench = |name: &str, case: &Case, columns: &[usize]| {
        let chunks = case.chunks();
        let mut decoder = Decoder::new(Arc::new(case.layout.clone()), columns.to_vec()).expect("a fair layout");
        group.throughput(Throughput::Bytes(case.file.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| {
                for chunk in &chunks {
                    black_box(decoder.decode_chunk(chunk).expect("fair chunks"));
                }
            });
        });
    };
    let (transactions, reviews) = (transactions(50_000), reviews(15_000));
    bench("transactions, all columns", &transactions, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    bench("transactions, as coffee needs them", &transactions, &[0, 1, 4, 7, 8]);
    bench("transactions, checked only", &transactions, &[]);
    bench("reviews, as steam needs them", &reviews, &[0, 2, 3]);
}

criterion_group!(benches, chunker, decoder);
criterion_main!(benches);
