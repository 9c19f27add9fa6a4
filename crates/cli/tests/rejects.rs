//! Bad records: each is reported with its place and reason, counted, and the same whatever is asked and however it runs.
#![allow(clippy::unwrap_used)]

mod oracle;
mod program;
mod shop;

use std::collections::BTreeMap;
use std::fs;

use program::{files, run_coffee, summary, tenaz};
use shop::{ITEMS, Shop, TRANSACTIONS, USERS, item, transaction};

const AT: &str = "2024-02-02 12:00:00";

/// A record of a file: its bytes with the newline, and what is wrong with it (column, reason), if anything.
struct Line {
    bytes: Vec<u8>,
    fault: Option<(&'static str, &'static str)>,
}

fn good(text: &str) -> Line {
    Line { bytes: format!("{text}\n").into_bytes(), fault: None }
}

fn bad(text: impl AsRef<[u8]>, column: &'static str, reason: &'static str) -> Line {
    let mut bytes = text.as_ref().to_vec();
    bytes.push(b'\n');
    Line { bytes, fault: Some((column, reason)) }
}

/// What rejects.csv should say: table, file, line, byte, column, reason.
type Reported = (String, String, u64, u64, String, String);

/// Data with every kind of bad record, the same data without them, and the expected reports.
struct Bad {
    shop: Shop,
    clean: Shop,
    reports: Vec<Reported>,
    too_large: Vec<u8>,
}

impl Bad {
    fn new() -> Self {
        let mut made = Self { shop: Shop::new(), clean: Shop::new(), reports: Vec::new(), too_large: Vec::new() };
        let mut too_large = transaction(&"x".repeat(1 << 20), "1", "1.0", "75.0", AT).into_bytes();
        made.too_large.clone_from(&too_large);
        let buys = |id: &str| transaction(id, "1", "1.0", "75.0", AT);
        let mut not_utf8 = buys("bytes").into_bytes();
        not_utf8[2] = 0xff;
        made.file(
            "transactions",
            "transactions_202401.csv",
            TRANSACTIONS,
            vec![
                good(&buys("a")),
                bad("short,1,1", "", "expected 9 fields, found 3"),
                bad(format!("{},more", buys("long")), "", "expected 9 fields, found 10"),
                good("\"two\nlines\",1,1,,1.0,80.0,0.0,80.0,2024-02-02 12:00:00"),
                bad(transaction("b", "one", "1.0", "75.0", AT), "store_id", "\"one\" is not a whole number"),
                bad(transaction("b", "1", "1.5", "75.0", AT), "user_id", "\"1.5\" is not a whole number"),
                bad(
                    transaction("b", "99999999999999999999", "1.0", "75.0", AT),
                    "store_id",
                    "\"99999999999999999999\" does not fit a 64-bit whole number",
                ),
                bad(transaction("b", "1", "1.0", "7x", AT), "original_amount", "\"7x\" is not a decimal number"),
                bad(
                    "b,1,1,,1.0,75.0,0.0,75.0001,2024-02-02 12:00:00",
                    "final_amount",
                    "\"75.0001\" does not fit decimal(15, 3): 15 digits, 3 of them after the point",
                ),
                // A column that no question looks at.
                bad(
                    "b,1,1,,1.0,75.0,none,75.0,2024-02-02 12:00:00",
                    "discount_applied",
                    "\"none\" is not a decimal number",
                ),
                bad(
                    transaction("b", "1", "1.0", "75.0", "2024-02-30 12:00:00"),
                    "created_at",
                    "\"2024-02-30 12:00:00\" is not a time (YYYY-MM-DD HH:MM:SS)",
                ),
                bad(not_utf8, "", "not valid UTF-8"),
                bad("\"ab\"c,1,1,,1.0,75.0,0.0,75.0,2024-02-02 12:00:00", "", "text after a closing quote"),
                good(&buys("z")),
            ],
        );
        made.file(
            "transactions",
            "transactions_202402.csv",
            TRANSACTIONS,
            vec![
                good(&buys("c")),
                bad(
                    "\"open,1,1,,1.0,75.0,0.0,75.0,2024-02-02 12:00:00",
                    "",
                    "a quote opens here and is not closed within 1 MiB, or at all",
                ),
                good(&buys("d")),
            ],
        );
        too_large.push(b'\n');
        made.file(
            "transactions",
            "transactions_202403.csv",
            TRANSACTIONS,
            vec![
                good(&buys("e")),
                Line { bytes: too_large.clone(), fault: Some(("", "record is larger than 1 MiB")) },
                good(&buys("f")),
                Line { bytes: too_large, fault: Some(("", "record is larger than 1 MiB")) },
            ],
        );
        made.file(
            "transaction_items",
            "transaction_items_202401.csv",
            ITEMS,
            vec![
                good(&item("1", "1", "6.0", AT)),
                bad(item("1", "two", "6.0", AT), "quantity", "\"two\" is not a whole number"),
            ],
        );
        made.file(
            "users",
            "users_202401.csv",
            USERS,
            vec![
                bad("2,male,1990-13-01,", "birthdate", "\"1990-13-01\" is not a date (YYYY-MM-DD)"),
                good("1,male,1990-12-01,"),
            ],
        );
        made
    }

