//! Streaming answers: rows while data is still being uploaded, then the end.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use datafusion::arrow::record_batch::RecordBatch;
use tenaz_cluster::ResultEnd;
use tenaz_core::{FailedQuery, QueryEnded, QueryId, QueryOutcome};
use tenaz_runtime::cluster::ResultEvent;
use tenaz_runtime::plain_schema;

use crate::app::{FoundEnd, Job, Shared};
use crate::auth::Tenant;
use crate::limits::{STREAM_ROWS, TOUCH_EVERY};
use crate::problem::{Code, Problem};
use crate::results_log::{Follower, News, Wanted, is_done, read_end};
use crate::row_stream::{RowStream, StreamFormat};
use crate::stream::{self, Out};
use tenaz_api::ErrorRecord;

/// `GET /v1/jobs/{job}/results/{query}`
pub(crate) async fn results(
    State(app): State<Shared>,
    tenant: Tenant,
    Path((id, query)): Path<(String, String)>,
    Query(parameters): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = app.job(&tenant, &id).await?;
    tenant.check_owns(&job.card)?;
    let format = StreamFormat::of(&parameters, &headers)?;
    let Some((query, planned)) = job.planned.query(&query) else {
        let known: Vec<&str> = job.planned.plan.queries.iter().map(|query| query.name.as_str()).collect();
        let text = format!("job {id} has no query {query:?}: it has {}", known.join(", "));
        return Err(Problem::new(Code::NotFound, text));
    };
    // Of a job that is done it is known at once; while it runs, the last record of the stream tells.
    if is_done(&app, &job)
        && let Ok(found) = app.within(read_end(&app, &job)).await?
        && let Some(failed) = found.end.failed.iter().find(|failed| failed.name == planned.name)
    {
        let text = format!("{}: {}", failed.name, failed.text);
        let problem = Problem::new(Code::QueryFailed, text).of_class(failed.class);
        return Err(problem.with("query", failed.name.as_str()).with("job", id.as_str()));
    }
    let schema = plain_schema(&planned.schema);
    let (rows, first) = RowStream::begin(format, &schema).map_err(Problem::internal)?;
    let (out, response) = stream::open(&app, format.content_type())?;
    tokio::spawn(async move {
        if out.send(first).await {
            stream_answer(&app, &job, query, rows, &out).await;
        }
    });
    Ok(response)
}

async fn stream_answer(app: &Shared, job: &Job, query: QueryId, mut rows: RowStream, out: &Out) {
    let outcome = tokio::select! {
        outcome = send_answer(app, job, query, &mut rows, out) => outcome,
        () = out.closed() => return,
        () = app.ending.cut.cancelled() => Err(ErrorRecord::shutting_down()),
        () = keep_results(app, job) => return,
    };
    let last = match outcome {
        Ok(None) => return,
        Ok(Some(AnswerEnd::Job(end))) => match check(job, query, &end.end, rows.count()) {
            Ok((fingerprint, ordered)) => rows.end(fingerprint, ordered),
            Err(told) => rows.error(&told),
        },
        Ok(Some(AnswerEnd::Question { fingerprint })) => {
            let ordered = job.planned.plan.queries.get(usize::from(query.0)).is_some_and(|query| query.ordered);
            rows.end(&fingerprint, ordered)
        }
        Err(told) => rows.error(&told),
    };
    match last {
        Ok(bytes) => drop(out.send(bytes).await),
        Err(error) => tracing::error!(job = %job.id(), %error, "a stream could not be ended"),
    }
}

/// What ends the rows of an answer.
enum AnswerEnd {
    /// The job is done.
    Job(Arc<FoundEnd>),
    /// The question is final, though its job may go on.
    Question { fingerprint: String },
}

/// Sends rows as they become known. Ends with their end, or with nothing when the client is gone.
async fn send_answer(
    app: &Shared,
    job: &Job,
    query: QueryId,
    rows: &mut RowStream,
    out: &Out,
) -> Result<Option<AnswerEnd>, ErrorRecord> {
    let mut follower = Follower::open(app, job, Wanted::Query(query)).await?;
    let mut told: Option<QueryEnded> = None;
    loop {
        let Some(news) = next_before_end(app, job, query, &mut follower, &mut told, rows.count()).await? else {
            let fingerprint = told.and_then(fingerprint_of).unwrap_or_default();
            return Ok(Some(AnswerEnd::Question { fingerprint }));
        };
        match news {
            News::End(end) => return Ok(Some(AnswerEnd::Job(end))),
            News::Event(ResultEvent::Rows(of, batch)) if of == query => {
                if !send_rows(rows, &batch, out).await? {
                    return Ok(None);
                }
            }
            News::Event(_) => {}
        }
    }
}

