//! Any text as a workload file or as SQL: a plan or an error with a place, in bounded time, never a panic or an overflow of the stack.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tenaz_core::WorkloadText;
use tenaz_engine::{JobPlan, Workload};
use tenaz_fuzz::Target;

/// What planning may take, and what a busy machine adds to it.
const PLANNING: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(8);

const TABLES: &str = r#"
name = "fuzz"
[[table]]
name = "t"
files = "t.csv"
role = "fact"
columns = [{ name = "a", type = "int" }, { name = "x", type = "decimal(12,2)" }, { name = "s", type = "text" }, { name = "d", type = "date" }]
[[table]]
name = "u"
files = "u.csv"
role = "dimension"
columns = [{ name = "a", type = "int" }, { name = "b", type = "float" }]
[[query]]
name = "q"
file = "q.sql"
"#;

fn workload(toml: &str, sql: &str) -> Result<Workload, tenaz_engine::Error> {
    let sql = BTreeMap::from([("q.sql".to_owned(), sql.to_owned())]);
    Workload::from_text(&WorkloadText { file: "fuzz.toml".to_owned(), toml: toml.to_owned(), sql, now: None })
}

fn plan(workload: &Workload) -> String {
    let begun = Instant::now();
    let planned = JobPlan::within(workload, PLANNING);
    assert!(begun.elapsed() < PLANNING + GRACE, "planning took {:?}", begun.elapsed());
    match planned {
        Ok(plan) => format!("{} {}", plan.stages.len().min(8), plan.scans.len().min(4)),
        Err(error) => kind(&error),
    }
}

/// An error without what is different in every text.
fn kind(error: &tenaz_engine::Error) -> String {
    let text = error.to_string();
    assert!(!text.is_empty());
    text.chars().filter(|c| c.is_ascii_alphabetic() || *c == ' ').take(60).collect()
}

#[test]
fn workload_files_are_read_or_refused() {
    Target::new("workloads", env!("CARGO_MANIFEST_DIR")).run(|input| {
        match workload(&String::from_utf8_lossy(input), "SELECT 1") {
            Ok(workload) => format!("{} {}", workload.tables.len().min(4), workload.queries.len().min(4)),
            Err(error) => kind(&error),
        }
    });
}

#[test]
fn questions_are_planned_or_refused() {
    Target::new("sql", env!("CARGO_MANIFEST_DIR")).up_to(4096).run(|input| {
        match workload(TABLES, &String::from_utf8_lossy(input)) {
            Ok(workload) => plan(&workload),
            Err(error) => kind(&error),
        }
    });
}
