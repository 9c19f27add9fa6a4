//! Threads read blocks of the same files at a time: every record counts once, and what is wrong with a file is told, whoever
//! meets it.

mod staged;

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use staged::Nobody;
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::{DataSet, Error, Options, Progress, TableReport};

const FILES: usize = 3;
const RECORDS: u64 = 400;

fn workload() -> Workload {
    let table = staged::Rows {
        name: "t",
        role: tenaz_engine::Role::Fact,
        columns: vec![("n", tenaz_csv::Kind::Int { float_text: false }), ("s", tenaz_csv::Kind::Text)],
        rows: Vec::new(),
    };
    let mut workload = staged::workload(&[table], ["SELECT count(*) AS n, sum(n) AS s, count(s) AS t FROM t"]);
    workload.tables[0].files = vec!["*.csv".to_owned()];
    workload
}

fn records(numbers: std::ops::Range<u64>) -> String {
    let mut text = String::new();
    for n in numbers {
        writeln!(text, "{n},\"a text of {n},\nin {} lines\"", n % 3).expect("a string takes anything");
    }
    text
}

/// Files with the numbers from 0 on.
fn write(dir: &Path) {
    for file in 0..FILES as u64 {
        let text = format!("n,s\n{}", records(file * RECORDS..(file + 1) * RECORDS));
        std::fs::write(dir.join(format!("{file}.csv")), text).expect("a file");
    }
}

/// The only answer's row as text, and what the table contributed, if something happens to the files after they were found.
fn answer(
    dir: &Path,
    threads: usize,
    block_bytes: usize,
    happens: impl FnOnce(),
) -> Result<(String, TableReport), Error> {
    let workload = workload();
    let plan = JobPlan::new(&workload).expect("a plan");
    let data = DataSet::find(dir, &workload, &plan).expect("the files");
    happens();
    let options =
        Options { threads, block_bytes: Some(block_bytes), chunk_bytes: Some(5 * block_bytes), ..Options::default() };
    let progress = Progress::new(1);
    let outcome = tenaz_runtime::run(&workload, &plan, data, &options, &progress, &Nobody)?;
    let batch = outcome.answers[0].batches().next().expect("a row")?;
    let cell = |column: usize| {
        datafusion::arrow::util::display::array_value_to_string(batch.column(column), 0).expect("any value has a text")
    };
    Ok((format!("{} {} {}", cell(0), cell(1), cell(2)), outcome.tables[0].clone()))
}

fn expected(records: u64) -> String {
    format!("{records} {} {records}", records * (records - 1) / 2)
}

#[test]
fn every_record_counts_once_whatever_the_blocks() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path());
    for block_bytes in [1, 2, 7, 30, 64, 1000, 20_000, 1 << 20] {
        for threads in [1, 2, 5] {
            let (found, table) = answer(dir.path(), threads, block_bytes, || ()).expect("an answer");
            assert_eq!(found, expected(FILES as u64 * RECORDS), "{threads} threads, blocks of {block_bytes}");
            assert_eq!((table.counts.records, table.counts.rejected), (FILES as u64 * RECORDS, 0));
        }
    }
}

#[test]
fn what_was_added_to_the_last_file_since_is_read() {
    for added in [1, 10, 3 * RECORDS] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write(dir.path());
        let grow = || {
            let last = dir.path().join(format!("{}.csv", FILES - 1));
            let mut file = OpenOptions::new().append(true).open(last).expect("the last file");
            let first = FILES as u64 * RECORDS;
            file.write_all(records(first..first + added).as_bytes()).expect("space");
        };
        let (found, _) = answer(dir.path(), 3, 1000, grow).expect("an answer");
        assert_eq!(found, expected(FILES as u64 * RECORDS + added));
    }
}

#[test]
fn a_file_that_has_become_shorter_is_named_because_part_of_it_is_no_answer() {
    for (file, block_bytes) in [(0, 100), (1, 1 << 20), (FILES as u64 - 1, 1000)] {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write(dir.path());
        let name = format!("{file}.csv");
        // What is left are whole records.
        let left = format!("n,s\n{}", records(file * RECORDS..file * RECORDS + 5));
        let shrink = || std::fs::write(dir.path().join(&name), left).expect("a file");
        let error = answer(dir.path(), 3, block_bytes, shrink).expect_err("part of a file").to_string();
        assert!(error.contains(&name) && error.contains("has become shorter"), "{error}");
    }
}

#[test]
fn chunks_much_larger_than_the_data_need_no_more_memory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut text = String::from("n,s\n");
    (0..RECORDS).for_each(|n| writeln!(text, "{n},x").expect("a string takes anything"));
    std::fs::write(dir.path().join("t.csv"), text).expect("a file");
    let workload = Workload {
        queries: staged::workload(&[], ["SELECT a.n FROM t a JOIN t b ON a.n = b.n ORDER BY a.n LIMIT 3"]).queries,
        ..workload()
    };
    let plan = JobPlan::new(&workload).expect("a plan");
    let data = DataSet::find(dir.path(), &workload, &plan).expect("the files");
    let options = Options { threads: 8, chunk_bytes: Some(1 << 30), memory_bytes: 1 << 20, ..Options::default() };
    let outcome = tenaz_runtime::run(&workload, &plan, data, &options, &Progress::new(1), &Nobody).expect("an answer");
    assert_eq!(outcome.answers[0].rows, 3);
}

#[test]
fn the_first_file_that_is_wrong_is_named_by_whatever_thread_meets_it() {
    for round in 0..30 {
        let dir = tempfile::tempdir().expect("a temporary directory");
        write(dir.path());
        for wrong in ["1.csv", "2.csv"] {
            std::fs::write(dir.path().join(wrong), "n,other\n1,2\n").expect("a file");
        }
        let error = answer(dir.path(), 1 + round % 5, 50 + round, || ()).expect_err("a wrong header").to_string();
        assert!(error.contains("1.csv") && error.contains("other"), "{error}");
    }
}

#[test]
fn a_file_that_is_gone_is_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write(dir.path());
    let vanish = || std::fs::remove_file(dir.path().join("1.csv")).expect("it was there");
    let error = answer(dir.path(), 3, 100, vanish).expect_err("a file that is gone").to_string();
    assert!(error.contains("1.csv"), "{error}");
}
