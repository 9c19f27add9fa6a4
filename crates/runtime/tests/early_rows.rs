//! Rows that are certain are told while data is still being read, each once, and together they are the answer.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::QueryId;
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::format::Format;
use tenaz_runtime::{DataSet, Observer, Options, Progress, RejectLine};

/// A row as it was told.
#[derive(Debug, Clone)]
struct Told {
    row: String,
    /// Whether the table had been read to its end.
    done: bool,
    /// Records read by then.
    records: u64,
}

/// Notes every row with how far the reading of one table is.
struct Listener<'p> {
    progress: &'p Progress,
    table: usize,
    told: Mutex<Vec<Told>>,
}

impl Observer for Listener<'_> {
    fn rows(&self, _: QueryId, batch: &RecordBatch) {
        let table = self.progress.table(self.table);
        let (done, records) = (table.done.load(Ordering::Relaxed), table.records.load(Ordering::Relaxed));
        let rows = csv_rows(std::slice::from_ref(batch)).into_iter().map(|row| Told { row, done, records });
        self.told.lock().expect("no thread panicked").extend(rows);
    }

    fn reject(&self, line: &RejectLine) {
        panic!("no record is bad: {line:?}");
    }
}

fn csv_rows(batches: &[RecordBatch]) -> Vec<String> {
    let mut bytes = Vec::new();
    let mut writer = Format::Csv.writer(&mut bytes);
    batches.iter().for_each(|batch| writer.rows(batch).expect("a vector takes anything"));
    writer.end().expect("a vector takes anything");
    drop(writer);
    String::from_utf8(bytes).expect("CSV is text").lines().map(str::to_owned).collect()
}

/// The rows that were told, in order; they are also the answer.
fn listen(workload: &str, query: &str, table: &str, data: &Path, threads: usize, partitions: u16) -> Vec<Told> {
    let workload = Workload::load(workload).expect("bundled").select(&[query.to_owned()]).expect("its query");
    let plan = JobPlan::new(&workload).expect("a plan");
    let files = DataSet::find(data, &workload, &plan).expect("the files");
    let options =
        Options { threads, chunk_bytes: Some(2_000), partitions: Some(partitions), strict: true, ..Options::default() };
    let progress = Progress::new(workload.tables.len());
    let table = workload.tables.iter().position(|t| t.name == table).expect("a table of the workload");
    let listener = Listener { progress: &progress, table, told: Mutex::new(Vec::new()) };
    let outcome = tenaz_runtime::run(&workload, &plan, files, &options, &progress, &listener).expect("answers");
    let batches: Vec<RecordBatch> = outcome.answers[0].batches().collect::<Result<_, _>>().expect("rows");
    let answer = csv_rows(&batches);
    let told = listener.told.into_inner().expect("no thread panicked");
    let mut rows: Vec<String> = told.iter().map(|told| told.row.clone()).collect();
    rows.sort_unstable();
    let mut sorted = answer;
    sorted.sort_unstable();
    assert_eq!(rows, sorted, "what was told is the answer, no row twice");
    told
}

#[test]
fn a_panned_game_is_told_as_soon_as_it_passes_5000() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut games = String::from("the header is not looked at\n");
    for app_id in 1..=60 {
        let mut fields = vec!["0".to_owned(); 40];
        fields[0] = app_id.to_string();
        fields[1] = format!("Game {app_id}");
        fields[2] = "May 2020".to_owned();
        fields[17..20].fill("True".to_owned());
        fields[36] = "Action".to_owned();
        writeln!(games, "{}", fields.join(",")).expect("a string");
    }
    std::fs::write(dir.path().join("games.csv"), games).expect("write");
    let mut reviews = String::from("app_id,app_name,review_text,review_score,review_votes\n");
    let mut review = |app_id: usize| writeln!(reviews, "{app_id},,This is bad,-1,0").expect("a string");
    // Game 1 passes early, game 2 only with the last review of all.
    for n in 0..5_001 {
        review(1);
        review(3 + n % 58);
    }
    for n in 0..5_001 {
        review(3 + n % 58);
        review(2);
    }
    std::fs::write(dir.path().join("reviews.csv"), reviews).expect("write");
    for (threads, partitions) in [(1, 1), (3, 2)] {
        let told = listen("steam", "q4", "reviews", dir.path(), threads, partitions);
        let rows: Vec<&str> = told.iter().map(|told| told.row.as_str()).collect();
        assert_eq!(rows, ["1,Game 1", "2,Game 2"]);
        assert!(!told[0].done, "the first game is told while reviews are being read");
        assert!((10_000..15_000).contains(&told[0].records), "after {} of 20,004 reviews", told[0].records);
    }
}

#[test]
fn an_author_is_told_as_soon_as_the_tenth_decade_is_seen() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut books = String::from("the header is not looked at\n");
    let mut book = |author: &str, year: usize| writeln!(books, "T,,['{author}'],,,,{year},,,").expect("a string");
    for decade in 0..10 {
        book("Early", 1900 + 10 * decade);
    }
    for n in 0..6_000 {
        book(&format!("Author {n}"), 1990);
    }
    for decade in 0..10 {
        book("Late", 1900 + 10 * decade);
    }
    std::fs::write(dir.path().join("books_data.csv"), books).expect("write");
    for (threads, partitions) in [(1, 1), (3, 2)] {
        let told = listen("books", "q2", "books", dir.path(), threads, partitions);
        let rows: Vec<&str> = told.iter().map(|told| told.row.as_str()).collect();
        assert_eq!(rows, ["Early", "Late"]);
        assert!(!told[0].done, "the first author is told while books are being read");
        assert!(told[0].records < 4_000, "after {} of 6,020 books", told[0].records);
    }
}
