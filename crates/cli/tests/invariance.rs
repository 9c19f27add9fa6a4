//! How a job runs never changes what it answers.
#![allow(clippy::unwrap_used)]

mod program;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use program::{files, generated, run_coffee, summary};
use sha2::{Digest, Sha256};

const QUERIES: [&str; 5] = ["q1", "q2_sold", "q2_profit", "q3", "q4"];

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The result files and what the summary says of queries and tables.
fn results(data: &Path, more: &[&str]) -> (BTreeMap<String, Vec<u8>>, serde_json::Value, serde_json::Value) {
    let out = tempfile::tempdir().unwrap();
    run_coffee(data, out.path(), more).must(0);
    let summary = summary(out.path());
    let mut files = files(out.path());
    files.remove("summary.json").unwrap();
    (files, summary["queries"].clone(), summary["tables"].clone())
}

/// Leaves out other months: chunks of a few records each make a long job of even the smallest data set.
fn keep_months(data: &Path, months: &[&str]) {
    for table in ["transactions", "transaction_items", "users"] {
        for name in files(&data.join(table)).keys().filter(|name| !months.iter().any(|month| name.contains(month))) {
            fs::remove_file(data.join(table).join(name)).unwrap();
        }
    }
}

#[test]
fn threads_chunks_partitions_and_memory_never_change_a_byte() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.0001", "5");
    keep_months(data.path(), &["202312", "202401", "202407", "202506"]);
    let first = results(data.path(), &[]);
    assert_eq!(first.0.len(), QUERIES.len());
    for threads in ["1", "2", "4"] {
        for chunk in ["300", "4K", ""] {
            for partitions in ["1", "3", "8"] {
                let mut more = vec!["--threads", threads, "--partitions", partitions];
                if !chunk.is_empty() {
                    more.extend(["--chunk-size", chunk]);
                }
                let now = results(data.path(), &more);
                assert!(first == now, "{more:?}: {} and {}", first.1, now.1);
            }
        }
    }
}

#[test]
fn a_tiny_memory_never_changes_a_byte() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.002", "6");
    let first = results(data.path(), &[]);
    for more in [
        ["--memory", "64K", "--threads", "1", "--partitions", "1"],
        ["--memory", "64K", "--threads", "2", "--partitions", "3"],
        ["--memory", "1M", "--threads", "2", "--partitions", "8"],
    ] {
        let now = results(data.path(), &more);
        assert!(first == now, "{more:?}: {} and {}", first.1, now.1);
    }
}

#[test]
fn asking_fewer_questions_or_in_another_order_gives_the_same_answers() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.0003", "7");
    let (files, queries, _) = results(data.path(), &[]);
    for chosen in ["q1", "q2_sold", "q2_profit", "q3", "q4", "q4,q1", "q3,q2_profit,q2_sold"] {
        let (some, summary, _) = results(data.path(), &["--query", chosen]);
        let names: Vec<&str> = chosen.split(',').collect();
        assert_eq!(some.len(), names.len(), "{chosen}");
        for name in names {
            assert!(some[&format!("{name}.csv")] == files[&format!("{name}.csv")], "{name} of {chosen}");
            assert_eq!(summary[name], queries[name], "{name} of {chosen}");
        }
    }
}

#[test]
fn how_a_table_is_cut_into_files_never_changes_an_answer() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.0003", "8");
    let (first, ..) = results(data.path(), &[]);
    for table in ["transactions", "transaction_items", "users"] {
        let dir = data.path().join(table);
        let mut all = String::new();
        for (name, bytes) in files(&dir) {
            let text = String::from_utf8(bytes).unwrap();
            let rows = text.split_once('\n').unwrap().1;
            all.push_str(if all.is_empty() { &text } else { rows });
            fs::remove_file(dir.join(name)).unwrap();
        }
        fs::write(dir.join("all.csv"), all).unwrap();
    }
    let (one_file, ..) = results(data.path(), &[]);
    assert!(first == one_file);
}

#[test]
fn a_fingerprint_is_the_sha_256_of_the_csv_file_whatever_the_format() {
    let data = tempfile::tempdir().unwrap();
    generated(data.path(), "0.0003", "9");
    let (files, queries, tables) = results(data.path(), &[]);
    for query in QUERIES {
        let bytes = &files[&format!("{query}.csv")];
        assert_eq!(queries[query]["fingerprint"], sha256(bytes), "{query}");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        assert_eq!(queries[query]["rows"], lines - 1, "{query}");
        assert_eq!(queries[query]["ordered"], query != "q1", "{query}");
    }
    let (_, as_json, _) = results(data.path(), &["--format", "json"]);
    assert_eq!(as_json, queries);
    let accepted = tables.as_object().unwrap().values().all(|t| t["records"] == t["accepted"] && t["rejected"] == 0);
    assert!(accepted, "{tables}");
}
