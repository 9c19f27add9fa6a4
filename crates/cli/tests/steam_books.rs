//! `tenaz run steam` and `tenaz run books` give the answers of plain loops: on generated data, on the real samples, and
//! on small files made to lie exactly on the limits.

mod text_oracle;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tenaz_generate::Dataset;
use text_oracle::{Answers, books, steam};

const STEAM_COLUMNS: [(&str, &str); 5] = [
    ("q1", "windows,linux,mac"),
    ("q2", "name,average_playtime_forever"),
    ("q3", "name,positive_reviews"),
    ("q4", "app_id,name"),
    ("q5", "app_id,name,negative_reviews"),
];
const BOOKS_COLUMNS: [(&str, &str); 5] = [
    ("q1", "title,authors,publisher"),
    ("q2", "author"),
    ("q3", "title,authors"),
    ("q4", "title,mean_score"),
    ("q5", "title,mean_sentiment"),
];

/// Ways to cut the work up, of which no answer may know.
const CUTTINGS: [&[&str]; 2] = [&["--threads", "1"], &["--threads", "3", "--chunk-size", "20000", "--partitions", "5"]];

fn temp() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// Runs the binary and reads its result files back.
fn run(workload: &str, columns: &[(&'static str, &str); 5], data: &Path, more: &[&str]) -> Answers {
    let out = temp();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
    command.args(["--quiet", "run", workload, "--data"]).arg(data).arg("--out").arg(out.path()).args(more);
    for name in ["TENAZ_THREADS", "TENAZ_MEMORY", "TENAZ_CHUNK_SIZE", "TENAZ_PARTITIONS", "TENAZ_FORMAT"] {
        command.env_remove(name);
    }
    let output = command.output().expect("tenaz starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!out.path().join("rejects.csv").exists(), "no record of these files is bad");
    let read = |(query, header): &(&'static str, &str)| {
        let path = out.path().join(format!("{query}.csv"));
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(&path).expect("a result file");
        let rows = reader.records().map(|r| r.expect("valid CSV").iter().map(str::to_owned).collect());
        let mut rows: Vec<Vec<String>> = rows.collect();
        assert_eq!(rows.remove(0).join(","), *header, "{query}");
        (*query, rows)
    };
    columns.iter().map(read).collect()
}

fn check_steam(data: &Path) -> Answers {
    let expected = steam::answers(data);
    for cutting in CUTTINGS {
        assert_eq!(run("steam", &STEAM_COLUMNS, data, cutting), expected, "{cutting:?}");
    }
    expected
}

fn check_books(data: &Path) -> Answers {
    let expected = books::answers(data);
    for cutting in CUTTINGS {
        assert_eq!(run("books", &BOOKS_COLUMNS, data, cutting), expected, "{cutting:?}");
    }
    expected
}

fn generated(dataset: Dataset, scale: f64, seed: u64) -> TempDir {
    let dir = temp();
    let options = tenaz_generate::Options { scale, seed, threads: 2 };
    tenaz_generate::generate(dataset, dir.path(), &options, &|_| {}).expect("generate");
    dir
}

/// A folder of the real samples, unless this machine has none.
fn sample(name: &str) -> Option<PathBuf> {
    let dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(name);
    if !dir.is_dir() {
        #[allow(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
        {
            eprintln!("skipped: there is no {}", dir.display());
        }
        return None;
    }
    Some(dir)
}

#[test]
fn steam_answers_are_the_oracles_on_generated_data() {
    for (seed, scale) in [(1, 0.003), (2, 0.001)] {
        let data = generated(Dataset::Steam, scale, seed);
        let answers = check_steam(data.path());
        for query in ["q1", "q2", "q3", "q5"] {
            assert!(!answers[query].is_empty(), "{query} has something to answer");
        }
    }
}

#[test]
fn books_answers_are_the_oracles_on_generated_data() {
    // Ten decades take more authors than this; see `an_author_counts_from_the_tenth_decade_on`.
    for (seed, scale) in [(2, 0.004), (3, 0.002)] {
        let data = generated(Dataset::Books, scale, seed);
        let answers = check_books(data.path());
        for query in ["q3", "q4", "q5"] {
            assert!(!answers[query].is_empty(), "{query} has something to answer (seed {seed})");
        }
    }
}

#[test]
fn steam_answers_are_the_oracles_on_the_real_sample() {
    let Some(sample) = sample("steam") else { return };
    check_steam(&sample);
    // The sample has a second file of games, with the trailing comma.
    let data = temp();
    fs::copy(sample.join("games_99_trailing_comma.csv"), data.path().join("games.csv")).expect("copy");
    fs::copy(sample.join("reviews.csv"), data.path().join("dataset.csv")).expect("copy");
    let answers = check_steam(data.path());
    assert!(!answers["q1"].is_empty());
}

#[test]
fn books_answers_are_the_oracles_on_the_real_sample() {
    let Some(sample) = sample("books") else { return };
    check_books(&sample);
}

const GAMES_HEADER: &str = "AppID,Name,Release date,Estimated owners,Peak CCU,Required age,Price,DiscountDLC count,\
About the game,Supported languages,Full audio languages,Reviews,Header image,Website,Support url,Support email,\
Windows,Mac,Linux,Metacritic score,Metacritic url,User score,Positive,Negative,Score rank,Achievements,\
Recommendations,Notes,Average playtime forever,Average playtime two weeks,Median playtime forever,\
Median playtime two weeks,Developers,Publishers,Categories,Genres,Tags,Screenshots,Movies";

#[test]
fn games_load_under_every_known_header_and_reviews_under_both_names() {
    let data = generated(Dataset::Steam, 0.001, 5);
    let games = data.path().join("games.csv");
    let text = fs::read_to_string(&games).expect("games");
    let (header, rows) = text.split_once('\n').expect("a header");
    assert_eq!(header, GAMES_HEADER);
    let expected = check_steam(data.path());
    fs::rename(data.path().join("reviews.csv"), data.path().join("dataset.csv")).expect("rename");
    let repaired = header.replace("DiscountDLC count", "Discount,DLC count");
    let variants = [
        (39, header.to_owned()),
        (40, format!("{header},")),
        (40, repaired.clone()),
        (40, format!("Index,{header}")),
        (41, format!("{repaired},Extra")),
    ];
    for (names, variant) in variants {
        assert_eq!(variant.split(',').count(), names);
        fs::write(&games, format!("{variant}\n{rows}")).expect("write");
        assert_eq!(run("steam", &STEAM_COLUMNS, data.path(), &[]), expected, "{variant}");
    }
}

/// A file of games, field by field.
struct Games(String);

impl Games {
    fn new() -> Self {
        Self(format!("{GAMES_HEADER}\n"))
    }

    fn add(&mut self, app_id: u32, name: &str, released: &str, genres: &str, playtime: &str) {
        let mut fields = vec!["0".to_owned(); 40];
        fields[0] = app_id.to_string();
        fields[1] = quoted(name);
        fields[2] = quoted(released);
        fields[9] = quoted("A game, \"the\" game.\nSecond line.");
        fields[17] = "True".to_owned();
        fields[18] = ["True", "False"][app_id as usize % 2].to_owned();
        fields[19] = ["False", "False", "True"][app_id as usize % 3].to_owned();
        fields[29] = playtime.to_owned();
        fields[36] = quoted(genres);
        writeln!(self.0, "{}", fields.join(",")).expect("a string takes anything");
    }
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

struct Reviews(String);

impl Reviews {
    fn new() -> Self {
        Self("app_id,app_name,review_text,review_score,review_votes\n".to_owned())
    }

    fn add(&mut self, times: usize, app_id: &str, text: &str, score: &str) {
        let line = format!("{app_id},,{},{score},0\n", quoted(text));
        self.0.push_str(&line.repeat(times));
    }
}

fn steam_files(games: &Games, reviews: &Reviews) -> TempDir {
    let data = temp();
    fs::write(data.path().join("games.csv"), &games.0).expect("write");
    fs::write(data.path().join("reviews.csv"), &reviews.0).expect("write");
    data
}

const ENGLISH: &str = "This game is really bad.";
const GERMAN: &str = "Das Spiel ist wirklich sehr schlecht geworden.";

fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|&field| field.to_owned()).collect()).collect()
}

#[test]
fn a_game_is_panned_from_5001_negative_english_reviews_on() {
    assert!(tenaz_text::is_english(ENGLISH) && !tenaz_text::is_english(GERMAN));
    let mut games = Games::new();
    games.add(10, "Over", "Oct 21, 2008", "Action,Indie", "1");
    games.add(20, "Exactly", "May 2012", "action", "1");
    games.add(30, "One is German", "May 2012", "Action", "1");
    games.add(40, "No action", "May 2012", "Indie", "1");
    games.add(50, "", "May 2012", "Action", "1");
    games.add(60, "Never played", "May 2012", "Action", "");
    games.add(70, "No date", "", "Action", "1");
    games.add(80, "Loved", "May 2012", "Action", "1");
    games.add(9, "Also over", "2020", "RPG,ACTION ADVENTURE", "1");
    let mut reviews = Reviews::new();
    for (app_id, times) in
        [("10", 5001), ("20", 5000), ("30", 5000), ("40", 5100), ("50", 5100), ("60", 5100), ("70", 5100)]
    {
        reviews.add(times, app_id, ENGLISH, "-1");
    }
    reviews.add(1, "30", GERMAN, "-1");
    reviews.add(100, "20", "", "-1");
    reviews.add(100, "20", ENGLISH, "1");
    reviews.add(100, "20", ENGLISH, "");
    reviews.add(100, "", ENGLISH, "-1");
    reviews.add(5100, "80", ENGLISH, "1");
    reviews.add(3000, "9", ENGLISH, "-1");
    reviews.add(2001, "9", "10/10", "-1");
    reviews.add(7, "4711", ENGLISH, "-1");
    let answers = check_steam(steam_files(&games, &reviews).path());
    assert_eq!(answers["q4"], rows(&[&["9", "Also over"], &["10", "Over"]]));
    assert_eq!(
        answers["q5"],
        rows(&[&["9", "Also over", "5001"], &["10", "Over", "5001"], &["30", "One is German", "5001"]])
    );
    assert_eq!(answers["q1"], rows(&[&["6", "2", "5"]]));
}

#[test]
fn ties_at_the_percentile_are_kept_and_ties_of_winners_go_to_the_smallest_id() {
    let mut games = Games::new();
    let mut reviews = Reviews::new();
    // Of 20 values the cut is the 19th: five games share the highest value, fifteen the lowest.
    for app_id in (100..120).rev() {
        games.add(app_id, &format!("Game {app_id}"), "Jan 1, 2015", "Action,Indie", &(app_id % 3).to_string());
        reviews.add(if app_id % 4 == 0 { 7 } else { 2 }, &app_id.to_string(), ENGLISH, "-1");
        reviews.add(if app_id < 104 { 3 } else { 1 }, &app_id.to_string(), ENGLISH, "1");
    }
    games.add(1, "Never reviewed", "2010", "Action", "9");
    games.add(2, "Too late", "Jan 1, 2020", "Indie", "99");
    games.add(3, "Too early", "Dec 31, 2009", "Indie", "99");
    games.add(4, "Without year", "soon", "Indie", "99");
    let answers = check_steam(steam_files(&games, &reviews).path());
    let ids = |query: &str| answers[query].iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    assert_eq!(ids("q5"), ["100", "104", "108", "112", "116"]);
    assert_eq!(ids("q3"), ["Game 100", "Game 101", "Game 102", "Game 103", "Game 104"]);
    assert_eq!(answers["q2"].len(), 10);
    assert_eq!(ids("q2")[..2], ["Game 101", "Game 104"], "playtime 2, then the smallest id");
    assert_eq!(ids("q2")[6..8], ["Game 119", "Game 100"], "seven games have playtime 2");
}

#[test]
fn steam_without_reviews_has_empty_answers() {
    let mut games = Games::new();
    games.add(1, "Alone", "2010", "Action,Indie", "9");
    let answers = check_steam(steam_files(&games, &Reviews::new()).path());
    assert!(answers["q3"].is_empty() && answers["q4"].is_empty() && answers["q5"].is_empty());
    assert_eq!(answers["q2"], rows(&[&["Alone", "9"]]));
}

struct Books {
    books: String,
    ratings: String,
}

impl Books {
    fn new() -> Self {
        let books =
            "Title,description,authors,image,previewLink,publisher,publishedDate,infoLink,categories,ratingsCount\n";
        let ratings = "Id,Title,Price,User_id,profileName,review/helpfulness,review/score,review/time,review/summary,review/text\n";
        Self { books: books.to_owned(), ratings: ratings.to_owned() }
    }

    fn book(&mut self, title: &str, authors: &str, published: &str, categories: &str) {
        let (title, authors, categories) = (quoted(title), quoted(authors), quoted(categories));
        writeln!(self.books, "{title},,{authors},,,A. Press,{published},,{categories},").expect("a string");
    }

    fn rate(&mut self, times: usize, title: &str, score: &str, text: &str) {
        let line = format!("1,{},,,,0/0,{score},1,,{}\n", quoted(title), quoted(text));
        self.ratings.push_str(&line.repeat(times));
    }

    fn check(&self) -> Answers {
        let data = temp();
        fs::write(data.path().join("books_data.csv"), &self.books).expect("write");
        fs::write(data.path().join("Books_rating.csv"), &self.ratings).expect("write");
        check_books(data.path())
    }
}

#[test]
fn an_author_counts_from_the_tenth_decade_on() {
    let mut books = Books::new();
    for decade in 0..10 {
        let year = 1890 + 10 * decade;
        books.book(&format!("Ten {decade}"), "['Ten, Jr', \"Co O'Author\"]", &format!("{year}-01-01"), "");
        books.book(&format!("Again {decade}"), "['Ten, Jr', 'Ten, Jr']", &format!("{}*", year + 5), "");
        if decade > 0 {
            books.book(&format!("Nine {decade}"), "['Nine']", &year.to_string(), "['Fiction']");
        }
        books.book(&format!("Odd {decade}"), "['Odd']", ["19??", "", "199"][decade as usize % 3], "");
        books.book(&format!("Broken {decade}"), "['Broken", &year.to_string(), "");
        books.book(&format!("None {decade}"), "", &year.to_string(), "");
    }
    books.book("Nine in the same decade", "['Nine']", "1909", "");
    let answers = books.check();
    assert_eq!(answers["q2"], rows(&[&["Co O'Author"], &["Ten, Jr"]]));
    books.book("The tenth", "['Nine']", "May 2024", "");
    assert_eq!(books.check()["q2"], rows(&[&["Co O'Author"], &["Nine"], &["Ten, Jr"]]));
}

#[test]
fn titles_of_the_nineties_count_from_500_reviews_on() {
    let mut books = Books::new();
    books.book("Exactly", "['A']", "1990", "");
    books.rate(500, "Exactly", "4.0", "");
    books.book("One short", "['B']", "1999-12-31", "");
    books.rate(499, "One short", "5.0", "");
    books.book("Too early", "['C']", "1989", "");
    books.rate(500, "Too early", "5.0", "");
    books.book("Unscored", "['D']", "1995", "");
    books.rate(500, "Unscored", "", "fine");
    books.book("Nobody's", "", "1995", "");
    books.rate(500, "Nobody's", "5.0", "");
    books.rate(700, "", "5.0", "");
    books.rate(700, "Unknown", "5.0", "");
    // Listed twice in the very same words: still one title with 300 reviews.
    books.book("Twice", "['E']", "1995", "");
    books.book("Twice", "['E']", "1995", "");
    books.rate(300, "Twice", "5.0", "");
    let answers = books.check();
    assert_eq!(answers["q3"], rows(&[&["Exactly", "['A']"], &["Nobody's", ""], &["Unscored", "['D']"]]));
    assert_eq!(answers["q4"], rows(&[&["Nobody's", "5.00000000000"], &["Exactly", "4.00000000000"]]));
}

#[test]
fn mean_scores_are_exact_and_their_ties_go_by_title() {
    let mut books = Books::new();
    for title in ["k", "j", "i", "h", "g", "f", "e", "d", "c", "b"] {
        books.book(title, "['A']", "1996", "");
        books.rate(250, title, "3.0", "");
        books.rate(250, title, "4.0", "");
    }
    books.book("a third more", "['A']", "1996", "");
    books.rate(334, "a third more", "4.0", "");
    books.rate(167, "a third more", "3.0", "");
    books.book("two thirds", "['A']", "1996", "");
    books.rate(334, "two thirds", "5.0", "");
    books.rate(167, "two thirds", "3.0", "");
    let answers = books.check();
    assert_eq!(answers["q4"][0], ["two thirds", "4.33333333333"]);
    assert_eq!(answers["q4"][1], ["a third more", "3.66666666667"]);
    assert_eq!(answers["q4"][2], ["b", "3.50000000000"]);
    assert_eq!(answers["q4"].len(), 10);
    assert_eq!(answers["q4"][9][0], "i");
}

#[test]
fn sentiment_ties_at_the_percentile_are_kept() {
    let mut books = Books::new();
    for n in 0..20 {
        let title = format!("Novel {n:02}");
        books.book(&title, "['A']", "2001", ["['Fiction']", "['Drama', \"Fiction\"]"][n % 2]);
        match n % 4 {
            0 => books.rate(3, &title, "4.0", "A very good book"),
            1 => books.rate(2, &title, "4.0", "A table and a chair."),
            _ => books.rate(2, &title, "1.0", "A terrible, awful book."),
        }
        books.rate(2, &title, "4.0", "");
    }
    books.book("Not quite", "['A']", "2001", "['Science Fiction']");
    books.rate(5, "Not quite", "5.0", "Excellent, wonderful, the best!");
    books.book("Unwritten", "['A']", "2001", "['Fiction']");
    books.rate(5, "Unwritten", "5.0", "");
    let answers = books.check();
    let titles: Vec<&str> = answers["q5"].iter().map(|row| row[0].as_str()).collect();
    assert_eq!(titles, ["Novel 00", "Novel 04", "Novel 08", "Novel 12", "Novel 16"]);
    assert_eq!(answers["q5"][0][1], "0.910000000000000000");
}

#[test]
fn distributed_computer_books_are_found_by_element_year_and_word() {
    let mut books = Books::new();
    books.book("Distributed Things", "['A', \"B's\"]", "2000", "['Computers']");
    books.book("On undistributed things", "", "2023-05", "['Art', 'Computers']");
    books.book("Distributed too early", "['A']", "1999", "['Computers']");
    books.book("Distributed too late", "['A']", "2024", "['Computers']");
    books.book("Distributed elsewhere", "['A']", "2010", "['Computers & Internet']");
    books.book("Distributed nowhere", "['A']", "2010", "");
    books.book("Centralised", "['A']", "2010", "['Computers']");
    let answers = books.check();
    let expected: [&[&str]; 2] =
        [&["Distributed Things", "['A', \"B's\"]", "A. Press"], &["On undistributed things", "", "A. Press"]];
    assert_eq!(answers["q1"], rows(&expected));
}
