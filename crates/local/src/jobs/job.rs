//! One job, from the question to its end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use datafusion::arrow::record_batch::RecordBatch;
use serde_json::{Value, json};
use tenaz_core::{Classified, FailedQuery, QueryId};
use tenaz_runtime::{
    Answer, DataSet, Error, Observer, Options, Outcome, Progress, RejectLine, SpooledRows, TableReport,
};
use tenaz_words::{rfc3339, unix_ms};
use tokio::sync::watch;

use super::kept_answer::KeptAnswer;
use super::question::{Question, describe_columns};
use crate::limits::EARLY_ROWS;

/// A job.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) question: Question,
    data: DataSet,
    created_ms: u64,
    begun: Instant,
    progress: Progress,
    state: Mutex<State>,
    /// Counts changes that the progress does not show.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    end: Option<End>,
    /// For each question, the rows that were certain before its end.
    early: Vec<Early>,
    /// The questions that were final before the end, by their place.
    finals: BTreeMap<usize, Final>,
    seconds: Option<f64>,
}

/// What is known of an answer as soon as it is final.
#[derive(Debug, Clone)]
struct Final {
    rows: u64,
    fingerprint: String,
    at_ms: u64,
}

#[derive(Debug, Default)]
struct Early {
    batches: Vec<RecordBatch>,
    rows: u64,
}

/// How a job has ended.
#[derive(Debug)]
enum End {
    Done(Box<Done>),
    Failed { class: Value, text: String },
    Cancelled,
}

#[derive(Debug)]
struct Done {
    /// The answers by name; none where their rows were dropped.
    answers: BTreeMap<String, KeptEnd>,
    failed: Vec<FailedQuery>,
    tables: Vec<TableReport>,
    rejects: Option<Arc<SpooledRows>>,
}

/// What is known of an answer, and its rows as long as they are kept.
#[derive(Debug)]
struct KeptEnd {
    rows: u64,
    fingerprint: String,
    at_ms: u64,
    ordered: bool,
    answer: Option<Arc<KeptAnswer>>,
}

/// The rows of a question, as far as they are known.
#[derive(Debug)]
pub(crate) enum Rows {
    /// All of them.
    Final(Arc<KeptAnswer>),
    /// Those that are certain by now.
    Early(Vec<RecordBatch>),
    /// They are kept no longer.
    Dropped,
    /// There is no answer.
    Failed(String),
}

