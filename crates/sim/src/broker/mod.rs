//! A model of the broker: what it keeps, what it promises, and all it may do to those who trust it too much.
//!
//! ```text
//!  publish ─▶ outbox ──accept──▶ queue or log ─▶ confirms ──▶ publisher
//!                │       └─ full, not there: refused ──▲            │ cut: lost
//!                └─ cut: lost, or accepted later without a word
//! ```

mod envelope;
mod queue;
mod registry_log;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenaz_core::{Fact, Log, RegistryEvent, Source};

use crate::engine::LogBytes;
use crate::rng::Rng;
use crate::rows::Message;

pub(crate) use envelope::{ChunkCopy, ControlEntry, Envelope};
use queue::{Queue, QueueHealth, Queued};
pub(crate) use registry_log::RegistryLog;

/// A job, by its place among the jobs of a run.
pub(crate) type Job = usize;

/// How many messages at the end of a log a power cut may take.
pub(crate) const MAX_TAIL: usize = 4;
/// In how many of a hundred cases a publish survives its connection.
const GHOST_PERCENT: u64 = 30;
/// In how many of a hundred cases a full broker refuses a publish.
const REFUSED_PERCENT: u64 = 50;
/// So many publishes of a connection are on the socket, or stored and not confirmed; the others wait for their turn.
const WINDOW: usize = 4;

/// A connection, by a number that is never used again.
pub(crate) type ConnectionId = u64;
/// A publish, by a number that is never used again.
pub(crate) type PublishId = u64;

/// A publish that the broker has not taken.
#[derive(Debug, Clone)]
struct Outgoing {
    id: PublishId,
    envelope: Envelope,
    queued_at: u64,
    /// When it was written to the socket.
    written_at: Option<u64>,
}

/// One side of a connection: what is under way on it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Connection {
    outbox: VecDeque<Outgoing>,
    /// What becomes of publishes: true if they were accepted.
    confirms: Vec<(PublishId, bool)>,
    settled: VecDeque<(Place, Settled)>,
    unacked: BTreeSet<Place>,
    publisher_is_lost: bool,
    /// Whether it refuses every chunk, as if the queues were full.
    refuses: bool,
    /// When the first publish was swallowed that is never confirmed.
    swallowed_at: Option<u64>,
}

/// A delivered chunk: its job, its wave and its place in the queue.
type Place = (Job, usize, u64);

/// What a worker says about a delivered chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Everything derived from it is safe.
    Acked,
    /// Somebody else is to have it.
    GivenBack,
}

/// The parts of one content that were accepted, and how many there are.
type Accepted = BTreeMap<u64, (u32, BTreeSet<u32>)>;

/// What the broker keeps for a job.
#[derive(Debug, Clone, Default)]
struct JobObjects {
    queues: Vec<Queue>,
    logs: BTreeMap<Log, Vec<Message>>,
    control: Vec<ControlEntry>,
    kept: Kept,
    /// All that was ever accepted, also what a power cut took away.
    accepted: BTreeMap<(Log, Source), Accepted>,
    copies: BTreeMap<Source, u64>,
}

/// What there is of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kept {
    /// Nothing.
    #[default]
    Nothing,
    /// Queues and logs.
    Everything,
    /// The logs that are left for those who read results.
    Results,
}

/// What the broker is able to do at a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Condition {
    /// The step.
    pub(crate) now: u64,
    /// It refuses some of what is published.
    pub(crate) is_full: bool,
    /// Its disk stands still: no queue takes anything.
    pub(crate) is_stalled: bool,
}

/// The broker.
#[derive(Debug, Clone)]
pub(crate) struct Broker {
    connections: BTreeMap<ConnectionId, Connection>,
    jobs: Vec<JobObjects>,
    registry: RegistryLog,
    /// Publishes that survived their connection and will be accepted some time.
    ghosts: Vec<Envelope>,
    queue_chunks: usize,
    last_id: u64,
}

