//! A budget far too small: rows provably go through temporary files, and the answers stay the same.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::path::Path;

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::QueryId;
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::{DataSet, Observer, Options, Outcome, Progress, RejectLine, run};

const WORKLOAD: &str = r#"
name = "spilling"
[[table]]
name = "events"
files = "events.csv"
columns = [{ name = "id", type = "int" }, { name = "person", type = "int" }, { name = "note", type = "text" }]
[[table]]
name = "people"
files = "people.csv"
columns = [{ name = "person", type = "int" }, { name = "name", type = "text" }]
[[query]]
name = "unordered"
sql = "SELECT note, id FROM events WHERE id % 10 <> 0"
[[query]]
name = "joined"
sql = "SELECT id, name, note FROM events JOIN people USING (person) ORDER BY name, id"
[[query]]
name = "grouped"
sql = "SELECT note, count(*) AS n FROM events GROUP BY note ORDER BY note"
[[query]]
name = "ranked"
sql = "SELECT person, id, note FROM (SELECT *, rank() OVER (PARTITION BY person ORDER BY id) AS r FROM events) x WHERE r <= 1"
[[query]]
name = "numbered"
sql = "SELECT note, id FROM (SELECT *, row_number() OVER (PARTITION BY note ORDER BY person) AS r FROM events) x WHERE r <= 1"
[[query]]
name = "first"
sql = "SELECT DISTINCT ON (person) person, note FROM events ORDER BY person DESC, note"
"#;

struct Nobody;

impl Observer for Nobody {
    fn rows(&self, _: QueryId, _: &RecordBatch) {}
    fn reject(&self, _: &RejectLine) {}
}

fn answered(data: &Path, queries: &[&str], options: &Options) -> Outcome {
    let workload = Workload::parse("workload.toml", WORKLOAD, &|_| unreachable!("the SQL is inside")).unwrap();
    let names: Vec<String> = queries.iter().map(|name| (*name).to_owned()).collect();
    let workload = workload.select(&names).unwrap();
    let plan = JobPlan::new(&workload).unwrap();
    let files = DataSet::find(data, &workload, &plan).unwrap();
    let outcome = run(&workload, &plan, files, options, &Progress::new(workload.tables.len()), &Nobody).unwrap();
    assert_eq!(outcome.failed, []);
    outcome
}

fn write_data(dir: &Path, count: u64) {
    let (mut events, mut people) = ("id,person,note\n".to_owned(), "person,name\n".to_owned());
    for id in 0..count {
        writeln!(events, "{id},{},note number {} of many", id * 7919 % 20_000, id * 31 % 30_000).unwrap();
    }
    for person in 0..20_000 {
        writeln!(people, "{person},somebody called {}", person % 997).unwrap();
    }
    std::fs::write(dir.join("events.csv"), events).unwrap();
    std::fs::write(dir.join("people.csv"), people).unwrap();
}

#[test]
fn answers_are_the_same_when_rows_go_through_temporary_files_and_none_is_left() {
    let (data, temp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write_data(data.path(), 40_000);
    let roomy = Options { temp_dir: temp.path().to_owned(), ..Options::default() };
    let first = answered(data.path(), &[], &roomy);
    assert_eq!(first.spilled_bytes, 0);
    let counts: Vec<u64> = first.answers.iter().map(|answer| answer.rows).collect();
    assert_eq!(counts, [36_000, 40_000, 30_000, 20_000, 30_000, 20_000]);
    for (threads, partitions) in [(1, 1), (2, 3)] {
        let tight = Options { memory_bytes: 1, threads, partitions: Some(partitions), ..roomy.clone() };
        let now = answered(data.path(), &[], &tight);
        assert!(now.spilled_bytes > 1 << 20, "only {} bytes were spilled", now.spilled_bytes);
        for (a, b) in first.answers.iter().zip(&now.answers) {
            assert_eq!((a.rows, &a.fingerprint), (b.rows, &b.fingerprint), "{}", a.name);
        }
    }
    drop(first);
    assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn sorted_rows_do_not_drag_their_neighbours_to_disk() {
    let data = tempfile::tempdir().unwrap();
    write_data(data.path(), 200_000);
    let read = std::fs::metadata(data.path().join("events.csv")).unwrap().len();
    let tight = Options { memory_bytes: 1, threads: 1, partitions: Some(1), ..Options::default() };
    let spilled = answered(data.path(), &["unordered"], &tight).spilled_bytes;
    // Once as they come and once in order, a view of 16 bytes besides every text.
    assert!(spilled < 6 * read, "{spilled} bytes were spilled for {read} bytes of data");
}
