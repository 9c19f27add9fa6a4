//! One job on this worker: waits for what happens, asks the protocol what to do, and does it (act.rs).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_cluster::{ChunkHeader, JobSpec, Note, ResultEnd, Session};
use tenaz_core::{Claim, Event, JobCard, JobWorker, Log, Source, Tag, Work};
use tenaz_rabbit::{Acker, Delivery};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Shop;
use super::chunk::{Outgoing, chunk_header};
use super::pool::JobPool;
use super::reading::{Reader, Reading};
use super::shared::SharedJob;
use super::strand::Strand;
use crate::Error;

/// How often a job is looked at when nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Nothing has arrived for this long although nothing is waiting: something may be lost. Doubled each time.
const STALL: Duration = Duration::from_secs(10);

/// Something that was done elsewhere for this job.
pub(super) enum Done {
    /// A task has run.
    Ran(Work, Result<Vec<Outgoing>, Error>),
    /// Rows were taken in from a log.
    Took(Result<Vec<Outgoing>, Error>),
    /// The broker has confirmed a message.
    Confirmed(Work, u32),
    /// The broker will never take a message.
    Refused(Error),
    /// All broadcasts of a wave are in place, as of this session.
    WaveReady(usize, u64),
    /// The answers are made.
    Concluded(Result<ResultEnd, Error>),
}

/// A chunk that was delivered and not settled.
pub(super) struct Delivered {
    pub(super) acker: Acker,
    pub(super) tag: u64,
    pub(super) header: ChunkHeader,
    pub(super) body: Option<Vec<u8>>,
}

/// A message that the protocol is being asked about.
pub(super) struct Current {
    pub(super) log: Log,
    pub(super) source: Source,
    pub(super) content: u64,
    pub(super) part: u32,
    pub(super) body: Vec<u8>,
    pub(super) permit: tokio::sync::OwnedSemaphorePermit,
}

/// When a worker came to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// As soon as there was one.
    AtStart,
    /// Others may have worked on it before.
    UnderWay,
}

/// One job on this worker.
pub(super) struct JobActor {
    pub(super) shop: Arc<Shop>,
    pub(super) card: JobCard,
    pub(super) shared: Arc<SharedJob>,
    pub(super) machine: JobWorker,
    pub(super) pool: JobPool,
    pub(super) session: Option<Arc<Session>>,
    pub(super) readers: BTreeMap<Log, Reader>,
    pub(super) consumers: BTreeMap<usize, Reader>,
    pub(super) strands: BTreeMap<Log, Strand>,
    pub(super) delivered: BTreeMap<Tag, Delivered>,
    pub(super) outputs: BTreeMap<Work, Vec<Outgoing>>,
    pub(super) held: BTreeMap<(Log, Source, u64), BTreeMap<u32, Vec<u8>>>,
    pub(super) readings: mpsc::Sender<Reading>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    /// Cancelled when the job has ended here: whatever is still being sent for it is pointless.
    pub(super) over: CancellationToken,
    /// The answers' end, once this worker has made it.
    pub(super) end: Option<ResultEnd>,
    pub(super) draining: bool,
    /// Bytes of chunks and rows that came from the broker.
    taken_bytes: u64,
    /// Bytes that went there.
    pub(super) sent_bytes: u64,
    pub(super) next_number: u64,
    /// Which reading of the control log, and how many notes of it.
    noted: (u64, usize),
    claim: Claim,
    /// Whether what a log holds, when it is read from its start, may be another's work.
    pub(super) joined: Joined,
    news: Instant,
    patience: Duration,
    /// At so many looks since then, chunks waited in the queue.
    overlooked: u32,
}

impl Drop for JobActor {
    fn drop(&mut self) {
        self.over.cancel();
        self.shop.metrics.jobs_running.dec();
        self.shop.board.forget(&self.card.id);
    }
}

impl JobActor {
    /// Takes part in the job until it ends.
    pub(super) async fn run(shop: Arc<Shop>, card: JobCard, joined: Joined) {
        let Some(spec) = wait_for_spec(&shop, &card).await else { return };
        if spec.version != env!("CARGO_PKG_VERSION") {
            tracing::warn!(job = %card.id, version = spec.version, "the job belongs to another version of tenaz");
            return;
        }
        let planned = {
            let (shop, id) = (Arc::clone(&shop), card.id.clone());
            tokio::task::spawn_blocking(move || SharedJob::plan(&id, &spec, &shop)).await
        };
        let shared = match planned {
            Ok(Ok(shared)) => Arc::new(shared),
            Ok(Err(error)) => return super::act::fail(&shop, &card.id, "plan", error.to_string()),
            Err(panic) => return super::act::fail(&shop, &card.id, "crashed", format!("planning crashed: {panic}")),
        };
        tracing::info!(job = %card.id, workload = card.workload, partitions = card.partitions, "working on a job");
        shop.metrics.jobs_running.inc();
        let (readings, mut incoming) = mpsc::channel(8);
        let (done, mut dones) = mpsc::unbounded_channel();
        let mut actor = Self {
            machine: JobWorker::new(shop.membership.me(), shared.topology.clone()),
            pool: shop.pool.of_job(&card.id),
            session: None,
            readers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            strands: BTreeMap::new(),
            delivered: BTreeMap::new(),
            outputs: BTreeMap::new(),
            held: BTreeMap::new(),
            readings,
            done,
            over: CancellationToken::new(),
            end: None,
            draining: false,
            taken_bytes: 0,
            sent_bytes: 0,
            next_number: 0,
            noted: (0, 0),
            claim: Claim::default(),
            joined,
            news: Instant::now(),
            patience: STALL,
            overlooked: 0,
            shop,
            card,
            shared,
        };
        actor.work(&mut incoming, &mut dones).await;
        let (taken_bytes, sent_bytes) = (actor.taken_bytes, actor.sent_bytes);
        tracing::info!(job = %actor.card.id, taken_bytes, sent_bytes, "the job is over for this worker");
    }

