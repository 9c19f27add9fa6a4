//! The worker: takes part in every open job of the cluster.
//!
//! ```text
//!  Worker ─ one per process: the book of jobs, membership, the pool of threads
//!    └── JobActor ─ one per open job: the shell around `tenaz_core::JobDriver` (actor.rs, act.rs)
//!          ├── engine.rs   what is done with rows, on the pool; chunk.rs: leaf work
//!          └── reading.rs  queues and logs, as tasks that hand messages to the actor
//! ```
//!
//! A worker keeps nothing that another could not read from the logs again. It may be killed at any moment.

mod act;
mod actor;
mod actors;
mod board;
mod chunk;
mod engine;
mod fault;
mod isolation;
mod planning;
mod pool;
mod reading;
#[cfg(test)]
mod simulated;
mod unserved;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenaz_cluster::limits::BEAT_EVERY;
use tenaz_cluster::{Book, Janitor, Link, Membership, Patience, Role};
use tenaz_core::{BuildId, JobId, ProcessRole};
use tenaz_vitals::{Vitals, WorkerMetrics};
use tokio_util::sync::CancellationToken;

use crate::spool::Budget;
use crate::{Error, limits};
pub use fault::Faults;

use actor::Joined;
use actors::Actors;
use board::Board;
use isolation::SharedRoom;
use pool::Pool;

/// How a worker works. None of it changes an answer.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Working threads.
    pub threads: usize,
    /// Bytes of rows that may rest in memory, over all jobs.
    pub memory_bytes: usize,
    /// Bytes of temporary files, over all jobs.
    pub spool_limit_bytes: u64,
    /// Where temporary files go.
    pub temp_dir: PathBuf,
    /// How long a worker that was told to stop may finish what it has begun.
    pub drain: Duration,
    /// How long jobs may stay that nobody claims.
    pub patience: Patience,
    /// What goes wrong on purpose, for tests.
    pub faults: Faults,
    /// How it shows itself; nobody watches it without.
    pub vitals: Option<Arc<Vitals>>,
}

impl Default for WorkerSettings {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: limits::DEFAULT_MEMORY_BYTES,
            spool_limit_bytes: limits::DEFAULT_SPOOL_BYTES,
            temp_dir: std::env::temp_dir(),
            drain: Duration::from_secs(20),
            patience: Patience::default(),
            faults: Faults::default(),
            vitals: None,
        }
    }
}

/// What all jobs of a worker share.
struct Shop {
    link: Link,
    book: Arc<Book>,
    membership: Arc<Membership>,
    board: Arc<Board>,
    pool: Pool,
    /// What jobs may begin beside each other.
    room: SharedRoom,
    budget: Arc<Budget>,
    settings: WorkerSettings,
    vitals: Arc<Vitals>,
    metrics: WorkerMetrics,
    /// The code that this worker runs, as far as the others are told.
    build: BuildId,
    stop: CancellationToken,
}

/// A worker process.
#[derive(Debug)]
pub struct Worker;

impl Worker {
    /// Works until `stop` is cancelled, then finishes what it has begun, and leaves.
    pub async fn run(link: Link, settings: WorkerSettings, stop: CancellationToken) -> Result<(), Error> {
        let vitals = match &settings.vitals {
            Some(vitals) => Arc::clone(vitals),
            None => Vitals::alone(ProcessRole::Worker)?,
        };
        let pulse = vitals.pulse();
        pulse.during(Self::work(link, settings, vitals, stop)).await
    }

    async fn work(
        link: Link,
        settings: WorkerSettings,
        vitals: Arc<Vitals>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let metrics = vitals.metrics().worker();
        let reconnects = metrics.broker_reconnects.clone();
        link.count_reconnects(move |count| {
            reconnects.inc_by(count);
        });
        let book = Book::open(&link).await?;
        // These were there before this worker: others may have written to their logs.
        let before: BTreeSet<JobId> = book.each(|view| view.card.id.clone()).into_iter().collect();
        let board = Arc::new(Board::default());
        let build = settings.faults.build.clone().map_or_else(tenaz_cluster::build_id, BuildId::new);
        let (said, announced) = (Arc::clone(&board), build.clone());
        let (told, counted) = (Arc::clone(&vitals), metrics.clone());
        let membership = Membership::join(&link, Role::Worker, Membership::new_id()?, move |beat| {
            beat.build.clone_from(&announced);
            said.fill(beat);
            told.say(|name, life, pulse, up_ms| {
                (beat.signs.name, beat.signs.life) = (name, life);
                (beat.signs.pulse, beat.signs.up_ms) = (pulse, up_ms);
            });
            (beat.signs.duplicates, beat.signs.replays) = (counted.duplicates_dropped.get(), counted.replays.get());
        });
        Janitor::start(&link, &book, &membership, settings.patience);
        tracing::info!(member = %membership.me(), threads = settings.threads, "the worker is ready");
        let shop = Arc::new(Shop {
            pool: Pool::new(settings.threads, metrics.queue_depth.clone()),
            room: SharedRoom::default(),
            budget: Budget::with_disk_limit(
                settings.memory_bytes,
                settings.spool_limit_bytes,
                settings.temp_dir.clone(),
            ),
            link,
            book,
            membership,
            board,
            settings,
            vitals,
            metrics,
            build,
            stop,
        });
        // Whoever has just come would believe to be alone, and take everything: that would only cost time, but others
        // speak at least this often.
        tokio::select! {
            () = shop.stop.cancelled() => {}
            () = tokio::time::sleep(BEAT_EVERY * 2) => {}
        }
        shop.vitals.set_ready(true);
        let actors = Self::follow_jobs(&shop, &before).await;
        shop.vitals.set_draining();
        Self::drain(&shop, actors).await;
        Ok(())
    }

    async fn follow_jobs(shop: &Arc<Shop>, before: &BTreeSet<JobId>) -> Actors {
        let mut actors = Actors::default();
        let mut changes = shop.book.changes();
        loop {
            changes.borrow_and_update();
            let open = shop.book.each(|view| view.end.is_none().then(|| view.card.clone()));
            let there: BTreeSet<JobId> = shop.book.each(|view| view.card.id.clone()).into_iter().collect();
            actors.forget_others(&there);
            for card in open.into_iter().flatten() {
                let joined = if before.contains(&card.id) { Joined::UnderWay } else { Joined::AtStart };
                actors.begin(shop, card, joined);
            }
            tokio::select! {
                () = shop.stop.cancelled() => return actors,
                changed = changes.changed() => if changed.is_err() { return actors },
                () = actors.mind(shop) => {}
            }
        }
    }

    /// The others take over at once what this worker owns; the chunks it has begun it finishes itself.
    async fn drain(shop: &Arc<Shop>, actors: Actors) {
        tracing::info!("stopping: finishing what was begun");
        shop.membership.leave().await;
        if tokio::time::timeout(shop.settings.drain, actors.finish()).await.is_err() {
            tracing::warn!("not everything was finished in time; others will do it again");
        }
        shop.link.close().await;
    }
}
