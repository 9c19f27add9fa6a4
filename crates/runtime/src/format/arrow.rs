//! Arrow IPC files.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::FileWriter;
use datafusion::arrow::record_batch::RecordBatch;

use super::RowWriter;

/// Writes the Arrow IPC file format.
pub(super) struct ArrowFileWriter<W: Write> {
    state: State<W>,
}

enum State<W: Write> {
    New(W),
    Open(Box<FileWriter<W>>),
    Ended,
}

impl<W: Write> ArrowFileWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { state: State::New(out) }
    }
}

impl<W: Write> RowWriter for ArrowFileWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        if let State::New(out) = std::mem::replace(&mut self.state, State::Ended) {
            self.state = State::Open(Box::new(FileWriter::try_new(out, schema).map_err(super::from_arrow)?));
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        match &mut self.state {
            State::Open(writer) => writer.write(batch).map_err(super::from_arrow),
            _ => Err(io::Error::other("rows before the columns, or after the end")),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if let State::Open(mut writer) = std::mem::replace(&mut self.state, State::Ended) {
            writer.finish().map_err(super::from_arrow)?;
            writer.get_mut().flush()?;
        }
        Ok(())
    }
}
