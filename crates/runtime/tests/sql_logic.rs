//! General SQL gives the same rows in stages, however it is cut up, as DataFusion gives directly.
//!
//! The cases are in `crates/engine/tests/sql/*.slt`, one topic a file. A case is a line that says what to expect, the
//! SQL up to an empty line, and optionally `----` with the very rows:
//!
//! ```text
//! query            the same rows, in any order
//! query ordered    the same rows in the same order: ORDER BY leaves no ties
//! query count      the same number of rows: which ones is left open by the SQL
//! error TEXT       a mistake for both, and tenaz's message contains TEXT
//! ours             the rows of the file: DataFusion itself is wrong there or fails, and the file says why
//! alone            the header and the rows of the file, in any order: DataFusion itself cannot answer
//! alone ordered    the same in the very order
//! refused TEXT     something that tenaz says, with TEXT in the message, that it cannot do
//! ```

mod staged;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use staged::{Cutting, Lines, Rows, direct, direct_context, is_clean, plan, text, workload, write_files};
use tenaz_csv::Kind;
use tenaz_engine::Role;

const CUTTINGS: [Cutting; 3] = [
    Cutting { partitions: 1, chunk_bytes: 150, threads: 1 },
    Cutting { partitions: 3, chunk_bytes: 400, threads: 2 },
    Cutting { partitions: 8, chunk_bytes: 1, threads: 3 },
];

macro_rules! topics {
    ($($topic:ident)*) => {
        $(#[test]
        fn $topic() {
            check_file(stringify!($topic));
        })*

        #[test]
        fn every_file_is_a_test() {
            let mut known = vec![$(concat!(stringify!($topic), ".slt").to_owned()),*];
            let files = std::fs::read_dir(folder()).expect("the folder of cases");
            let mut found: Vec<String> =
                files.map(|f| f.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
            known.sort_unstable();
            found.sort_unstable();
            assert_eq!(found, known);
        }
    };
}

topics! {
    aggregates decimals exact expressions functions guards joins limits math mistakes numbers orders overflow patterns row_orders
    sets statistics subqueries ties times windows
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/sql"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect<'f> {
    Rows,
    Ordered,
    Count,
    Ours,
    Alone,
    AloneOrdered,
    Error(&'f str),
    Refused(&'f str),
}

#[derive(Debug)]
struct Case<'f> {
    line: usize,
    expect: Expect<'f>,
    sql: String,
    rows: Option<Vec<String>>,
}

fn parse(file: &str) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    let mut lines = file.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let expect = match (word, rest) {
            ("query", "") => Expect::Rows,
            ("query", "ordered") => Expect::Ordered,
            ("query", "count") => Expect::Count,
            ("ours", "") => Expect::Ours,
            ("alone", "") => Expect::Alone,
            ("alone", "ordered") => Expect::AloneOrdered,
            ("error", text) => Expect::Error(text),
            ("refused", text) => Expect::Refused(text),
            _ => panic!("line {}: {line:?} is no case", number + 1),
        };
        let body: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| !line.is_empty()).collect();
        let split = body.iter().position(|line| *line == "----");
        let sql = body[..split.unwrap_or(body.len())].join("\n");
        let rows = split.map(|at| body[at + 1..].iter().map(|row| (*row).to_owned()).collect());
        cases.push(Case { line: number + 1, expect, sql, rows });
    }
    cases
}

