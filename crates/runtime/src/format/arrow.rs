//! Arrow IPC files and streams: the same bytes for the same rows, in whatever batches they come.

use std::io::{self, Write};

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array, make_array};
use datafusion::arrow::compute::{concat_batches, take_arrays};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::RowWriter;

/// Rows of every batch but the last.
const BATCH_ROWS: usize = 8192;

/// Writes the Arrow IPC file format, or the stream format, which a reader takes from a pipe.
pub(super) struct ArrowWriter<W: Write> {
    state: State<W>,
    is_stream: bool,
    /// Rows that do not fill a batch yet.
    waiting: Vec<RecordBatch>,
    rows: usize,
}

enum State<W: Write> {
    New(W),
    File(Box<FileWriter<W>>),
    Stream(Box<StreamWriter<W>>),
    Ended,
}

impl<W: Write> State<W> {
    fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        match self {
            Self::File(writer) => writer.write(batch),
            Self::Stream(writer) => writer.write(batch),
            Self::New(_) | Self::Ended => Ok(()),
        }
    }
}

impl<W: Write> ArrowWriter<W> {
    pub(super) fn file(out: W) -> Self {
        Self { state: State::New(out), is_stream: false, waiting: Vec::new(), rows: 0 }
    }

    pub(super) fn stream(out: W) -> Self {
        Self { is_stream: true, ..Self::file(out) }
    }
}

impl<W: Write> RowWriter for ArrowWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        if let State::New(out) = std::mem::replace(&mut self.state, State::Ended) {
            self.state = match self.is_stream {
                false => State::File(Box::new(FileWriter::try_new(out, schema).map_err(super::from_arrow)?)),
                true => {
                    let mut writer = Box::new(StreamWriter::try_new(out, schema).map_err(super::from_arrow)?);
                    // Who reads a pipe learns the columns at once, however long the first rows take.
                    writer.get_mut().flush()?;
                    State::Stream(writer)
                }
            };
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        if matches!(self.state, State::New(_) | State::Ended) {
            return Err(io::Error::other("rows before the columns, or after the end"));
        }
        self.rows += batch.num_rows();
        self.waiting.push(batch.clone());
        if self.rows >= BATCH_ROWS { self.write_waiting(false) } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        self.write_waiting(true)?;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::File(mut writer) => {
                writer.finish().map_err(super::from_arrow)?;
                writer.get_mut().flush()
            }
            State::Stream(mut writer) => {
                writer.finish().map_err(super::from_arrow)?;
                writer.get_mut().flush()
            }
            State::New(_) | State::Ended => Ok(()),
        }
    }
}

impl<W: Write> ArrowWriter<W> {
    /// Writes full batches; at the end also the rest.
    fn write_waiting(&mut self, all: bool) -> io::Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(first) = waiting.first() else { return Ok(()) };
        let rows = concat_batches(first.schema_ref(), &waiting).map_err(super::from_arrow)?;
        let mut start = 0;
        while rows.num_rows() - start >= BATCH_ROWS || (all && start < rows.num_rows()) {
            let count = BATCH_ROWS.min(rows.num_rows() - start);
            let batch = plain(&rows, start, count).map_err(super::from_arrow)?;
            self.state.write(&batch).map_err(super::from_arrow)?;
            start += count;
        }
        self.rows = rows.num_rows() - start;
        if self.rows > 0 {
            self.waiting.push(rows.slice(start, self.rows));
        }
        Ok(())
    }
}

/// Some rows in buffers that depend on their values alone, not on what they were part of.
fn plain(rows: &RecordBatch, start: usize, count: usize) -> Result<RecordBatch, ArrowError> {
    let places = UInt32Array::from_iter_values((start as u32)..(start + count) as u32);
    let columns: Vec<ArrayRef> = take_arrays(rows.columns(), &places, None)?
        .into_iter()
        .map(|column| {
            let column = match column.as_string_view_opt() {
                Some(views) => Arc::new(views.gc()) as ArrayRef,
                None => column,
            };
            if column.null_count() > 0 || column.nulls().is_none() {
                return Ok(column);
            }
            Ok(make_array(column.to_data().into_builder().nulls(None).build()?))
        })
        .collect::<Result<_, ArrowError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(rows.schema(), columns, &options)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringViewArray};

    use super::*;

    fn rows(from: i64, to: i64) -> RecordBatch {
        let text: StringViewArray = (from..to).map(|n| (n % 5 != 0).then(|| format!("a longer text {n:>9}"))).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(from..to));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("t", Arc::new(text) as ArrayRef, true)])
            .unwrap()
    }

    fn written(batches: &[RecordBatch]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::file(&mut bytes);
        writer.begin(batches[0].schema_ref()).unwrap();
        batches.iter().for_each(|batch| writer.rows(batch).unwrap());
        writer.end().unwrap();
        drop(writer);
        bytes
    }

    #[test]
    fn the_file_does_not_tell_in_which_batches_the_rows_came() {
        let whole = rows(0, 20_000);
        let expected = written(std::slice::from_ref(&whole));
        for step in [1_000, 7_777, 8_192, 15_000] {
            let pieces: Vec<RecordBatch> =
                (0..20_000).step_by(step).map(|at| whole.slice(at, step.min(20_000 - at))).collect();
            assert!(written(&pieces) == expected, "in pieces of {step}");
        }
        let apart: Vec<RecordBatch> = (0..20).map(|n| rows(n * 1_000, (n + 1) * 1_000)).collect();
        assert!(written(&apart) == expected, "from batches of their own");
    }
}
