//! The ten questions about texts, answered by plain loops over records: no Arrow, no SQL, no stages.
//!
//! Only what a single text means (language, sentiment, Python lists, years) is taken from `tenaz-text`, which has oracles
//! of its own.
#![allow(unreachable_pub, reason = "a module of tests has no outside")]

pub mod books;
pub mod steam;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The answers of a workload: for each query its rows, in the order that result files have.
pub type Answers = BTreeMap<&'static str, Vec<Vec<String>>>;

/// The records of a file without its header. The fields of a record decide, not those of the header.
fn records(path: &Path) -> Vec<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).expect("a data file");
    reader.records().skip(1).collect::<Result<_, _>>().expect("valid CSV and UTF-8")
}

fn first_of(dir: &Path, names: &[&str]) -> PathBuf {
    let paths = names.iter().map(|name| dir.join(name));
    paths.into_iter().find(|path| path.exists()).expect("one of the files is there")
}

/// Null is an empty field.
fn present(field: &str) -> Option<&str> {
    (!field.is_empty()).then_some(field)
}

/// The value from which on rows are at or above the 90th percentile.
fn cut<T: Ord + Copy>(values: impl Iterator<Item = T>) -> Option<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values.get(9 * values.len() / 10).copied()
}

/// `sum` / `count` in units of 10^-`decimals`, where the sum is in units of 10^-`scale`; halves go away from zero.
fn mean(sum: i128, count: i128, scale: u32, decimals: u32) -> i128 {
    let over = sum * 10_i128.pow(decimals - scale);
    let twice = 2 * over.abs() + count;
    over.signum() * (twice / (2 * count))
}

/// A number of units of 10^-`decimals` as text.
fn decimal(units: i128, decimals: u32) -> String {
    let one = 10_u128.pow(decimals);
    let sign = if units < 0 { "-" } else { "" };
    let units = units.unsigned_abs();
    format!("{sign}{}.{:0width$}", units / one, units % one, width = decimals as usize)
}