impl Broker {
    /// An empty broker for jobs with so many waves each. A work queue takes `queue_chunks`, the registry `registry_bytes`.
    pub(crate) fn new(waves: &[usize], queue_chunks: usize, registry_bytes: u64) -> Self {
        let jobs =
            waves.iter().map(|&waves| JobObjects { queues: vec![Queue::default(); waves], ..JobObjects::default() });
        Self {
            connections: BTreeMap::new(),
            jobs: jobs.collect(),
            registry: RegistryLog::new(registry_bytes),
            ghosts: Vec::new(),
            queue_chunks,
            last_id: 0,
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A new connection.
    pub(crate) fn connect(&mut self) -> ConnectionId {
        let id = self.next_id();
        self.connections.insert(id, Connection::default());
        id
    }

    /// How many numbers were given to connections and publishes.
    pub(crate) fn published(&self) -> u64 {
        self.last_id
    }

    /// Whether the connection is still there.
    pub(crate) fn is_open(&self, connection: ConnectionId) -> bool {
        self.connections.contains_key(&connection)
    }

    /// All connections.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.connections.keys().copied()
    }

    /// Sends something. Whether it arrives is another question.
    pub(crate) fn publish(&mut self, connection: ConnectionId, envelope: Envelope, now: u64) -> PublishId {
        let id = self.next_id();
        if let Some(open) = self.connections.get_mut(&connection).filter(|c| !c.publisher_is_lost) {
            open.outbox.push_back(Outgoing { id, envelope, queued_at: now, written_at: None });
            open.write(now);
        }
        id
    }

    /// Since when the oldest publish has waited for its confirm: from when it was written, or from when it was handed over.
    pub(crate) fn unconfirmed_since(&self, connection: ConnectionId, from_hand_over: bool) -> Option<u64> {
        let open = self.connections.get(&connection)?;
        let since = |out: &Outgoing| if from_hand_over { Some(out.queued_at) } else { out.written_at };
        open.outbox.iter().filter_map(since).chain(open.swallowed_at).min()
    }

    /// Whether something waits to be accepted on this connection.
    pub(crate) fn has_outgoing(&self, connection: ConnectionId, is_stalled: bool) -> bool {
        let can_go = |out: &Outgoing| !(is_stalled && matches!(out.envelope, Envelope::Chunk { .. }));
        let open = self.connections.get(&connection);
        open.is_some_and(|c| c.outbox.iter().take(WINDOW).any(can_go) || !c.settled.is_empty())
    }

    /// Accepts one of the next publishes or acknowledgements of a connection: channels overtake each other.
    pub(crate) fn accept(&mut self, connection: ConnectionId, condition: Condition, rng: &mut Rng) -> Option<Envelope> {
        let open = self.connections.get_mut(&connection)?;
        let can_go = |out: &Outgoing| !(condition.is_stalled && matches!(out.envelope, Envelope::Chunk { .. }));
        let next: Vec<usize> =
            (0..open.outbox.len().min(WINDOW)).filter(|&at| can_go(&open.outbox[at])).take(3).collect();
        let publish_first = open.settled.is_empty() || (!next.is_empty() && rng.chance(50));
        if !publish_first {
            let (place, settled) = open.settled.pop_front()?;
            self.settle(connection, place, settled);
            return None;
        }
        let at = *next.get(rng.index(next.len()))?;
        let Outgoing { id, envelope, .. } = open.outbox.remove(at)?;
        open.write(condition.now);
        let is_refused = (condition.is_full && rng.chance(REFUSED_PERCENT))
            || (open.refuses && matches!(envelope, Envelope::Chunk { .. }));
        let fate = if is_refused { Fate::Refused } else { self.fate(&envelope) };
        let open = self.connections.get_mut(&connection)?;
        match fate {
            Fate::Stored => open.confirms.push((id, true)),
            Fate::Refused => open.confirms.push((id, false)),
            Fate::Swallowed => {
                open.swallowed_at.get_or_insert(condition.now);
            }
        }
        (fate == Fate::Stored).then(|| {
            self.store(envelope.clone());
            envelope
        })
    }

    /// What becomes of a publish.
    fn fate(&self, envelope: &Envelope) -> Fate {
        let is_there = |job: &Job| self.jobs[*job].kept != Kept::Nothing;
        match envelope {
            Envelope::Registry(..) => Fate::Stored,
            Envelope::Chunk { job, wave, .. } => {
                let (queue, kept) = (&self.jobs[*job].queues[*wave], self.jobs[*job].kept);
                match queue.health {
                    _ if kept != Kept::Everything => Fate::Refused,
                    QueueHealth::Gone => Fate::Refused,
                    QueueHealth::Dead => Fate::Swallowed,
                    QueueHealth::Working if queue.ready.len() >= self.queue_chunks => Fate::Refused,
                    QueueHealth::Working => Fate::Stored,
                }
            }
            Envelope::Rows(job, ..) | Envelope::Control(job, _) if is_there(job) => Fate::Stored,
            Envelope::Rows(..) | Envelope::Control(..) => Fate::Refused,
        }
    }

    fn settle(&mut self, connection: ConnectionId, place: Place, settled: Settled) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        if !open.unacked.remove(&place) {
            return;
        }
        let (job, wave, place) = place;
        let queue = &mut self.jobs[job].queues[wave];
        if let (Some(queued), Settled::GivenBack) = (queue.unacked.remove(&place), settled) {
            queue.ready.insert(place, Queued { redelivered: true, ..queued });
        }
    }