impl Job {
    pub(crate) fn new(id: String, question: Question) -> Result<Self, Error> {
        let data = DataSet::find(&question.dir, &question.workload, &question.plan)?;
        let progress = Progress::new(question.workload.tables.len());
        let early = question.plan.queries.iter().map(|_| Early::default()).collect();
        Ok(Self {
            id,
            data,
            created_ms: unix_ms(),
            begun: Instant::now(),
            progress,
            state: Mutex::new(State { end: None, early, finals: BTreeMap::new(), seconds: None }),
            changed: watch::Sender::new(0),
            question,
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs to the end.
    pub(crate) fn run(&self, options: &Options) {
        let Question { workload, plan, .. } = &self.question;
        let outcome = tenaz_runtime::run(workload, plan, self.data.clone(), options, &self.progress, self);
        let end = match outcome {
            Ok(outcome) => End::Done(Box::new(Done::new(outcome))),
            Err(Error::Stopped) => End::Cancelled,
            Err(error) => End::Failed { class: json!(error.class()), text: error.to_string() },
        };
        self.end(end);
    }

    /// Ends it without an answer.
    pub(crate) fn fail(&self, text: &str) {
        self.end(End::Failed { class: json!("process"), text: text.to_owned() });
    }

    fn end(&self, end: End) {
        let mut state = self.state();
        state.end = Some(end);
        state.seconds = Some(self.begun.elapsed().as_secs_f64());
        drop(state);
        self.changed.send_modify(|changes| *changes += 1);
    }

    pub(crate) fn stop(&self) {
        self.progress.stop();
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().end.is_some()
    }

    /// How long it runs, or has run.
    pub(crate) fn seconds(&self) -> f64 {
        self.state().seconds.unwrap_or_else(|| self.begun.elapsed().as_secs_f64())
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Forgets the rows, but not what is known of them.
    pub(crate) fn drop_answers(&self) {
        if let Some(End::Done(done)) = &mut self.state().end {
            done.answers.values_mut().for_each(|kept| kept.answer = None);
            done.rejects = None;
        }
    }

    /// The rows of a question.
    pub(crate) fn rows(&self, query: usize) -> Rows {
        let name = &self.question.plan.queries[query].name;
        let state = self.state();
        match &state.end {
            None => Rows::Early(state.early[query].batches.clone()),
            Some(End::Done(done)) => match done.answers.get(name) {
                Some(KeptEnd { answer: Some(answer), .. }) => Rows::Final(Arc::clone(answer)),
                Some(_) => Rows::Dropped,
                None => {
                    let failed = done.failed.iter().find(|failed| failed.name == *name);
                    Rows::Failed(failed.map_or_else(String::new, |failed| failed.text.to_string()))
                }
            },
            Some(End::Failed { text, .. }) => Rows::Failed(text.clone()),
            Some(End::Cancelled) => Rows::Failed("the job was cancelled".to_owned()),
        }
    }

    /// The bad records of a job that is done; none where there were none.
    pub(crate) fn rejects(&self) -> Option<Arc<SpooledRows>> {
        match &self.state().end {
            Some(End::Done(done)) => done.rejects.clone(),
            _ => None,
        }
    }

    /// Its state in a word.
    pub(crate) fn name(&self) -> &'static str {
        match &self.state().end {
            None => "processing",
            Some(End::Done(_)) => "done",
            Some(End::Failed { .. }) => "failed",
            Some(End::Cancelled) => "cancelled",
        }
    }

    /// The tables, with how far each was read.
    pub(crate) fn tables(&self) -> Vec<Value> {
        let describe = |(place, name): (usize, &str)| {
            let table = self.progress.table(place);
            let done = table.done.load(Relaxed);
            let bytes = self.data.table_bytes(place);
            json!({
                "name": name, "chunks_received": 0, "closed": true, "chunks": null,
                "records": table.records.load(Relaxed), "bytes": bytes,
                "read_bytes": if done { bytes } else { table.bytes.load(Relaxed).min(bytes) },
                "rejected": table.rejected.load(Relaxed), "done": done,
            })
        };
        self.question.tables().map(describe).collect()
    }

    /// How far all of it is.
    pub(crate) fn progress(&self) -> Value {
        let sum = |of: fn(&tenaz_runtime::TableProgress) -> u64| -> u64 {
            self.question.tables().map(|(place, _)| of(self.progress.table(place))).sum()
        };
        let answers = self.state().finals.len();
        json!({
            "chunks": 0, "chunks_known": 0, "bytes": sum(|table| table.bytes.load(Relaxed)),
            "records": sum(|table| table.records.load(Relaxed)), "rejected": sum(|table| table.rejected.load(Relaxed)),
            "answers": answers, "seconds": self.seconds_of(self.state().seconds),
        })
    }

    fn seconds_of(&self, ended: Option<f64>) -> f64 {
        ended.unwrap_or_else(|| self.begun.elapsed().as_secs_f64())
    }

    /// The questions, each with its own state.
    pub(crate) fn questions(&self) -> Vec<Value> {
        let state = self.state();
        let queries = self.question.plan.queries.iter().enumerate();
        queries
            .map(|(place, query)| {
                let mut question = json!({
                    "name": query.name, "title": query.title, "ordered": query.ordered, "tables": [],
                    "columns": describe_columns(&query.schema), "state": "open", "rows": null, "fingerprint": null,
                    "final_at": null, "error": null, "early_rows": state.early[place].rows,
                    "sql": self.question.workload.queries.get(place).map(|query| query.sql.as_str()),
                });
                if let Some(known) = state.finals.get(&place) {
                    question["state"] = "final".into();
                    question["rows"] = known.rows.into();
                    question["fingerprint"] = known.fingerprint.as_str().into();
                    question["final_at"] = rfc3339(known.at_ms).into();
                }
                let Some(End::Done(done)) = &state.end else { return question };
                match (done.answers.get(&query.name), done.failed.iter().find(|failed| failed.name == query.name)) {
                    (Some(kept), _) => {
                        question["state"] = "final".into();
                        question["rows"] = kept.rows.into();
                        question["fingerprint"] = kept.fingerprint.as_str().into();
                        question["final_at"] = rfc3339(kept.at_ms).into();
                    }
                    (None, failed) => {
                        question["state"] = "failed".into();
                        question["error"] = json!(failed);
                    }
                }
                question
            })
            .collect()
    }

    /// The results of a job that is done.
    pub(crate) fn results(&self) -> Value {
        let state = self.state();
        let Some(End::Done(done)) = &state.end else { return Value::Null };
        let queries =
            self.question.plan.queries.iter().filter_map(|query| Some((query, done.answers.get(&query.name)?)));
        let queries: Vec<Value> = queries
            .map(|(query, kept)| {
                json!({"name": query.name, "rows": kept.rows, "fingerprint": kept.fingerprint, "ordered": kept.ordered})
            })
            .collect();
        let tables: Vec<Value> = done.tables.iter().map(describe_table).collect();
        json!({"queries": queries, "failed": done.failed, "tables": tables})
    }

    /// Why it failed, if it did.
    pub(crate) fn error(&self) -> Value {
        match &self.state().end {
            Some(End::Failed { class, text }) => {
                json!({"code": "job_failed", "class": class, "text": text, "state": "failed"})
            }
            Some(End::Cancelled) => {
                json!({"code": "cancelled", "class": "query", "text": "the job was cancelled", "state": "cancelled"})
            }
            _ => Value::Null,
        }
    }

    /// A line of the list of jobs.
    pub(crate) fn line(&self) -> Value {
        let failed = match &self.state().end {
            Some(End::Done(done)) => json!(done.failed),
            _ => json!([]),
        };
        json!({
            "job": self.id, "workload": self.question.text, "state": self.name(), "created": rfc3339(self.created_ms),
            "progress": self.progress(), "failed": failed,
        })
    }

    /// Everything.
    pub(crate) fn describe(&self, stages: Value) -> Value {
        json!({
            "job": self.id, "workload": self.question.workload.name, "text": self.question.text, "state": self.name(),
            "created": rfc3339(self.created_ms), "partitions": null, "chunk_bytes": null,
            "tables": self.tables(), "questions": self.questions(), "progress": self.progress(), "stages": stages,
            "waiting_for": null, "error": self.error(), "results": self.results(),
        })
    }
}

impl Done {
    fn new(outcome: Outcome) -> Self {
        let Outcome { answers, failed, tables, rejects, .. } = outcome;
        let answers = answers.into_iter().map(|answer| {
            let name = answer.name.clone();
            let kept = KeptEnd {
                rows: answer.rows,
                fingerprint: answer.fingerprint.clone(),
                at_ms: answer.final_at_ms,
                ordered: answer.ordered,
                answer: Some(Arc::new(KeptAnswer::new(answer))),
            };
            (name, kept)
        });
        Self { answers: answers.collect(), failed, tables, rejects }
    }
}

fn describe_table(table: &TableReport) -> Value {
    json!({
        "name": table.name, "records": table.counts.records, "accepted": table.counts.accepted,
        "rejected": table.counts.rejected, "reasons": table.reasons, "bytes": table.bytes, "chunks": null,
        "partial": table.is_partial,
    })
}

/// Rows that are certain before the end are shown at once.
impl Observer for Job {
    fn rows(&self, query: QueryId, batch: &RecordBatch) {
        let mut state = self.state();
        let early = &mut state.early[usize::from(query.0)];
        let room = EARLY_ROWS.saturating_sub(early.batches.iter().map(RecordBatch::num_rows).sum());
        early.rows += batch.num_rows() as u64;
        if room > 0 {
            early.batches.push(batch.slice(0, room.min(batch.num_rows())));
        }
        drop(state);
        self.changed.send_modify(|changes| *changes += 1);
    }

    fn question_final(&self, query: QueryId, answer: &Answer) {
        let known = Final { rows: answer.rows, fingerprint: answer.fingerprint.clone(), at_ms: answer.final_at_ms };
        self.state().finals.insert(usize::from(query.0), known);
        self.changed.send_modify(|changes| *changes += 1);
    }

    fn reject(&self, _: &RejectLine) {}
}
