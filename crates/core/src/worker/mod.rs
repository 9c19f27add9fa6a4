//! One worker's part in one job, as a value: event in, actions out.
//!
//! ```text
//!                 ┌────────────── ChunkDelivered ──(redelivered? announce first)──▶ Run ─▶ TaskFinished ─▶ Publish…
//!  work queues ───┘                                                                            all Confirmed ─▶ Ack
//!
//!                 ┌── MessageArrived ─▶ Take | Hold | Drop ──(stage complete?)──▶ Announce ─▶ Attempted ─▶ Run ─▶ Publish…
//!  owned logs ────┘                                                                            all Confirmed ─▶ Forget
//!
//!  results log (one owner) ── a query's rows in ──▶ MakeAnswer ─▶ AnswerMade (final) ── everything in ──▶ Conclude ─▶ Concluded ─▶ AnnounceEnd
//! ```
//!
//! The rows themselves are the driver's: this machine only knows ids. It survives a lost connection ([`Event::Connected`]
//! says what to do again) and nothing else: a worker that dies takes its machine along, and another worker builds the same
//! state from the same logs.

mod answers;
mod attempts;
mod chunks;
mod event;
mod inner;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Clearance, Exposure, Inbox, Log, Mailbox, MemberId, Partition, Promise, Source, StageId, TableId, Topology,
    Verdict, Wave,
};

pub use event::{Action, Attempt, Event, Failure, Tag, Work};

use answers::Answers;
use chunks::ChunkWork;
use inner::InnerWork;

/// One worker's part in one job.
#[derive(Debug, Clone)]
pub struct JobWorker {
    me: MemberId,
    attempts_made: u64,
    topology: Topology,
    waves: Vec<Wave>,
    open_waves: BTreeSet<usize>,
    connected: bool,
    promises: BTreeMap<TableId, Promise>,
    attempts: BTreeMap<Source, BTreeSet<Attempt>>,
    broadcast: Mailbox,
    complete_broadcasts: BTreeSet<StageId>,
    owned: BTreeMap<Partition, Owned>,
    results: Option<Mailbox>,
    chunks: BTreeMap<Tag, ChunkWork>,
    inner: BTreeMap<(StageId, Partition), InnerWork>,
    /// Where this worker owns the results.
    answers: Option<Answers>,
    conclusions_begun: u64,
    failed: bool,
    clearance: Clearance,
    /// Whether the suspect was begun that this worker was cleared for.
    has_tried: bool,
    exposure: Exposure,
    /// Whether something may have changed it. Messages are many, and most of them do not.
    is_exposure_stale: bool,
}

/// A partition that this worker owns.
#[derive(Debug, Clone)]
struct Owned {
    mailbox: Mailbox,
    /// Stages whose rows are all here, but not yet those of their broadcasts.
    waiting: BTreeSet<StageId>,
}

impl JobWorker {
    /// A worker that has just heard of the job.
    pub fn new(me: MemberId, topology: Topology) -> Self {
        let broadcast = Mailbox::new(Inbox::of_broadcast(&topology));
        Self {
            me,
            attempts_made: 0,
            waves: topology.waves(),
            open_waves: BTreeSet::new(),
            connected: false,
            promises: BTreeMap::new(),
            attempts: BTreeMap::new(),
            broadcast,
            complete_broadcasts: BTreeSet::new(),
            owned: BTreeMap::new(),
            results: None,
            chunks: BTreeMap::new(),
            inner: BTreeMap::new(),
            answers: None,
            conclusions_begun: 0,
            failed: false,
            clearance: Clearance::default(),
            has_tried: false,
            exposure: Exposure::default(),
            is_exposure_stale: false,
            topology,
        }
    }

    /// Attempts are numbered from here on: a process that begins to work on a job for a second time must not repeat the
    /// numbers of the first.
    pub fn with_attempts_from(mut self, first: u64) -> Self {
        self.attempts_made = first;
        self
    }

