//! How a job stands, for people and programs.

use serde_json::{Value, json};
use tenaz_cluster::{ControlProblem, JobProgress, JobView, ResultEnd, TableEnd};
use tenaz_core::{Classified, DoneSummary, End, FailedQuery, JobCard, TableId};

use crate::app::{App, Job, gone};
use crate::auth::Tenant;
use crate::error_record::ErrorRecord;
use crate::limits::UPLOAD_IDLE;
use crate::problem::Problem;
use crate::results_log::read_end;
use tenaz_words::rfc3339;

/// What a job waits for: a code for programs and a text for people.
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
        End::Done(_) => "done",
        End::Failed { .. } => "failed",
        End::Cancelled => "cancelled",
        End::Expired => "expired",
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
pub(crate) fn line(app: &App, tenant: &Tenant, view: &JobView) -> Value {
    let card = &view.card;
    let mut line = json!({
        "job": card.id.as_str(),
        "workload": card.workload,
        "state": summarize(view),
        "created": rfc3339(card.created_ms),
        "progress": progress(app, view),
        "failed": failed(view),
    });
    if tenant.is_operator {
        line["tenant"] = card.tenant.as_str().into();
    }
    line
}

/// The queries that could not be answered, as far as the registry tells of them.
fn failed(view: &JobView) -> &[FailedQuery] {
    match &view.end {
        Some(End::Done(summary)) => &summary.failed,
        _ => &[],
    }
}

/// How far a job is: as the owner of its results says, and when it is done, as the registry does.
pub(crate) fn progress(app: &App, view: &JobView) -> Value {
    let (now, known) = match &view.end {
        Some(End::Done(DoneSummary { chunks, bytes, records, rejected, answers, .. })) => {
            let (chunks, bytes, records, rejected, answers) = (*chunks, *bytes, *records, *rejected, *answers);
            (JobProgress { chunks, bytes, records, rejected, answers }, chunks)
        }
        _ => {
            let known = view.card.tables.iter().map(|&table| chunks_known(view, table)).sum();
            (app.membership.progress(&view.card.id).unwrap_or_default(), known)
        }
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

/// A table of a job that is done, without the receipts of its chunks: there may be a million.
fn read_table(end: &TableEnd) -> Value {
    let TableEnd { name, records, bytes, chunks, .. } = end;
    json!({"name": name, "chunks_received": chunks, "closed": true, "chunks": chunks, "records": records, "bytes": bytes})
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
    let JobCard { id, build, .. } = &view.card;
    if app.membership.workers(|workers| workers.able(id, build)) == 0 {
        let text = app.membership.refusal(id).map(|reason| reason.as_str().to_owned()).unwrap_or_else(|| {
            format!("no worker that is alive runs build {build}, which planned the job: start one of that build")
        });
        return Some(Told::new("workers", text));
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
    let end = match app.book.view(job.id(), |view| view.end.as_ref().is_some_and(End::is_done)) {
        Some(true) => Some(app.within(read_end(app, job)).await?.map_err(|error| Problem::internal(error.text))?),
        _ => None,
    };
    let described = app.book.view(job.id(), |view| {
        let spec = &job.spec;
        let account = |name: &str| end.as_deref()?.end.tables.iter().find(|table| table.name == name);
        let tables = job.planned.read_tables().map(|id| match account(job.planned.table_name(id)) {
            Some(read) => read_table(read),
            None => table(job, view, id),
        });
        let tables: Vec<Value> = tables.collect();
        let error = view.end.as_ref().and_then(ErrorRecord::of_end);
        let name = |table| job.planned.table_name(table).to_owned();
        let problem = view.problem.as_ref().map(|problem| contradiction(problem, name));
        let error = error.or(problem);
        json!({
            "job": view.card.id.as_str(),
            "workload": view.card.workload,
            "state": summarize(view),
            "created": rfc3339(view.card.created_ms),
            "partitions": spec.partitions,
            "chunk_bytes": spec.chunk_bytes,
            "spec": {"workload": spec.workload, "queries": spec.queries, "strict": spec.strict, "files": spec.files},
            "tables": tables,
            "progress": progress(app, view),
            "waiting_for": waiting_for(app, job, view).map(|told| told.value()),
            "error": error.map(|error| error.value()),
            "results": end.as_deref().map(|found| results(&found.end)),
        })
    });
    described.ok_or_else(|| gone(job.id()))
}

/// What can never succeed, though the job has not ended yet.
fn contradiction(problem: &ControlProblem, name: impl Fn(TableId) -> String) -> ErrorRecord {
    ErrorRecord::new("contradiction", problem.class(), problem.in_words(name))
}

/// The results of a job that is done.
pub(crate) fn results(end: &ResultEnd) -> Value {
    json!({"queries": end.queries, "failed": end.failed, "tables": end.tables})
}
