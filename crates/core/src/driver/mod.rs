//! One worker's part in one job, rows included: what the protocol decides is done in the right order.
//!
//! ```text
//!   shell (threads, a broker, a simulator)
//!     │  Input: chunk delivered, message arrived, step finished, confirmed, connected, owns …
//!     ▼
//!   JobDriver ── Event ──▶ JobWorker (ids only) ── Action ──▶ JobDriver ── Effect ──▶ shell
//!                                                               │
//!                                                               └─ Effect::Run(Step) ──▶ RowEngine, on some thread
//! ```
//!
//! The driver has no thread, no clock and no connection. A worker of a cluster, an embedded job and the simulator differ
//! only in their shells and in the [`RowEngine`]; what is decided here is decided once.
//!
//! What belongs to one log happens in its order ([`open_log`]): rows are taken in one output after the other, a task takes
//! its input after all rows that it waits for, and chunks are asked for when the broadcasts that they need are in place.

mod effect;
mod engine;
mod open_log;
mod receipts;
mod step;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Action, ChunkDigest, Classified, ClosedTable, Event, Exposure, Fact, Failure, FaultClass, Header, JobFacts,
    JobWorker, Log, MemberId, Partition, QueryEnded, QueryId, Source, TableId, Tag, Topology, Work,
};

pub use effect::{Effect, Input, JobFailure};
pub use engine::{LogPart, RowEngine};
pub use step::{Finished, Product, Step, StepOutcome, Ticket};

use open_log::{OpenLog, Queued};
use receipts::Unreceipted;
use step::StepJob;

/// Parts of outputs that are not complete, by log, source and content.
type HeldParts<B> = BTreeMap<(Log, Source, u64), BTreeMap<u32, LogPart<B>>>;

/// One worker's part in one job.
///
/// The shell calls [`handle`](Self::handle) with whatever happens, one input at a time, and carries the effects out in the
/// order given. Steps may run in any order and side by side; each comes back as [`Input::Finished`].
pub struct JobDriver<R: RowEngine> {
    machine: JobWorker,
    /// The logs that are read, each with what was taken from it.
    logs: BTreeMap<Log, OpenLog<R>>,
    /// Which reading of a log is the present one.
    readings: BTreeMap<Log, u64>,
    /// Which subscription to the chunks of a wave is the present one.
    consumers: BTreeMap<usize, u64>,
    held: HeldParts<R::Body>,
    /// What tasks have made and logs do not have yet.
    outputs: BTreeMap<Work, Vec<(Log, R::Sent)>>,
    /// Chunks that were delivered and not begun.
    leaves: BTreeMap<Tag, R::Leaf>,
    unreceipted: Unreceipted,
    /// What the tables were closed with. The shell's facts are read anew with every connection: what was told once stays.
    closed: BTreeMap<TableId, ClosedTable>,
    /// Queries whose answers this worker has made as the owner of the results.
    ended_queries: BTreeMap<QueryId, QueryEnded>,
    /// The end of the job, once this worker has concluded it.
    end: Option<R::End>,
    last_number: u64,
    /// Steps that were handed out and have not come back.
    steps: usize,
    /// Those of them that run chunks and tasks.
    risky_steps: usize,
    presence: Presence,
}

/// Whether a worker takes part in a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Working,
    /// It finishes what it has begun and takes nothing new.
    Draining,
    /// It cannot do its work here.
    StoodBack,
}

/// A message that the protocol is being asked about.
struct Arrived<R: RowEngine> {
    log: Log,
    header: Header,
    part: LogPart<R::Body>,
    permit: R::Permit,
}

impl<R: RowEngine> JobDriver<R> {
    /// A worker that has just heard of the job. `life` counts how often this process has begun to work on it.
    pub fn new(me: MemberId, topology: Topology, life: u32) -> Self {
        Self {
            machine: JobWorker::new(me, topology).with_attempts_from(u64::from(life) << 32),
            logs: BTreeMap::new(),
            readings: BTreeMap::new(),
            consumers: BTreeMap::new(),
            held: BTreeMap::new(),
            outputs: BTreeMap::new(),
            leaves: BTreeMap::new(),
            unreceipted: Unreceipted::default(),
            closed: BTreeMap::new(),
            ended_queries: BTreeMap::new(),
            end: None,
            last_number: 0,
            steps: 0,
            risky_steps: 0,
            presence: Presence::Working,
        }
    }

