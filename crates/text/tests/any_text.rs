//! No text panics, none takes more than linear time, and each has one answer.
#![allow(clippy::unwrap_used)]

use proptest::prelude::{any, prop, proptest};
use tenaz_text::{is_english, language, python_list, sentiment, sentiment_nano, year};

/// What the grammars of this crate care about, to be strung together at random.
const PIECES: [&str; 34] = [
    "good", "very", "not", "really", "n't", "'", "\"", "’", ":", ")", "(", "!", "...", ".", "a.", "Mr.", "\n", "\r\n",
    " ", "x", "D", "8", "°", "O", "♥", "[", "]", ",", "\\", "\\x4", "\\u", "1", "İ", "\u{85}",
];

/// Ten million bytes, where a quadratic step would show as hours.
const LONG: usize = 10_000_000;

fn check(text: &str) {
    let polarity = sentiment(text);
    assert!((-1.0..=1.0).contains(&polarity), "{polarity} for {text:?}");
    assert_eq!(polarity.to_bits(), sentiment(text).to_bits());
    assert!((sentiment_nano(text) as f64 - polarity * 1e9).abs() <= 0.5);
    assert_eq!(is_english(text), language(text).map_or(text.is_ascii(), |code| code == "en"));
    assert!(year(text).is_none_or(|year| (0..=9999).contains(&year)));
    let list = format!("[{text:?}]");
    for text in [text, &list] {
        let bytes = python_list(text).map_or(0, |list| list.iter().map(|element| element.len()).sum());
        assert!(bytes <= text.len());
    }
}

proptest! {
    #[test]
    fn any_unicode_is_taken(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_string_of_pieces_is_taken(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        check(&pieces.concat());
    }

    #[test]
    fn a_written_list_is_read_back(elements in prop::collection::vec("[^\0\r\n]*", 0..5)) {
        let quoted: Vec<_> = elements.iter().map(|element| element.replace('\\', "\\\\").replace('\'', "\\'")).collect();
        let text = format!("['{}']", quoted.join("', '"));
        if !elements.is_empty() {
            assert_eq!(python_list(&text).unwrap(), elements);
        }
    }
}

/// Every function once; answers do not matter here.
fn run(text: &str) {
    assert!((-1.0..=1.0).contains(&sentiment(text)));
    assert!(python_list(text).is_none());
    let _ = (is_english(text), year(text));
}

#[test]
fn long_texts_are_taken_in_linear_time() {
    for unit in ["a", "good ", "a.", "x!", ": ) ", "8 ", "é", "A|"] {
        run(&unit.repeat(LONG / unit.len()));
    }
    let half = LONG / 2;
    for (front, back) in [("a.", ".,"), ("1|", "|."), ("A|", ".|"), ("Ab", "..")] {
        run(&(front.repeat(half / 2) + &back.repeat(half / 2)));
    }
    assert_eq!(python_list(&format!("[{}]", "'ab', ".repeat(LONG / 6))).unwrap().len(), LONG / 6);
    assert_eq!(python_list(&format!("['{}']", r"\x41".repeat(LONG / 4))).unwrap()[0].len(), LONG / 4);
}
