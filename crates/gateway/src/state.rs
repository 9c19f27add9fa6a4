//! How a job stands, for people and programs.

use tenaz_api::{
    ErrorRecord, Job as JobDocument, JobLine, JobProgress, JobSpecView, JobState, Question, QuestionEnd, QuestionState,
    Results, TableState, Waiting,
};
use tenaz_cluster::{ControlProblem, JobProgress as Progress, JobView, ResultEnd, TableEnd};
use tenaz_core::{
    Classified, DoneSummary, End, FailedQuery, JobCard, ProblemCode, QueryEnded, QueryId, QueryOutcome, TableId,
};
use tenaz_words::rfc3339;

use crate::app::{App, Job, gone};
use crate::auth::Tenant;
use crate::limits::UPLOAD_IDLE;
use crate::problem::Problem;
use crate::results_log::read_end;

fn waits(code: &str, text: impl Into<String>) -> Option<Waiting> {
    Some(Waiting { code: code.to_owned(), text: text.into() })
}

/// The state in one word.
pub(crate) fn summarize(view: &JobView) -> JobState {
    match &view.end {
        Some(end) => JobState::of_end(end),
        None if view.facts.is_uploaded(view.card.tables.iter().copied()) => JobState::Processing,
        None => JobState::Uploading,
    }
}

/// A line of the list of jobs.
pub(crate) fn line(app: &App, tenant: &Tenant, view: &JobView) -> JobLine {
    let card = &view.card;
    JobLine {
        job: card.id.as_str().to_owned(),
        workload: card.workload.clone(),
        state: summarize(view),
        created: rfc3339(card.created_ms),
        progress: progress(app, view),
        failed: failed(view).to_vec(),
        tenant: tenant.is_operator.then(|| card.tenant.clone()),
    }
}

/// The queries that could not be answered, as far as the registry tells of them.
fn failed(view: &JobView) -> &[FailedQuery] {
    match &view.end {
        Some(End::Done(summary)) => &summary.failed,
        _ => &[],
    }
}

/// How far a job is: as the owner of its results says, and when it is done, as the registry does.
pub(crate) fn progress(app: &App, view: &JobView) -> JobProgress {
    let (now, known) = match &view.end {
        Some(End::Done(DoneSummary { chunks, bytes, records, rejected, answers, .. })) => {
            let (chunks, bytes, records, rejected, answers) = (*chunks, *bytes, *records, *rejected, *answers);
            (Progress { chunks, bytes, records, rejected, answers }, chunks)
        }
        _ => {
            let known = view.card.tables.iter().map(|&table| chunks_known(view, table)).sum();
            (app.membership.progress(&view.card.id).unwrap_or_default(), known)
        }
    };
    let Progress { chunks, bytes, records, rejected, answers } = now;
    JobProgress { chunks, chunks_known: known, bytes, records, rejected, answers }
}

fn chunks_known(view: &JobView, table: TableId) -> u64 {
    match view.facts.closed(table) {
        Some(closed) => closed.chunks.len(),
        None => view.facts.uploaded(table).len(),
    }
}

/// A table of the job.
pub(crate) fn table(job: &Job, view: &JobView, table: TableId) -> TableState {
    let closed = view.facts.closed(table);
    TableState {
        name: job.planned.table_name(table).to_owned(),
        chunks_received: view.facts.uploaded(table).len(),
        closed: closed.is_some(),
        chunks: closed.map(|closed| closed.chunks.len()),
        records: closed.and_then(|closed| closed.records),
        bytes: closed.map(|closed| closed.bytes),
    }
}

/// All questions, in the order asked.
pub(crate) fn questions(job: &Job, view: &JobView, end: Option<&ResultEnd>) -> Vec<Question> {
    let plan = &job.planned.plan;
    (0..plan.queries.len()).map(|index| question(job, view, QueryId(index as u16), end)).collect()
}

/// A question: what it asks, and what has come of it.
fn question(job: &Job, view: &JobView, id: QueryId, end: Option<&ResultEnd>) -> Question {
    let planned = &job.planned.plan.queries[usize::from(id.0)];
    let tables = job.planned.topology.tables_of(id);
    let mut question = Question {
        name: planned.name.clone(),
        title: planned.title.clone(),
        state: QuestionState::Open,
        ordered: planned.ordered,
        columns: crate::plans::columns(&planned.schema),
        tables: tables.into_iter().map(|table| job.planned.table_name(table).to_owned()).collect(),
        rows: None,
        fingerprint: None,
        final_at: None,
        error: None,
    };
    // The end of the results says it, too, when the control log is not read any more.
    if let Some(found) = end.and_then(|end| end.queries.iter().find(|found| found.name == planned.name)) {
        let outcome = QueryOutcome::Answered { rows: found.rows, fingerprint: found.fingerprint.clone() };
        conclude(&mut question, &outcome, found.final_at_ms);
    }
    if let Some(failed) = end.and_then(|end| end.failed.iter().find(|failed| failed.name == planned.name)) {
        conclude(&mut question, &QueryOutcome::Failed { class: failed.class, text: failed.text.clone() }, None);
    }
    if let Some(QueryEnded { outcome, at_ms }) = view.facts.query_end(id) {
        conclude(&mut question, outcome, Some(*at_ms));
    }
    question
}