    /// What happened, and what the shell has to do about it, in this order. `facts` are those of the control log, as far as
    /// the shell has read it.
    pub fn handle(&mut self, engine: &R, facts: &JobFacts, input: Input<R>) -> Vec<Effect<R>> {
        let mut effects = Vec::new();
        let mut turn = Turn { engine, facts, effects: &mut effects };
        match input {
            Input::Connected => self.tell(Event::Connected, &mut turn),
            Input::Disconnected => self.disconnect(&mut turn),
            Input::Owns { partitions, results } => {
                if self.presence == Presence::Working {
                    self.tell(Event::OwnershipChanged { partitions, results }, &mut turn);
                }
            }
            Input::TableClosed { table, promise } => {
                self.closed.extend(facts.closed(table).map(|closed| (table, closed.clone())));
                self.tell(Event::TableClosed { table, promise }, &mut turn);
            }
            Input::Attempted { source, by } => self.tell(Event::Attempted { source, by }, &mut turn),
            Input::Exonerated { source } => self.tell(Event::Exonerated { source }, &mut turn),
            Input::Delivered { wave, consumer, tag, source, digest, redelivered, leaf } => {
                if self.consumers.get(&wave) != Some(&consumer) {
                    return vec![Effect::GiveBack { tag }];
                }
                self.deliver((tag, source, redelivered), digest, leaf, &mut turn);
            }
            Input::Arrived { log, reading, offset, header, body, permit } => {
                if self.readings.get(&log) == Some(&reading) {
                    let part = LogPart { offset, body };
                    self.arrive(Arrived { log, header, part, permit }, &mut turn);
                }
            }
            Input::Finished(finished) => self.finish(finished, &mut turn),
            Input::Confirmed { work, message } => self.tell(Event::Confirmed { work, message }, &mut turn),
            Input::Stalled => {
                // The word of it may have been lost.
                for (&query, end) in &self.ended_queries {
                    self.announce_query_end(query, end, &mut turn);
                }
                self.tell(Event::Stalled, &mut turn);
            }
            Input::Drain => self.drain(&mut turn),
            Input::Cleared(clearance) => self.tell(Event::Cleared(clearance), &mut turn),
        }
        effects
    }

    /// The protocol's part.
    pub fn machine(&self) -> &JobWorker {
        &self.machine
    }

    /// What this worker has under way for the job: chunks, tasks and answers, and whatever waits for a thread. While rows wait to
    /// be taken in, a log is not read any further, and what stands in it is not lost.
    pub fn under_way(&self) -> usize {
        self.machine.under_way() + self.steps
    }

    /// What it has begun that may be to blame if the process dies, and whether it waits with a suspect. A step whose chunk or
    /// task is not wanted any more counts until it has come back.
    pub fn exposure(&self) -> Exposure {
        let of_machine = self.machine.exposure();
        match self.presence {
            Presence::StoodBack => Exposure { begun: self.risky_steps, has_suspect: false, ..of_machine },
            _ => Exposure { begun: of_machine.begun + self.risky_steps, ..of_machine },
        }
    }

    /// The outputs that wait to be taken into their logs, each with its rows. A shell that makes outputs faster than they are
    /// taken in has to wait, or memory has no bound.
    pub fn backlog(&self) -> usize {
        self.logs.values().map(OpenLog::waiting).sum()
    }

    /// What the tables were closed with, as far as that is known.
    pub fn closed_tables(&self) -> &BTreeMap<TableId, ClosedTable> {
        &self.closed
    }

    /// The present subscription to the chunks of a wave.
    pub fn consumer(&self, wave: usize) -> Option<u64> {
        self.consumers.get(&wave).copied()
    }

    /// The present reading of a log.
    pub fn reading(&self, log: Log) -> Option<u64> {
        self.readings.get(&log).copied()
    }

