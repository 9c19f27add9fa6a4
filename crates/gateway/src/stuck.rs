//! Work queues that a broker has lost, or that confirm nothing any more, are made anew. What is done about a queue is decided
//! by [`QueueWatch`], which also says why; here it is found out and done.
//!
//! What is seen of a silent queue goes into the job's control log, where the next gateway finds it if this one does not live for
//! long enough.
//!
//! A queue that is gone is declared again: what was in it is found missing by the workers, and sent again by the client. A
//! chunk that comes twice counts once, so several gateways may do the same at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tenaz_cluster::{Control, JobView, Session, declare_chunks, store_probe};
use tenaz_core::limits::SILENCE_NOTE_MS;
use tenaz_core::{Fact, JobCard, Probe, QueueAction, QueueEvent, QueueSilence, QueueWatch, Sighting, TableId, Witness};
use tenaz_rabbit::{Error, Properties};
use tokio::task::JoinHandle;

use crate::app::{Job, Shared};
use crate::limits::READ_BACK_WAIT;

/// The work queues of this gateway that seem not to work.
#[derive(Debug)]
pub(crate) struct Stuck {
    watch: Mutex<QueueWatch>,
    began: Instant,
    /// Held by the request that mends a queue: one at a time is enough.
    mending: tokio::sync::Mutex<()>,
}

impl Default for Stuck {
    fn default() -> Self {
        Self { watch: Mutex::default(), began: Instant::now(), mending: tokio::sync::Mutex::default() }
    }
}

impl Stuck {
    fn handle(&self, queue: &str, event: QueueEvent) -> Option<QueueAction> {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).handle(queue, event, now_ms)
    }

    fn round(&self, queue: &str, recorded: &QueueSilence) -> u32 {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner).round(queue, recorded)
    }

    /// The queue works.
    pub(crate) fn confirmed(&self, queue: &str) {
        self.handle(queue, QueueEvent::Confirmed);
    }
}

/// A wave's work queue of a job.
#[derive(Debug, Clone)]
pub(crate) struct WorkQueue {
    pub(crate) job: Job,
    pub(crate) wave: usize,
    pub(crate) name: String,
}

impl WorkQueue {
    /// Publishes to the queue in this [`round`](Self::round) of its silence. While its confirm is waited for, those who watch the
    /// queue are told.
    pub(crate) async fn publish(
        &self,
        app: &Shared,
        session: &Session,
        round: u32,
        message: Vec<u8>,
        properties: &Properties,
    ) -> Result<(), Error> {
        const TICK: Duration = Duration::from_millis(SILENCE_NOTE_MS);
        let mut publishing = std::pin::pin!(session.publish_chunk(&self.name, message, properties));
        let mut waited = Duration::ZERO;
        loop {
            tokio::select! {
                biased;
                published = &mut publishing => return published,
                () = tokio::time::sleep(TICK) => {}
            }
            // An alarm keeps all publishers waiting.
            if !session.writing.is_blocked() {
                waited += TICK;
                // A probe goes on by itself.
                drop(self.waited(app, session, round, waited));
            }
        }
    }

    /// The round of the queue's silence that is being counted. To be asked before a message is sent.
    pub(crate) fn round(&self, app: &Shared) -> u32 {
        app.stuck.round(&self.name, &self.recorded_silence(app))
    }

    /// A message that was sent in this round has waited in vain for so long. Returns the probe that has to be made because of that.
    fn waited(&self, app: &Shared, session: &Session, round: u32, waited: Duration) -> Option<JoinHandle<()>> {
        let ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        self.seen(app, session, QueueEvent::Waited { sighting: self.sighting(app, session, round), ms })
    }

    /// The queue has refused a message as if it were full.
    pub(crate) async fn refused(&self, app: &Shared, session: &Session, round: u32) {
        let waiting = session.reading.queue_depth(&self.name).await.ok().flatten();
        // A probe goes on by itself.
        drop(self.seen(app, session, QueueEvent::Refused { sighting: self.sighting(app, session, round), waiting }));
    }

    fn sighting(&self, app: &Shared, session: &Session, sent_in_round: u32) -> Sighting {
        let by = Witness { member: app.membership.me(), epoch: session.epoch };
        let (recorded, confirmed_chunks) = (self.recorded_silence(app), self.confirmed_chunks(app));
        Sighting { by, recorded, confirmed_chunks, sent_in_round }
    }

    /// Does what has to be done about something that was seen. Returns the probe that has to be made.
    fn seen(&self, app: &Shared, session: &Session, event: QueueEvent) -> Option<JoinHandle<()>> {
        match app.stuck.handle(&self.name, event) {
            Some(QueueAction::Probe) => return Some(tokio::spawn(mend_silent(Arc::clone(app), self.clone()))),
            Some(QueueAction::Note { round, ms }) => {
                tracing::debug!(queue = self.name, ms, "a work queue has confirmed nothing yet");
                let by = Witness { member: app.membership.me(), epoch: session.epoch };
                let (app, job) = (Arc::clone(app), self.job.clone());
                let fact = Fact::QueueSilent { wave: self.number(), round, by, ms };
                tokio::spawn(async move {
                    tell(&app, &job, fact).await;
                });
            }
            Some(QueueAction::Reconnect) => {
                tracing::warn!(queue = self.name, "an empty queue refuses messages");
                session.give_up("an empty queue refuses messages");
            }
            // Only a probe has these.
            Some(QueueAction::MakeAnew { .. } | QueueAction::Clear { .. }) | None => {}
        }
        None
    }