    fn file(&mut self, table: &str, name: &str, header: &str, lines: Vec<Line>) {
        let (mut text, mut clean) = (format!("{header}\n").into_bytes(), format!("{header}\n").into_bytes());
        for line in lines {
            match line.fault {
                None => clean.extend_from_slice(&line.bytes),
                Some((column, reason)) => {
                    let number = 1 + text.iter().filter(|b| **b == b'\n').count() as u64;
                    let (file, byte) = (format!("{table}/{name}"), text.len() as u64);
                    self.reports.push((table.into(), file, number, byte, column.into(), reason.into()));
                }
            }
            text.extend_from_slice(&line.bytes);
        }
        self.shop.file(&format!("{table}/{name}"), text);
        self.clean.file(&format!("{table}/{name}"), clean);
    }

    fn reports_of(&self, tables: &[&str]) -> Vec<Reported> {
        self.reports.iter().filter(|report| tables.contains(&report.0.as_str())).cloned().collect()
    }
}

/// rejects.csv, read back; the last part is the record's text.
fn reported(out: &std::path::Path) -> Vec<(Reported, String)> {
    let text = fs::read_to_string(out.join("rejects.csv")).unwrap();
    let mut records = fields(&text).into_iter();
    assert_eq!(records.next().unwrap().join(","), "table,file,line,byte,column,reason,text");
    records
        .map(|r| {
            let number = |i: usize| r[i].parse().unwrap();
            ((r[0].clone(), r[1].clone(), number(2), number(3), r[4].clone(), r[5].clone()), r[6].clone())
        })
        .collect()
}

fn fields(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => field.extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    records
}

#[test]
fn every_kind_of_bad_record_is_reported_with_its_place_and_reason_and_counted() {
    let bad = Bad::new();
    let out = tempfile::tempdir().unwrap();
    let told = run_coffee(bad.shop.path(), out.path(), &[]).must(0);
    let reported = reported(out.path());
    let places: Vec<Reported> = reported.iter().map(|(place, _)| place.clone()).collect();
    assert_eq!(places, bad.reports);
    let text_of = |reason: &str| reported.iter().find(|((.., why), _)| why.contains(reason)).unwrap().1.clone();
    assert_eq!(text_of("found 3"), "short,1,1");
    assert_eq!(text_of("closing quote"), "\"ab\"c,1,1,,1.0,75.0,0.0,75.0,2024-02-02 12:00:00");
    assert_eq!(text_of("UTF-8"), "by\u{fffd}es,1,1,,1.0,75.0,0.0,75.0,2024-02-02 12:00:00");
    assert_eq!(text_of("larger"), format!("{}…", "x".repeat(200)), "a long text is cut, and the cut is marked");

    let tables = &summary(out.path())["tables"];
    let count = |table: &str| bad.reports_of(&[table]).len() as u64;
    for (table, accepted) in [("transactions", 7), ("transaction_items", 1), ("users", 1), ("stores", 2)] {
        let counts = &tables[table];
        assert_eq!(counts["rejected"], count(table), "{table}");
        assert_eq!(counts["accepted"], accepted, "{table}");
        assert_eq!(counts["records"], accepted + count(table), "{table}");
    }
    let reasons: BTreeMap<String, u64> =
        serde_json::from_value(tables["transactions"]["rejected_by_reason"].clone()).unwrap();
    assert_eq!(reasons.values().sum::<u64>(), count("transactions"));
    assert_eq!((reasons["field_count"], reasons["too_large"], reasons["quote_never_closed"]), (2, 2, 1));

    // On the screen: the first ten, and how many more there are.
    assert_eq!(told.err.matches("rejected: t").count(), 10, "{}", told.err);
    assert!(
        told.err.contains(&format!("and {} more; rejects.csv has them all", bad.reports.len() - 10)),
        "{}",
        told.err
    );
}

#[test]
fn good_records_beside_bad_ones_are_answered_as_if_they_were_alone() {
    let bad = Bad::new();
    for more in [&[][..], &["--chunk-size", "100", "--threads", "4", "--partitions", "3"]] {
        let out = tempfile::tempdir().unwrap();
        run_coffee(bad.shop.path(), out.path(), more).must(0);
        for (query, expected) in oracle::expected(bad.clean.path()) {
            assert_eq!(fs::read_to_string(out.path().join(format!("{query}.csv"))).unwrap(), expected, "{query}");
        }
    }
}

