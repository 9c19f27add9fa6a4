//! One question that cannot be answered does not take the others of its pass with it.

#![allow(clippy::unwrap_used)] // A test may panic.

mod program;

use std::fs;
use std::io::Write;
use std::path::Path;

use program::{Finished, command};
use serde_json::Value;
use tempfile::TempDir;

const WORKLOAD: &str = r#"
name = "shop"

[[table]]
name = "stores"
files = "stores.csv"
role = "dimension"
columns = [{ name = "store", type = "int" }, { name = "share", type = "int" }, { name = "city", type = "text" }]

[[table]]
name = "sales"
files = "sales.csv"
role = "fact"
columns = [
    { name = "n", type = "int" },
    { name = "store", type = "int" },
    { name = "item", type = "text" },
    { name = "price", type = "decimal(10,2)" },
]

[[query]]
name = "count"
sql = "SELECT count(*) AS n FROM sales"

[[query]]
name = "leaf"
sql = "SELECT n, 100 / (n - 777) AS q FROM sales WHERE n > 700"

[[query]]
name = "by_store"
sql = "SELECT store, sum(price) AS total FROM sales GROUP BY store"

[[query]]
name = "inner"
sql = "SELECT store, 1 / (count(*) - 100) AS q FROM sales GROUP BY store"

[[query]]
name = "above"
sql = "SELECT sum(q) AS q FROM (SELECT store, 1 / (count(*) - 100) AS q FROM sales GROUP BY store) x"

[[query]]
name = "text"
sql = "SELECT sum(CAST(item AS BIGINT)) AS s FROM sales"

[[query]]
name = "broadcast"
sql = "SELECT s.n, b.part FROM sales s JOIN (SELECT store, 60 / share AS part FROM stores) b ON b.store = s.store"

[[query]]
name = "joined"
sql = "SELECT b.city, count(*) AS n FROM sales s JOIN stores b ON b.store = s.store GROUP BY b.city ORDER BY n DESC"
"#;

const FINE: [&str; 3] = ["count", "by_store", "joined"];
/// With the beginnings of what is said. Sums of several records are no record's fault.
const FAILING: [(&str, &str); 5] = [
    ("leaf", "sales.csv, line 779: division by zero, in 100 / (n - 777), where n is 777; divide by NULLIF"),
    ("inner", "division by zero, in 1 / (count(*) - 100), where"),
    ("above", "division by zero, in 1 / (count(*) - 100), where"),
    (
        "text",
        "sales.csv, line 502: cannot cast string 'thing-500' to value of Int64 type, in CAST(item AS Int64), where",
    ),
    ("broadcast", "stores.csv, line 2: division by zero, in 60 / share, where share is 0; divide by NULLIF"),
];

/// Ten stores with a hundred sales each: records that some questions cannot take are anywhere in the data.
fn shop() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let sale = |n: u64| {
        let item = if n == 500 { "thing-500".to_owned() } else { n.to_string() };
        format!("{n},{},{item},{}.25\n", n % 10, n % 7)
    };
    let sales: String = (0..1000).map(sale).collect();
    fs::write(dir.path().join("sales.csv"), format!("n,store,item,price\n{sales}")).unwrap();
    let stores: String = (0..10).map(|store| format!("{store},{},city {}\n", store % 7, store % 3)).collect();
    fs::write(dir.path().join("stores.csv"), format!("store,share,city\n{stores}")).unwrap();
    fs::write(dir.path().join("shop.toml"), WORKLOAD).unwrap();
    dir
}

fn run(shop: &TempDir, out: &Path, more: &[&str]) -> Finished {
    let mut command = command(["run"]);
    command.arg(shop.path().join("shop.toml")).arg("--data").arg(shop.path()).arg("--out").arg(out).args(more);
    Finished::new(command.output().unwrap())
}

fn summary(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap()
}

