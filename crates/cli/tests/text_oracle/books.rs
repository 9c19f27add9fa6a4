//! Books and ratings.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use super::{Answers, cut, decimal, mean, present, records};

/// `4.0` with two decimals kept, and nine more in its mean.
const SCORE_SCALE: u32 = 2;
const SCORE_DECIMALS: u32 = SCORE_SCALE + 9;
/// A polarity is kept in billionths, and its mean has nine decimals more.
const SENTIMENT_SCALE: u32 = 9;
const SENTIMENT_DECIMALS: u32 = SENTIMENT_SCALE + 9;

struct Book {
    title: Option<String>,
    authors: Option<String>,
    publisher: Option<String>,
    year: Option<i32>,
    categories: Vec<String>,
}

impl Book {
    fn new(record: &csv::StringRecord) -> Self {
        assert_eq!(record.len(), 10, "{record:?}");
        let field = |place: usize| present(&record[place]).map(str::to_owned);
        let categories = present(&record[8]).and_then(tenaz_text::python_list).unwrap_or_default();
        Self {
            title: field(0),
            authors: field(2),
            publisher: field(5),
            year: present(&record[6]).and_then(tenaz_text::year),
            categories: categories.into_iter().map(String::from).collect(),
        }
    }

    fn is_of(&self, category: &str) -> bool {
        self.categories.iter().any(|c| c == category)
    }

    fn is_from(&self, first: i32, last: i32) -> bool {
        self.year.is_some_and(|year| (first..=last).contains(&year))
    }
}

/// What the ratings say of one title.
#[derive(Default)]
struct Rated {
    reviews: i128,
    scores: i128,
    score_sum: i128,
    texts: i128,
    sentiment_sum: i128,
}

/// `4.0` in hundredths.
fn hundredths(text: &str) -> i128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<2}").parse().expect("a score with at most two decimals")
}

fn ratings(path: &Path, fiction: &BTreeSet<&str>) -> HashMap<String, Rated> {
    let mut titles: HashMap<String, Rated> = HashMap::new();
    for record in records(path) {
        assert_eq!(record.len(), 10, "{record:?}");
        let Some(title) = present(&record[1]) else { continue };
        let rated = titles.entry(title.to_owned()).or_default();
        rated.reviews += 1;
        if let Some(score) = present(&record[6]) {
            rated.scores += 1;
            rated.score_sum += hundredths(score);
        }
        // Other titles' texts are not asked for, and scoring them would take most of the time.
        if let Some(text) = present(&record[9]).filter(|_| fiction.contains(title)) {
            rated.texts += 1;
            rated.sentiment_sum += i128::from(tenaz_text::sentiment_nano(text));
        }
    }
    titles
}

pub fn answers(dir: &Path) -> Answers {
    let books: Vec<Book> = records(&dir.join("books_data.csv")).iter().map(Book::new).collect();
    let fiction: BTreeSet<&str> =
        books.iter().filter(|b| b.is_of("Fiction")).filter_map(|b| b.title.as_deref()).collect();
    let rated = ratings(&dir.join("Books_rating.csv"), &fiction);
    Answers::from([
        ("q1", distributed(&books)),
        ("q2", long_lived(&books)),
        ("q3", nineties(&books, &rated).into_iter().map(|(title, authors, _)| vec![title, authors]).collect()),
        ("q4", best(&books, &rated)),
        ("q5", happiest(&fiction, &rated)),
    ])
}

fn distributed(books: &[Book]) -> Vec<Vec<String>> {
    let shown = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut rows = Vec::new();
    for book in books.iter().filter(|b| b.is_of("Computers") && b.is_from(2000, 2023)) {
        let title = book.title.clone().filter(|t| t.to_lowercase().contains("distributed"));
        rows.extend(title.map(|title| vec![title, shown(&book.authors), shown(&book.publisher)]));
    }
    rows.sort();
    rows
}

fn long_lived(books: &[Book]) -> Vec<Vec<String>> {
    let mut decades: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    for book in books {
        let authors = book.authors.as_deref().and_then(tenaz_text::python_list).unwrap_or_default();
        for author in authors {
            decades.entry(author.into_owned()).or_default().extend(book.year.map(|year| year / 10));
        }
    }
    decades.into_iter().filter(|(_, decades)| decades.len() >= 10).map(|(author, _)| vec![author]).collect()
}

/// Titles of the 1990s with 500 reviews or more, with their authors.
fn nineties<'r>(books: &[Book], rated: &'r HashMap<String, Rated>) -> Vec<(String, String, &'r Rated)> {
    let mut rows: BTreeMap<(String, String), &Rated> = BTreeMap::new();
    for book in books.iter().filter(|b| b.is_from(1990, 1999)) {
        let Some(title) = &book.title else { continue };
        if let Some(reviews) = rated.get(title).filter(|r| r.reviews >= 500) {
            rows.insert((title.clone(), book.authors.clone().unwrap_or_default()), reviews);
        }
    }
    rows.into_iter().map(|((title, authors), reviews)| (title, authors, reviews)).collect()
}

fn best(books: &[Book], rated: &HashMap<String, Rated>) -> Vec<Vec<String>> {
    let scored = nineties(books, rated).into_iter().filter(|(.., r)| r.scores > 0);
    let mut rows: Vec<(i128, String)> =
        scored.map(|(title, _, r)| (-mean(r.score_sum, r.scores, SCORE_SCALE, SCORE_DECIMALS), title)).collect();
    rows.sort();
    rows.into_iter().take(10).map(|(minus, title)| vec![title, decimal(-minus, SCORE_DECIMALS)]).collect()
}

fn happiest(fiction: &BTreeSet<&str>, rated: &HashMap<String, Rated>) -> Vec<Vec<String>> {
    let mut means: Vec<(&str, i128)> = Vec::new();
    for title in fiction {
        if let Some(r) = rated.get(*title).filter(|r| r.texts > 0) {
            means.push((*title, mean(r.sentiment_sum, r.texts, SENTIMENT_SCALE, SENTIMENT_DECIMALS)));
        }
    }
    let Some(cut) = cut(means.iter().map(|(_, mean)| *mean)) else { return Vec::new() };
    let rows = means.into_iter().filter(|(_, mean)| *mean >= cut);
    rows.map(|(title, mean)| vec![title.to_owned(), decimal(mean, SENTIMENT_DECIMALS)]).collect()
}
