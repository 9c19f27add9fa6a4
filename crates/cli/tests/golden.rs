//! What users see, word for word: help, plans and the errors of wrong workload files.
//!
//! `TENAZ_BLESS=1 cargo test -p tenaz --test golden` accepts the present texts; read the difference before you commit it.
#![allow(clippy::unwrap_used)]

mod program;

use std::fs;
use std::path::Path;

use program::{Finished, command, tenaz};

#[track_caller]
fn matches_golden(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TENAZ_BLESS").is_some() {
        return fs::write(path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let line = 1 + expected.lines().zip(found.lines()).take_while(|(a, b)| a == b).count();
    assert!(
        expected == found,
        "tests/golden/{name} differs from line {line} on.\nexpected: {}\nfound:    {}\n\
         If the new text is right: TENAZ_BLESS=1 cargo test -p tenaz --test golden",
        expected.lines().nth(line - 1).unwrap_or("(the end)"),
        found.lines().nth(line - 1).unwrap_or("(the end)"),
    );
}

#[test]
fn help_texts_are_as_agreed() {
    matches_golden("help.txt", tenaz(["--help"]).must(0).text());
    for name in [
        "demo",
        "generate",
        "run",
        "submit",
        "worker",
        "gateway",
        "explain",
        "completions",
        "sql",
        "init",
        "ui",
        "up",
        "status",
        "down",
        "chaos",
        "supervisor",
    ] {
        let help = tenaz([name, "--help"]).must(0);
        matches_golden(&format!("help-{name}.txt"), help.text());
    }
}

#[test]
fn the_plans_of_the_bundled_workloads_are_as_agreed_and_the_same_in_every_process() {
    for name in ["coffee", "steam", "books"] {
        let golden = format!("explain-{name}.txt");
        for _ in 0..3 {
            matches_golden(&golden, tenaz(["explain", name]).must(0).text());
        }
    }
}

/// A workload file that is right; every mistake below replaces one part of it.
const RIGHT: &str = r#"name = "shop"
title = "A shop"

[[table]]
name = "orders"
files = "orders/*.csv"
role = "fact"
header = "check"
delimiter = ","
columns = [
    { name = "order_id", type = "int", float_text = true },
    { name = "paid", type = "bool", yes = ["y"], no = ["n"] },
    { name = "total", type = "decimal(15,2)", nulls = ["-"] },
    { name = "note", type = "text" },
]

[[query]]
name = "big"
sql = "SELECT order_id FROM orders WHERE total > 10"
ordered = false
"#;

const MISTAKES: &[(&str, &str, &str)] = &[
    ("broken TOML", "name = \"shop\"\n", "name = \"shop\n"),
    ("no name", "name = \"shop\"\n", ""),
    ("unusable workload name", "\"shop\"", "\"my shop!\""),
    ("misspelt key", "files = ", "flies = "),
    ("unknown key", "title = ", "colour = "),
    ("missing files", "files = \"orders/*.csv\"\n", ""),
    ("empty list of files", "\"orders/*.csv\"", "[]"),
    ("file outside the data", "\"orders/*.csv\"", "\"../orders.csv\""),
    ("absolute file", "\"orders/*.csv\"", "\"/orders.csv\""),
    ("wrong pattern", "\"orders/*.csv\"", "\"orders/***.csv\""),
    ("files of the wrong kind", "\"orders/*.csv\"", "7"),
    ("unknown role", "\"fact\"", "\"facts\""),
    ("unknown header", "\"check\"", "\"yes\""),
    ("long delimiter", "delimiter = \",\"", "delimiter = \"::\""),
    ("quote as delimiter", "delimiter = \",\"", "delimiter = '\"'"),
    ("misspelt type", "\"text\"", "\"txet\""),
    ("foreign type", "\"text\"", "\"varchar\""),
    ("impossible decimal", "decimal(15,2)", "decimal(2,15)"),
    ("decimal without numbers", "decimal(15,2)", "decimal"),
    ("float_text of a text", "type = \"text\"", "type = \"text\", float_text = true"),
    ("yes of a text", "type = \"text\"", "type = \"text\", yes = [\"y\"]"),
    ("column twice", "\"note\"", "\"total\""),
    ("column without type", "\"order_id\", type = \"int\", float_text = true", "\"order_id\""),
    ("empty column name", "\"note\"", "\"\""),
    ("table name for a file system", "\"orders\"", "\"../orders\""),
    ("neither file nor sql", "sql = \"SELECT order_id FROM orders WHERE total > 10\"\n", ""),
    ("query file missing", "sql = \"SELECT order_id FROM orders WHERE total > 10\"", "file = \"big.sql\""),
    ("ordered as text", "ordered = false", "ordered = \"no\""),
    ("unknown table in SQL", "FROM orders", "FROM order"),
    ("unknown column in SQL", "WHERE total", "WHERE totl"),
    ("SQL that is none", "SELECT order_id FROM", "SELEKT order_id FROM"),
    ("SQL cut short", "total > 10", "total >"),
    ("a statement that asks nothing", "SELECT order_id FROM orders WHERE total > 10", "DROP TABLE orders"),
    ("types that do not compare", "total > 10", "paid > 'x'"),
    ("unknown function in SQL", "SELECT order_id", "SELECT summ(order_id)"),
];

fn explained(text: &str) -> Finished {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("workload.toml"), text).unwrap();
    Finished::new(command(["explain", "workload.toml"]).current_dir(dir.path()).output().unwrap())
}

#[test]
fn every_mistake_in_a_workload_file_is_placed_and_comes_with_a_cure() {
    explained(RIGHT).must(0);
    let mut golden = String::new();
    let twice_table = format!("{RIGHT}\n{}", RIGHT.split("\n\n").nth(1).unwrap());
    let twice_query = format!("{RIGHT}\n{}", RIGHT.split("\n\n").nth(2).unwrap());
    let whole = [
        ("empty file", String::new()),
        ("no table", "name = \"shop\"\n".to_owned()),
        ("table twice", twice_table),
        ("query twice", twice_query),
    ];
    let parts = MISTAKES.iter().map(|(what, right, wrong)| {
        assert!(RIGHT.contains(right), "{what}: {right:?} is not in the file");
        (*what, RIGHT.replacen(right, wrong, 1))
    });
    for (what, text) in whole.into_iter().chain(parts) {
        let done = explained(&text);
        assert_eq!(done.code, Some(1), "{what}: {}{}", done.text(), done.err);
        let done = done.says(&[]);
        let place = done.err.strip_prefix("tenaz: ").unwrap();
        let placed = place.starts_with("workload.toml:") || place.starts_with("query big");
        assert!(placed, "{what}: no place in {place}");
        golden.push_str(&format!("# {what}\n{}\n", done.err));
    }
    matches_golden("workload-errors.txt", &golden);
}
