//! A record that was refused, and why.

use std::fmt;

use crate::limits::{MAX_FOUND_CHARS, MAX_RECORD_BYTES, MAX_REJECT_CHARS};

/// A record that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    /// Which record of its chunk, counted from 0 and including rejected ones.
    pub record: u64,
    /// The physical line in the file on which the record starts, counted from 1.
    pub line: u64,
    /// Where in the file the record starts.
    pub byte: u64,
    /// The column at fault, if it is one column's.
    pub column: Option<usize>,
    /// What is wrong.
    pub reason: Reason,
    /// The record's raw text, shortened to [`MAX_REJECT_CHARS`]; a cut is marked with `…`.
    pub text: String,
}

/// Why a record was refused. `Display` says what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A quoted field has no end within the limit.
    NeverClosed,
    /// The record is over the limit.
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// Neither delimiter nor line end follows a closing quote.
    TextAfterQuote,
    /// The wrong number of fields.
    FieldCount {
        /// Columns of the layout.
        expected: usize,
        /// Fields of the record.
        found: usize,
    },
    /// The record is not UTF-8.
    NotUtf8,
    /// Null in a required column.
    Missing,
    /// Not an integer.
    NotInt {
        /// The field.
        found: String,
    },
    /// An integer of more than 64 bits.
    IntRange {
        /// The field.
        found: String,
    },
    /// Not a decimal number.
    NotDecimal {
        /// The field.
        found: String,
    },
    /// A decimal with more digits than the column keeps.
    DecimalRange {
        /// The field.
        found: String,
        /// Digits of the column in all.
        precision: u8,
        /// Digits of the column after the point.
        scale: i8,
    },
    /// Not a finite number.
    NotFloat {
        /// The field.
        found: String,
    },
    /// Not a time stamp.
    NotTimestamp {
        /// The field.
        found: String,
    },
    /// Not a date.
    NotDate {
        /// The field.
        found: String,
    },
    /// None of the spellings of true and false.
    NotBool {
        /// The field.
        found: String,
        /// The spellings, for the reader.
        expected: String,
    },
}

impl Reason {
    /// A short, stable name of the reason, for counting.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::NeverClosed => "quote_never_closed",
            Reason::TooLarge { .. } => "too_large",
            Reason::TextAfterQuote => "text_after_quote",
            Reason::FieldCount { .. } => "field_count",
            Reason::NotUtf8 => "not_utf8",
            Reason::Missing => "missing",
            Reason::NotInt { .. } => "not_int",
            Reason::IntRange { .. } => "int_range",
            Reason::NotDecimal { .. } => "not_decimal",
            Reason::DecimalRange { .. } => "decimal_range",
            Reason::NotFloat { .. } => "not_float",
            Reason::NotTimestamp { .. } => "not_timestamp",
            Reason::NotDate { .. } => "not_date",
            Reason::NotBool { .. } => "not_bool",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::NeverClosed => {
                write!(f, "a quote opens here and is not closed within {} MiB, or at all", MAX_RECORD_BYTES >> 20)
            }
            Reason::TooLarge { limit } if limit % (1 << 20) == 0 => {
                write!(f, "record is larger than {} MiB", limit >> 20)
            }
            Reason::TooLarge { limit } => write!(f, "record is larger than {limit} bytes"),
            Reason::TextAfterQuote => write!(f, "text after a closing quote"),
            Reason::FieldCount { expected, found } => {
                write!(f, "expected {expected} fields, found {found}")
            }
            Reason::NotUtf8 => write!(f, "not valid UTF-8"),
            Reason::Missing => write!(f, "empty, but the column is required"),
            Reason::NotInt { found } => write!(f, "\"{found}\" is not a whole number"),
            Reason::IntRange { found } => write!(f, "\"{found}\" does not fit a 64-bit whole number"),
            Reason::NotDecimal { found } => write!(f, "\"{found}\" is not a decimal number"),
            Reason::DecimalRange { found, precision, scale } => write!(
                f,
                "\"{found}\" does not fit decimal({precision}, {scale}): {precision} digits, {scale} of them after the point"
            ),
            Reason::NotFloat { found } => write!(f, "\"{found}\" is not a finite number"),
            Reason::NotTimestamp { found } => {
                write!(f, "\"{found}\" is not a time (YYYY-MM-DD HH:MM:SS)")
            }
            Reason::NotDate { found } => write!(f, "\"{found}\" is not a date (YYYY-MM-DD)"),
            Reason::NotBool { found, expected } => write!(f, "\"{found}\" is not one of {expected}"),
        }
    }
}

/// A field as it appears in a [`Reason`].
pub(crate) fn found(field: &[u8]) -> String {
    shorten(field, MAX_FOUND_CHARS)
}

/// A record as it appears in a [`Reject`].
pub(crate) fn record_text(record: &[u8]) -> String {
    shorten(record, MAX_REJECT_CHARS)
}

fn shorten(bytes: &[u8], chars: usize) -> String {
    // Four bytes are the longest character; the slack keeps a character cut in two out of what is shown.
    let head = &bytes[..bytes.len().min(4 * chars + 8)];
    let text = String::from_utf8_lossy(head);
    match text.char_indices().nth(chars) {
        None => text.into_owned(),
        Some((cut, _)) => format!("{}…", &text[..cut]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_characters_and_the_cut_is_marked() {
        assert_eq!(shorten("áéí".as_bytes(), 3), "áéí");
        assert_eq!(shorten("áéíó".as_bytes(), 3), "áéí…");
        let long = "𝄞".repeat(500);
        assert_eq!(record_text(long.as_bytes()), format!("{}…", "𝄞".repeat(200)));
        assert_eq!(shorten(b"a\xffb", 10), "a\u{fffd}b");
    }

    #[test]
    fn reasons_say_what_was_found_and_expected() {
        let text = |reason: Reason| reason.to_string();
        assert_eq!(text(Reason::FieldCount { expected: 9, found: 8 }), "expected 9 fields, found 8");
        assert_eq!(text(Reason::NotInt { found: "abc".into() }), "\"abc\" is not a whole number");
        assert_eq!(text(Reason::NotDate { found: "2024-13-01".into() }), "\"2024-13-01\" is not a date (YYYY-MM-DD)");
        assert_eq!(text(Reason::TooLarge { limit: 1 << 20 }), "record is larger than 1 MiB");
    }
}
