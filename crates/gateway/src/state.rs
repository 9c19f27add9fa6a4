//! How a job stands, for people and programs.

use serde_json::{Value, json};
use tenaz_cluster::{JobProgress, JobView, ResultEnd};
use tenaz_core::{End, TableId};

use crate::app::{App, Job, gone};
use crate::limits::UPLOAD_IDLE;
use crate::problem::Problem;
use crate::results_log::read_end;
use tenaz_words::rfc3339;

/// A code for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) code: String,
    pub(crate) text: String,
}

impl Told {
    pub(crate) fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into() }
    }

    /// As JSON.
    pub(crate) fn value(&self) -> Value {
        json!({"code": self.code, "text": self.text})
    }
}

/// The state of a job that has ended.
pub(crate) fn end_name(end: &End) -> &'static str {
    match end {
        End::Done => "done",
        End::Failed { .. } => "failed",
        End::Cancelled => "cancelled",
        End::Expired => "expired",
    }
}

/// Why a job that has ended has no answers.
pub(crate) fn end_error(end: &End) -> Option<Told> {
    match end {
        End::Done => None,
        End::Failed { code, reason } => Some(Told::new(code, reason)),
        End::Cancelled => Some(Told::new("cancelled", "the job was cancelled")),
        End::Expired => Some(Told::new("expired", "the job expired: no client went on with its upload")),
    }
}

/// The state in one word.
pub(crate) fn summarize(view: &JobView) -> &'static str {
    match &view.end {
        Some(end) => end_name(end),
        None if view.facts.is_uploaded(view.card.tables.iter().copied()) => "processing",
        None => "uploading",
    }
}

/// A line of the list of jobs.
pub(crate) fn line(app: &App, view: &JobView) -> Value {
    let card = &view.card;
    json!({
        "job": card.id.as_str(),
        "workload": card.workload,
        "state": summarize(view),
        "created": rfc3339(card.created_ms),
        "progress": progress(app, view, app.known_end(&card.id).as_deref()),
    })
}

/// How far a job is.
pub(crate) fn progress(app: &App, view: &JobView, end: Option<&ResultEnd>) -> Value {
    let known: u64 = view.card.tables.iter().map(|&table| chunks_known(view, table)).sum();
    let said = app.membership.progress(&view.card.id).unwrap_or_default();
    let now = match end {
        None => said,
        Some(end) => JobProgress {
            chunks: known,
            bytes: end.tables.iter().map(|table| table.bytes).sum(),
            records: end.tables.iter().map(|table| table.records).sum(),
            rejected: end.tables.iter().map(|table| table.rejected).sum(),
            answers: said.answers.max(end.queries.len() as u64),
        },
    };
    json!({"chunks": now.chunks, "chunks_known": known, "bytes": now.bytes, "records": now.records,
           "rejected": now.rejected, "answers": now.answers})
}

fn chunks_known(view: &JobView, table: TableId) -> u64 {
    match view.facts.closed(table) {
        Some(closed) => closed.chunks.len(),
        None => view.facts.uploaded(table).len(),
    }
}

/// A table of the job.
pub(crate) fn table(job: &Job, view: &JobView, table: TableId) -> Value {
    let closed = view.facts.closed(table);
    json!({
        "name": job.planned.table_name(table),
        "chunks_received": view.facts.uploaded(table).len(),
        "closed": closed.is_some(),
        "chunks": closed.map(|closed| closed.chunks.len()),
        "records": closed.and_then(|closed| closed.records),
        "bytes": closed.map(|closed| closed.bytes),
    })
}

/// Why the job cannot advance, if it cannot.
pub(crate) fn waiting_for(app: &App, job: &Job, view: &JobView) -> Option<Told> {
    if view.end.is_some() {
        return None;
    }
    if let Some(trouble) = app.link.trouble() {
        return Some(Told::new("broker", trouble));
    }
    if app.link.is_blocked() {
        return Some(Told::new("broker", "the broker takes no messages until memory or disk is freed"));
    }
    if app.membership.worker_count() == 0 {
        return Some(Told::new("workers", "no worker is alive: start one with: tenaz worker --broker URL"));
    }
    let tables = view.card.tables.iter().copied();
    if view.active.elapsed() < UPLOAD_IDLE || view.facts.is_uploaded(tables.clone()) {
        return None;
    }
    let open: Vec<&str> = tables
        .filter(|&table| view.facts.closed(table).is_none() || !view.facts.missing(table, None).is_empty())
        .map(|table| job.planned.table_name(table))
        .collect();
    Some(Told::new("upload", format!("these tables are not complete: {}", open.join(", "))))
}

/// Everything about a job.
pub(crate) async fn describe(app: &App, job: &Job) -> Result<Value, Problem> {
    app.settled(job.id()).await;
    let end = match app.book.view(job.id(), |view| view.end == Some(End::Done)) {
        Some(true) => Some(app.within(read_end(app, job)).await??),
        _ => None,
    };
    let described = app.book.view(job.id(), |view| {
        let spec = &job.spec;
        let tables: Vec<Value> = job.planned.read_tables().map(|id| table(job, view, id)).collect();
        let error = view.end.as_ref().and_then(end_error);
        let error = error.or_else(|| view.problem.as_ref().map(|text| Told::new("contradiction", text)));
        json!({
            "job": view.card.id.as_str(),
            "workload": view.card.workload,
            "state": summarize(view),
            "created": rfc3339(view.card.created_ms),
            "partitions": spec.partitions,
            "chunk_bytes": spec.chunk_bytes,
            "spec": {"workload": spec.workload, "queries": spec.queries, "strict": spec.strict, "files": spec.files},
            "tables": tables,
            "progress": progress(app, view, end.as_deref()),
            "waiting_for": waiting_for(app, job, view).map(|told| told.value()),
            "error": error.map(|told| told.value()),
            "results": end.as_deref().map(results),
        })
    });
    described.ok_or_else(|| gone(job.id()))
}

/// The results of a job that is done.
pub(crate) fn results(end: &ResultEnd) -> Value {
    json!({"queries": end.queries, "tables": end.tables})
}
