//! Agreement with Python on made-up texts: the fixtures are written by `scripts/*_cases.py`.
#![allow(clippy::unwrap_used)]

use tenaz_text::{python_list, sentiment};

fn rows(fixture: &str) -> impl Iterator<Item = csv::StringRecord> {
    let path = format!("{}/tests/fixtures/{fixture}", env!("CARGO_MANIFEST_DIR"));
    let reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(path).unwrap();
    reader.into_records().map(Result::unwrap)
}

#[test]
fn sentiment_has_the_same_bits_as_textblob_on_odd_texts() {
    let mut scored = 0;
    for row in rows("sentiment.csv") {
        let expected: f64 = row[0].parse().unwrap();
        assert_eq!(sentiment(&row[1]).to_bits(), expected.to_bits(), "{:?}", &row[1]);
        scored += usize::from(expected != 0.0);
    }
    assert!(scored > 900, "only {scored} texts have a polarity");
}

#[test]
fn python_list_reads_what_literal_eval_reads() {
    let (mut lists, mut others) = (0, 0);
    for row in rows("python_list.csv") {
        let expected = (&row[1] == "list").then(|| row.iter().skip(2).collect::<Vec<_>>());
        match &expected {
            Some(_) => lists += 1,
            None => others += 1,
        }
        let found = python_list(&row[0]);
        let found = found.as_ref().map(|list| list.iter().map(AsRef::as_ref).collect::<Vec<_>>());
        assert_eq!(found, expected, "{:?}", &row[0]);
    }
    assert!(lists > 200 && others > 100, "{lists} lists, {others} others");
}
