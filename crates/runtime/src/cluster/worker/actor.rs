//! One job on this worker: hands what happens to the driver (`tenaz_core::JobDriver`), and does what it says (act.rs).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_cluster::limits::BEAT_EVERY;
use tenaz_cluster::{ChunkHeader, JobSpec, LogMessage, Session};
use tenaz_core::{
    Classified, Clearance, FaultClass, Finished, Input, JobCard, JobDriver, JobFacts, JobSeat, Log, Note, NotePlace,
    Source, StageId, StallSigns, StallVerdict, Tag, Ticket, Work,
};
use tenaz_engine::StopFlag;
use tenaz_rabbit::{Acker, Delivery};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Shop;
use super::chunk::chunk_header;
use super::engine::ClusterEngine;
use super::isolation::RoomPlace;
use super::planning::{self, Planning};
use super::pool::JobPool;
use super::reading::{Feed, Reader, Reading};
use super::unserved::{StandBack, Unable, look_on};
use crate::Error;

/// How often a job is looked at when nothing happens.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Something that was done elsewhere for this job.
pub(super) enum Done {
    /// A step has run.
    Ran(Finished<ClusterEngine>),
    /// The broker has confirmed a message.
    Confirmed(Work, u32),
    /// The broker will never take a message.
    Refused(Error),
}

/// A chunk that was delivered and not settled.
pub(super) struct Delivered {
    pub(super) acker: Acker,
    pub(super) tag: u64,
    pub(super) header: ChunkHeader,
}

/// How a worker's part in a job has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Parting {
    /// The job is over, or the worker leaves.
    Over,
    /// This process cannot do the job's work, for this reason.
    StoodBack(StandBack),
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
    pub(super) engine: Arc<ClusterEngine>,
    pub(super) driver: JobDriver<ClusterEngine>,
    pub(super) pool: JobPool,
    /// Its place beside the other jobs.
    pub(super) place: Arc<RoomPlace>,
    pub(super) session: Option<Arc<Session>>,
    pub(super) readers: BTreeMap<Log, Reader>,
    pub(super) consumers: BTreeMap<usize, Reader>,
    pub(super) delivered: BTreeMap<Tag, Delivered>,
    pub(super) readings: mpsc::Sender<Reading>,
    pub(super) done: mpsc::UnboundedSender<Done>,
    /// Cancelled when the job has ended here: whatever is still being sent for it is pointless.
    pub(super) over: CancellationToken,
    /// Set at the same time: tasks that run end soon.
    pub(super) stop: StopFlag,
    draining: bool,
    /// Why this process cannot do the job's work.
    pub(super) stood_back: Option<StandBack>,
    /// Stages for which no worker has enough memory: their questions fail.
    pub(super) given_up: BTreeSet<StageId>,
    /// Bytes of chunks and rows that came from the broker.
    taken_bytes: u64,
    /// Bytes that went there.
    pub(super) sent_bytes: u64,
    last_tag: u64,
    /// How far the control log was followed.
    noted: NotePlace,
    seat: JobSeat,
    /// Whether what a log holds, when it is read from its start, may be another's work.
    pub(super) joined: Joined,
    began: Instant,
}

impl Drop for JobActor {
    fn drop(&mut self) {
        self.over.cancel();
        self.stop.stop();
        self.shop.metrics.jobs_running.dec();
        self.shop.board.forget(&self.card.id);
    }
}

impl JobActor {
    /// Takes part in the job until it ends. `life` counts how often this process has begun to; for the stages in `given_up` no
    /// worker has enough memory.
    pub(super) async fn run(
        shop: Arc<Shop>,
        card: JobCard,
        joined: Joined,
        life: u32,
        given_up: BTreeSet<StageId>,
    ) -> Parting {
        if card.build != shop.build {
            look_on(&shop, &card, &Unable::OtherBuild, None).await;
            return Parting::Over;
        }
        let Some(spec) = wait_for_spec(&shop, &card).await else { return Parting::Over };
        let engine = match planning::plan(&shop, &card, spec, given_up.clone()).await {
            Planning::Done(engine) => engine,
            Planning::StandsBack(reason) => return Parting::StoodBack(reason),
            Planning::Over => return Parting::Over,
        };
        if engine.plan_digest() != card.plan_digest {
            look_on(&shop, &card, &Unable::OtherPlan, None).await;
            return Parting::Over;
        }
        tracing::info!(job = %card.id, workload = card.workload, partitions = card.partitions, "working on a job");
        shop.metrics.jobs_running.inc();
        let (readings, mut incoming) = mpsc::channel(8);
        let (done, mut dones) = mpsc::unbounded_channel();
        let (place, mut cleared) = shop.room.enter();
        let mut actor = Self {
            driver: JobDriver::new(shop.membership.me(), engine.rows.topology.clone(), life),
            pool: shop.pool.of_job(&card.tenant, &card.id),
            place,
            session: None,
            readers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            delivered: BTreeMap::new(),
            readings,
            done,
            over: CancellationToken::new(),
            stop: StopFlag::default(),
            draining: false,
            stood_back: None,
            given_up,
            taken_bytes: 0,
            sent_bytes: 0,
            last_tag: 0,
            noted: NotePlace::default(),
            seat: JobSeat::new(shop.membership.me(), &card, 0),
            joined,
            began: Instant::now(),
            shop,
            card,
            engine,
        };
        // Before anything is begun.
        if let Some(clearance) = cleared.recv().await {
            actor.handle(Input::Cleared(clearance));
        }
        actor.work(&mut incoming, &mut dones, &mut cleared).await;
        let (taken_bytes, sent_bytes) = (actor.taken_bytes, actor.sent_bytes);
        tracing::info!(job = %actor.card.id, taken_bytes, sent_bytes, "the job is over for this worker");
        actor.stood_back.take().map_or(Parting::Over, Parting::StoodBack)
    }

