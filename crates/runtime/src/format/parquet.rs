//! Parquet files.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;

use super::RowWriter;

/// Writes one Parquet file.
pub(super) struct ParquetWriter<W: Write + Send> {
    state: State<W>,
}

enum State<W: Write + Send> {
    New(W),
    Open(Box<ArrowWriter<W>>),
    Ended,
}

impl<W: Write + Send> ParquetWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { state: State::New(out) }
    }
}

impl<W: Write + Send> RowWriter for ParquetWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        if let State::New(out) = std::mem::replace(&mut self.state, State::Ended) {
            let writer = ArrowWriter::try_new(out, SchemaRef::clone(schema), None).map_err(super::other)?;
            self.state = State::Open(Box::new(writer));
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match &mut self.state {
            State::Open(writer) => writer.write(batch).map_err(super::other),
            _ => Err(io::Error::other("rows before the columns, or after the end")),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if let State::Open(writer) = std::mem::replace(&mut self.state, State::Ended) {
            writer.into_inner().map_err(super::other)?.flush()?;
        }
        Ok(())
    }
}
