//! Chunks on their way to a work queue.

use std::time::{Duration, Instant};

use tenaz_cluster::{ChunkHeader, JobView, frame};
use tenaz_core::{ChunkIntake, FaultClass, IntakeStep, TableId};
use tenaz_rabbit::{Backoff, Properties};
use tokio::sync::Notify;

use crate::app::{Job, Shared, gone};
use crate::finish::fail;
use crate::problem::{Code, Problem};
use crate::stuck::{self, WorkQueue};

/// The kind of the messages in a work queue.
const CHUNK: &str = "chunk";

/// How long a full work queue is waited for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Patience<'a> {
    /// A little: the client can come back.
    Short,
    /// As long as the job is open: the client cannot stop in the middle of a file.
    Long {
        /// Told whenever the queue is full.
        full: &'a Notify,
    },
}

/// What has become of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    /// It and its receipt are confirmed.
    Now,
    /// The cluster had it before.
    Before,
}

/// Takes a chunk in, step by step as [`ChunkIntake`] says. It and its receipt are confirmed when this returns.
pub(crate) async fn deliver(
    app: &Shared,
    job: &Job,
    header: &ChunkHeader,
    payload: &[u8],
    patience: Patience<'_>,
) -> Result<Delivered, Problem> {
    let (since, mut backoff) = (Instant::now(), Backoff::new());
    let until_ms = match patience {
        Patience::Short => Some(millis(app.limits.queue_wait)),
        Patience::Long { .. } => None,
    };
    let begin = |view: &JobView| ChunkIntake::begin(header.table, header.number, header.digest, until_ms, &view.facts);
    let (intake, mut step) = app.book.view(job.id(), begin).ok_or_else(|| gone(job.id()))?;
    let queue = work_queue(app, job, header.table)?;
    let mut is_stored = false;
    loop {
        step = match step {
            IntakeStep::Offer if app.within(offer(app, &queue, header, payload)).await?? => intake.stored(),
            IntakeStep::Offer => {
                app.touch(job.id());
                if let Patience::Long { full } = patience {
                    full.notify_one();
                }
                let next = intake.full(millis(since.elapsed()));
                if next == IntakeStep::Offer {
                    tokio::time::sleep(backoff.next_delay()).await;
                }
                next
            }
            IntakeStep::WriteReceipt => {
                is_stored = true;
                app.within(app.receipts.write(job.id(), header.table, header.number, header.digest)).await??;
                count(app, job, header);
                app.settled(job.id()).await;
                let written = app.book.view(job.id(), |view| intake.receipt_written(&view.facts));
                written.unwrap_or(IntakeStep::Accepted)
            }
            IntakeStep::Accepted => return Ok(Delivered::Now),
            IntakeStep::Duplicate => return Ok(Delivered::Before),
            IntakeStep::SendBack => {
                let text = "the workers have not caught up with this job's chunks: send this one again in a moment";
                return Err(Problem::new(Code::QueueFull, text).with("job", job.id().as_str()));
            }
            IntakeStep::Conflict(error) => {
                let conflict = in_conflict(job, header, &error);
                if is_stored {
                    // Another gateway took other bytes at the same moment: both are in the work queue.
                    fail(app, job, FaultClass::Data, conflict.detail().to_owned()).await?;
                }
                return Err(conflict);
            }
        };
    }
}

fn count(app: &Shared, job: &Job, header: &ChunkHeader) {
    app.metrics.chunks.inc();
    app.metrics.bytes_in.inc_by(header.raw_bytes);
    let table = job.planned.table_name(header.table);
    tracing::debug!(job = %job.id(), table, chunk = header.number, bytes = header.raw_bytes, "a chunk is taken in");
}

fn in_conflict(job: &Job, header: &ChunkHeader, error: &tenaz_core::Error) -> Problem {
    let text = error.in_words(|table| job.planned.table_name(table).to_owned());
    let table = job.planned.table_name(header.table);
    Problem::new(Code::ChunkConflict, text).with("table", table).with("chunk", header.number)
}

fn work_queue(app: &Shared, job: &Job, table: TableId) -> Result<WorkQueue, Problem> {
    let wave = job.planned.wave(table).ok_or_else(|| Problem::internal("a table that is read has no wave"))?;
    Ok(WorkQueue { job: job.clone(), wave, name: app.link.names().chunks(job.id(), wave) })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Offers a message until the broker says something: true if it took it, false if the queue is full. What is in doubt is
/// sent again, because a chunk that comes twice counts once.
async fn offer(app: &Shared, queue: &WorkQueue, header: &ChunkHeader, payload: &[u8]) -> Result<bool, Problem> {
    let properties = Properties::of_kind(CHUNK);
    let mut backoff = Backoff::new();
    loop {
        app.check_open(queue.job.id())?;
        let session = app.link.session().await;
        let message = frame(header, &[payload]);
        let round = queue.round(app);
        match queue.publish(app, &session, round, message, &properties).await {
            Ok(()) => {
                app.stuck.confirmed(&queue.name);
                return Ok(true);
            }
            Err(tenaz_rabbit::Error::Full { .. }) => {
                queue.refused(app, &session, round).await;
                return Ok(false);
            }
            Err(error) if error.is_temporary() || matches!(error, tenaz_rabbit::Error::Unroutable { .. }) => {
                session.met_publishing(&error);
                stuck::mend(app, queue, &session, round, &error).await;
                tokio::time::sleep(backoff.next_delay()).await;
            }
            Err(error) => return Err(tenaz_cluster::Error::from(error).into()),
        }
    }
}
