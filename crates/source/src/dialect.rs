//! How a program wrote its records.

use crate::Error;

/// The marks that make records and fields of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// The byte between two fields.
    pub delimiter: u8,
    /// The byte around a field that holds delimiters or line ends; none: no byte does that.
    pub quote: Option<u8>,
    /// How a quote inside a quoted field is written.
    pub escape: Escape,
    /// A line that starts with this byte is no record.
    pub comment: Option<u8>,
    /// Lines before the header, or before the first record where there is no header.
    pub skip_lines: u64,
    /// Records end with a lone `\r`, as old programs for the Macintosh write them.
    pub cr_ends_records: bool,
    /// Spaces around fields belong to no field: `a, "b" ,c`.
    pub skip_spaces: bool,
    /// Lines of dashes, as in tables that are drawn with characters, are no records: `+----+----+`.
    pub ruled: bool,
    /// Records begin and end with a delimiter: `|a|b|`.
    pub framed: bool,
    /// Two delimiters stand between fields: `a::b`.
    pub doubled: bool,
}

/// How a byte that means something is written as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escape {
    /// A quote inside a quoted field is written twice.
    #[default]
    Doubled,
    /// A backslash stands before it, inside and outside of quotes.
    Backslash,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: Escape::Doubled,
            comment: None,
            skip_lines: 0,
            cr_ends_records: false,
            skip_spaces: false,
            ruled: false,
            framed: false,
            doubled: false,
        }
    }
}

impl Dialect {
    /// The usual marks with this delimiter.
    #[must_use]
    pub fn with_delimiter(delimiter: u8) -> Self {
        Self { delimiter, ..Self::default() }
    }

    /// Whether records in this dialect are canonical, whatever they hold.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        *self == Self::with_delimiter(self.delimiter) && is_canonical_delimiter(self.delimiter)
    }

    /// The delimiter of the canonical form.
    #[must_use]
    pub fn canonical_delimiter(&self) -> u8 {
        if is_canonical_delimiter(self.delimiter) { self.delimiter } else { b',' }
    }

    /// Whether records can be read by it at all.
    ///
    /// # Errors
    /// [`Error::Dialect`] says which marks exclude each other.
    pub fn check(&self) -> Result<(), Error> {
        let wrong =
            |problem: &str, cure: &str| Err(Error::Dialect { problem: problem.to_owned(), cure: cure.to_owned() });
        let marks = [Some(self.delimiter), self.quote, self.comment];
        if marks.into_iter().flatten().any(|mark| matches!(mark, b'\n' | b'\r') || !mark.is_ascii()) {
            return wrong(
                "delimiter, quote and comment are one ASCII character each, and no line end",
                "write another one",
            );
        }
        if self.quote == Some(self.delimiter) {
            return wrong("delimiter and quote are the same", "give --quote another character, or --quote none");
        }
        if self.comment == Some(self.delimiter) || (self.comment.is_some() && self.comment == self.quote) {
            return wrong("the comment mark is the delimiter or the quote", "give --comment another character");
        }
        if self.escape == Escape::Backslash && (self.delimiter == b'\\' || self.quote == Some(b'\\')) {
            return wrong("the backslash is both an escape and a delimiter or quote", "write --escape double");
        }
        Ok(())
    }
}

fn is_canonical_delimiter(byte: u8) -> bool {
    byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r')
}
