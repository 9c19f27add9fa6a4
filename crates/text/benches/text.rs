//! Time of the text functions: `cargo bench -p tenaz-text --bench text`.
#![allow(missing_docs)]

mod texts;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tenaz_text::{is_english, python_list, sentiment_nano, year};
use texts::{DATES, LISTS, REVIEWS};

fn over<T>(c: &mut Criterion, name: &str, texts: &[&str], function: impl Fn(&str) -> T) {
    let mut group = c.benchmark_group("text");
    group.throughput(Throughput::Bytes(texts.iter().map(|text| text.len() as u64).sum()));
    group.bench_function(name, |b| {
        b.iter(|| {
            for text in texts {
                black_box(function(black_box(text)));
            }
        });
    });
}

fn functions(c: &mut Criterion) {
    over(c, "is_english", &REVIEWS, is_english);
    over(c, "sentiment_nano", &REVIEWS, sentiment_nano);
    over(c, "python_list", &LISTS, |text| python_list(text).map(|list| list.len()));
    over(c, "year", &DATES, year);
}

criterion_group!(benches, functions);
criterion_main!(benches);