    /// Closes a connection in good order: all that was sent over it has its effect.
    pub(crate) fn close(&mut self, connection: ConnectionId) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        let (outbox, settled) = (std::mem::take(&mut open.outbox), std::mem::take(&mut open.settled));
        for out in outbox {
            if self.fate(&out.envelope) == Fate::Stored {
                self.store(out.envelope);
            }
        }
        settled.into_iter().for_each(|(place, settled)| self.settle(connection, place, settled));
        self.give_all_back(connection, |_, _| true);
        self.connections.remove(&connection);
    }

    /// The channel on which a connection publishes is gone, and what was under way on it with it.
    pub(crate) fn lose_publisher(&mut self, connection: ConnectionId, rng: &mut Rng) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        open.publisher_is_lost = true;
        open.confirms.clear();
        let outbox = std::mem::take(&mut open.outbox);
        self.ghosts.extend(outbox.into_iter().map(|out| out.envelope).filter(|_| rng.chance(GHOST_PERCENT)));
    }

    /// From now on the connection refuses every chunk.
    pub(crate) fn refuse_chunks(&mut self, connection: ConnectionId) -> bool {
        self.connections.get_mut(&connection).map(|open| open.refuses = true).is_some()
    }

    /// The channel on which a connection takes chunks of a wave is gone: they go back to their places.
    pub(crate) fn lose_consumer(&mut self, connection: ConnectionId, job: Job, wave: usize) {
        self.give_all_back(connection, |of, from| (of, from) == (job, wave));
    }

    /// A connection takes no more chunks of a job: what it has of them goes back.
    pub(crate) fn leave_job(&mut self, connection: ConnectionId, job: Job) {
        self.give_all_back(connection, |of, _| of == job);
    }

    fn give_all_back(&mut self, connection: ConnectionId, is_meant: impl Fn(Job, usize) -> bool) {
        let Some(open) = self.connections.get_mut(&connection) else { return };
        let back: Vec<Place> = open.unacked.iter().copied().filter(|(job, wave, _)| is_meant(*job, *wave)).collect();
        open.settled.retain(|((job, wave, _), _)| !is_meant(*job, *wave));
        for place in back {
            self.settle(connection, place, Settled::GivenBack);
        }
    }

    /// Whether publishes of dead connections are still under way.
    pub(crate) fn has_ghosts(&self) -> bool {
        !self.ghosts.is_empty()
    }

    /// Accepts a publish of a connection that is long dead.
    pub(crate) fn accept_ghost(&mut self, rng: &mut Rng) -> Option<Envelope> {
        if self.ghosts.is_empty() {
            return None;
        }
        let ghost = self.ghosts.swap_remove(rng.index(self.ghosts.len()));
        (self.fate(&ghost) == Fate::Stored).then(|| {
            self.store(ghost.clone());
            ghost
        })
    }

    fn store(&mut self, envelope: Envelope) {
        match envelope {
            Envelope::Chunk { job, wave, chunk } => {
                let job = &mut self.jobs[job];
                job.queues[wave].push(chunk);
                *job.copies.entry(chunk.source).or_default() += 1;
            }
            Envelope::Rows(job, log, message) => {
                let (header, job) = (message.header, &mut self.jobs[job]);
                let accepted = job.accepted.entry((log, header.source)).or_default();
                accepted.entry(header.content).or_insert((header.parts, BTreeSet::new())).1.insert(header.part);
                job.logs.entry(log).or_default().push(message);
            }
            Envelope::Control(job, entry) => self.jobs[job].control.push(entry),
            Envelope::Registry(event, bytes) => self.registry.push(event, bytes),
        }
    }

    /// Whether a confirm is under way.
    pub(crate) fn has_confirms(&self, connection: ConnectionId) -> bool {
        self.connections.get(&connection).is_some_and(|c| !c.confirms.is_empty())
    }

    /// One of the confirms under way, in any order, and whether the publish was accepted.
    pub(crate) fn take_confirm(&mut self, connection: ConnectionId, rng: &mut Rng) -> Option<(PublishId, bool)> {
        let confirms = &mut self.connections.get_mut(&connection)?.confirms;
        if confirms.is_empty() { None } else { Some(confirms.swap_remove(rng.index(confirms.len()))) }
    }

    /// Whether a chunk of the wave can be delivered to this connection, which holds at most `prefetch` of a job.
    pub(crate) fn can_deliver(&self, connection: ConnectionId, (job, wave): (Job, usize), prefetch: usize) -> bool {
        let Some(open) = self.connections.get(&connection) else { return false };
        let has = open.unacked.iter().filter(|(of, _, _)| *of == job).count();
        has < prefetch && !self.jobs[job].queues[wave].ready.is_empty()
    }

    /// Delivers the next chunk of the wave: its place, the chunk, and whether somebody had it before.
    pub(crate) fn deliver(
        &mut self,
        connection: ConnectionId,
        (job, wave): (Job, usize),
        now: u64,
    ) -> Option<(u64, ChunkCopy, bool)> {
        let open = self.connections.get_mut(&connection)?;
        let queue = &mut self.jobs[job].queues[wave];
        let (place, queued) = queue.ready.pop_first()?;
        let delivery = (place, queued.chunk, queued.redelivered);
        queue.unacked.insert(place, Queued { delivered_at: now, ..queued });
        open.unacked.insert((job, wave, place));
        Some(delivery)
    }

    /// How many chunks of a wave wait in their queue, if it is there.
    pub(crate) fn waiting(&self, job: Job, wave: usize) -> Option<u32> {
        let objects = &self.jobs[job];
        let queue = &objects.queues[wave];
        let is_there = objects.kept == Kept::Everything && queue.health != QueueHealth::Gone;
        is_there.then_some(queue.ready.len() as u32)
    }

    /// Since when the oldest chunk of a job that is delivered over one of these connections has been so.
    pub(crate) fn delivered_since(&self, job: Job, connections: &[ConnectionId]) -> Option<u64> {
        let open = connections.iter().filter_map(|connection| self.connections.get(connection));
        let places = open.flat_map(|open| &open.unacked).filter(|(of, _, _)| *of == job);
        places
            .filter_map(|(_, wave, place)| self.jobs[job].queues[*wave].unacked.get(place))
            .map(|q| q.delivered_at)
            .min()
    }

    /// Says what is to become of a delivered chunk.
    pub(crate) fn say(&mut self, connection: ConnectionId, place: Place, settled: Settled) {
        if let Some(open) = self.connections.get_mut(&connection) {
            open.settled.push_back((place, settled));
        }
    }

    /// Cuts a connection: what it carried is lost or becomes a ghost, its deliveries go back to their places.
    pub(crate) fn cut(&mut self, connection: ConnectionId, rng: &mut Rng) {
        self.lose_publisher(connection, rng);
        self.give_all_back(connection, |_, _| true);
        self.connections.remove(&connection);
    }

    /// The power fails: confirmed messages at the ends of some logs are gone. Queues are synced to disk and keep theirs.
    pub(crate) fn lose_tails(&mut self, rng: &mut Rng) -> usize {
        let mut lost = 0;
        let mut tail = |len: usize, rng: &mut Rng| {
            let tail = if rng.chance(60) { rng.index(len.min(MAX_TAIL) + 1) } else { 0 };
            lost += tail;
            tail
        };
        for job in &mut self.jobs {
            for log in job.logs.values_mut() {
                let tail = tail(log.len(), rng);
                log.truncate(log.len() - tail);
            }
            let tail = tail(job.control.len(), rng);
            job.control.truncate(job.control.len() - tail);
        }
        let tail = tail(self.registry.len(), rng);
        self.registry.lose_tail(tail);
        lost
    }

    /// Makes the queues and logs of a job, where they are not there.
    pub(crate) fn declare(&mut self, job: Job) {
        let objects = &mut self.jobs[job];
        if objects.kept == Kept::Nothing {
            objects.kept = Kept::Everything;
            // A job that was removed may be made again.
            objects.queues.iter_mut().for_each(Queue::make_anew);
        }
    }

    /// Deletes what only running jobs need, or everything.
    pub(crate) fn delete(&mut self, job: Job, everything: bool) {
        let objects = &mut self.jobs[job];
        for queue in &mut objects.queues {
            queue.make_anew();
            queue.health = QueueHealth::Gone;
        }
        if everything {
            objects.logs.clear();
            objects.control.clear();
            objects.kept = Kept::Nothing;
        } else if objects.kept == Kept::Everything {
            objects.logs.retain(|log, _| *log == Log::Results);
            objects.kept = Kept::Results;
        }
    }

    /// What there is of a job.
    pub(crate) fn kept(&self, job: Job) -> Kept {
        self.jobs[job].kept
    }

    /// A queue that has never stored a chunk dies: it was not written to disk when the broker was killed.
    pub(crate) fn kill_queue(&mut self, job: Job, wave: usize) -> bool {
        let objects = &mut self.jobs[job];
        let queue = &mut objects.queues[wave];
        let is_new = queue.stored == 0 && objects.kept == Kept::Everything && queue.health == QueueHealth::Working;
        if is_new {
            queue.health = QueueHealth::Dead;
        }
        is_new
    }

    /// Deletes a work queue and declares it again. Returns how many chunks it held that have a receipt.
    pub(crate) fn make_queue_anew(&mut self, job: Job, wave: usize) -> usize {
        let JobObjects { queues, control, .. } = &mut self.jobs[job];
        let is_receipt = |entry: &ControlEntry, of: Source| match (entry, of) {
            (ControlEntry::Fact(Fact::Uploaded { table, chunks, .. }), Source::Chunk { table: of, number }) => {
                *table == of && chunks.has(number)
            }
            _ => false,
        };
        let has_receipt = |queued: &&Queued| control.iter().any(|entry| is_receipt(entry, queued.chunk.source));
        let queue = &mut queues[wave];
        let held = queue.ready.values().chain(queue.unacked.values()).filter(has_receipt).count();
        queue.make_anew();
        held
    }

    /// The message at an offset.
    pub(crate) fn message(&self, job: Job, log: Log, offset: u64) -> Option<&Message> {
        self.jobs[job].logs.get(&log)?.get(offset as usize)
    }

    /// What stands in the results log of a job with a real engine.
    pub(crate) fn real_results(&self, job: Job) -> Vec<LogBytes> {
        let log = self.jobs[job].logs.get(&Log::Results);
        log.into_iter().flatten().filter_map(|message| message.real.clone()).collect()
    }

    /// Where a reader starts that asks for `from`: a log that ends before begins with whatever comes next.
    pub(crate) fn start(&self, job: Job, log: Log, from: u64) -> u64 {
        from.min(self.jobs[job].logs.get(&log).map_or(0, |log| log.len() as u64))
    }

    /// The control log of a job.
    pub(crate) fn control(&self, job: Job) -> &[ControlEntry] {
        &self.jobs[job].control
    }

    /// The registry.
    pub(crate) fn registry(&self) -> &RegistryLog {
        &self.registry
    }

    /// Other jobs of a busy cluster write into the registry, too.
    pub(crate) fn write_registry(&mut self, event: RegistryEvent, bytes: u64) {
        self.registry.push(event, bytes);
    }

    /// Whether the log has, or had, a whole output of this source.
    pub(crate) fn was_accepted(&self, job: Job, log: Log, source: Source) -> bool {
        let accepted = self.jobs[job].accepted.get(&(log, source));
        accepted.is_some_and(|contents| contents.values().any(|(parts, seen)| seen.len() as u32 == *parts))
    }

    /// How often the chunk was put into its queue.
    pub(crate) fn copies(&self, job: Job, source: Source) -> u64 {
        self.jobs[job].copies.get(&source).copied().unwrap_or(0)
    }
}

/// What becomes of a publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Stored,
    Refused,
    /// Neither confirmed nor refused.
    Swallowed,
}

impl Connection {
    /// As many publishes as the window has room for are on the socket.
    fn write(&mut self, now: u64) {
        for out in self.outbox.iter_mut().take(WINDOW) {
            out.written_at.get_or_insert(now);
        }
    }
}