/// Names and texts of what a run could not answer.
fn failed(summary: &Value) -> Vec<(String, String)> {
    let failed = summary["failed"].as_object().unwrap();
    failed.iter().map(|(name, failed)| (name.clone(), failed["text"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn the_others_are_answered_and_the_failed_ones_are_named_once() {
    let (shop, out) = (shop(), tempfile::tempdir().unwrap());
    fs::write(out.path().join("leaf.csv"), "of an earlier run\n").unwrap();
    let finished = run(&shop, out.path(), &[]).must(1);
    let told = summary(out.path());
    for name in FINE {
        assert!(fs::metadata(out.path().join(format!("{name}.csv"))).unwrap().len() > 0, "{name}");
        assert_eq!(told["queries"][name]["fingerprint"].as_str().unwrap().len(), 64, "{name}");
    }
    for (name, text) in FAILING {
        assert!(!out.path().join(format!("{name}.csv")).exists(), "{name}");
        assert!(told["queries"].get(name).is_none(), "{name}");
        assert_eq!(told["failed"][name]["class"], "query");
        assert!(told["failed"][name]["text"].as_str().unwrap().starts_with(text), "{told}");
        let lines = finished.err.lines().filter(|line| line.starts_with(&format!("tenaz: {name}: "))).count();
        assert_eq!(lines, 1, "{}", finished.err);
    }
    assert_eq!(told["failed"].as_object().unwrap().len(), FAILING.len(), "{told}");
    assert_eq!(told["tables"]["sales"]["accepted"], 1000);
}

#[test]
fn which_questions_fail_and_with_which_words_does_not_depend_on_how_the_job_runs() {
    let shop = shop();
    let mut first: Option<(Vec<(String, String)>, Value)> = None;
    for more in [
        &[][..],
        &["--threads", "1"],
        &["--threads", "4", "--chunk-size", "512", "--partitions", "3"],
        &["--threads", "2", "--chunk-size", "2K", "--partitions", "7"],
        &["--threads", "3", "--chunk-size", "1K", "--partitions", "1", "--memory", "1M"],
    ] {
        let out = tempfile::tempdir().unwrap();
        run(&shop, out.path(), more).must(1);
        let told = summary(out.path());
        let found = (failed(&told), told["queries"].clone());
        assert_eq!(first.get_or_insert_with(|| found.clone()), &found, "{more:?}");
    }
}

/// Records with line ends in quotes, blank lines, bad records, of which some are no rows and two cannot be divided by.
fn odd_records() -> String {
    let record = |n: u64| match n {
        _ if n == 1_300 || n == 1_700 => format!("{n},\"zero\n\nin three lines\",0\n"),
        _ if n.is_multiple_of(11) => format!("{n},\"two\nlines\",{n}\n"),
        _ if n.is_multiple_of(17) => format!("{n},not a number of fields\n\n"),
        _ if n.is_multiple_of(19) => format!("{n},not a number,x\n"),
        _ => format!("{n},one line,{n}\n"),
    };
    (1..2_000).map(record).collect()
}

/// The line of the first record that begins so.
fn line_of(text: &str, record: &str) -> usize {
    let at = text.find(&format!("\n{record}")).unwrap();
    text[..=at].matches('\n').count() + 1
}

#[test]
fn the_first_record_that_a_question_cannot_take_is_named_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let text = format!("n,text,under\n{}", odd_records());
    // The first file is fine: the record is in the second one, whichever thread comes to it first.
    fs::write(dir.path().join("odd-1.csv"), "n,text,under\n1,fine,1\n").unwrap();
    fs::write(dir.path().join("odd-2.csv"), &text).unwrap();
    let workload = r#"
name = "odd"
[[table]]
name = "odd"
files = "odd-*"
role = "fact"
columns = [{ name = "n", type = "int" }, { name = "text", type = "text" }, { name = "under", type = "int" }]
[[query]]
name = "argument"
sql = "SELECT max(100 / under) AS m FROM odd"
[[query]]
name = "column"
sql = "SELECT n, 100 / under AS q FROM odd WHERE n > 10 ORDER BY n"
[[query]]
name = "filter"
sql = "SELECT count(*) AS c FROM odd WHERE 100 / under > 3"
"#;
    let file = dir.path().join("odd.toml");
    fs::write(&file, workload).unwrap();
    let line = line_of(&text, "1300,");
    let check = |name: &str, more: &[&str]| {
        let out = tempfile::tempdir().unwrap();
        let mut command = command(["run", "--accept-rejects", "--data"]);
        command.arg(dir.path()).arg(&file).arg("--out").arg(out.path()).args(more);
        let finished = Finished::new(command.output().unwrap()).must(1);
        let told = failed(&summary(out.path()));
        assert_eq!(told.len(), 3, "{}", finished.err);
        for (query, said) in told {
            let place = format!("{name}, line {line}: division by zero, in 100 / under, where under is 0; divide");
            assert!(said.starts_with(&place), "{query} with {more:?}: {said}, not {place}");
        }
    };
    let settings: [&[&str]; 4] = [
        &[],
        &["--threads", "1"],
        &["--threads", "4", "--chunk-size", "512", "--partitions", "3"],
        &["--threads", "2", "--chunk-size", "2K", "--memory", "1M"],
    ];
    settings.iter().for_each(|more| check("odd-2.csv", more));
    // What is unpacked while it is read is unpacked once more.
    let packed = fs::File::create(dir.path().join("odd-2.csv.gz")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(packed, flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap();
    fs::remove_file(dir.path().join("odd-2.csv")).unwrap();
    settings.iter().for_each(|more| check("odd-2.csv.gz", more));
}

#[test]
fn the_tables_of_the_others_are_shown_on_standard_output() {
    let shop = shop();
    let questions =
        "-- name: fine\nSELECT count(*) AS n FROM sales;\n-- name: broken\nSELECT 1 / (n - 777) FROM sales;";
    let file = shop.path().join("questions.sql");
    fs::write(&file, questions).unwrap();
    let mut sql = command(["sql", "--data"]);
    sql.arg(shop.path()).arg("--file").arg(&file);
    let finished = Finished::new(sql.output().unwrap()).must(1);
    assert!(finished.text().contains("fine") && finished.text().contains("1000"), "{}", finished.text());
    assert!(!finished.text().contains("broken"), "{}", finished.text());
    let broken = "tenaz: broken: sales.csv, line 779: division by zero, in 1 / (n - 777), where n is 777; divide by NULLIF(…, 0) to get null instead\n";
    assert!(finished.err.ends_with(broken), "{}", finished.err);
}

#[test]
fn a_question_that_needs_too_much_memory_does_not_take_the_others_with_it() {
    let dir = tempfile::tempdir().unwrap();
    // Every text is a group of its own, and an aggregate over all of them cannot be spilled.
    let rows: String = (0..60_000).map(|n| format!("{n},{}{n}\n", "x".repeat(2_000))).collect();
    fs::write(dir.path().join("texts.csv"), format!("n,t\n{rows}")).unwrap();
    let questions = "-- name: large\nSELECT array_agg(t ORDER BY t) AS a FROM texts;\n-- name: small\nSELECT count(*) AS n FROM texts;";
    let out = dir.path().join("out");
    let mut sql = command(["sql", "--memory", "1M", "--threads", "2", "--data"]);
    sql.arg(dir.path().join("texts.csv")).arg("--out").arg(&out).arg(questions);
    let finished = Finished::new(sql.output().unwrap()).must(1);
    assert_eq!(fs::read_to_string(out.join("small.csv")).unwrap(), "n\n60000\n");
    let told = summary(&out);
    assert_eq!(told["failed"]["large"]["class"], "process", "{told} {}", finished.err);
    assert!(!out.join("large.csv").exists());
}

#[test]
fn a_question_that_cannot_be_planned_still_refuses_the_job_before_it_reads() {
    let (shop, out) = (shop(), tempfile::tempdir().unwrap());
    let text = WORKLOAD.replace("SELECT count(*) AS n FROM sales", "SELECT nothing FROM sales");
    fs::write(shop.path().join("shop.toml"), text).unwrap();
    let finished = run(&shop, out.path(), &[]).must(1);
    assert!(finished.err.contains("nothing"), "{}", finished.err);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}
