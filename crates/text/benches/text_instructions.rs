//! Instructions of the text functions, counted by callgrind: run by `bench/instructions`.
#![allow(missing_docs)]

mod texts;

use std::hint::black_box;

use gungraun::{library_benchmark, library_benchmark_group, main};
use texts::{DATES, LISTS, REVIEWS};

/// Often enough that what is done once, such as building the lexicon, does not hide the rest.
const TIMES: usize = 50;

fn over<T>(texts: &[&str], function: impl Fn(&str) -> T) {
    for _ in 0..TIMES {
        for text in texts {
            black_box(function(black_box(text)));
        }
    }
}

#[library_benchmark]
fn is_english() {
    over(&REVIEWS, tenaz_text::is_english);
}

#[library_benchmark]
fn sentiment_nano() {
    over(&REVIEWS, tenaz_text::sentiment_nano);
}

#[library_benchmark]
fn python_list() {
    over(&LISTS, |text| tenaz_text::python_list(text).map(|list| list.len()));
}

#[library_benchmark]
fn year() {
    over(&DATES, tenaz_text::year);
}

library_benchmark_group!(name = text, benchmarks = [is_english, sentiment_nano, python_list, year]);
main!(library_benchmark_groups = text);
