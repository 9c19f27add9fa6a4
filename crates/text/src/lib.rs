//! Answers to four questions about a text: which language is it in, how does it feel, which
//! strings does this Python list hold, and which year does this date mean?
//!
//! ```
//! use tenaz_text::{is_english, language, python_list, sentiment, sentiment_nano, year};
//!
//! let review = "This is a really great book, but not a very short one!";
//! assert_eq!(language(review), Some("en"));
//! assert!(is_english(review));
//! assert_eq!(sentiment(review), 0.4);
//! assert_eq!(sentiment_nano(review), 400_000_000);
//! assert_eq!(python_list("['Computers', 'Fiction']").expect("a list"), ["Computers", "Fiction"]);
//! assert_eq!(year("2000-10"), Some(2000));
//! ```
//!
//! Each function is pure and takes any Unicode text of any length in time linear in it; the same
//! text gives the same bits on every machine. The references are langid for the language, TextBlob
//! for the sentiment and `ast.literal_eval` for the lists; the tests hold the functions to them.
//!
//! This crate never reads a file, a clock or a locale, never fails and never panics, and knows
//! nothing about SQL, Arrow or null values.

mod language;
mod python_list;
mod sentiment;
mod year;

pub use language::{is_english, language};
pub use python_list::python_list;
pub use sentiment::{sentiment, sentiment_nano};
pub use year::year;
