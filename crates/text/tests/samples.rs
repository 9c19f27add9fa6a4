//! Agreement with the references on the real samples in `shared/data`; skipped where they are absent.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;

use tenaz_text::{is_english, python_list, sentiment, sentiment_nano, year};

/// One column of a sample file, or nothing (and a word about it) when the samples are not there.
fn column(file: &str, name: &str) -> Option<Vec<String>> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data")).join(file);
    if !path.exists() {
        println!("skipped: no sample {}", path.display());
        return None;
    }
    let mut reader = csv::Reader::from_path(path).unwrap();
    let at = reader.headers().unwrap().iter().position(|header| header == name).unwrap();
    Some(reader.records().map(|record| record.unwrap()[at].to_owned()).collect())
}

#[test]
fn is_english_agrees_with_langid_on_more_than_97_percent() {
    let Some(reviews) = column("steam/reviews.csv", "review_text") else { return };
    let labels = column("steam/reviews_language_labels.csv", "langid").unwrap();
    assert_eq!(reviews.len(), labels.len());
    let pairs = reviews.iter().zip(&labels);
    let agreed = pairs.filter(|(review, label)| is_english(review) == (*label == "en")).count();
    println!("is_english agrees on {agreed} of {}", reviews.len());
    assert!(agreed * 1000 >= reviews.len() * 975, "{agreed} of {}", reviews.len());
}

#[test]
fn sentiment_equals_textblob_on_every_review() {
    let Some(reviews) = column("books/Books_rating.csv", "review/text") else { return };
    let labels = column("books/ratings_sentiment_labels.csv", "polarity").unwrap();
    assert_eq!(reviews.len(), labels.len());
    for (review, label) in reviews.iter().zip(&labels) {
        let label: f64 = label.parse().unwrap();
        assert!((sentiment(review) - label).abs() < 1e-12, "{} is not {label}: {review}", sentiment(review));
        assert!((sentiment_nano(review) as f64 / 1e9 - label).abs() < 1e-9, "{review}");
    }
}

#[test]
fn every_list_of_the_books_is_read_and_written_back_the_same() {
    for name in ["authors", "categories"] {
        let Some(texts) = column("books/books_data.csv", name) else { return };
        for text in texts.iter().filter(|text| !text.is_empty()) {
            let list = python_list(text).unwrap_or_else(|| panic!("no list: {text}"));
            let elements: Vec<String> = list.iter().map(|element| repr(element)).collect();
            assert_eq!(&format!("[{}]", elements.join(", ")), text);
        }
    }
}

/// Python's `repr` of a string of printable characters.
fn repr(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\u{a0}', "\\xa0");
    match (text.contains('\''), text.contains('"')) {
        (true, false) => format!("\"{text}\""),
        _ => format!("'{}'", text.replace('\'', "\\'")),
    }
}

#[test]
fn every_date_of_the_books_has_a_year() {
    let Some(dates) = column("books/books_data.csv", "publishedDate") else { return };
    for date in dates.iter().filter(|date| !date.is_empty()) {
        assert!(matches!(year(date), Some(1500..=2030)), "{date}");
    }
}
