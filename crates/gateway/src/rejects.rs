//! Streaming bad records, in the order of the data.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use sha2::{Digest, Sha256};
use tenaz_engine::EdgeInput;
use tenaz_runtime::cluster::ResultEvent;
use tenaz_runtime::format::RowWriter;
use tenaz_runtime::format::csv::CsvWriter;
use tenaz_runtime::{Spool, reject_schema};

use crate::app::{Job, Shared};
use crate::auth::Tenant;
use crate::problem::Problem;
use crate::results::{keep_results, send_rows};
use crate::results_log::{Follower, News, Wanted};
use crate::row_stream::{RowStream, StreamFormat};
use crate::stream::{self, Out};
use crate::text::hex;
use tenaz_api::ErrorRecord;

/// `GET /v1/jobs/{job}/rejects`
pub(crate) async fn rejects(
    State(app): State<Shared>,
    tenant: Tenant,
    Path(id): Path<String>,
    Query(parameters): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let job = app.job(&tenant, &id).await?;
    tenant.check_owns(&job.card)?;
    let format = StreamFormat::of(&parameters, &headers)?;
    let (rows, first) = RowStream::begin(format, &reject_schema()).map_err(Problem::internal)?;
    let (out, response) = stream::open(&app, format.content_type())?;
    tokio::spawn(async move {
        if out.send(first).await {
            stream_rejects(&app, &job, rows, &out).await;
        }
    });
    Ok(response)
}

async fn stream_rejects(app: &Shared, job: &Job, mut rows: RowStream, out: &Out) {
    let outcome = tokio::select! {
        outcome = send_rejects(app, job, &mut rows, out) => outcome,
        () = out.closed() => return,
        () = app.ending.cut.cancelled() => Err(ErrorRecord::shutting_down()),
        () = keep_results(app, job) => return,
    };
    let last = match outcome {
        Ok(None) => return,
        Ok(Some(fingerprint)) => rows.end(&fingerprint, true),
        Err(told) => rows.error(&told),
    };
    match last {
        Ok(bytes) => drop(out.send(bytes).await),
        Err(error) => tracing::error!(job = %job.id(), %error, "a stream could not be ended"),
    }
}

/// Gathers bad records until the results are complete, then sends them in order. Says their fingerprint, or nothing
/// when the client is gone.
async fn send_rejects(app: &Shared, job: &Job, rows: &mut RowStream, out: &Out) -> Result<Option<String>, ErrorRecord> {
    let internal = |error: &dyn std::fmt::Display| ErrorRecord::internal(error.to_string());
    let mut spool = Spool::new(Arc::clone(&app.rows));
    let mut follower = Follower::open(app, job, Wanted::Rejects).await?;
    loop {
        match follower.next().await? {
            News::End(_) => break,
            News::Event(ResultEvent::Rejects(source, piece)) => {
                let kept = piece.rows().and_then(|rows| spool.push(source, rows));
                kept.map_err(|error| ErrorRecord::of_error(&error))?;
            }
            News::Event(_) => {}
        }
    }
    let mut hash = CsvWriter::new(Hashing(Sha256::new()), b',');
    hash.begin(&reject_schema()).map_err(|error| internal(&error))?;
    for batch in spool.into_input().batches() {
        let batch = batch.map_err(|error| internal(&error))?;
        hash.rows(&batch).map_err(|error| internal(&error))?;
        if !send_rows(rows, &batch, out).await? {
            return Ok(None);
        }
    }
    Ok(Some(hex(&hash.into_inner().0.finalize())))
}

/// A hash that can be written to.
struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
