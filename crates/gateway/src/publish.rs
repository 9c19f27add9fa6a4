//! Chunks on their way to a work queue.

use std::time::Instant;

use tenaz_cluster::{ChunkHeader, frame};
use tenaz_core::TableId;
use tenaz_rabbit::{Backoff, Properties};

use crate::app::{Job, Shared};
use crate::problem::{Code, Problem};
use crate::stuck;

/// The kind of the messages in a work queue.
const CHUNK: &str = "chunk";

/// How long a full work queue is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// A little: the client can come back.
    Short,
    /// As long as the job is open: the client cannot stop in the middle of a file.
    Long,
}

/// Puts a chunk into its work queue and writes the receipt. Both are confirmed when this returns.
pub(crate) async fn deliver(
    app: &Shared,
    job: &Job,
    header: &ChunkHeader,
    payload: &[u8],
    patience: Patience,
) -> Result<(), Problem> {
    send(app, job, header, payload, patience).await?;
    app.within(app.receipts.write(job.id(), header.table, header.number)).await??;
    app.metrics.chunks.inc();
    app.metrics.bytes_in.inc_by(header.raw_bytes);
    let table = job.planned.table_name(header.table);
    tracing::debug!(job = %job.id(), table, chunk = header.number, bytes = header.raw_bytes, "a chunk is taken in");
    app.settled(job.id()).await;
    Ok(())
}

/// Whether the chunk is in the cluster already, as far as this gateway knows.
pub(crate) fn is_there(app: &Shared, job: &Job, table: TableId, number: u64) -> bool {
    app.book.view(job.id(), |view| view.facts.uploaded(table).contains(number)) == Some(true)
}

async fn send(
    app: &Shared,
    job: &Job,
    header: &ChunkHeader,
    payload: &[u8],
    patience: Patience,
) -> Result<(), Problem> {
    let wave = job.planned.wave(header.table).ok_or_else(|| Problem::internal("a table that is read has no wave"))?;
    let queue = app.link.names().chunks(job.id(), wave);
    let since = Instant::now();
    let mut backoff = Backoff::new();
    while !app.within(offer(app, job, wave, &queue, header, payload)).await?? {
        app.touch(job.id());
        if patience == Patience::Short && since.elapsed() >= app.limits.queue_wait {
            let text = "the workers have not caught up with this job's chunks: send this one again in a moment";
            return Err(Problem::new(Code::QueueFull, text).with("job", job.id().as_str()));
        }
        tokio::time::sleep(backoff.next_delay()).await;
    }
    Ok(())
}

/// Offers a message until the broker says something: true if it took it, false if the queue is full. What is in doubt is
/// sent again, because a chunk that comes twice counts once.
async fn offer(
    app: &Shared,
    job: &Job,
    wave: usize,
    queue: &str,
    header: &ChunkHeader,
    payload: &[u8],
) -> Result<bool, Problem> {
    let properties = Properties::of_kind(CHUNK);
    let mut backoff = Backoff::new();
    loop {
        app.check_open(job.id())?;
        let session = app.link.session().await;
        let message = frame(header, &[payload]);
        match session.publish(queue, message, &properties).await {
            Ok(()) => {
                app.stuck.confirmed(queue);
                return Ok(true);
            }
            Err(tenaz_rabbit::Error::Full { .. }) => {
                stuck::doubt(app, &session, queue).await;
                return Ok(false);
            }
            Err(error) if error.is_temporary() || matches!(error, tenaz_rabbit::Error::Unroutable { .. }) => {
                session.met_publishing(&error);
                stuck::mend(app, job, wave, &session, &error).await;
                tokio::time::sleep(backoff.next_delay()).await;
            }
            Err(error) => return Err(tenaz_cluster::Error::from(error).into()),
        }
    }
}
