//! The worker: takes part in every open job of the cluster.
//!
//! ```text
//!  Worker ─ one per process: the book of jobs, membership, the pool of threads
//!    └── JobActor ─ one per open job: drives `tenaz_core::JobWorker` (actor.rs, act.rs)
//!          ├── chunk.rs    leaf work, on the pool
//!          ├── tasks.rs    rows taken in, inner tasks, the end, on the pool in the order of the log (strand.rs)
//!          └── reading.rs  queues and logs, as tasks that hand messages to the actor
//! ```
//!
//! A worker keeps nothing that another could not read from the logs again. It may be killed at any moment.

mod act;
mod actor;
mod board;
mod chunk;
mod fault;
mod pool;
mod reading;
mod shared;
mod strand;
mod tasks;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenaz_cluster::limits::BEAT_EVERY;
use tenaz_cluster::{Book, Janitor, Link, Membership, Patience, Role};
use tenaz_core::{JobCard, JobId, ProcessRole};
use tenaz_vitals::{Vitals, WorkerMetrics};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::spool::Budget;
use crate::{Error, limits};
pub use fault::Faults;

use actor::{JobActor, Joined};
use board::Board;
use pool::Pool;

/// How a worker works. None of it changes an answer.
#[derive(Debug, Clone)]
pub struct WorkerSettings {
    /// Working threads.
    pub threads: usize,
    /// Bytes of rows that may rest in memory, over all jobs.
    pub memory_bytes: usize,
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
    budget: Arc<Budget>,
    settings: WorkerSettings,
    vitals: Arc<Vitals>,
    metrics: WorkerMetrics,
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
        let said = Arc::clone(&board);
        let membership = Membership::join(&link, Role::Worker, Membership::new_id()?, move |beat| said.fill(beat));
        Janitor::start(&link, &book, &membership, settings.patience);
        tracing::info!(member = %membership.me(), threads = settings.threads, "the worker is ready");
        let shop = Arc::new(Shop {
            pool: Pool::new(settings.threads, metrics.queue_depth.clone()),
            budget: Budget::new(settings.memory_bytes, settings.temp_dir.clone()),
            link,
            book,
            membership,
            board,
            settings,
            vitals,
            metrics,
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

    async fn follow_jobs(shop: &Arc<Shop>, before: &BTreeSet<JobId>) -> BTreeMap<JobId, JoinHandle<()>> {
        let mut actors: BTreeMap<JobId, JoinHandle<()>> = BTreeMap::new();
        let mut changes = shop.book.changes();
        loop {
            changes.borrow_and_update();
            let open = shop.book.each(|view| view.end.is_none().then(|| view.card.clone()));
            let there: BTreeSet<JobId> = shop.book.each(|view| view.card.id.clone()).into_iter().collect();
            actors.retain(|job, actor| there.contains(job) || !actor.is_finished());
            for card in open.into_iter().flatten() {
                let joined = if before.contains(&card.id) { Joined::UnderWay } else { Joined::AtStart };
                actors.entry(card.id.clone()).or_insert_with(|| Self::spawn_actor(shop, card, joined));
            }
            tokio::select! {
                () = shop.stop.cancelled() => return actors,
                changed = changes.changed() => if changed.is_err() { return actors },
            }
        }
    }

    /// An actor has a pulse of its own: one that blocks its thread is seen, however well the others work.
    fn spawn_actor(shop: &Arc<Shop>, card: JobCard, joined: Joined) -> JoinHandle<()> {
        let (shop, pulse) = (Arc::clone(shop), shop.vitals.pulse());
        tokio::spawn(async move { pulse.during(JobActor::run(shop, card, joined)).await })
    }

    /// The others take over at once what this worker owns; the chunks it has begun it finishes itself.
    async fn drain(shop: &Arc<Shop>, actors: BTreeMap<JobId, JoinHandle<()>>) {
        tracing::info!("stopping: finishing what was begun");
        shop.membership.leave().await;
        let finish = async {
            for actor in actors.into_values() {
                if let Err(error) = actor.await {
                    tracing::warn!(%error, "a job's actor ended badly");
                }
            }
        };
        if tokio::time::timeout(shop.settings.drain, finish).await.is_err() {
            tracing::warn!("not everything was finished in time; others will do it again");
        }
        shop.link.close().await;
    }
}