    async fn work(&mut self, incoming: &mut mpsc::Receiver<Reading>, dones: &mut mpsc::UnboundedReceiver<Done>) {
        let shop = Arc::clone(&self.shop);
        let Some(mut changes) = shop.book.changes_of(&self.card.id) else { return };
        let mut members = shop.membership.changes();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.assign();
        self.read_notes();
        loop {
            if shop.book.view(&self.card.id, |view| view.end.is_some()).unwrap_or(true) {
                return;
            }
            if self.draining && self.machine.is_idle() {
                return;
            }
            let session = self.session.clone();
            tokio::select! {
                session = next_session(&shop, session) => self.change_session(session),
                Some(reading) = incoming.recv() => self.take_reading(reading),
                Some(done) = dones.recv() => self.take_done(done),
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.read_notes();
                }
                changed = members.changed() => if changed.is_ok() { self.assign() },
                _ = look.tick() => self.look().await,
                () = shop.stop.cancelled(), if !self.draining => self.drain(),
            }
        }
    }

    fn change_session(&mut self, session: Option<Arc<Session>>) {
        match session {
            None => {
                self.session = None;
                self.readers.clear();
                self.consumers.clear();
                self.handle(Event::Disconnected);
            }
            Some(session) => {
                self.session = Some(session);
                self.hear();
                self.handle(Event::Connected);
                // Logs that are read from now on were somebody else's, or this worker's before.
                self.joined = Joined::UnderWay;
            }
        }
    }

    /// What the control log has said since the last look.
    fn read_notes(&mut self) {
        let (reading, noted) = self.noted;
        let news = self.shop.book.view(&self.card.id, |view| {
            // Read anew: repeating what is known is harmless.
            let noted = if view.reading == reading { noted } else { 0 };
            let notes = view.notes.get(noted..).map(<[Note]>::to_vec).unwrap_or_default();
            ((view.reading, noted + notes.len()), notes, view.problem.clone())
        });
        let Some((noted, notes, problem)) = news else { return };
        self.noted = noted;
        for note in notes {
            self.handle(match note {
                Note::TableClosed(table, promise) => Event::TableClosed { table, promise },
                Note::Attempted(source, by) => Event::Attempted { source, by },
                Note::Exonerated(source) => Event::Exonerated { source },
            });
        }
        if let Some(problem) = problem {
            super::act::fail(&self.shop, &self.card.id, "contradiction", problem);
        }
    }

    /// Who owns what, given who is alive.
    fn assign(&mut self) {
        if self.draining {
            return;
        }
        let me = self.shop.membership.me();
        let claim = self.shop.membership.workers(|w| w.assign(me, &self.card.id, self.card.partitions, &self.claim));
        if claim != self.claim {
            tracing::debug!(job = %self.card.id, ?claim, "ownership has changed");
            self.claim = claim.clone();
            self.shop.board.claim(&self.card.id, claim.clone());
            self.shop.membership.beat_now();
            self.handle(Event::OwnershipChanged { partitions: claim.partitions, results: claim.results });
        }
    }

    fn take_reading(&mut self, reading: Reading) {
        self.hear();
        self.taken_bytes += match &reading {
            Reading::Message(_, _, message, _) => message.body.len() as u64,
            Reading::Chunk(_, _, delivery, _) => delivery.body.len() as u64,
        };
        match reading {
            Reading::Message(log, number, message, permit) => {
                if self.readers.get(&log).is_none_or(|reader| reader.number != number) {
                    return;
                }
                if message.kind != crate::cluster::results::kind::ROWS {
                    return;
                }
                let place = log.to_string();
                match tenaz_cluster::unframe::<crate::cluster::rows::RowsHeader>(&place, &message.body) {
                    Err(error) => super::act::fail(&self.shop, &self.card.id, "bad_message", error.to_string()),
                    Ok(framed) => {
                        let header = framed.header.id;
                        let current = Current {
                            log,
                            source: header.source,
                            content: header.content,
                            part: header.part,
                            body: message.body,
                            permit,
                        };
                        let actions =
                            self.machine.handle(Event::MessageArrived { log, offset: message.offset, header });
                        self.act(actions, Some(current));
                    }
                }
            }
            Reading::Chunk(wave, number, delivery, acker) => {
                if self.consumers.get(&wave).is_some_and(|reader| reader.number == number) {
                    self.take_chunk(delivery, acker);
                } else {
                    // Draining: somebody else may have it at once.
                    tokio::spawn(async move { acker.nack_requeue(delivery.tag).await });
                }
            }
        }
    }

    fn take_chunk(&mut self, delivery: Delivery, acker: Acker) {
        let header = match chunk_header("a work queue", &delivery.body) {
            Ok(header) => header,
            Err(error) => return super::act::fail(&self.shop, &self.card.id, "bad_message", error.to_string()),
        };
        self.next_number += 1;
        let tag = Tag(self.next_number);
        let source = Source::Chunk { table: header.table, number: header.number };
        let body = Some(delivery.body);
        self.delivered.insert(tag, Delivered { acker, tag: delivery.tag, header, body });
        self.handle(Event::ChunkDelivered { tag, source, redelivered: delivery.redelivered });
    }

    /// Asks the protocol, and does what it says.
    pub(super) fn handle(&mut self, event: Event) {
        let actions = self.machine.handle(event);
        self.act(actions, None);
    }

    fn drain(&mut self) {
        self.draining = true;
        self.consumers.clear();
        self.claim = Claim::default();
        self.handle(Event::OwnershipChanged { partitions: Default::default(), results: false });
    }

    /// If nothing has arrived for long, something may be lost: what was delivered elsewhere, a subscription, or a message
    /// that the broker had confirmed.
    async fn look(&mut self) {
        let Some(session) = self.session.clone() else { return };
        if self.news.elapsed() < self.patience || self.draining {
            return;
        }
        let (job, patience) = (&self.card.id, self.patience);
        match self.lull(&session).await {
            Lull::Working => tracing::debug!(%job, "nothing has arrived for {patience:?}: there is work under way"),
            Lull::Waiting => tracing::debug!(%job, "nothing has arrived for {patience:?}: others are not ready"),
            Lull::Unknown(reason) => tracing::debug!(%job, reason, "nothing has arrived for {patience:?}"),
            // Not yet: they may have come a moment ago.
            Lull::Overlooked(..) if self.overlooked == 0 => {
                self.overlooked += 1;
                return;
            }
            Lull::Overlooked(wave, chunks) => {
                tracing::warn!(%job, wave, chunks, "chunks wait, and none has arrived for {patience:?}");
                session.give_up("chunks wait in their queue and do not arrive");
                self.patience *= 2;
            }
            Lull::Lost => {
                tracing::warn!(%job, "nothing has moved for {patience:?}: looking for what was lost");
                self.patience *= 2;
                self.handle(Event::Stalled);
            }
        }
        self.hear();
    }

    /// Nothing needs to be suspected for a while.
    fn hear(&mut self) {
        (self.news, self.overlooked) = (Instant::now(), 0);
    }

    /// Why nothing arrives.
    async fn lull(&self, session: &Session) -> Lull {
        if !self.machine.is_idle() {
            return Lull::Working;
        }
        for wave in 0..usize::from(self.card.waves) {
            let queue = self.shop.link.names().chunks(&self.card.id, wave);
            match session.reading.queue_depth(&queue).await {
                Ok(Some(0)) => {}
                Ok(Some(chunks)) if self.consumers.contains_key(&wave) => return Lull::Overlooked(wave, chunks),
                Ok(Some(_)) => return Lull::Waiting,
                Ok(None) => return Lull::Unknown("a work queue is not there".to_owned()),
                Err(error) => return Lull::Unknown(error.to_string()),
            }
        }
        let tables = &self.card.tables;
        match self.shop.book.view(&self.card.id, |v| v.facts.is_uploaded(tables.iter().copied())) {
            Some(true) => Lull::Lost,
            _ => Lull::Waiting,
        }
    }
}

/// Why nothing arrives.
enum Lull {
    /// There is enough to do.
    Working,
    /// Others have something to do first: uploading, or the tables of an earlier wave.
    Waiting,
    /// The broker does not say.
    Unknown(String),
    /// In the queue of this wave, from which this worker takes chunks, so many wait. A broker may forget a subscription that
    /// is made while the queue gets another leader.
    Overlooked(usize, u32),
    /// Everything is uploaded and no chunk waits: the broker has lost something that it had confirmed.
    Lost,
}

async fn wait_for_spec(shop: &Shop, card: &JobCard) -> Option<Arc<JobSpec>> {
    let told = shop.book.wait(&card.id, |view| match (&view.spec, &view.end) {
        (_, Some(_)) => Some(None),
        (Some(spec), None) => Some(Some(Arc::clone(spec))),
        (None, None) => None,
    });
    tokio::select! {
        told = told => told.flatten(),
        () = shop.stop.cancelled() => None,
    }
}

/// The next change of the link: its loss, or its return.
async fn next_session(shop: &Shop, session: Option<Arc<Session>>) -> Option<Arc<Session>> {
    match session {
        Some(session) => {
            session.lost().await;
            None
        }
        None => Some(shop.link.session().await),
    }
}
