//! Instructions of the chunker and the decoder, counted by callgrind: run by `bench/instructions`.
#![allow(missing_docs)]

mod records;

use std::hint::black_box;
use std::sync::Arc;

use gungraun::{library_benchmark, library_benchmark_group, main};
use records::{Case, reviews, transactions};
use tenaz_csv::{Chunk, Decoded, Decoder};

fn decoding(case: Case, columns: &[usize]) -> (Decoder, Vec<Chunk>) {
    let chunks = case.chunks();
    (Decoder::new(Arc::new(case.layout), columns.to_vec()).expect("a fair layout"), chunks)
}

#[library_benchmark]
#[bench::transactions(transactions(10_000))]
#[bench::reviews(reviews(3_000))]
fn chunker(case: Case) -> Vec<Chunk> {
    black_box(case.chunks())
}

#[library_benchmark]
#[bench::transactions_all(decoding(transactions(10_000), &[0, 1, 2, 3, 4, 5, 6, 7, 8]))]
#[bench::transactions_needed(decoding(transactions(10_000), &[0, 1, 4, 7, 8]))]
#[bench::transactions_checked(decoding(transactions(10_000), &[]))]
#[bench::reviews_needed(decoding(reviews(3_000), &[0, 2, 3]))]
fn decoder((mut decoder, chunks): (Decoder, Vec<Chunk>)) -> Vec<Decoded> {
    let decoded = chunks.iter().map(|chunk| decoder.decode_chunk(chunk).expect("fair chunks"));
    black_box(decoded.collect())
}

library_benchmark_group!(name = csv, benchmarks = [chunker, decoder]);
main!(library_benchmark_groups = csv);