    async fn work(
        &mut self,
        incoming: &mut mpsc::Receiver<Reading>,
        dones: &mut mpsc::UnboundedReceiver<Done>,
        cleared: &mut mpsc::UnboundedReceiver<Clearance>,
    ) {
        let shop = Arc::clone(&self.shop);
        let Some(mut changes) = shop.book.changes_of(&self.card.id) else { return };
        let mut members = shop.membership.changes();
        let mut look = interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut beat = interval(BEAT_EVERY);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.assign();
        self.read_notes();
        loop {
            if shop.book.view(&self.card.id, |view| view.end.is_some()).unwrap_or(true) {
                return;
            }
            if self.stood_back.is_some() || self.driver.has_drained() {
                return;
            }
            let session = self.session.clone();
            tokio::select! {
                session = next_session(&shop, session) => self.change_session(session),
                Some(reading) = incoming.recv() => self.take_reading(reading),
                Some(done) = dones.recv() => self.take_done(done),
                Some(clearance) = cleared.recv() => self.handle(Input::Cleared(clearance)),
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.read_notes();
                }
                changed = members.changed() => if changed.is_ok() { self.assign() },
                _ = look.tick() => self.look().await,
                _ = beat.tick() => shop.board.under_way(&self.card.id, self.driver.under_way() as u64),
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
                self.delivered.clear();
                self.handle(Input::Disconnected);
            }
            Some(session) => {
                self.session = Some(session);
                self.hear();
                self.handle(Input::Connected);
                // Logs that are read from now on were somebody else's, or this worker's before.
                self.joined = Joined::UnderWay;
            }
        }
    }

    /// What the control log has said since the last look.
    fn read_notes(&mut self) {
        let noted = &mut self.noted;
        let news = self.shop.book.view(&self.card.id, |view| (view.news(noted), view.problem.clone()));
        let Some((notes, problem)) = news else { return };
        for note in notes {
            self.handle(match note {
                Note::TableClosed(table, promise) => Input::TableClosed { table, promise },
                Note::Attempted(source, by) => Input::Attempted { source, by },
                Note::Exonerated(source) => Input::Exonerated { source },
            });
        }
        if let Some(problem) = problem {
            let reason = problem.in_words(|table| self.engine.table_name(table).to_owned());
            super::act::fail(&self.shop, &self.card.id, "contradiction", problem.class(), reason);
        }
    }

    /// Who owns what, given who is alive.
    fn assign(&mut self) {
        let (now_ms, seat) = (self.now_ms(), &mut self.seat);
        if let Some(claim) = self.shop.membership.workers(|workers| seat.assign(workers, now_ms)) {
            let (partitions, results) = (claim.partitions.len(), claim.results);
            tracing::debug!(job = %self.card.id, partitions, results, ?claim, "ownership has changed");
            self.shop.board.claim(&self.card.id, claim.clone());
            self.shop.membership.beat_now();
            self.handle(Input::Owns { partitions: claim.partitions, results: claim.results });
        }
    }

    /// A reader that was not told to stop has ended. If its session is over, the next one brings another reader; otherwise
    /// nothing would ever come, so the job says so.
    fn take_end(&self, feed: Feed, number: u64, reason: &str) {
        let present = match feed {
            Feed::Log(log) => self.driver.reading(log),
            Feed::Chunks(wave) => self.driver.consumer(wave),
        };
        let is_served = self.session.as_ref().is_some_and(|session| !session.is_lost());
        tracing::debug!(job = %self.card.id, %feed, reason, "a reader has ended");
        if is_served && present == Some(number) {
            let text = format!("{feed} of the job cannot be read: {reason}");
            super::act::fail(&self.shop, &self.card.id, "unreadable", FaultClass::Broker, text);
        }
    }

    fn take_reading(&mut self, reading: Reading) {
        self.hear();
        match reading {
            Reading::Ended(feed, number, reason) => self.take_end(feed, number, &reason),
            Reading::Message(log, number, message, permit) => {
                self.taken_bytes += message.body.len() as u64;
                if message.kind == crate::cluster::results::kind::ROWS {
                    self.take_message(log, number, message, permit);
                }
            }
            Reading::Chunk(wave, number, delivery, acker) => {
                self.taken_bytes += delivery.body.len() as u64;
                self.take_chunk(wave, number, delivery, acker);
            }
        }
    }

    fn take_message(&mut self, log: Log, reading: u64, message: LogMessage, permit: OwnedSemaphorePermit) {
        let framed = tenaz_cluster::unframe::<crate::cluster::rows::RowsHeader>(&log.to_string(), &message.body);
        match framed.map(|framed| framed.header.id) {
            Err(error) => super::act::fail_with(&self.shop, &self.card.id, &error.into()),
            Ok(header) => {
                let LogMessage { offset, body, .. } = message;
                self.handle(Input::Arrived { log, reading, offset, header, body, permit });
            }
        }
    }

    fn take_chunk(&mut self, wave: usize, consumer: u64, delivery: Delivery, acker: Acker) {
        let header = match chunk_header("a work queue", &delivery.body) {
            Ok(header) => header,
            Err(error) => return super::act::fail_with(&self.shop, &self.card.id, &error),
        };
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        let source = Source::Chunk { table: header.table, number: header.number };
        let (digest, redelivered) = (header.digest, delivery.redelivered);
        self.delivered.insert(tag, Delivered { acker, tag: delivery.tag, header });
        let leaf = delivery.body;
        self.handle(Input::Delivered { wave, consumer, tag, source, digest, redelivered, leaf });
    }

    fn take_done(&mut self, done: Done) {
        match done {
            Done::Ran(finished) => {
                if let (Ticket::Chunk(_), Ok(_)) = (finished.ticket, &finished.outcome) {
                    self.engine.faults.after_chunks(self.shop.metrics.chunks.get());
                }
                self.handle(Input::Finished(finished));
            }
            Done::Confirmed(work, message) => self.handle(Input::Confirmed { work, message }),
            Done::Refused(error) => super::act::fail_with(&self.shop, &self.card.id, &error),
        }
    }

    /// Hands an input to the driver, and does what it says.
    pub(super) fn handle(&mut self, input: Input<ClusterEngine>) {
        let (driver, engine) = (&mut self.driver, &self.engine);
        let mut input = Some(input);
        let mut drive = |facts: &JobFacts| input.take().map(|input| driver.handle(engine, facts, input));
        // A job that is gone from the book is over, and nobody waits for what is left of it.
        let effects = self.shop.book.view(&self.card.id, |view| drive(&view.facts)).flatten();
        effects.into_iter().flatten().for_each(|effect| self.carry_out(effect));
        self.place.report(self.driver.exposure());
    }

    fn drain(&mut self) {
        self.draining = true;
        self.seat.leave();
        self.handle(Input::Drain);
    }

    fn now_ms(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    /// Something has arrived: nothing needs to be suspected for a while.
    fn hear(&mut self) {
        let now_ms = self.now_ms();
        self.seat.heard(now_ms);
    }

    /// If nothing has arrived for long, something may be lost: what was delivered elsewhere, a subscription, or a message
    /// that the broker had confirmed.
    async fn look(&mut self) {
        let Some(session) = self.session.clone() else { return };
        if !self.seat.is_due(self.now_ms()) {
            return;
        }
        let (signs, patience_ms) = (self.stall_signs(&session).await, self.seat.patience_ms());
        let now_ms = self.now_ms();
        let (verdict, job) = (self.seat.judge(&signs, now_ms), &self.card.id);
        match verdict {
            StallVerdict::Wait => tracing::debug!(%job, patience_ms, ?signs, "nothing has arrived for a while"),
            StallVerdict::Reconnect { wave, chunks } => {
                tracing::warn!(%job, wave, chunks, patience_ms, "chunks wait, and none has arrived for a while");
                session.give_up("chunks wait in their queue and do not arrive");
            }
            StallVerdict::SearchLost => {
                tracing::warn!(%job, patience_ms, "nothing has moved for a while: looking for what was lost");
                self.handle(Input::Stalled);
            }
        }
    }

    /// Why nothing arrives.
    async fn stall_signs(&self, session: &Session) -> StallSigns {
        let elsewhere = self.shop.membership.under_way_elsewhere(&self.card.id);
        if let Some(signs) = StallSigns::of_work(self.driver.under_way(), elsewhere) {
            return signs;
        }
        let mut waves = Vec::new();
        for wave in 0..usize::from(self.card.waves) {
            let queue = self.shop.link.names().chunks(&self.card.id, wave);
            match session.reading.queue_depth(&queue).await {
                Ok(Some(waiting)) => waves.push((self.consumers.contains_key(&wave), waiting)),
                Ok(None) => return StallSigns::Unknown("a work queue is not there".to_owned()),
                Err(error) => return StallSigns::Unknown(error.to_string()),
            }
        }
        let of_job = self.engine.rows.topology.waves();
        let signs = self.shop.book.view(&self.card.id, |view| StallSigns::idle(&of_job, waves, &view.facts));
        signs.unwrap_or_else(|| StallSigns::Unknown("the job is gone".to_owned()))
    }
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
