//! Rows on their way to standard output while the job still runs.
//!
//! One question: its rows in the format asked for. Several: JSON, a line per row, each with the name of its question, and a
//! last line for every question, with its fingerprint or its error:
//!
//! ```text
//! {"query":"q1","row":{"id":7}}
//! {"query":"q2","row":{"city":"Bern"}}
//! {"query":"q1","end":{"rows":1,"fingerprint":"…"}}
//! ```

use std::io::{BufWriter, Stdout, Write, stdout};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde_json::json;
use tenaz_core::{FailedQuery, QueryId};
use tenaz_engine::JobPlan;
use tenaz_runtime::format::{DecimalMark, Format, RowWriter};
use tenaz_runtime::{Answer, Outcome, plain_schema};

use crate::hand_out::Target;
use crate::outcome::stdout_failed;

/// Standard output as a stream of rows.
pub(crate) struct RowStream {
    questions: Vec<Question>,
    state: Mutex<State>,
}

/// A question whose rows are streamed.
struct Question {
    name: String,
    unordered: bool,
    /// What the columns are called, whatever a batch calls them.
    schema: SchemaRef,
}

struct State {
    sink: Sink,
    error: Option<std::io::Error>,
}

enum Sink {
    /// The rows of the only question.
    One(Box<dyn RowWriter + Send>),
    /// Lines that name their question.
    Several(BufWriter<Stdout>),
}

impl State {
    fn rows(&mut self, question: &Question, batch: &RecordBatch) -> std::io::Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        let batch = RecordBatch::try_new_with_options(SchemaRef::clone(&question.schema), columns, &options);
        let batch = batch.map_err(std::io::Error::other)?;
        match &mut self.sink {
            Sink::One(writer) => writer.rows(&batch),
            Sink::Several(out) => {
                let mut lines = Vec::new();
                let mut writer = Format::Ndjson.writer(&mut lines);
                writer.begin(&batch.schema())?;
                writer.rows(&batch)?;
                writer.end()?;
                drop(writer);
                let name = json!(question.name);
                // Line ends within texts are escaped, so each line is a row.
                for line in lines.split(|byte| *byte == b'\n').take(batch.num_rows()) {
                    write!(out, "{{\"query\":{name},\"row\":")?;
                    out.write_all(line)?;
                    out.write_all(b"}\n")?;
                }
                out.flush()
            }
        }
    }

    fn last_line(&mut self, question: &Question, what: &str, told: &serde_json::Value) -> std::io::Result<()> {
        let Sink::Several(out) = &mut self.sink else { return Ok(()) };
        writeln!(out, "{{\"query\":{},\"{what}\":{told}}}", json!(question.name))?;
        out.flush()
    }
}

impl RowStream {
    /// The stream, if that is the target: that of one question begins with the columns.
    pub(crate) fn new(target: &Target, plan: &JobPlan, mark: DecimalMark) -> Result<Option<Self>> {
        let (Target::Stream(format), [first, others @ ..]) = (target, plan.queries.as_slice()) else { return Ok(None) };
        let out = BufWriter::with_capacity(1 << 16, stdout());
        let sink = if others.is_empty() {
            let mut writer = format.writer_with(out, mark);
            writer.begin(&plain_schema(&first.schema)).map_err(stdout_failed)?;
            Sink::One(writer)
        } else {
            Sink::Several(out)
        };
        let questions = plan.queries.iter().map(|query| Question {
            name: query.name.clone(),
            unordered: !query.ordered,
            schema: plain_schema(&query.schema),
        });
        Ok(Some(Self { questions: questions.collect(), state: Mutex::new(State { sink, error: None }) }))
    }

    /// Whether rows of a question are written as they become known; those of ordered answers are only known at their end.
    pub(crate) fn is_unordered(&self) -> bool {
        self.questions.iter().any(|question| question.unordered)
    }

    /// Whether there are several questions.
    pub(crate) fn has_several(&self) -> bool {
        self.questions.len() > 1
    }

    /// Writes rows of an unordered answer. False: nobody reads on, or nothing can be written.
    pub(crate) fn rows(&self, query: QueryId, batch: &RecordBatch) -> bool {
        let Some(question) = self.questions.get(usize::from(query.0)) else { return true };
        let mut state = self.state();
        if question.unordered && state.error.is_none() {
            state.error = state.rows(question, batch).err();
        }
        state.error.is_none()
    }

    /// A question is final: of several, its ordered rows and its end are written. False as above.
    pub(crate) fn question_final(&self, query: QueryId, answer: &Answer) -> bool {
        let Some(question) = self.questions.get(usize::from(query.0)).filter(|_| self.has_several()) else {
            return true;
        };
        let mut state = self.state();
        if state.error.is_none() {
            state.error = Self::write_end(&mut state, question, answer).err();
        }
        state.error.is_none()
    }

    fn write_end(state: &mut State, question: &Question, answer: &Answer) -> std::io::Result<()> {
        if !question.unordered {
            for batch in answer.batches() {
                state.rows(question, &batch.map_err(std::io::Error::other)?)?;
            }
        }
        state.last_line(question, "end", &json!({"rows": answer.rows, "fingerprint": answer.fingerprint}))
    }

    /// A question has failed: of several, its last line says why. False as above.
    pub(crate) fn question_failed(&self, query: QueryId, failed: &FailedQuery) -> bool {
        let Some(question) = self.questions.get(usize::from(query.0)) else { return true };
        let mut state = self.state();
        if state.error.is_none() {
            let told = json!({"class": failed.class, "text": failed.text});
            state.error = state.last_line(question, "error", &told).err();
        }
        state.error.is_none()
    }

    /// The reason why standard output could not be written, once.
    pub(crate) fn failure(&self) -> Option<anyhow::Error> {
        self.state().error.take().map(stdout_failed)
    }

    /// Ends the stream. If its only question could not be answered, the stream just stops: it must not look complete.
    pub(crate) fn finish(&self, outcome: &Outcome) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let mut state = self.state();
        if let Sink::Several(out) = &mut state.sink {
            return out.flush().map_err(stdout_failed);
        }
        if !outcome.failed.is_empty() {
            return Ok(());
        }
        if !self.is_unordered() {
            for batch in outcome.answers.iter().flat_map(Answer::batches) {
                let Sink::One(writer) = &mut state.sink else { break };
                writer.rows(&batch?).map_err(stdout_failed)?;
            }
        }
        let Sink::One(writer) = &mut state.sink else { return Ok(()) };
        writer.end().map_err(stdout_failed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