    /// Whether nothing is left to do for a worker that leaves.
    pub fn has_drained(&self) -> bool {
        self.presence != Presence::Working && self.machine.is_idle()
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn tell(&mut self, event: Event, turn: &mut Turn<'_, R>) {
        let actions = self.machine.handle(event);
        self.act(actions, None, turn);
    }

    fn disconnect(&mut self, turn: &mut Turn<'_, R>) {
        self.readings.clear();
        self.consumers.clear();
        self.leaves.clear();
        if let Some(broadcasts) = self.logs.get_mut(&Log::Broadcast) {
            broadcasts.drop_waves();
        }
        self.tell(Event::Disconnected, turn);
    }

    fn deliver(
        &mut self,
        (tag, source, redelivered): (Tag, Source, bool),
        digest: ChunkDigest,
        leaf: R::Leaf,
        turn: &mut Turn<'_, R>,
    ) {
        if self.agrees_with_receipt(source, digest, false, turn) {
            self.leaves.insert(tag, leaf);
            self.tell(Event::ChunkDelivered { tag, source, redelivered }, turn);
        }
    }

    fn arrive(&mut self, arrived: Arrived<R>, turn: &mut Turn<'_, R>) {
        let (log, header, offset) = (arrived.log, arrived.header, arrived.part.offset);
        if self.agrees_with_receipt(header.source, ChunkDigest(header.lineage.input), true, turn) {
            let actions = self.machine.handle(Event::MessageArrived { log, offset, header });
            self.act(actions, Some(arrived), turn);
        }
    }

    /// Whether a chunk that was delivered, or whose rows stand in a log, has the bytes of its receipt and of its rows in other
    /// logs. If it has others, the job fails.
    fn agrees_with_receipt(
        &mut self,
        source: Source,
        digest: ChunkDigest,
        is_in_log: bool,
        turn: &mut Turn<'_, R>,
    ) -> bool {
        let Source::Chunk { table, number } = source else { return true };
        let checked = match is_in_log {
            true => self.unreceipted.arrived((table, number), digest, turn.facts),
            false => self.unreceipted.check_one((table, number), digest, turn.facts),
        };
        turn.check(checked)
    }

    /// Does what the protocol says, in order. `arrived` is the message that the first action is about.
    fn act(&mut self, actions: Vec<Action>, mut arrived: Option<Arrived<R>>, turn: &mut Turn<'_, R>) {
        for action in actions {
            match action {
                Action::Take => self.take(arrived.take(), turn),
                Action::Hold => self.hold(arrived.take()),
                Action::Drop => {
                    arrived = None;
                    turn.push(Effect::Dropped);
                }
                Action::Read { log, from } => {
                    let reading = self.number();
                    self.readings.insert(log, reading);
                    turn.push(Effect::Read { log, from, reading });
                }
                Action::Release { log } => self.release(log, turn),
                Action::Complete { edge } => self.queue(Log::Broadcast, Queued::Complete { edge }, turn),
                Action::TakeChunks { wave } => self.queue(Log::Broadcast, Queued::OpenWave { wave }, turn),
                // An attempt that is never made would count against what it was to try.
                Action::Announce { .. } if self.presence == Presence::StoodBack => {}
                Action::Announce { source, by } => turn.push(Effect::Tell(Fact::Attempted { source, by })),
                Action::Exonerate { source } => turn.push(Effect::Tell(Fact::Exonerated { source })),
                Action::Run { work, sources } => self.run(work, sources, turn),
                Action::Publish { work, message } => self.publish(work, message, turn),
                Action::Ack { tag } => turn.push(Effect::Ack { tag }),
                Action::Forget { work } => {
                    self.outputs.remove(&work);
                    if let Work::Chunk(tag) = work {
                        self.leaves.remove(&tag);
                        turn.push(Effect::Forget { tag });
                    }
                }
                Action::MakeAnswer { query, conclusion } => {
                    if turn.check(self.unreceipted.check(turn.facts)) {
                        self.queue(Log::Results, Queued::Answer { query, conclusion }, turn);
                    }
                }
                Action::Conclude { conclusion } => self.conclude(conclusion, turn),
                Action::AnnounceEnd => turn.effects.extend(self.end.clone().map(Effect::AnnounceEnd)),
                Action::ReportLost { table, chunks } => turn.push(Effect::Tell(Fact::Lost { table, chunks })),
                Action::Fail { failure } => turn.push(Effect::Fail(JobFailure::Protocol(failure))),
            }
        }
    }

    fn hold(&mut self, arrived: Option<Arrived<R>>) {
        let Some(Arrived { log, header, part, .. }) = arrived else { return };
        self.held.entry((log, header.source, header.content)).or_default().insert(header.part, part);
    }

    fn take(&mut self, arrived: Option<Arrived<R>>, turn: &mut Turn<'_, R>) {
        let Some(Arrived { log, header, part, permit }) = arrived else { return };
        let source = header.source;
        let mut parts = self.held.remove(&(log, source, header.content)).unwrap_or_default();
        parts.insert(header.part, part);
        if header.parts > 1 {
            self.held.retain(|(of, from, _), _| (*of, *from) != (log, source));
        }
        let parts = parts.into_values().collect();
        self.queue(log, Queued::Take { source, parts, permit }, turn);
    }

    fn release(&mut self, log: Log, turn: &mut Turn<'_, R>) {
        self.readings.remove(&log);
        if log == Log::Results {
            self.end = None;
            self.ended_queries.clear();
            self.unreceipted.clear();
        }
        self.held.retain(|(of, _, _), _| *of != log);
        self.logs.remove(&log);
        turn.push(Effect::StopReading { log });
    }

    fn run(&mut self, work: Work, sources: u64, turn: &mut Turn<'_, R>) {
        match work {
            Work::Chunk(tag) => {
                if let Some(leaf) = self.leaves.remove(&tag) {
                    self.hand_out(Step { ticket: Ticket::Chunk(tag), job: StepJob::Chunk(leaf) }, turn);
                }
            }
            Work::Inner(..) => {
                if turn.check(self.unreceipted.check(turn.facts)) {
                    self.queue(Log::Broadcast, Queued::AfterBroadcasts { work, sources }, turn);
                }
            }
        }
    }

    fn publish(&mut self, work: Work, message: u32, turn: &mut Turn<'_, R>) {
        let sent = self.outputs.get(&work).and_then(|messages| messages.get(message as usize));
        let Some((log, body)) = sent else {
            debug_assert!(false, "message {message} of {work:?} was to be sent after it was forgotten");
            return;
        };
        turn.push(Effect::Publish { work, message, log: *log, body: body.clone() });
    }

    /// Says in the control log that a query has ended, unless that stands there.
    fn announce_query_end(&self, query: QueryId, end: &QueryEnded, turn: &mut Turn<'_, R>) {
        match turn.facts.query_end(query) {
            Some(told) if told.agrees_with(end) => {}
            // Another answer is told, too: whoever reads both fails the job.
            _ => turn.push(Effect::Tell(Fact::QueryEnded { query, end: end.clone() })),
        }
    }

    fn conclude(&mut self, conclusion: u64, turn: &mut Turn<'_, R>) {
        if turn.check(self.unreceipted.check(turn.facts)) {
            self.queue(Log::Results, Queued::Conclude { conclusion }, turn);
        }
    }

    /// Does something with a log after all that was asked for before.
    fn queue(&mut self, log: Log, queued: Queued<R>, turn: &mut Turn<'_, R>) {
        if !self.logs.contains_key(&log) {
            let opened = self.number();
            self.logs.insert(log, OpenLog::new(opened, turn.engine.open(log)));
        }
        if let Some(open) = self.logs.get_mut(&log) {
            open.push(queued);
        }
        self.advance(log, turn);
    }

    /// Begins whatever may be begun in a log.
    fn advance(&mut self, log: Log, turn: &mut Turn<'_, R>) {
        while let Some(open) = self.logs.get_mut(&log) {
            let (Some(queued), opened, rows) = (open.next(), open.opened, open.rows()) else { return };
            let (ticket, job) = match queued {
                Queued::Take { source, parts, permit } => {
                    open.busy = true;
                    (Ticket::Take { log, opened, source }, StepJob::Take { rows, parts, permit })
                }
                Queued::Complete { edge } => {
                    open.busy = true;
                    (Ticket::Complete { opened, edge }, StepJob::Complete(rows))
                }
                Queued::Task { work, sources } => (Ticket::Task(work), StepJob::Task { rows, sources }),
                Queued::Answer { query, conclusion } => {
                    let closed = self.closed.clone();
                    (Ticket::Answer { query, conclusion }, StepJob::Answer { rows, closed })
                }
                Queued::Conclude { conclusion } => {
                    let closed = self.closed.clone();
                    (Ticket::Conclude { conclusion }, StepJob::Conclude { rows, closed })
                }
                Queued::AfterBroadcasts { work, sources } => {
                    self.go_on_in_partition(work, sources, turn);
                    continue;
                }
                Queued::OpenWave { wave } => {
                    self.take_chunks(wave, turn);
                    continue;
                }
            };
            self.hand_out(Step { ticket, job }, turn);
        }
    }

    fn hand_out(&mut self, step: Step<R>, turn: &mut Turn<'_, R>) {
        self.steps += 1;
        self.risky_steps += usize::from(step.ticket.is_risky());
        turn.push(Effect::Run(step));
    }

    /// A task whose broadcasts are in place waits for the rows of its partition. If the partition was released meanwhile,
    /// nobody wants the task.
    fn go_on_in_partition(&mut self, work: Work, sources: u64, turn: &mut Turn<'_, R>) {
        let Work::Inner(stage, partition, by) = work else { return };
        if self.machine.runs(stage, partition, by) {
            self.queue(Log::Partition(partition), Queued::Task { work, sources }, turn);
        }
    }

    fn take_chunks(&mut self, wave: usize, turn: &mut Turn<'_, R>) {
        if self.presence == Presence::Working {
            let consumer = self.number();
            self.consumers.insert(wave, consumer);
            turn.push(Effect::TakeChunks { wave, consumer });
        }
    }

    fn finish(&mut self, finished: Finished<R>, turn: &mut Turn<'_, R>) {
        let Finished { ticket, outcome } = finished;
        self.steps = self.steps.saturating_sub(1);
        self.risky_steps = self.risky_steps.saturating_sub(usize::from(ticket.is_risky()));
        let product = match outcome {
            Ok(product) => product,
            Err(error) if error.class() == FaultClass::Process => return self.stand_back(error, turn),
            Err(error) => {
                let source = self.source_of(ticket);
                return turn.push(Effect::Fail(JobFailure::Step { ticket, source, error }));
            }
        };
        match (ticket, product) {
            (_, Product::Released) => {}
            (Ticket::Chunk(tag), Product::Messages(messages)) => self.ran(Work::Chunk(tag), messages, turn),
            (Ticket::Task(work), Product::Messages(messages)) => self.ran(work, messages, turn),
            (Ticket::Take { log, opened, .. }, product) => {
                if let Product::Early(rows) = product {
                    turn.push(Effect::Show(rows));
                }
                self.go_on(log, opened, turn);
            }
            (Ticket::Complete { opened, .. }, _) => self.go_on(Log::Broadcast, opened, turn),
            (Ticket::Answer { query, conclusion }, Product::Answer(end)) => {
                self.announce_query_end(query, &end, turn);
                self.ended_queries.insert(query, end);
                self.tell(Event::AnswerMade { query, conclusion }, turn);
            }
            (Ticket::Conclude { conclusion }, Product::End(end)) => {
                self.end = Some(end);
                self.tell(Event::Concluded { conclusion }, turn);
            }
            (ticket, _) => debug_assert!(false, "{ticket:?} has made something else"),
        }
    }

    fn ran(&mut self, work: Work, messages: Vec<(Log, R::Sent)>, turn: &mut Turn<'_, R>) {
        let count = messages.len() as u32;
        self.outputs.insert(work, messages);
        self.tell(Event::TaskFinished { work, messages: count }, turn);
    }

    /// The step that others waited for is done.
    fn go_on(&mut self, log: Log, opened: u64, turn: &mut Turn<'_, R>) {
        if let Some(open) = self.logs.get_mut(&log).filter(|open| open.opened == opened) {
            open.busy = false;
            self.advance(log, turn);
        }
    }

    /// What a step worked on, where that has an id.
    fn source_of(&self, ticket: Ticket) -> Option<Source> {
        match ticket {
            Ticket::Chunk(tag) => self.machine.chunk_of(tag),
            Ticket::Task(Work::Inner(stage, partition, _)) => Some(Source::Task { stage, partition }),
            Ticket::Take { source, .. } => Some(source),
            _ => None,
        }
    }

    fn drain(&mut self, turn: &mut Turn<'_, R>) {
        self.presence = Presence::Draining;
        self.give_up_ownership(turn);
    }

    /// This process cannot do its work: others get all of it.
    fn stand_back(&mut self, error: R::Error, turn: &mut Turn<'_, R>) {
        if self.presence == Presence::StoodBack {
            return;
        }
        self.presence = Presence::StoodBack;
        self.give_up_ownership(turn);
        let delivered: Vec<Tag> = self.machine.delivered().collect();
        for tag in delivered {
            self.leaves.remove(&tag);
            turn.push(Effect::GiveBack { tag });
            self.tell(Event::ChunkReturned { tag }, turn);
        }
        turn.push(Effect::StandBack(error));
    }

    fn give_up_ownership(&mut self, turn: &mut Turn<'_, R>) {
        for wave in std::mem::take(&mut self.consumers).into_keys() {
            turn.push(Effect::StopTaking { wave });
        }
        let partitions: BTreeSet<Partition> = BTreeSet::new();
        self.tell(Event::OwnershipChanged { partitions, results: false }, turn);
    }
}

/// One call of [`JobDriver::handle`].
struct Turn<'a, R: RowEngine> {
    engine: &'a R,
    facts: &'a JobFacts,
    effects: &'a mut Vec<Effect<R>>,
}

impl<R: RowEngine> Turn<'_, R> {
    fn push(&mut self, effect: Effect<R>) {
        self.effects.push(effect);
    }

    /// Whether the parties agree. If not, the job fails.
    fn check(&mut self, checked: Result<(), crate::Error>) -> bool {
        match checked {
            Ok(()) => true,
            Err(error) => {
                self.push(Effect::Fail(JobFailure::Protocol(Failure::Contradiction(error))));
                false
            }
        }
    }
}
