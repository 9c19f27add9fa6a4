//! Every key of a workload file has an effect.
//!
//! The parser itself says which keys there are, when it meets one that it does not know. For each of them a file differs in this
//! key only, and something that a user sees must differ: an answer, a bad record, the summary, or the plan.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const BASE: &str = r#"
name = "shop"
title = "A shop"
now = "2025-01-01"

[[table]]
name = "sales"
files = "sales.csv"
role = "fact"
header = "skip"
delimiter = ","
columns_by_name = true
columns = [
  { name = "n", type = "int", float_text = false, required = false, nulls = [] },
  { name = "paid", type = "bool", yes = ["y"], no = ["n"] },
]

[[table]]
name = "items"
files = "items.csv"
role = "dimension"
columns = [{ name = "n", type = "int" }]

[[table]]
name = "prices"
files = "prices.csv"
columns = [{ name = "price", type = "decimal(9,2)", trim_zeros = false }]

[[query]]
name = "all"
title = "All sales"
sql = "SELECT s.n, s.paid FROM sales s JOIN items i ON s.n = i.n ORDER BY s.n"
ordered = true

[[query]]
name = "prices"
sql = "SELECT price FROM prices"
"#;

/// Where a key stands, what is replaced, and by what.
const CHANGES: &[(&str, &str, &str, &str)] = &[
    ("workload", "name", "name = \"shop\"", "name = \"store\""),
    ("workload", "title", "title = \"A shop\"", "title = \"A store\""),
    ("workload", "now", "now = \"2025-01-01\"", "now = \"2025-01-02\""),
    ("workload", "table", "[[table]]\nname = \"items\"", "[[table]]\nname = \"goods\""),
    ("workload", "query", "[[query]]", "[[query]]\nname = \"more\"\nsql = \"SELECT n FROM items\"\n\n[[query]]"),
    ("table", "name", "name = \"items\"", "name = \"goods\""),
    ("table", "files", "files = \"sales.csv\"", "files = \"sales*.csv\""),
    ("table", "role", "role = \"dimension\"", "role = \"fact\""),
    ("table", "header", "header = \"skip\"", "header = \"none\""),
    ("table", "delimiter", "delimiter = \",\"", "delimiter = \";\""),
    ("table", "encoding", "delimiter = \",\"", "delimiter = \",\"\nencoding = \"utf-16le\""),
    ("table", "quote", "delimiter = \",\"", "delimiter = \",\"\nquote = \"y\""),
    ("table", "escape", "delimiter = \",\"", "delimiter = \",\"\nescape = \"backslash\""),
    ("table", "comment", "delimiter = \",\"", "delimiter = \",\"\ncomment = \"j\""),
    ("table", "skip", "delimiter = \",\"", "delimiter = \",\"\nskip = 1"),
    ("table", "skip_spaces", "delimiter = \",\"", "delimiter = \",\"\nskip_spaces = true"),
    ("table", "line_end", "delimiter = \",\"", "delimiter = \",\"\nline_end = \"cr\""),
    ("table", "columns_by_name", "columns_by_name = true", "columns_by_name = false"),
    ("table", "drop_repeated_headers", "delimiter = \",\"", "delimiter = \",\"\ndrop_repeated_headers = true"),
    ("table", "drop_totals", "delimiter = \",\"", "delimiter = \",\"\ndrop_totals = true"),
    ("table", "drop_unlabelled", "delimiter = \",\"", "delimiter = \",\"\ndrop_unlabelled = true"),
    ("table", "drop_blank", "delimiter = \",\"", "delimiter = \",\"\ndrop_blank = true"),
    ("table", "drop_footnotes", "delimiter = \",\"", "delimiter = \",\"\ndrop_footnotes = true"),
    ("table", "ruled", "delimiter = \",\"", "delimiter = \",\"\nruled = true"),
    ("table", "framed", "delimiter = \",\"", "delimiter = \",\"\nframed = true"),
    ("table", "doubled_delimiter", "delimiter = \",\"", "delimiter = \",\"\ndoubled_delimiter = true"),
    ("table", "lenient", "delimiter = \",\"", "delimiter = \",\"\nlenient = true"),
    (
        "table",
        "columns",
        "columns = [{ name = \"n\", type = \"int\" }]",
        "columns = [{ name = \"m\", type = \"int\" }]",
    ),
    ("column", "name", "{ name = \"paid\"", "{ name = \"settled\""),
    ("column", "type", "{ name = \"n\", type = \"int\" }", "{ name = \"n\", type = \"decimal(9,2)\" }"),
    ("column", "float_text", "float_text = false", "float_text = true"),
    ("column", "required", "required = false", "required = true"),
    ("column", "nulls", "nulls = []", "nulls = [\"4\"]"),
    ("column", "yes", "yes = [\"y\"]", "yes = [\"j\"]"),
    ("column", "no", "no = [\"n\"]", "no = [\"-\"]"),
    ("column", "trim_zeros", "trim_zeros = false", "trim_zeros = true"),
    ("column", "header", "yes = [\"y\"]", "header = \"settled\", yes = [\"y\"]"),
    ("column", "decimal_mark", "float_text = false", "float_text = false, decimal_mark = \",\""),
    ("column", "group_mark", "float_text = false", "float_text = false, group_mark = \",\""),
    ("column", "date_order", "float_text = false", "float_text = false, date_order = \"dmy\""),
    ("column", "date_format", "float_text = false", "float_text = false, date_format = \"%d.%m.%Y\""),
    ("column", "formulas", "float_text = false", "float_text = false, formulas = true"),
    ("query", "name", "name = \"all\"", "name = \"every\""),
    ("query", "title", "title = \"All sales\"", "title = \"Every sale\""),
    (
        "query",
        "file",
        "sql = \"SELECT s.n, s.paid FROM sales s JOIN items i ON s.n = i.n ORDER BY s.n\"",
        "file = \"all.sql\"",
    ),
    ("query", "sql", "ORDER BY s.n\"", "ORDER BY s.n DESC\""),
    ("query", "ordered", "ordered = true", "ordered = false"),
];