fn conclude(question: &mut Question, outcome: &QueryOutcome, at_ms: Option<u64>) {
    question.final_at = at_ms.map(rfc3339);
    match outcome {
        QueryOutcome::Answered { rows, fingerprint } => {
            question.state = QuestionState::Final;
            (question.rows, question.fingerprint) = (Some(*rows), Some(fingerprint.clone()));
        }
        QueryOutcome::Failed { class, text } => {
            question.state = QuestionState::Failed;
            question.error = Some(ErrorRecord::new(ProblemCode::QueryFailed.name(), *class, text.as_str()));
        }
    }
}

/// A table of a job that is done, without the receipts of its chunks: there may be a million.
fn read_table(end: &TableEnd) -> TableState {
    TableState {
        name: end.name.clone(),
        chunks_received: end.chunks,
        closed: true,
        chunks: Some(end.chunks),
        records: Some(end.records),
        bytes: Some(end.bytes),
    }
}

/// Why the job cannot advance, if it cannot.
pub(crate) fn waiting_for(app: &App, job: &Job, view: &JobView) -> Option<Waiting> {
    if view.end.is_some() {
        return None;
    }
    if let Some(trouble) = app.link.trouble() {
        return waits("broker", trouble);
    }
    if app.link.is_blocked() {
        return waits("broker", "the broker takes no messages until memory or disk is freed");
    }
    if app.membership.worker_count() == 0 {
        return waits("workers", "no worker is alive: start one with: tenaz worker --broker URL");
    }
    let JobCard { id, build, .. } = &view.card;
    if app.membership.workers(|workers| workers.able(id, build)) == 0 {
        let text = app.membership.refusal(id).map(|reason| reason.as_str().to_owned()).unwrap_or_else(|| {
            format!("no worker that is alive runs build {build}, which planned the job: start one of that build")
        });
        return waits("workers", text);
    }
    let tables = view.card.tables.iter().copied();
    if view.active.elapsed() < UPLOAD_IDLE || view.facts.is_uploaded(tables.clone()) {
        return None;
    }
    let open: Vec<&str> = tables
        .filter(|&table| view.facts.closed(table).is_none() || !view.facts.missing(table, None).is_empty())
        .map(|table| job.planned.table_name(table))
        .collect();
    waits("upload", format!("these tables are not complete: {}", open.join(", ")))
}

/// Everything about a job.
pub(crate) async fn describe(app: &App, job: &Job) -> Result<JobDocument, Problem> {
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
        let error = view.end.as_ref().and_then(ErrorRecord::of_end);
        let name = |table| job.planned.table_name(table).to_owned();
        let problem = view.problem.as_ref().map(|problem| contradiction(problem, name));
        let error = error.or(problem);
        let ended = end.as_deref().map(|found| &found.end);
        JobDocument {
            job: view.card.id.as_str().to_owned(),
            workload: view.card.workload.clone(),
            state: summarize(view),
            created: rfc3339(view.card.created_ms),
            partitions: spec.partitions,
            chunk_bytes: spec.chunk_bytes,
            spec: JobSpecView {
                workload: spec.workload.clone(),
                queries: spec.queries.clone(),
                strict: spec.strict,
                files: spec.files.clone(),
            },
            tables: tables.collect(),
            questions: questions(job, view, ended),
            progress: progress(app, view),
            stages: crate::stages::stages(job, view),
            owners: crate::cluster::owners(app, job.id(), spec.partitions),
            doing: Vec::new(),
            waiting_for: waiting_for(app, job, view),
            error,
            results: ended.map(|end| results(job, view, end)),
        }
    });
    described.ok_or_else(|| gone(job.id()))
}

/// What can never succeed, though the job has not ended yet.
fn contradiction(problem: &ControlProblem, name: impl Fn(TableId) -> String) -> ErrorRecord {
    ErrorRecord::new("contradiction", problem.class(), problem.in_words(name))
}

/// The results of a job that is done.
pub(crate) fn results(job: &Job, view: &JobView, end: &ResultEnd) -> Results {
    let all = questions(job, view, Some(end));
    let told = |name: &str| all.iter().find(|question| question.name == name);
    let query = |query: &tenaz_cluster::QueryEnd| QuestionEnd {
        name: query.name.clone(),
        rows: query.rows,
        fingerprint: query.fingerprint.clone(),
        ordered: query.ordered,
        final_at: told(&query.name).and_then(|question| question.final_at.clone()),
    };
    let table = |table: &TableEnd| tenaz_api::TableEnd {
        name: table.name.clone(),
        records: table.records,
        accepted: table.accepted,
        rejected: table.rejected,
        reasons: table.reasons.clone(),
        bytes: table.bytes,
        chunks: table.chunks,
    };
    Results {
        queries: end.queries.iter().map(query).collect(),
        failed: end.failed.clone(),
        tables: end.tables.iter().map(table).collect(),
    }
}
