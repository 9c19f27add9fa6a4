//! What a reader is told about the files of a table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Dialect, TextEncoding, ValueForm};

/// How the files of a table are written, and which columns they shall have.
#[derive(Debug, Clone, Default)]
pub struct FileFormat {
    /// The encoding; none: it is looked for in the bytes.
    pub encoding: Option<TextEncoding>,
    /// The marks of records and fields.
    pub dialect: Dialect,
    /// Whether the first record names the columns.
    pub has_header: bool,
    /// The columns of the table by name, where a file may have them in another order, miss some or have others besides.
    /// None: every file has them all, in this order.
    pub columns_by_name: Option<Vec<String>>,
    /// How values are written, by the place of their column in the table, where that is not the spelling of `tenaz-csv`.
    pub values: Vec<Option<ValueForm>>,
    /// A record that is the header again, as in exports that were put one behind the other, is no record.
    pub drop_repeated_headers: bool,
    /// A record that sums others up (its first value is `Total`, `Summe` or the like) is no record, nor is `(3 rows)`.
    pub drop_totals: bool,
    /// A record whose first field is empty sums the others up, and is no record.
    pub drop_unlabelled: bool,
    /// A record of several fields, all of them empty, is what spreadsheets write for a blank row, and is no record.
    pub drop_blank: bool,
    /// Lines of text below the table, behind a blank line, are no records.
    pub drop_footnotes: bool,
    /// Records with too few fields are padded with nulls, further fields are cut off, stray quotes are data.
    pub lenient: bool,
    /// What was repaired on the way, in all files.
    pub repairs: Arc<Repairs>,
}

/// Where a column of a table comes from in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnSource {
    /// This field of every record, counted from 0.
    Field(usize),
    /// The file does not have it: null.
    Missing,
    /// The same text in every record, such as the month of a folder `month=03`.
    Constant(String),
}

/// What was changed so that a file could be read. Every number is told to the user.
#[derive(Debug, Default)]
pub struct Repairs {
    /// Steps of transcoding in which characters that the encoding does not have became `U+FFFD`.
    pub replaced_characters: AtomicU64,
    /// Records with too few fields, padded.
    pub padded: AtomicU64,
    /// Records with too many fields, cut.
    pub cut: AtomicU64,
    /// Records with quotes where none may be, taken literally.
    pub stray_quotes: AtomicU64,
    /// Headers in the middle of a file, dropped.
    pub repeated_headers: AtomicU64,
    /// Lines that sum others up, dropped.
    pub totals: AtomicU64,
    /// Records without any value, dropped.
    pub blank: AtomicU64,
    /// Lines of text below a table, dropped.
    pub footnotes: AtomicU64,
}

impl Repairs {
    /// The numbers that are not zero, with what they count.
    #[must_use]
    pub fn told(&self) -> Vec<(&'static str, u64)> {
        let all = [
            ("parts with characters that the encoding does not have", &self.replaced_characters),
            ("records with too few fields, padded", &self.padded),
            ("records with too many fields, cut", &self.cut),
            ("records with stray quotes, taken literally", &self.stray_quotes),
            ("repeated headers, left out", &self.repeated_headers),
            ("lines of totals, left out", &self.totals),
            ("records without any value, left out", &self.blank),
            ("lines of text below the table, left out", &self.footnotes),
        ];
        all.into_iter().map(|(what, count)| (what, count.load(Ordering::Relaxed))).filter(|(_, n)| *n > 0).collect()
    }
}