fn tenaz(arguments: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_tenaz")).args(arguments).env_remove("TENAZ_CONFIG").output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{:?}\n{}\n{}", done.status.code(), text(&done.stdout), text(&done.stderr))
}

/// Everything that a user sees of this workload.
fn shown(dir: &Path, workload: &str) -> String {
    let path = |name: &str| dir.join(name).display().to_string();
    std::fs::write(path("workload.toml"), workload).unwrap();
    let out = dir.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut shown = tenaz(&["explain", &path("workload.toml"), "--format", "json"]);
    shown += &tenaz(&["run", &path("workload.toml"), "--data", &path("data"), "--out", &path("out")]);
    // Answers on the screen have titles.
    shown += &tenaz(&["run", &path("workload.toml"), "--data", &path("data")]);
    let mut files: Vec<_> =
        std::fs::read_dir(&out).map(|dir| dir.map(|entry| entry.unwrap().path()).collect()).unwrap_or_default();
    files.sort();
    for file in files {
        shown += &format!("{}\n{}", file.display(), std::fs::read_to_string(&file).unwrap());
    }
    // Names of jobs and times differ from run to run.
    let is_lasting = |line: &&str| {
        let is_time =
            ["elapsed_seconds", "\"job\"", " s ("].iter().any(|text| line.contains(text)) || line.ends_with(" s");
        let is_final_at = line.contains("Z\"") && !line.contains("\"now\"");
        !is_time && !is_final_at
    };
    shown.lines().filter(is_lasting).collect::<Vec<_>>().join("\n")
}

/// The keys that may stand in this place, as the parser names them.
fn known_keys(dir: &Path, place: &str) -> BTreeSet<String> {
    let unknown = match place {
        "workload" => BASE.replace("title = \"A shop\"", "unheard-of = 1"),
        "table" => BASE.replace("role = \"fact\"", "unheard-of = 1"),
        "column" => BASE.replace("float_text = false", "unheard-of = 1"),
        _ => BASE.replace("ordered = true", "unheard-of = 1"),
    };
    std::fs::write(dir.join("unknown.toml"), unknown).unwrap();
    let error = tenaz(&["explain", &dir.join("unknown.toml").display().to_string()]);
    let (_, expected) = error.split_once("expected one of").unwrap_or_else(|| panic!("{place}: {error}"));
    expected.lines().next().unwrap().split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn prepared() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    std::fs::create_dir(&data).unwrap();
    // Every way of writing is there once, so that saying it makes a difference.
    let sales = "paid,n\ny,1\nn,2\ny,3.0\nn,\ny,4\nj,5\n\\y,6\n\"y\", 7\ny, \"8\"\ny,9\ry,10\npaid,n\ny\n\
                 y,\"1,500\"\ny,1.2.2025\n-----\n,y,11,\n,12\ny,,14\ny,=\"13\"\nTotal,30\n,\n\nNotes\n";
    for (name, text) in [
        ("sales.csv", sales),
        ("sales-2.csv", "paid,n\nn,1\n"),
        ("items.csv", "n\n1\n2\n3\n4\n"),
        ("prices.csv", "price\n1.5\n2\n"),
    ] {
        std::fs::write(data.join(name), text).unwrap();
    }
    std::fs::write(dir.path().join("all.sql"), "SELECT count(*) AS c FROM sales").unwrap();
    dir
}

#[test]
fn every_key_of_a_workload_file_has_a_change_here() {
    let dir = prepared();
    for place in ["workload", "table", "column", "query"] {
        let changed: BTreeSet<String> =
            CHANGES.iter().filter(|change| change.0 == place).map(|change| change.1.to_owned()).collect();
        assert_eq!(
            known_keys(dir.path(), place),
            changed,
            "keys of a {place}: a new one needs a change here, and an effect"
        );
    }
}

#[test]
fn every_key_of_a_workload_file_has_an_effect_that_a_user_sees() {
    let dir = prepared();
    let plain = shown(dir.path(), BASE);
    assert!(plain.contains("1,") && plain.starts_with("Some(0)"), "{plain}");
    assert_eq!(shown(dir.path(), BASE), plain, "without a change nothing changes");
    for (place, key, from, to) in CHANGES {
        let changed = BASE.replacen(from, to, 1);
        assert_ne!(changed, BASE, "{place} {key}: nothing was replaced");
        assert_ne!(shown(dir.path(), &changed), plain, "{key} of a {place} has no effect");
    }
}
