//! Prints the time per text of each function on the real samples:
//! `cargo run --release -p tenaz-text --example text_speed [folder of the samples]`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use tenaz_text::{is_english, python_list, sentiment, sentiment_nano, year};

/// The best of so many rounds counts: other work on the machine only ever adds.
const ROUNDS: usize = 20;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let given = std::env::args().nth(1);
    let data = given.as_deref().unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    let data = Path::new(data);
    let reviews = column(&data.join("steam/reviews.csv"), "review_text")?;
    let ratings = column(&data.join("books/Books_rating.csv"), "review/text")?;
    let authors = column(&data.join("books/books_data.csv"), "authors")?;
    let dates = column(&data.join("books/books_data.csv"), "publishedDate")?;

    time("is_english", &reviews, is_english);
    time("sentiment", &ratings, sentiment);
    time("sentiment_nano", &ratings, sentiment_nano);
    time("sentiment (steam)", &reviews, sentiment);
    time("python_list", &authors, |text| python_list(text).map(|list| list.len()));
    time("year", &dates, year);
    Ok(())
}

fn column(path: &Path, name: &str) -> Result<Vec<String>, Failure> {
    let mut reader = csv::Reader::from_path(path)?;
    let at = reader.headers()?.iter().position(|header| header == name).ok_or("no such column")?;
    reader.records().map(|record| Ok(record?[at].to_owned())).collect()
}

fn time<T>(name: &str, texts: &[String], function: impl Fn(&str) -> T) {
    let round = || {
        let start = Instant::now();
        for text in texts {
            black_box(function(black_box(text)));
        }
        start.elapsed().as_secs_f64()
    };
    let best = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    let bytes: usize = texts.iter().map(String::len).sum();
    let (count, mean) = (texts.len() as f64, bytes / texts.len().max(1));
    println!("{name:18} {:8.3} µs per text of {mean} bytes, {:9.0} per second", best * 1e6 / count, count / best);
}
