//! The rows of answers and the bad records: windows for the page, and whole files to keep.

use std::io::{self, Write};
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use serde::Deserialize;
use tenaz_core::ProblemCode;
use tenaz_engine::EdgeInput;
use tenaz_runtime::format::Format;
use tenaz_runtime::{plain_schema, reject_schema};
use tokio::sync::mpsc;

use super::job::{Job, Rows};
use super::kept_answer::Order;
use super::requests::find;
use crate::limits::{MAX_WINDOW_ROWS, PIECES_AHEAD, WINDOW_ROWS};
use crate::problem::Problem;
use crate::server::Shared;

/// A window into rows.
#[derive(Debug, Deserialize)]
pub(crate) struct Window {
    /// The number of its first row.
    #[serde(default)]
    from: u64,
    /// How many rows.
    rows: Option<u64>,
    /// The column to sort by.
    sort: Option<usize>,
    #[serde(default)]
    descending: bool,
}

impl Window {
    fn count(&self) -> u64 {
        self.rows.unwrap_or(WINDOW_ROWS).min(MAX_WINDOW_ROWS)
    }

    fn order(&self) -> Option<Order> {
        self.sort.map(|column| Order { column, descending: self.descending })
    }
}

/// `GET /v1/jobs/{job}/results/{query}?from=…&rows=…&sort=…&descending=…`: rows as CSV; the headers `Tenaz-Rows` (how many there
/// are in all) and `Tenaz-Final` say what they are a window of.
pub(crate) async fn results(
    State(local): State<Shared>,
    Path((id, query)): Path<(String, String)>,
    Query(window): Query<Window>,
) -> Result<Response, Problem> {
    let job = find(&local, &id)?;
    let place = query_place(&job, &query)?;
    let read = tokio::task::spawn_blocking(move || {
        let schema = plain_schema(&job.question.plan.queries[place].schema);
        let (rows, total, is_final) = match job.rows(place) {
            Rows::Final(kept) => (kept.window(window.from, window.count(), window.order())?, kept.answer.rows, true),
            Rows::Early(batches) => {
                let total = batches.iter().map(|batch| batch.num_rows() as u64).sum();
                (slices(&batches, window.from, window.count()), total, false)
            }
            rows => return Err(no_rows(&rows)),
        };
        Ok((as_csv(&schema, &rows).map_err(Problem::internal)?, total, is_final))
    });
    let (csv, total, is_final) = read.await.map_err(Problem::internal)??;
    Ok(window_response(csv, total, is_final))
}

/// `GET /v1/jobs/{job}/rejects?from=…&rows=…`: bad records in the order of the data.
pub(crate) async fn rejects(
    State(local): State<Shared>,
    Path(id): Path<String>,
    Query(window): Query<Window>,
) -> Result<Response, Problem> {
    let job = find(&local, &id)?;
    let read = tokio::task::spawn_blocking(move || {
        let rejects = job.rejects();
        let (mut rows, mut total) = (Vec::new(), 0u64);
        for batch in rejects.iter().flat_map(|rejects| rejects.batches()) {
            let batch = batch.map_err(Problem::internal)?;
            let (start, end) = (total, total + batch.num_rows() as u64);
            total = end;
            let (first, last) = (window.from.max(start), (window.from + window.count()).min(end));
            if first < last {
                rows.push(batch.slice((first - start) as usize, (last - first) as usize));
            }
        }
        Ok((as_csv(&reject_schema(), &rows).map_err(Problem::internal)?, total, job.has_ended()))
    });
    let (csv, total, is_final) = read.await.map_err(Problem::internal)??;
    Ok(window_response(csv, total, is_final))
}

fn query_place(job: &Job, name: &str) -> Result<usize, Problem> {
    let place = job.question.plan.queries.iter().position(|query| query.name == name);
    place.ok_or_else(|| Problem::not_found(format!("question {name:?} in this job")))
}