    /// What happened, and what to do about it, in this order.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Connected => self.connect(&mut actions),
            Event::Disconnected => self.disconnect(&mut actions),
            Event::OwnershipChanged { partitions, results } => self.own(&partitions, results, &mut actions),
            Event::TableClosed { table, promise } => self.close(table, promise, &mut actions),
            Event::Attempted { source, by } => self.attempted(source, by, &mut actions),
            Event::Exonerated { source } => {
                self.attempts.remove(&source);
                self.announce_next(&mut actions);
            }
            Event::ChunkDelivered { tag, source, redelivered } => {
                self.chunk_delivered(tag, source, redelivered, &mut actions);
            }
            Event::MessageArrived { log, offset, header } => match self.mailbox(log) {
                None => actions.push(Action::Drop),
                Some(mailbox) => {
                    actions.push(match mailbox.receive(offset, header) {
                        Verdict::Take => Action::Take,
                        Verdict::Hold => Action::Hold,
                        Verdict::Drop => Action::Drop,
                    });
                    self.advance_log(log, &mut actions);
                }
            },
            Event::TaskFinished { work, messages } => self.finished(work, messages, &mut actions),
            Event::Confirmed { work, message } => self.confirmed(work, message, &mut actions),
            Event::ChunkReturned { tag } => {
                self.chunks.remove(&tag);
                self.announce_next(&mut actions);
            }
            Event::AnswerMade { query, conclusion } => self.answer_made(query, conclusion, &mut actions),
            Event::Concluded { conclusion } => self.concluded(conclusion, &mut actions),
            Event::Stalled => self.stalled(&mut actions),
            Event::Cleared(clearance) => self.cleared(clearance, &mut actions),
        }
        if std::mem::take(&mut self.is_exposure_stale) {
            self.exposure = self.find_exposure();
        }
        actions
    }

    /// The partitions owned now.
    pub fn owned(&self) -> impl Iterator<Item = Partition> + '_ {
        self.owned.keys().copied()
    }

    /// Whether this worker owns the results.
    pub fn owns_results(&self) -> bool {
        self.results.is_some()
    }

    /// The results log as far as it was read, where this worker owns it.
    pub fn results(&self) -> Option<&Inbox> {
        self.results.as_ref().map(Mailbox::inbox)
    }

    /// The job's shape.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Whether the worker has nothing under way that others wait for. A worker that leaves goes when this is true.
    pub fn is_idle(&self) -> bool {
        self.under_way() == 0
    }

    /// How many chunks were delivered and are not acknowledged, how many inner tasks are begun and not published, and how many
    /// answers are being made.
    pub fn under_way(&self) -> usize {
        let answers = self.answers.as_ref().map_or(0, Answers::under_way);
        self.chunks.len() + self.inner.values().filter(|work| !work.is_published()).count() + answers
    }

    /// What it has begun that may be to blame if the process dies, and whether it waits with a suspect.
    pub fn exposure(&self) -> Exposure {
        self.exposure
    }

    /// The chunks that were delivered and are not acknowledged.
    pub fn delivered(&self) -> impl Iterator<Item = Tag> + '_ {
        self.chunks.keys().copied()
    }

    /// The chunk of a delivery that is not acknowledged.
    pub fn chunk_of(&self, tag: Tag) -> Option<Source> {
        self.chunks.get(&tag).map(|chunk| chunk.source)
    }

    fn connect(&mut self, actions: &mut Vec<Action>) {
        self.connected = true;
        self.open_waves.clear();
        if self.reads_broadcasts() {
            actions.push(Action::Read { log: Log::Broadcast, from: self.broadcast.next_offset() });
        }
        for (&partition, owned) in &self.owned {
            actions.push(Action::Read { log: Log::Partition(partition), from: owned.mailbox.next_offset() });
        }
        if let Some(results) = &self.results {
            actions.push(Action::Read { log: Log::Results, from: results.next_offset() });
        }
        for (&(stage, partition), work) in &self.inner {
            work.again(stage, partition, actions);
        }
        self.advance(actions);
        self.announce_next(actions);
    }

    /// Whatever was delivered will be delivered again, to whoever comes first; what this worker has of it is void.
    fn disconnect(&mut self, actions: &mut Vec<Action>) {
        self.connected = false;
        self.is_exposure_stale = true;
        let chunks = std::mem::take(&mut self.chunks);
        actions.extend(chunks.into_keys().map(|tag| Action::Forget { work: Work::Chunk(tag) }));
    }

    fn own(&mut self, partitions: &BTreeSet<Partition>, results: bool, actions: &mut Vec<Action>) {
        let lost: Vec<Partition> = self.owned.keys().copied().filter(|p| !partitions.contains(p)).collect();
        lost.into_iter().for_each(|partition| self.release(partition, actions));
        for &partition in partitions {
            if !self.owned.contains_key(&partition) {
                self.acquire(partition, actions);
            }
        }
        if results && self.results.is_none() {
            let mut mailbox = Mailbox::new(Inbox::of_results(&self.topology));
            let failed = self.promises.iter().any(|(&t, p)| mailbox.inbox_mut().promise(t, p).is_err());
            debug_assert!(!failed, "promises were checked when they were made");
            self.results = Some(mailbox);
            self.conclusions_begun += 1;
            self.answers = Some(Answers::new(&self.topology, self.conclusions_begun));
            if self.connected {
                actions.push(Action::Read { log: Log::Results, from: 0 });
            }
        } else if !results && self.results.take().is_some() {
            self.answers = None;
            actions.push(Action::Release { log: Log::Results });
        }
        self.advance(actions);
        self.announce_next(actions);
    }

    fn acquire(&mut self, partition: Partition, actions: &mut Vec<Action>) {
        let mut mailbox = Mailbox::new(Inbox::of_partition(&self.topology, partition));
        let failed = self.promises.iter().any(|(&t, p)| mailbox.inbox_mut().promise(t, p).is_err());
        debug_assert!(!failed, "promises were checked when they were made");
        self.owned.insert(partition, Owned { mailbox, waiting: BTreeSet::new() });
        if self.connected {
            actions.push(Action::Read { log: Log::Partition(partition), from: 0 });
        }
    }

    fn release(&mut self, partition: Partition, actions: &mut Vec<Action>) {
        self.owned.remove(&partition);
        self.inner.retain(|&(stage, of), work| {
            if of == partition {
                actions.push(Action::Forget { work: Work::Inner(stage, of, work.by) });
            }
            of != partition
        });
        actions.push(Action::Release { log: Log::Partition(partition) });
    }

    fn close(&mut self, table: TableId, promise: Promise, actions: &mut Vec<Action>) {
        let inboxes = std::iter::once(&mut self.broadcast)
            .chain(self.owned.values_mut().map(|owned| &mut owned.mailbox))
            .chain(self.results.as_mut());
        for mailbox in inboxes {
            if let Err(error) = mailbox.inbox_mut().promise(table, &promise) {
                return self.fail(Failure::Contradiction(error), actions);
            }
        }
        self.promises.insert(table, promise);
        self.advance(actions);
    }

    fn mailbox(&mut self, log: Log) -> Option<&mut Mailbox> {
        match log {
            Log::Control => None,
            Log::Broadcast => Some(&mut self.broadcast),
            Log::Partition(partition) => self.owned.get_mut(&partition).map(|owned| &mut owned.mailbox),
            Log::Results => self.results.as_mut(),
        }
    }

    /// Whatever has become possible: broadcasts, then stages, then waves, then the end.
    fn advance(&mut self, actions: &mut Vec<Action>) {
        self.complete_broadcasts(actions);
        self.start_ready_stages(actions);
        self.open_ready_waves(actions);
        self.advance_results(actions);
    }

    /// Whatever a message of this log has made possible. Messages are many: the other logs are not looked at.
    fn advance_log(&mut self, log: Log, actions: &mut Vec<Action>) {
        match log {
            Log::Control => {}
            Log::Partition(partition) => self.start_ready_stages_of(partition, actions),
            Log::Results => self.advance_results(actions),
            Log::Broadcast => {
                if self.complete_broadcasts(actions) {
                    self.start_ready_stages(actions);
                    self.open_ready_waves(actions);
                }
            }
        }
    }

    /// True if there are new ones.
    fn complete_broadcasts(&mut self, actions: &mut Vec<Action>) -> bool {
        let ready = self.broadcast.inbox_mut().take_ready();
        self.complete_broadcasts.extend(&ready);
        actions.extend(ready.iter().map(|&edge| Action::Complete { edge }));
        !ready.is_empty()
    }

    fn reads_broadcasts(&self) -> bool {
        !self.broadcast.inbox().is_done() || self.broadcast.next_offset() > 0
    }

    fn fail(&mut self, failure: Failure, actions: &mut Vec<Action>) {
        if !self.failed {
            self.failed = true;
            actions.push(Action::Fail { failure });
        }
    }

    /// Nothing has moved for long, although the queues are empty. Then the broker may have lost what it had confirmed (a
    /// power cut): name what is missing, so that the client sends it again, and do again what was done.
    ///
    /// Chunks of a wave whose broadcasts are not complete here are not missed: they may well wait in their queue, because
    /// nobody can take them.
    fn stalled(&mut self, actions: &mut Vec<Action>) {
        let owned = self.owned.iter().map(|(&partition, owned)| (Log::Partition(partition), &owned.mailbox));
        let results = self.results.iter().map(|mailbox| (Log::Results, mailbox));
        let mut lost: BTreeMap<TableId, Promise> = BTreeMap::new();
        for (log, mailbox) in std::iter::once((Log::Broadcast, &self.broadcast)).chain(owned).chain(results) {
            let begun = self.waves.iter().filter(|wave| wave.needs.is_subset(&self.complete_broadcasts));
            for &table in begun.flat_map(|wave| &wave.tables) {
                if !self.topology.destinations(Source::Chunk { table, number: 0 }).contains(&log) {
                    continue;
                }
                let missing = mailbox.inbox().missing_chunks(table);
                if !missing.is_empty() {
                    lost.entry(table).and_modify(|l| *l = l.with(&missing)).or_insert_with(|| Promise::runs(missing));
                }
            }
        }
        actions.extend(lost.into_iter().map(|(table, chunks)| Action::ReportLost { table, chunks }));
        let restart: BTreeSet<Partition> =
            self.inner.iter().filter(|(_, work)| work.is_published()).map(|((_, partition), _)| *partition).collect();
        for partition in restart {
            self.release(partition, actions);
            self.acquire(partition, actions);
        }
        // If the answers are made and nothing moves all the same, the word of that may have been lost.
        if self.answers.as_ref().is_some_and(Answers::is_concluded) {
            actions.push(Action::AnnounceEnd);
        }
        self.advance(actions);
        self.announce_next(actions);
    }
}
