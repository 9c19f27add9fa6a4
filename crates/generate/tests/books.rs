//! The books data keep the promises that the queries and their tests rely on.

mod made;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::OnceLock;

use made::Made;
use tenaz_generate::Dataset;

const BOOKS: &str =
    "Title,description,authors,image,previewLink,publisher,publishedDate,infoLink,categories,ratingsCount";
const RATINGS: &str =
    "Id,Title,Price,User_id,profileName,review/helpfulness,review/score,review/time,review/summary,review/text";

/// The scale at which the questions must have answers; made once.
fn books_made() -> &'static Made {
    static MADE: OnceLock<Made> = OnceLock::new();
    MADE.get_or_init(|| Made::new(Dataset::Books, 0.05, 11, 2))
}

fn books() -> Vec<csv::StringRecord> {
    books_made().records("books_data.csv", BOOKS, 10)
}

fn ratings() -> &'static [csv::StringRecord] {
    static READ: OnceLock<Vec<csv::StringRecord>> = OnceLock::new();
    READ.get_or_init(|| books_made().records("Books_rating.csv", RATINGS, 10))
}

/// The first run of four digits.
fn year(date: &str) -> Option<u32> {
    let digits: Vec<&str> = date.split(|letter: char| !letter.is_ascii_digit()).collect();
    digits.iter().find(|run| run.len() == 4).and_then(|run| run.parse().ok())
}

/// The single author of a Python list with one element.
fn single_author(list: &str) -> Option<&str> {
    let inner = list.strip_prefix('[')?.strip_suffix(']')?;
    let quote = inner.chars().next()?;
    let inner = inner.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote)).then_some(inner)
}

#[test]
fn titles_are_unique_and_some_need_quoting() {
    let books = books();
    assert_eq!(books.len(), 10_620);
    let titles: HashSet<&str> = books.iter().map(|book| &book[0]).collect();
    assert_eq!(titles.len(), books.len());
    for what in [",", "\"", "'", "&", "ü"] {
        assert!(titles.iter().any(|title| title.contains(what)), "no title with {what}");
    }
}

#[test]
fn lists_dates_and_gaps_are_those_of_the_real_file() {
    let books = books();
    let has = |field: usize, what: &str| books.iter().filter(|book| book[field].contains(what)).count();
    assert!(has(2, "[\"") > 50, "authors with apostrophes");
    assert!(has(2, "', '") > 500, "several authors");
    assert!(has(2, ", Jr.'") > 5, "commas in names");
    assert!(
        has(8, "['Body, Mind & Spirit']") > 50 && has(8, "['Juvenile Fiction']") > 200 && has(8, "['Fiction']") > 1000
    );
    assert!(has(6, "*") > 20 && has(6, "19??") > 5);
    for (length, least) in [(0, 300), (4, 3_000), (7, 500), (10, 3_000)] {
        let count = books.iter().filter(|book| book[6].len() == length).count();
        assert!(count > least, "dates of length {length}: {count}");
    }
    for (field, low, high) in [(1, 250, 350), (2, 60, 120), (5, 300, 400), (8, 120, 200), (9, 700, 830)] {
        let empty = books.iter().filter(|book| book[field].is_empty()).count() * 1000 / books.len();
        assert!((low..high).contains(&empty), "field {field}: {empty} per mille are empty");
    }
}

#[test]
fn some_books_of_computers_are_about_distributed_things() {
    let found = books()
        .iter()
        .filter(|book| book[8].contains("'Computers'") && book[0].to_lowercase().contains("distributed"))
        .filter(|book| year(&book[6]).is_some_and(|year| (2000..=2023).contains(&year)))
        .count();
    assert!((5..60).contains(&found), "{found}");
}

#[test]
fn two_authors_have_titles_in_ten_decades_even_at_a_hundredth() {
    let made = Made::new(Dataset::Books, 0.01, 3, 2);
    let mut decades: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for book in made.records("books_data.csv", BOOKS, 10) {
        if let (Some(author), Some(year)) = (single_author(&book[2]), year(&book[6])) {
            decades.entry(author.to_owned()).or_default().insert(year / 10);
        }
    }
    let long_lived: Vec<_> = decades.iter().filter(|(_, decades)| decades.len() >= 10).collect();
    assert!((2..8).contains(&long_lived.len()), "{long_lived:?}");
}

#[test]
fn ratings_belong_to_books_and_look_like_the_real_ones() {
    let titles: HashSet<String> = books().iter().map(|book| book[0].to_owned()).collect();
    let ratings = ratings();
    assert_eq!(ratings.len(), 150_000);
    let (mut unpriced, mut anonymous, mut nicknamed, mut long) = (0, 0, 0, 0);
    for rating in ratings {
        assert!(titles.contains(&rating[1]), "{}", &rating[1]);
        assert_eq!(rating[0].len(), 10);
        assert!(matches!(&rating[6], "1.0" | "2.0" | "3.0" | "4.0" | "5.0"));
        let (helpful, votes) = rating[5].split_once('/').expect("helpfulness");
        assert!(helpful.parse::<u32>().expect("a number") <= votes.parse().expect("a number"));
        assert_eq!(rating[7].parse::<u64>().expect("seconds") % 86_400, 0);
        assert_eq!(rating[3].is_empty(), rating[4].is_empty());
        unpriced += usize::from(rating[2].is_empty());
        anonymous += usize::from(rating[3].is_empty());
        nicknamed += usize::from(rating[4].contains('"'));
        long += usize::from(rating[9].len() > 5_000);
    }
    assert!((50_000..130_000).contains(&unpriced), "{unpriced}");
    assert!((15_000..30_000).contains(&anonymous), "{anonymous}");
    assert!(nicknamed > 10_000 && long > 200);
}

#[test]
fn twelve_titles_of_the_nineties_have_500_ratings() {
    let years: HashMap<String, Option<u32>> = books().iter().map(|book| (book[0].to_owned(), year(&book[6]))).collect();
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for rating in ratings() {
        *counts.entry(&rating[1]).or_default() += 1;
    }
    let found = counts
        .iter()
        .filter(|(title, count)| **count >= 500 && years[**title].is_some_and(|year| (1990..2000).contains(&year)))
        .count();
    assert!((12..60).contains(&found), "{found}");
}

#[test]
fn the_words_agree_with_the_score() {
    let share = |score: &str, words: &[&str]| {
        let texts: Vec<&str> = ratings().iter().filter(|rating| &rating[6] == score).map(|rating| &rating[9]).collect();
        texts.iter().filter(|text| words.iter().any(|word| text.contains(word))).count() * 1000 / texts.len()
    };
    assert!(share("5.0", &["could not put this"]) > 3 * share("1.0", &["could not put this"]));
    assert!(share("1.0", &["waste your money"]) > 3 * share("5.0", &["waste your money"]));
}
