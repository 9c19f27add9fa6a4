//! Dear functions run last: only on texts that cheap filters and joins have left.
//!
//! The counters belong to the process, so this file has one test.

mod staged;

use std::collections::HashSet;
use std::path::Path;

use staged::Nobody;
use tenaz_engine::functions::dear_calls;
use tenaz_engine::{JobPlan, Workload};
use tenaz_generate::{Dataset, generate};
use tenaz_runtime::{DataSet, Options, Progress};

#[test]
fn only_the_texts_that_matter_are_read_for_language_and_sentiment() {
    let made = |dataset| {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = tenaz_generate::Options { scale: 0.001, seed: 3, threads: 2 };
        generate(dataset, dir.path(), &options, &|_| {}).expect("generate");
        dir
    };
    let (steam, books) = (made(Dataset::Steam), made(Dataset::Books));
    let (panned, reviews) = negative_reviews_of_action_games(steam.path());
    assert!(panned > 50 && panned * 2 < reviews, "{panned} of {reviews} reviews matter");
    assert_eq!(calls("is_english", "steam", &["q4"], steam.path()), panned);
    assert_eq!(calls("is_english", "steam", &[], steam.path()), panned, "all questions in one pass");
    let (fiction, ratings) = texts_about_fiction(books.path());
    assert!(fiction > 50 && fiction * 2 < ratings, "{fiction} of {ratings} reviews matter");
    assert_eq!(calls("sentiment", "books", &["q5"], books.path()), fiction);
    assert_eq!(calls("sentiment", "books", &[], books.path()), fiction, "all questions in one pass");
}

/// How often a function is called while the queries are answered.
fn calls(function: &str, workload: &str, queries: &[&str], data: &Path) -> u64 {
    let before = dear_calls(function);
    let queries: Vec<String> = queries.iter().map(|&query| query.to_owned()).collect();
    let workload = Workload::load(workload).expect("a bundled workload").select(&queries).expect("its queries");
    let plan = JobPlan::new(&workload).expect("a plan");
    let files = DataSet::find(data, &workload, &plan).expect("the files");
    let options = Options { threads: 2, chunk_bytes: Some(50_000), partitions: Some(3), ..Options::default() };
    let progress = Progress::new(workload.tables.len());
    tenaz_runtime::run(&workload, &plan, files, &options, &progress, &Nobody).expect("answers");
    dear_calls(function) - before
}

fn records(path: &Path) -> Vec<csv::StringRecord> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).expect("a file");
    reader.records().skip(1).collect::<Result<_, _>>().expect("valid CSV")
}

/// The reviews that q4 must classify, and all.
fn negative_reviews_of_action_games(dir: &Path) -> (u64, u64) {
    const NEEDED: [usize; 10] = [0, 1, 2, 17, 18, 19, 23, 24, 29, 36];
    let games = records(&dir.join("games.csv"));
    let counted = games.iter().filter(|game| NEEDED.iter().all(|&field| !game[field].is_empty()));
    let action: HashSet<&str> =
        counted.filter(|game| game[36].to_lowercase().contains("action")).map(|game| &game[0]).collect();
    let reviews = records(&dir.join("reviews.csv"));
    let wanted = reviews.iter().filter(|r| action.contains(&r[0]) && !r[2].is_empty() && &r[3] == "-1");
    (wanted.count() as u64, reviews.len() as u64)
}

/// The reviews that q5 must score, and all.
fn texts_about_fiction(dir: &Path) -> (u64, u64) {
    let books = records(&dir.join("books_data.csv"));
    let is_fiction = |book: &&csv::StringRecord| {
        tenaz_text::python_list(&book[8]).is_some_and(|categories| categories.iter().any(|c| c == "Fiction"))
    };
    let fiction: HashSet<&str> =
        books.iter().filter(is_fiction).map(|book| &book[0]).filter(|title| !title.is_empty()).collect();
    let ratings = records(&dir.join("Books_rating.csv"));
    let wanted = ratings.iter().filter(|r| fiction.contains(&r[1]) && !r[9].is_empty());
    (wanted.count() as u64, ratings.len() as u64)
}
