//! CSV and TSV. The CSV form is the canonical one: its bytes are what a fingerprint is taken of.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::cells::Cells;
use super::{DecimalMark, RowWriter};

/// Writes RFC 4180 with `\n` line ends. Null is an empty field, an empty text is `""`.
#[derive(Debug)]
pub struct CsvWriter<W> {
    out: W,
    delimiter: u8,
    mark: DecimalMark,
    buffer: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    /// A writer with the given delimiter.
    pub fn new(out: W, delimiter: u8) -> Self {
        Self { out, delimiter, mark: DecimalMark::Point, buffer: Vec::new() }
    }

    /// Numbers have this mark before their decimals.
    pub fn with_mark(mut self, mark: DecimalMark) -> Self {
        self.mark = mark;
        self
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn field(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let special = |b: &u8| *b == self.delimiter || matches!(b, b'"' | b'\n' | b'\r');
        if bytes.is_empty() || bytes.iter().any(special) {
            self.buffer.push(b'"');
            for &byte in bytes {
                if byte == b'"' {
                    self.buffer.push(b'"');
                }
                self.buffer.push(byte);
            }
            self.buffer.push(b'"');
        } else {
            self.buffer.extend_from_slice(bytes);
        }
    }

    fn flush_buffer(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> RowWriter for CsvWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                self.buffer.push(self.delimiter);
            }
            self.field(field.name());
        }
        self.buffer.push(b'\n');
        self.flush_buffer()
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?.with_mark(self.mark);
        for row in 0..batch.num_rows() {
            for column in 0..cells.width() {
                if column > 0 {
                    self.buffer.push(self.delimiter);
                }
                if let Some(text) = cells.get(row, column)? {
                    self.field(text);
                }
            }
            self.buffer.push(b'\n');
            if self.buffer.len() > 1 << 16 {
                self.flush_buffer()?;
            }
        }
        self.flush_buffer()
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
