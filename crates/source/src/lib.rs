//! Where data comes from: a file in any common compression, encoding and CSV dialect, read as canonical CSV.
//!
//! ```text
//!  file ──compression──▶ bytes ──encoding──▶ UTF-8 ──dialect, columns──▶ canonical CSV ──▶ chunker (tenaz-csv)
//! ```
//!
//! [`open()`] looks at the first bytes of a file and at its [`FileFormat`], and gives back either the file itself, where it
//! already is canonical ([`Opened::Plain`]: readers take any block of it), or a stream of canonical bytes
//! ([`Opened::Stream`]). Canonical CSV is what `tenaz-csv` reads: UTF-8, records ended by `\n` or `\r\n`, fields quoted with
//! `"`, quotes doubled, columns in the order of the table.
//!
//! A stream has as many line ends before each record as the file has, so the line numbers of rejected records are those of
//! the file. Numbers and dates in the spelling of a country ([`ValueForm`]) become what `tenaz-csv` reads. Lines that are no records
//! (comments, preambles, repeated headers, totals) become blank lines, which the chunker skips.
//!
//! This crate guesses a compression, an encoding and lone `\r`s as record ends, because they show in the bytes; it never guesses
//! anything else of a dialect (that is `tenaz-infer`'s part) and starts no threads.

mod compression;
mod date_format;
mod dialect;
mod encoding;
mod error;
mod format;
pub mod limits;
mod not_csv;
mod open;
mod record;
mod rewrite;
mod rule;
mod totals;
mod value;
mod zone;

pub use compression::Compression;
pub use date_format::DateFormat;
pub use dialect::{Dialect, Escape};
pub use encoding::{TextEncoding, guess_encoding};
pub use error::Error;
pub use format::{ColumnSource, FileFormat, Repairs};
pub use not_csv::known_as;
pub use open::{Head, Opened, ends_with_cr, open, open_stream, read_head};
pub use record::{RecordKind, RecordReader, RecordSpan};
pub use rule::is_rule;
pub use totals::{has_no_label, is_total};
pub use value::{
    DateOrder, NumberForm, ValueForm, currency_writes_day_first, formula_text, has_nanoseconds, has_unit, has_zone,
};