fn check_file(topic: &str) {
    let path = folder().join(format!("{topic}.slt"));
    let file = std::fs::read_to_string(&path).expect("the file of cases");
    let tables = tables();
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_files(&tables, dir.path());
    let context = direct_context(&tables);
    let mut failures = Vec::new();
    let mut together: Vec<(&Case<'_>, Lines)> = Vec::new();
    let cases = parse(&file);
    for case in &cases {
        let asked = catch_unwind(AssertUnwindSafe(|| direct(&context, &case.sql)));
        let mut expected = asked.unwrap_or_else(|_| Err("DataFusion panics".to_owned()));
        if case.expect == Expect::Ours {
            // Where DataFusion cannot answer at all, nothing is known of the header.
            let header = expected.map_or(String::new(), |lines| lines.header);
            let rows = case.rows.clone().expect("the rows are given where nobody else knows them");
            expected = Ok(Lines { header, rows });
        }
        if matches!(case.expect, Expect::Alone | Expect::AloneOrdered) {
            let rows = case.rows.as_deref().expect("the answer is given where nobody else knows it");
            expected = match (expected, rows) {
                (Ok(_), _) => Err("answered by DataFusion, too: no reason to stand alone".to_owned()),
                (Err(_), [header, rows @ ..]) => Ok(Lines { header: header.clone(), rows: rows.to_vec() }),
                (Err(_), []) => Err("there is no header".to_owned()),
            };
        }
        let checked = match case.expect {
            Expect::Error(part) | Expect::Refused(part) => {
                check_refusal(&tables, dir.path(), case, part, expected.is_err())
            }
            _ => check_case(&tables, dir.path(), case, &expected),
        };
        match (checked, expected) {
            (Err(failure), _) => failures.push(format!("{}:{}: {failure}\n{}", path.display(), case.line, case.sql)),
            (Ok(()), Ok(expected)) if !matches!(case.expect, Expect::Refused(_)) => together.push((case, expected)),
            _ => {}
        }
    }
    if let Err(failure) = check_together(&tables, dir.path(), &together) {
        failures.push(format!("{}: all queries in one job: {failure}", path.display()));
    }
    assert!(failures.is_empty(), "{} of {}:\n\n{}", failures.len(), cases.len(), failures.join("\n\n"));
}

fn check_case(
    tables: &[Rows],
    dir: &std::path::Path,
    case: &Case<'_>,
    expected: &Result<Lines, String>,
) -> Result<(), String> {
    let expected = expected.as_ref().map_err(|e| format!("DataFusion itself fails: {e}"))?;
    if let Some(rows) = case.rows.as_ref().filter(|_| !matches!(case.expect, Expect::Alone | Expect::AloneOrdered)) {
        let shown = Lines { header: expected.header.clone(), rows: rows.clone() };
        compare(case.expect, &shown, expected).map_err(|e| format!("DataFusion differs from the file: {e}"))?;
    }
    let workload = Arc::new(workload(tables, [case.sql.as_str()]));
    let plan = Arc::new(plan(&workload).map_err(|e| format!("not planned: {e}"))?);
    for cutting in CUTTINGS {
        let answers = staged::staged(&workload, &plan, dir, cutting).map_err(|e| format!("{cutting:?}: {e}"))?;
        compare(case.expect, expected, &answers[0]).map_err(|e| format!("{cutting:?}: {e}"))?;
    }
    Ok(())
}

fn check_refusal(
    tables: &[Rows],
    dir: &std::path::Path,
    case: &Case<'_>,
    part: &str,
    direct_fails: bool,
) -> Result<(), String> {
    if direct_fails != matches!(case.expect, Expect::Error(_)) {
        return Err(format!("DataFusion itself {}", if direct_fails { "fails" } else { "answers" }));
    }
    let workload = Arc::new(workload(tables, [case.sql.as_str()]));
    let is_right = |error: &String| error.contains(part) && is_clean(error);
    let check = |outcome: Result<(), String>| match outcome {
        Err(error) if is_right(&error) => Ok(()),
        other => Err(format!("expected an error with {part:?}, found {other:?}")),
    };
    match plan(&workload) {
        Err(error) => check(Err(error)),
        Ok(plan) => {
            let plan = Arc::new(plan);
            CUTTINGS.iter().try_for_each(|&cutting| check(staged::staged(&workload, &plan, dir, cutting).map(drop)))
        }
    }
}

fn check_together(tables: &[Rows], dir: &std::path::Path, cases: &[(&Case<'_>, Lines)]) -> Result<(), String> {
    let workload = Arc::new(workload(tables, cases.iter().map(|(case, _)| case.sql.as_str())));
    let plan = Arc::new(plan(&workload)?);
    let answers = staged::staged(&workload, &plan, dir, CUTTINGS[1])?;
    assert_eq!(answers.len(), cases.len());
    for ((case, expected), answer) in cases.iter().zip(&answers) {
        compare(case.expect, expected, answer).map_err(|e| format!("line {}: {e}", case.line))?;
    }
    Ok(())
}

fn compare(expect: Expect<'_>, expected: &Lines, found: &Lines) -> Result<(), String> {
    let same = match expect {
        Expect::Ours if expected.header.is_empty() => expected.clone().sorted().rows == found.clone().sorted().rows,
        Expect::Ordered | Expect::AloneOrdered => expected == found,
        Expect::Count => expected.header == found.header && expected.rows.len() == found.rows.len(),
        _ => expected.clone().sorted() == found.clone().sorted(),
    };
    let show = |lines: &Lines| format!("{}\n{}", lines.header, lines.rows.join("\n"));
    if same { Ok(()) } else { Err(format!("expected\n{}\nfound\n{}", show(expected), show(found))) }
}

/// A little shop. Nulls, duplicates, keys without a partner on either side, an empty fact and an empty dimension table.
fn tables() -> Vec<Rows> {
    let int = || Kind::Int { float_text: false };
    let flag = || Kind::Bool { yes: vec!["true".to_owned()], no: vec!["false".to_owned()] };
    let money = || Kind::Decimal { precision: 10, scale: 2 };
    let orders = Rows {
        name: "orders",
        role: Role::Fact,
        columns: vec![
            ("id", int()),
            ("customer", int()),
            ("item", Kind::Text),
            ("qty", int()),
            ("price", money()),
            ("weight", Kind::Float),
            ("at", Kind::Timestamp),
            ("day", Kind::Date),
            ("rush", flag()),
            ("tags", Kind::Text),
            ("made", Kind::Text),
        ],
        rows: (1..=40).map(order).collect(),
    };
    let payments = Rows {
        name: "payments",
        role: Role::Fact,
        columns: vec![("order_id", int()), ("amount", money()), ("method", Kind::Text)],
        rows: (0..30_u64)
            .map(|i| {
                let order = if i % 10 == 9 { String::new() } else { (1 + i * 7 % 45).to_string() };
                let amount = format!("{}.{:02}", i * 13 % 50, i * 37 % 100);
                text(&[&order, &amount, ["card", "cash", "", "voucher"][(i % 4) as usize]])
            })
            .collect(),
    };
    let numbers = Rows {
        name: "numbers",
        role: Role::Fact,
        columns: vec![("n", int()), ("half", int())],
        rows: (1..=12_u64).map(|n| text(&[&n.to_string(), &(n / 2).to_string()])).collect(),
    };
    let customers = Rows {
        name: "customers",
        role: Role::Dimension,
        columns: vec![("id", int()), ("name", Kind::Text), ("city", Kind::Text), ("vip", flag()), ("boss", int())],
        rows: vec![
            text(&["1", "Ana", "Lima", "true", ""]),
            text(&["2", "Bo", "Oslo", "false", "1"]),
            text(&["3", "Cem", "Lima", "", "1"]),
            text(&["4", "Dov, Jr", "Rome", "true", "2"]),
            text(&["5", "Eve", "", "false", "4"]),
            text(&["6", "", "Oslo", "true", "4"]),
            text(&["7", "Gus", "Kyiv", "false", "9"]),
            text(&["8", "Ana", "Kyiv", "false", "8"]),
        ],
    };
    let cities = Rows {
        name: "cities",
        role: Role::Dimension,
        columns: vec![("city", Kind::Text), ("region", Kind::Text), ("people", int())],
        rows: vec![
            text(&["Lima", "America", "10000000"]),
            text(&["Oslo", "Europe", "700000"]),
            text(&["Rome", "Europe", "2800000"]),
            text(&["Bern", "Europe", ""]),
            text(&["", "Nowhere", "0"]),
        ],
    };
    let empty = |name, role| Rows { name, role, columns: vec![("a", int()), ("b", Kind::Text)], rows: Vec::new() };
    vec![orders, customers, payments, cities, numbers, empty("hollow", Role::Fact), empty("void", Role::Dimension)]
}

fn order(i: u64) -> Vec<Option<String>> {
    let or_null = |null: bool, value: String| if null { String::new() } else { value };
    text(&[
        &i.to_string(),
        &or_null(i % 9 == 4, (1 + i * 5 % 10).to_string()),
        ["tea", "cup", "", "pot", "tea", "tin"][(i % 6) as usize],
        &or_null(i % 7 == 3, (i * 11 % 6).to_string()),
        &or_null(i % 11 == 5, format!("{}.{:02}", i * 17 % 23, i * 29 % 100)),
        &or_null(i % 8 == 6, format!("{}", (i * 31 % 17) as f64 * 0.1 + 1e9 * (i % 2) as f64)),
        &format!("2024-{:02}-{:02} {:02}:30:00", 1 + i % 12, 1 + i % 28, i % 24),
        &or_null(i % 13 == 7, format!("2024-{:02}-{:02}", 1 + i % 12, 1 + i % 28)),
        ["true", "false", ""][(i % 3) as usize],
        ["['a', 'b']", "[\"it's\", 'a, b']", "", "[]", "broken"][(i % 5) as usize],
        ["1996", "2005-01-01", "1996*", "", "19??", "Oct 21, 2008"][(i % 6) as usize],
    ])
}