fn no_rows(rows: &Rows) -> Problem {
    match rows {
        Rows::Failed(text) => Problem::new(ProblemCode::QueryFailed, text.clone()),
        _ => Problem::new(ProblemCode::AlreadyEnded, "the rows of this answer are kept no longer: ask again"),
    }
}

/// These rows of the batches.
fn slices(batches: &[RecordBatch], from: u64, count: u64) -> Vec<RecordBatch> {
    let (mut skip, mut left) = (from as usize, count as usize);
    let mut rows = Vec::new();
    for batch in batches {
        let start = skip.min(batch.num_rows());
        let length = left.min(batch.num_rows() - start);
        rows.push(batch.slice(start, length));
        (skip, left) = (skip - start, left - length);
    }
    rows
}

fn as_csv(schema: &SchemaRef, rows: &[RecordBatch]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut writer = Format::Csv.writer(&mut text);
    writer.begin(schema)?;
    rows.iter().try_for_each(|batch| writer.rows(batch))?;
    writer.end()?;
    drop(writer);
    Ok(text)
}

fn window_response(csv: Vec<u8>, total: u64, is_final: bool) -> Response {
    let mut response = ([(header::CONTENT_TYPE, "text/csv"), (header::CACHE_CONTROL, "no-store")], csv).into_response();
    let headers = response.headers_mut();
    headers.insert("tenaz-rows", HeaderValue::from(total));
    headers.insert("tenaz-final", HeaderValue::from_static(if is_final { "true" } else { "false" }));
    response
}

/// `GET /v1/jobs/{job}/downloads/{file}`: an answer (`q1.parquet`) or the bad records (`rejects.csv`) as `tenaz sql --out` writes them.
pub(crate) async fn download(
    State(local): State<Shared>,
    Path((id, file)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let job = find(&local, &id)?;
    let unknown = || Problem::not_found(format!("format for {file:?}"));
    let (query, ending) = file.rsplit_once('.').ok_or_else(unknown)?;
    let format = *Format::ALL.iter().find(|format| format.name() == ending).ok_or_else(unknown)?;
    let source = match query {
        "rejects" if query_place(&job, query).is_err() => Source::Rejects(Arc::clone(&job)),
        query => match job.rows(query_place(&job, query)?) {
            Rows::Final(kept) => Source::Answer(kept),
            Rows::Early(_) => {
                return Err(Problem::new(ProblemCode::Contradiction, "the answer is not final yet: wait for its end"));
            }
            rows => return Err(no_rows(&rows)),
        },
    };
    let (sender, receiver) = mpsc::channel::<io::Result<Bytes>>(PIECES_AHEAD);
    tokio::task::spawn_blocking(move || {
        let written = source.write(format, Pieces { sender: sender.clone() });
        if let Err(error) = written {
            // The connection is cut, so half a file does not look whole.
            let _ = sender.blocking_send(Err(error));
        }
    });
    let pieces =
        futures::stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|piece| (piece, receiver)));
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from_stream(pieces)).into_response())
}

/// What is written to a file.
enum Source {
    Answer(Arc<super::kept_answer::KeptAnswer>),
    Rejects(Arc<Job>),
}

impl Source {
    fn write(&self, format: Format, out: Pieces) -> io::Result<()> {
        let mut writer = format.writer(io::BufWriter::with_capacity(1 << 16, out));
        match self {
            Self::Answer(kept) => {
                writer.begin(&kept.answer.schema)?;
                for batch in kept.answer.batches() {
                    writer.rows(&batch.map_err(io::Error::other)?)?;
                }
            }
            Self::Rejects(job) => {
                writer.begin(&reject_schema())?;
                for batch in job.rejects().iter().flat_map(|rejects| rejects.batches()) {
                    writer.rows(&batch.map_err(io::Error::other)?)?;
                }
            }
        }
        writer.end()
    }
}

/// Bytes for a response, as fast as they are taken.
struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.sender.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map_err(|_: mpsc::error::SendError<io::Result<Bytes>>| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
