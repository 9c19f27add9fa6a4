//! A question is final as soon as its own tables are read, and its answer is the one that stands there in the end.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::{FailedQuery, QueryId};
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::{Answer, DataSet, Observer, Options, Progress, RejectLine};

/// The end of a question as it was told.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    name: String,
    fingerprint: String,
    /// Rows that could be read.
    rows: u64,
    /// Whether all reviews had been read by then.
    reviews_done: bool,
}

struct Listener<'p> {
    progress: &'p Progress,
    reviews: usize,
    told: Mutex<Vec<Told>>,
}

impl Observer for Listener<'_> {
    fn wants_rows(&self) -> bool {
        false
    }

    fn rows(&self, _: QueryId, _: &RecordBatch) {}

    fn question_final(&self, _: QueryId, answer: &Answer) {
        let rows = answer.batches().map(|batch| batch.expect("rows").num_rows() as u64).sum();
        let reviews_done = self.progress.table(self.reviews).done.load(Ordering::Relaxed);
        let (name, fingerprint) = (answer.name.clone(), answer.fingerprint.clone());
        self.told.lock().expect("no thread panicked").push(Told { name, fingerprint, rows, reviews_done });
    }

    fn question_failed(&self, _: QueryId, failed: &FailedQuery) {
        panic!("no question fails: {failed:?}");
    }

    fn reject(&self, line: &RejectLine) {
        panic!("no record is bad: {line:?}");
    }
}

fn write_data(dir: &Path) {
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
    std::fs::write(dir.join("games.csv"), games).expect("write");
    let mut reviews = String::from("app_id,app_name,review_text,review_score,review_votes\n");
    for n in 0..20_000 {
        writeln!(reviews, "{},,This is bad,-1,0", 1 + n % 60).expect("a string");
    }
    std::fs::write(dir.join("reviews.csv"), reviews).expect("write");
}

#[test]
fn a_question_about_games_is_final_while_reviews_are_being_read() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_data(dir.path());
    let workload = Workload::load("steam").expect("bundled");
    let plan = JobPlan::new(&workload).expect("a plan");
    let reviews = workload.tables.iter().position(|table| table.name == "reviews").expect("a table of the workload");
    let mut first: Option<Vec<(String, String)>> = None;
    for (threads, partitions) in [(1, 1), (3, 2)] {
        let files = DataSet::find(dir.path(), &workload, &plan).expect("the files");
        let (chunk_bytes, partitions) = (Some(2_000), Some(partitions));
        let options = Options { threads, chunk_bytes, partitions, ..Options::default() };
        let progress = Progress::new(workload.tables.len());
        let listener = Listener { progress: &progress, reviews, told: Mutex::default() };
        let outcome = tenaz_runtime::run(&workload, &plan, files, &options, &progress, &listener).expect("answers");
        let told = listener.told.into_inner().expect("no thread panicked");
        let of = |name: &str| told.iter().filter(|told| told.name == name).collect::<Vec<_>>();
        for answer in &outcome.answers {
            let [told] = of(&answer.name)[..] else { panic!("{} has one end: {told:?}", answer.name) };
            assert_eq!((told.rows, &told.fingerprint), (answer.rows, &answer.fingerprint), "{}", answer.name);
        }
        assert!(!of("q1")[0].reviews_done, "q1 asks about games only: {told:?}");
        let ends = outcome.answers.iter().map(|answer| (answer.name.clone(), answer.fingerprint.clone())).collect();
        assert_eq!(*first.get_or_insert_with(|| Vec::clone(&ends)), ends, "whatever the threads");
    }
}
