//! What the user says about how files are written. Whatever is not said is guessed.

use tenaz_source::{DateOrder, Escape, TextEncoding};

/// How files shall be read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Their encoding.
    pub encoding: Option<TextEncoding>,
    /// The byte between fields.
    pub delimiter: Option<u8>,
    /// The byte around fields, or that there is none.
    pub quote: Option<Option<u8>>,
    /// How quotes inside quotes are written.
    pub escape: Option<Escape>,
    /// The byte that begins a comment, or that there are none.
    pub comment: Option<Option<u8>>,
    /// Lines before the header.
    pub skip_lines: Option<u64>,
    /// Whether spaces around fields are no data.
    pub skip_spaces: Option<bool>,
    /// Whether records that sum others up are left out.
    pub totals: Option<bool>,
    /// Whether records of several fields, all of them empty, are left out.
    pub blank: Option<bool>,
    /// Whether lines of text below the table are left out.
    pub footnotes: Option<bool>,
    /// Whether the first record names the columns.
    pub header: Option<bool>,
    /// Spellings of null besides the empty field, in every column.
    pub nulls: Vec<String>,
    /// Whether numbers have a decimal comma.
    pub decimal_comma: Option<bool>,
    /// The order of day, month and year.
    pub date_order: Option<DateOrder>,
    /// Whether records of another length are padded or cut, and stray quotes are data.
    pub lenient: bool,
    /// Whether files of a folder with unlike columns are one table (`Some(true)`), a table each (`Some(false)`), or what
    /// their names and columns suggest.
    pub union: Option<bool>,
}