    fn number(&self) -> u16 {
        u16::try_from(self.wave).expect("a job's card counts waves in two bytes")
    }

    fn recorded_silence(&self, app: &Shared) -> QueueSilence {
        app.book.view(self.job.id(), |view| view.facts.queue_silence(self.number())).unwrap_or_default()
    }

    /// Chunks of the wave that any gateway was told were stored.
    fn confirmed_chunks(&self, app: &Shared) -> u64 {
        let tables = self.job.planned.tables_of(self.wave);
        let uploaded = |view: &JobView| tables.iter().map(|&table: &TableId| view.facts.uploaded(table).len()).sum();
        // A control log that is not read to its end may have receipts that nobody has seen here.
        let read = app.book.view(self.job.id(), |view| view.is_caught_up().then(|| uploaded(view)));
        read.flatten().unwrap_or(u64::MAX)
    }
}

/// Writes something about a queue into the control log, if that can be done soon. Returns whether it is there.
async fn tell(app: &Shared, job: &Job, fact: Fact) -> bool {
    let told = tokio::time::timeout(READ_BACK_WAIT, app.book.tell(job.id(), &Control::Fact(fact))).await;
    let is_there = matches!(told, Ok(Ok(())));
    if !is_there {
        tracing::warn!(job = %job.id(), ?told, "a note about a work queue could not be written");
    }
    is_there
}

/// Mends a wave's work queue if this error, met while publishing to it in a round of its silence, shows that it needs that.
pub(crate) async fn mend(app: &Shared, queue: &WorkQueue, session: &Session, round: u32, error: &Error) {
    let mending = match error {
        Error::Unconfirmed { seconds, .. } => queue.waited(app, session, round, Duration::from_secs(*seconds)),
        // Only if it is really gone: a broker that is just starting has no queue yet, either.
        Error::Unroutable { target } if matches!(session.reading.queue_depth(target).await, Ok(None)) => {
            Some(tokio::spawn(mend_missing(Arc::clone(app), queue.job.card.clone(), queue.wave)))
        }
        _ => None,
    };
    // On a task of its own, so that it is not left half done when the request ends. A panic in there is told where it happens.
    if let Some(mending) = mending {
        let _ = mending.await;
    }
}

/// Finds out whether a silent queue is to be made anew, and does it.
async fn mend_silent(app: Shared, queue: WorkQueue) {
    let _one = app.stuck.mending.lock().await;
    let (job, name) = (&queue.job, &queue.name);
    let session = app.link.session().await;
    let stored = store_probe(&session, app.link.names(), job.id()).await;
    let waiting = session.reading.queue_depth(name).await.ok().flatten();
    let (recorded, confirmed_chunks) = (queue.recorded_silence(&app), queue.confirmed_chunks(&app));
    let probe = Probe { broker_stores: stored.is_ok(), waiting, confirmed_chunks, recorded };
    tracing::warn!(job = %job.id(), queue = name, ?probe, ?stored, "a work queue confirms nothing");
    let wave = queue.number();
    let round = match app.stuck.handle(name, QueueEvent::Probed(probe)) {
        Some(QueueAction::MakeAnew { round }) => round,
        Some(QueueAction::Clear { round }) => {
            tell(&app, job, Fact::QueueCleared { wave, round }).await;
            return;
        }
        _ => return,
    };
    // First, so that nobody deletes it again because of what is known now. Found by the simulator: where this got lost, another
    // gateway deleted the new queue, with confirmed chunks in it.
    if !tell(&app, job, Fact::QueueCleared { wave, round }).await {
        return;
    }
    tracing::warn!(job = %job.id(), queue = name, "a work queue is made anew");
    // Not to be tried until it succeeds: by then the queue may work again, and hold confirmed chunks.
    if let Err(error) = session.reading.delete_queue(name).await {
        tracing::warn!(job = %job.id(), queue = name, %error, "a work queue could not be deleted");
        return session.met(&error);
    }
    declare_again(&app, &job.card, queue.wave).await;
    // What was sent to the old queue meanwhile says nothing of the new one.
    tell(&app, job, Fact::QueueCleared { wave, round: QueueAction::after(round) }).await;
    app.stuck.confirmed(name);
    // Whoever waits for the old queue's confirm need not wait until it is overdue.
    session.give_up("a work queue was made anew");
}

async fn mend_missing(app: Shared, card: JobCard, wave: usize) {
    let _one = app.stuck.mending.lock().await;
    tracing::warn!(job = %card.id, wave, "a work queue that is gone is made anew");
    declare_again(&app, &card, wave).await;
}

/// Declares a work queue again, unless the job has ended.
async fn declare_again(app: &Shared, card: &JobCard, wave: usize) {
    let declared = async {
        if app.check_open(&card.id).is_ok() {
            declare_chunks(&app.link, card, wave).await?;
        }
        // Cleaning up after an ended job may have been done before.
        if app.check_open(&card.id).is_err() {
            tenaz_cluster::delete_chunks(&app.link, card, wave).await?;
        }
        Ok::<(), tenaz_cluster::Error>(())
    };
    if let Err(error) = declared.await {
        tracing::warn!(job = %card.id, wave, %error, "a work queue could not be made anew");
    }
}
