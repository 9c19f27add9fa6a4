//! Rows on their way to standard output while the job still runs.

use std::io::{BufWriter, stdout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use tenaz_engine::JobPlan;
use tenaz_runtime::format::{DecimalMark, RowWriter};
use tenaz_runtime::{Answer, Outcome, plain_schema};

use crate::hand_out::Target;
use crate::outcome::stdout_failed;

/// Standard output as a stream of the rows of one answer.
pub(crate) struct RowStream {
    unordered: bool,
    state: Mutex<State>,
}

struct State {
    /// What the columns are called, whatever a batch calls them.
    schema: SchemaRef,
    writer: Box<dyn RowWriter + Send>,
    error: Option<std::io::Error>,
}

impl State {
    fn rows(&mut self, batch: &RecordBatch) -> std::io::Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let batch = RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options);
        self.writer.rows(&batch.map_err(std::io::Error::other)?)
    }
}

impl RowStream {
    /// The stream, if that is the target: it begins with the columns.
    pub(crate) fn new(target: &Target, plan: &JobPlan, mark: DecimalMark) -> Result<Option<Self>> {
        let (Target::Stream(format), Some(query)) = (target, plan.queries.first()) else { return Ok(None) };
        let mut writer = format.writer_with(BufWriter::with_capacity(1 << 16, stdout()), mark);
        let schema = plain_schema(&query.schema);
        writer.begin(&schema).map_err(stdout_failed)?;
        Ok(Some(Self { unordered: !query.ordered, state: Mutex::new(State { schema, writer, error: None }) }))
    }

    /// Whether rows are written as they become known; those of an ordered answer are only known at the end.
    pub(crate) fn is_unordered(&self) -> bool {
        self.unordered
    }

    /// Writes rows of an unordered answer. False: nobody reads on, or nothing can be written.
    pub(crate) fn rows(&self, batch: &RecordBatch) -> bool {
        let mut state = self.state();
        if self.unordered && state.error.is_none() {
            state.error = state.rows(batch).err();
        }
        state.error.is_none()
    }

    /// The reason why standard output could not be written, once.
    pub(crate) fn failure(&self) -> Option<anyhow::Error> {
        self.state().error.take().map(stdout_failed)
    }

    /// Ends the stream. If its question could not be answered, the stream just stops: it must not look complete.
    pub(crate) fn finish(&self, outcome: &Outcome) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        if !outcome.failed.is_empty() {
            return Ok(());
        }
        let mut state = self.state();
        if !self.unordered {
            for batch in outcome.answers.iter().flat_map(Answer::batches) {
                state.writer.rows(&batch?).map_err(stdout_failed)?;
            }
        }
        state.writer.end().map_err(stdout_failed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
