//! Answers as text or bytes, in every common format.
//!
//! A value looks the same in all text formats: decimals with their full scale, times as `YYYY-MM-DD HH:MM:SS`, nothing
//! for null.

mod arrow;
mod cells;
pub mod csv;
mod json;
mod markdown;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;

pub use table::TableWriter;

/// A format in which answers can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values, RFC 4180, `\n` line ends. Its SHA-256 is the fingerprint.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A Markdown table.
    Markdown,
    /// An Arrow IPC file.
    Arrow,
    /// A Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    /// All formats of this build.
    pub const ALL: &'static [Format] = &[
        Format::Table,
        Format::Csv,
        Format::Tsv,
        Format::Json,
        Format::Ndjson,
        Format::Markdown,
        Format::Arrow,
        #[cfg(feature = "parquet")]
        Format::Parquet,
    ];

    /// The name, which is also the suffix of files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Markdown => "markdown",
            Format::Arrow => "arrow",
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
        }
    }

    /// Whether it is meant for programs rather than for a screen.
    pub fn is_binary(self) -> bool {
        #[cfg(feature = "parquet")]
        if self == Format::Parquet {
            return true;
        }
        self == Format::Arrow
    }

    /// A writer of this format.
    pub fn writer<'w>(self, out: impl Write + Send + 'w) -> Box<dyn RowWriter + Send + 'w> {
        match self {
            Format::Table => Box::new(TableWriter::new(out, None)),
            Format::Csv => Box::new(csv::CsvWriter::new(out, b',')),
            Format::Tsv => Box::new(csv::CsvWriter::new(out, b'\t')),
            Format::Json => Box::new(json::JsonWriter::array(out)),
            Format::Ndjson => Box::new(json::JsonWriter::lines(out)),
            Format::Markdown => Box::new(markdown::MarkdownWriter::new(out)),
            Format::Arrow => Box::new(arrow::ArrowFileWriter::new(out)),
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(parquet::ParquetWriter::new(out)),
        }
    }
}

/// Takes an answer: its columns, its rows, its end.
pub trait RowWriter {
    /// The columns. Called once, first.
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()>;
    /// Some rows.
    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()>;
    /// No more rows. Everything is handed to the writer below, and that one is flushed.
    fn end(&mut self) -> io::Result<()>;
}

/// What went wrong below the Arrow writer, as it was: a reader that has gone must still be known as one.
fn from_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}