/// What comes next in the results log; nothing if the control log calls the question final and all its rows were sent. If more
/// or fewer were sent (a broker that has lost messages), the results log has the last word.
async fn next_before_end(
    app: &Shared,
    job: &Job,
    query: QueryId,
    follower: &mut Follower<'_>,
    told: &mut Option<QueryEnded>,
    sent: u64,
) -> Result<Option<News>, ErrorRecord> {
    let mut next = pin!(follower.next());
    let mut end = pin!(app.book.wait(job.id(), |view| view.facts.query_end(query).cloned()));
    loop {
        match told.as_ref().map(|end| &end.outcome) {
            Some(QueryOutcome::Answered { rows, .. }) if *rows == sent => return Ok(None),
            Some(QueryOutcome::Failed { class, text }) => {
                let name = job.planned.plan.queries[usize::from(query.0)].name.clone();
                return Err(ErrorRecord::of_question(&FailedQuery { name, class: *class, text: text.clone() }));
            }
            Some(QueryOutcome::Answered { .. }) => return next.await.map(Some),
            None => {}
        }
        tokio::select! {
            biased;
            news = &mut next => return news.map(Some),
            found = &mut end => match found {
                Some(found) => *told = Some(found),
                None => return next.await.map(Some),
            },
        }
    }
}

fn fingerprint_of(end: QueryEnded) -> Option<String> {
    match end.outcome {
        QueryOutcome::Answered { fingerprint, .. } => Some(fingerprint),
        QueryOutcome::Failed { .. } => None,
    }
}

/// Keeps the results of a job that has ended from being removed while a client reads them. An open job is kept by its uploads
/// and by questions about it, not by a stream that waits: it would wait for ever for a client that is gone. Never ends.
pub(crate) async fn keep_results(app: &Shared, job: &Job) {
    loop {
        if app.check_open(job.id()).is_err() {
            app.touch(job.id());
        }
        tokio::time::sleep(TOUCH_EVERY / 20).await;
    }
}

/// Keeps a job from expiring while a file is being uploaded. Never ends.
pub(crate) async fn stay_alive(app: &Shared, job: &Job) {
    loop {
        app.touch(job.id());
        tokio::time::sleep(TOUCH_EVERY / 20).await;
    }
}

/// Sends rows in pieces that a client can take one by one. False: the client is gone.
pub(crate) async fn send_rows(rows: &mut RowStream, batch: &RecordBatch, out: &Out) -> Result<bool, ErrorRecord> {
    for start in (0..batch.num_rows()).step_by(STREAM_ROWS) {
        let piece = batch.slice(start, STREAM_ROWS.min(batch.num_rows() - start));
        let bytes = rows.rows(&piece).map_err(|error| ErrorRecord::internal(error.to_string()))?;
        if !out.send(bytes).await {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The end of the query, if it agrees with the rows that were sent.
fn check<'e>(job: &Job, query: QueryId, end: &'e ResultEnd, sent: u64) -> Result<(&'e str, bool), ErrorRecord> {
    let name = job.planned.plan.queries.get(usize::from(query.0)).map(|query| query.name.as_str());
    if let Some(failed) = end.failed.iter().find(|failed| Some(failed.name.as_str()) == name) {
        return Err(ErrorRecord::of_question(failed));
    }
    let found = end.queries.iter().find(|query| Some(query.name.as_str()) == name);
    let found =
        found.ok_or_else(|| ErrorRecord::internal("the results end without this query; this is a fault in tenaz"))?;
    if found.rows != sent {
        let text = format!("the answer has {} rows, but {sent} were sent; this is a fault in tenaz", found.rows);
        return Err(ErrorRecord::internal(text));
    }
    Ok((&found.fingerprint, found.ordered))
}
