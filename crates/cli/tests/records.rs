//! `--message-format json`: what programs are told on standard error, and the streams that they read.
#![allow(clippy::unwrap_used)]

mod program;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use datafusion::arrow::ipc::reader::StreamReader;
use program::{Finished, command, files};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Orders of which two are bad: one has a field too few, one a price that is none.
fn orders(dir: &Path) {
    let rows: String = (1..=400).map(|n| format!("{n},{}.50,city {}\n", n % 90, n % 7)).collect();
    let text = format!("id,price,city\n{rows}401,1.00\n402,cheap,city 1\n");
    fs::write(dir.join("orders.csv"), text).unwrap();
}

struct Asked {
    done: Finished,
    records: Vec<Value>,
}

impl Asked {
    fn of(&self, message: &str) -> Vec<&Value> {
        self.records.iter().filter(|record| record["message"] == message).collect()
    }

    fn error(&self) -> &Value {
        let errors = self.of("error");
        assert_eq!(errors.len(), 1, "{}", self.done.err);
        errors[0]
    }
}

/// `tenaz sql` in a directory with these orders; every line of standard error must be a record.
fn ask(args: &[&str]) -> Asked {
    let dir = tempfile::tempdir().unwrap();
    orders(dir.path());
    let types = ["--types", "price=decimal(9,2)"];
    let mut command = command(["sql", "--data", ".", "--message-format", "json"]);
    let done = Finished::new(command.args(types).args(args).current_dir(dir.path()).output().unwrap());
    let records = done.err.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Asked { done, records }
}

fn streams(bytes: &[u8]) -> Vec<usize> {
    let (mut rest, mut rows) = (bytes, Vec::new());
    while !rest.is_empty() {
        let reader = StreamReader::try_new(&mut rest, None).unwrap();
        rows.push(reader.map(|batch| batch.unwrap().num_rows()).sum());
    }
    rows
}

#[test]
fn a_program_is_told_progress_every_bad_record_and_the_summary() {
    let asked = ask(&["--format", "arrows", "SELECT city, sum(price) FROM orders GROUP BY city"]);
    assert_eq!(streams(&asked.done.out), [7], "{}", asked.done.err);
    let progress = asked.of("progress");
    let total = progress[0]["total_bytes"].as_u64().unwrap();
    assert!(total > 4000 && progress.iter().all(|record| record["bytes"].as_u64().unwrap() <= total));

    let bad = asked.of("reject");
    let of = |key: &str| bad.iter().map(|record| record[key].clone()).collect::<Vec<_>>();
    assert_eq!(of("line"), [402, 403]);
    assert_eq!(of("file"), ["orders.csv", "orders.csv"]);
    assert_eq!(of("column"), [Value::Null, "price".into()]);
    assert_eq!(of("text"), ["401,1.00", "402,cheap,city 1"]);

    let summary = asked.of("summary");
    assert_eq!(summary.len(), 1);
    assert_eq!(summary[0]["tables"]["orders"]["rejected"], 2);
    assert_eq!(summary[0]["queries"]["q1"]["rows"], 7);
}

#[test]
fn sorted_rows_are_those_of_the_file_whose_fingerprint_is_told() {
    let query = "SELECT id, city FROM orders WHERE price > 40";
    let asked = ask(&["--format", "csv", "--sorted", "--chunk-size", "1K", query]);
    let hash: String = Sha256::digest(&asked.done.out).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(asked.of("answer")[0]["fingerprint"], hash.as_str());
    assert_eq!(asked.of("summary")[0]["queries"]["q1"]["fingerprint"], hash.as_str());

    let dir = tempfile::tempdir().unwrap();
    orders(dir.path());
    let out = dir.path().join("out");
    let mut command = command(["sql", "--data", "orders.csv", "--types", "price=decimal(9,2)", "--out", "out", query]);
    Finished::new(command.current_dir(dir.path()).output().unwrap()).must(0);
    assert_eq!(files(&out)["q1.csv"], asked.done.out);
}

#[test]
fn several_answers_are_streams_one_behind_the_other_and_a_program_knows_which() {
    let text = "-- name: zebras\nSELECT id FROM orders WHERE id <= 3; -- name: ants\nSELECT count(*) FROM orders";
    let asked = ask(&["--format", "arrows", text]);
    assert_eq!(streams(&asked.done.out), [3, 1]);
    let names: Vec<&Value> = asked.of("answer").into_iter().map(|record| &record["name"]).collect();
    assert_eq!(names, ["zebras", "ants"]);
}

#[test]
fn an_error_has_its_place() {
    let asked = ask(&["--format", "arrows", "SELECT id,\n  prise FROM orders"]);
    let error = asked.error();
    assert_eq!((&error["class"], &error["exit"]), (&"query".into(), &1.into()));
    assert_eq!((&error["line"], &error["character"]), (&2.into(), &3.into()), "{error}");
    assert!(error["text"].as_str().unwrap().contains("did you mean price?"), "{error}");

    let strict = ask(&["--strict", "--format", "arrows", "SELECT sum(price) FROM orders WHERE city <> 'x'"]);
    let error = strict.error();
    assert_eq!((&error["class"], &error["file"]), (&"data".into(), &"orders.csv".into()), "{error}");
    assert!(error["line"] == 402 || error["line"] == 403, "{error}");

    let usage = ask(&["--no-such-option=1", "SELECT 1"]);
    usage.done.must(2);
    let failing = ask(&["--format", "arrows", "SELECT 1 / (id - id) AS x FROM orders"]);
    assert_eq!(failing.error()["query"], "q1");
    assert!(failing.of("summary")[0]["failed"]["q1"]["text"].as_str().unwrap().contains("division by zero"));
}

#[test]
fn a_wrong_command_line_is_a_record_too_and_help_is_not() {
    let usage = ask(&["--threads", "many", "SELECT 1"]);
    let error = usage.error();
    assert_eq!((&error["class"], &error["exit"]), (&"query".into(), &2.into()));
    assert!(error["text"].as_str().unwrap().contains("--threads"), "{error}");
    let help = ask(&["--help"]).done.must(0);
    assert!(help.text().contains("--message-format"), "{}", help.text());
}

#[test]
fn a_job_whose_records_nobody_reads_any_more_ends() {
    let dir = tempfile::tempdir().unwrap();
    orders(dir.path());
    // Days of work.
    let endless = "SELECT count(*) FROM orders a CROSS JOIN orders b CROSS JOIN orders c CROSS JOIN orders d WHERE a.id + b.id < c.id + d.id";
    let mut command = command(["sql", "--data", ".", "--message-format", "json", "--format", "arrows", endless]);
    let mut child = command.current_dir(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"progress\"") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended too early");
    }
    let columns = StreamReader::try_new(child.stdout.take().unwrap(), None).unwrap();
    assert_eq!(columns.schema().fields().len(), 1, "they are told before the first row is known");
    drop(stderr);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
