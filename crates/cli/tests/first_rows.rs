//! A LIMIT without an order takes the first rows of the files, however they are read, and reads no more than it needs.
#![allow(clippy::unwrap_used)]

mod program;

use std::fmt::Write;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use program::{summary, tenaz};
use tempfile::TempDir;

/// More than a block of them.
const RECORDS: usize = 45_000;

fn records(first: usize) -> String {
    let mut text = String::from("n,s\n");
    (first..first + RECORDS).for_each(|n| writeln!(text, "{n},{}", "x".repeat(n % 23)).unwrap());
    text
}

fn compressed(path: &Path, text: &str) {
    let mut file = GzEncoder::new(std::fs::File::create(path).unwrap(), Compression::fast());
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

/// Three files of one table, plain or compressed.
fn table(is_plain: bool) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("t");
    std::fs::create_dir(&place).unwrap();
    for part in 0..3 {
        let text = records(part * RECORDS);
        match is_plain {
            true => std::fs::write(place.join(format!("{part}.csv")), text).unwrap(),
            false => compressed(&place.join(format!("{part}.csv.gz")), &text),
        }
    }
    dir
}

fn numbers(dir: &TempDir, question: &str, more: &[&str]) -> Vec<u64> {
    let data = dir.path().to_str().unwrap();
    let done = tenaz([&["-q", "sql", "--data", data, "--union", "--format", "csv", question], more].concat()).must(0);
    let mut numbers: Vec<u64> = done.text().lines().skip(1).map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn the_first_rows_are_those_of_the_files_for_any_threads_and_chunks() {
    for is_plain in [true, false] {
        let dir = table(is_plain);
        for (threads, chunk) in [("1", "30000"), ("4", "16M")] {
            let more = ["--threads", threads, "--chunk-size", chunk];
            // More than a block and more than a file.
            let found = numbers(&dir, "SELECT n FROM t LIMIT 40000 OFFSET 20000", &more);
            let expected: Vec<u64> = (20_000..60_000).collect();
            assert!(found == expected, "plain {is_plain}, {more:?}: {:?}…", &found[..5]);
            let found = numbers(&dir, "SELECT n FROM t WHERE n % 7 = 3 LIMIT 12000", &more);
            let expected: Vec<u64> = (0..12_000).map(|k| k * 7 + 3).collect();
            assert!(found == expected, "plain {is_plain}, {more:?}: {:?}…", &found[..5]);
        }
    }
}

#[test]
fn no_more_is_read_than_a_limit_needs_and_that_is_said() {
    for is_plain in [true, false] {
        let dir = table(is_plain);
        let out = tempfile::tempdir().unwrap();
        let (data, out) = (dir.path(), out.path().to_str().unwrap());
        let args = ["sql", "--data", data.to_str().unwrap(), "--union", "--threads", "2", "--out", out];
        let done = tenaz([&args[..], &["SELECT n FROM t WHERE n >= 10 LIMIT 5"]].concat()).must(0);
        assert!(done.err.contains("of t no more was read than the LIMIT needs"), "{}", done.err);
        let table = &summary(Path::new(out))["tables"]["t"];
        assert_eq!(table["partial"], true, "{table}");
        assert!(table["records"].as_u64().unwrap() < 2 * RECORDS as u64, "{table}");
        assert_eq!(std::fs::read_to_string(Path::new(out).join("q1.csv")).unwrap(), "n\n10\n11\n12\n13\n14\n");
        // Another question needs all records, a strict job looks at all of them, and what can fail is not left out.
        for (question, more) in [
            ("SELECT n FROM t LIMIT 5; SELECT count(*) FROM t", ""),
            ("SELECT n FROM t LIMIT 5", "--strict"),
            ("SELECT n FROM t WHERE 10 / (n + 1) < 100 LIMIT 5", ""),
            ("SELECT n FROM t ORDER BY n DESC LIMIT 5", ""),
        ] {
            let more: Vec<&str> = more.split_whitespace().collect();
            tenaz([&args[..], &[question], &more[..]].concat()).must(0);
            let table = &summary(Path::new(out))["tables"]["t"];
            assert_eq!((&table["records"], table.get("partial")), (&(3 * RECORDS).into(), None), "{question}");
        }
    }
}

#[test]
fn a_limit_larger_than_the_table_reads_all_of_it() {
    let dir = table(true);
    assert_eq!(numbers(&dir, "SELECT n FROM t LIMIT 1000000", &[]).len(), 3 * RECORDS);
    assert_eq!(numbers(&dir, "SELECT n FROM t WHERE n < 0 LIMIT 3", &[]), Vec::<u64>::new());
    assert_eq!(numbers(&dir, "SELECT n FROM t LIMIT 0", &[]), Vec::<u64>::new());
    assert_eq!(numbers(&dir, "SELECT count(*) FROM (SELECT n FROM t LIMIT 7)", &[]), [7]);
}