#[test]
fn which_records_are_bad_does_not_depend_on_the_questions() {
    let bad = Bad::new();
    let cases: [(&str, &[&str]); 5] = [
        ("q1", &["transactions"]),
        ("q2_sold", &["transaction_items"]),
        ("q2_profit", &["transaction_items"]),
        ("q3", &["transactions"]),
        ("q4,q2_sold", &["transactions", "transaction_items", "users"]),
    ];
    for (query, tables) in cases {
        let out = tempfile::tempdir().unwrap();
        run_coffee(bad.shop.path(), out.path(), &["--query", query]).must(0);
        let places: Vec<Reported> = reported(out.path()).into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, bad.reports_of(tables), "{query}");
    }
}

#[test]
fn rejects_and_counts_do_not_depend_on_threads_or_chunks() {
    let bad = Bad::new();
    let mut first = None;
    for (threads, chunk) in [("1", "4M"), ("1", "60"), ("4", "300"), ("3", "4K"), ("2", "1")] {
        let out = tempfile::tempdir().unwrap();
        run_coffee(bad.shop.path(), out.path(), &["--threads", threads, "--chunk-size", chunk]).must(0);
        let now = (fs::read_to_string(out.path().join("rejects.csv")).unwrap(), summary(out.path())["tables"].clone());
        let first = first.get_or_insert_with(|| now.clone());
        assert!(first.0 == now.0, "rejects.csv differs with {threads} threads and chunks of {chunk}");
        assert_eq!(first.1, now.1, "{threads} threads, chunks of {chunk}");
    }
    let (_, tables) = first.unwrap();
    let size: u64 = files(&bad.shop.at("transactions")).values().map(|bytes| bytes.len() as u64).sum();
    assert_eq!(tables["transactions"]["bytes"], size, "every byte of the files is accounted for");
}

#[test]
fn strict_stops_at_the_first_bad_record_for_any_number_of_threads() {
    let shop = Shop::new();
    let line = |n: usize| match n {
        // The first is in a later chunk than others start with, and more follow.
        137 | 138 | 200 | 399 => transaction(&format!("n{n}"), "bad", "1.0", "75.0", AT),
        _ => transaction(&format!("n{n}"), "1", "1.0", "75.0", AT),
    };
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, (2..400).map(line));
    shop.lines("transactions/transactions_202402.csv", TRANSACTIONS, ["worse"]);
    for threads in ["1", "2", "3", "8"] {
        for chunk in ["64", "300", "1M"] {
            let out = tempfile::tempdir().unwrap();
            let more = ["--strict", "--threads", threads, "--chunk-size", chunk, "--quiet", "--query", "q1"];
            run_coffee(shop.path(), out.path(), &more).must(1).says(&[
                "transactions/transactions_202401.csv, line 137",
                "store_id",
                "\"bad\" is not a whole number",
            ]);
            assert_eq!(files(out.path()).len(), 0, "no results of a failed run");
        }
    }
}

#[test]
fn strict_is_content_with_good_data() {
    let shop = Shop::new();
    let out = tempfile::tempdir().unwrap();
    run_coffee(shop.path(), out.path(), &["--strict"]).must(0);
    assert!(!out.path().join("rejects.csv").exists());
}

#[test]
fn a_header_that_names_other_columns_fails_with_the_file_and_the_column() {
    let shop = Shop::new();
    shop.file("users/users_202401.csv", "user_id,sex,birthdate,registered_at\n");
    let data = shop.path().to_str().unwrap();
    let done = tenaz(["run", "coffee", "--quiet", "--data", data, "--query", "q4"]).must(1);
    done.says(&["users/users_202401.csv", "column 2 is named \"sex\", expected \"gender\""]);
}

#[test]
fn bad_records_cannot_play_tricks_on_the_terminal_and_are_kept_as_they_are_in_the_file() {
    let shop = Shop::new();
    let trick = "\"\u{1b}[2J\nnew line\",one,1,,,1.0,0.0,1.0,";
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, [trick]);
    let out = tempfile::tempdir().unwrap();
    let told = run_coffee(shop.path(), out.path(), &["--query", "q1"]).must(0);
    assert!(!told.err.contains('\u{1b}') && told.err.contains("⏎new line"), "{:?}", told.err);
    assert_eq!(reported(out.path())[0].1, trick);
    shop.lines("transactions/transactions_202401.csv", TRANSACTIONS, ["a,\"on\ne\",1,,,1.0,0.0,1.0,"]);
    run_coffee(shop.path(), out.path(), &["--quiet", "--strict"]).must(1).says(&["line 2", "store_id"]);
}
