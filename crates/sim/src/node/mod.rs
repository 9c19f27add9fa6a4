//! A simulated worker process: it makes the machine's actions real, and knows the rows.

mod act;

use std::collections::{BTreeMap, BTreeSet};

use tenaz_core::{
    Action, Change, Claim, End, Event, Fact, JobFacts, JobId, JobWorker, Log, MemberId, Members, Registry, Source,
    StageId, Tag, Work,
};

use crate::broker::{Broker, ConnectionId, PublishId};
use crate::checks::Checks;
use crate::mutation::Mutation;
use crate::rows::Message;
use crate::scenario::Scenario;
use crate::store::LogState;
use crate::trace::Trace;

/// What a worker can see and touch besides itself.
pub(crate) struct Surroundings<'a> {
    /// The job.
    pub(crate) scenario: &'a Scenario,
    /// Its id.
    pub(crate) job: &'a JobId,
    /// The broker.
    pub(crate) broker: &'a mut Broker,
    /// Where all is written down.
    pub(crate) trace: &'a mut Trace,
    /// What must hold.
    pub(crate) checks: &'a mut Checks,
    /// The mistake it makes on purpose.
    pub(crate) mutation: Mutation,
    /// The step, which stands for the time.
    pub(crate) now: u64,
    /// How long a member may be silent.
    pub(crate) silence: u64,
}

/// What a worker hears of others.
#[derive(Debug, Clone)]
pub(crate) enum News {
    /// A sign of life, and what the member does.
    Heartbeat(MemberId, Claim),
    /// A member's connection is gone.
    Left(MemberId),
}

#[derive(Debug, Clone)]
struct Delivery {
    wave: usize,
    place: u64,
    source: Source,
    acked: bool,
}

#[derive(Debug, Clone)]
struct Run {
    work: Work,
    source: Source,
    output: Vec<(Log, Message)>,
}

/// A worker process.
pub(crate) struct Node {
    /// Who it is in this life.
    pub(crate) member: MemberId,
    /// Its connection; perhaps dead without its knowledge.
    pub(crate) connection: Option<ConnectionId>,
    /// Until when it is stopped.
    pub(crate) paused_until: u64,
    /// What it has heard and not yet read.
    pub(crate) news: Vec<News>,
    /// Waves it takes chunks of.
    pub(crate) taking: BTreeSet<usize>,
    /// When it last acted on a stall, or was born.
    pub(crate) stalled_at: u64,
    born: u64,
    machine: JobWorker,
    members: Members,
    facts: JobFacts,
    registry: Registry,
    claim: Claim,
    control_at: u64,
    registry_at: u64,
    ended: bool,
    readers: BTreeMap<Log, u64>,
    store: BTreeMap<Log, LogState>,
    complete: BTreeSet<StageId>,
    deliveries: BTreeMap<Tag, Delivery>,
    last_tag: u64,
    running: Vec<Run>,
    outputs: BTreeMap<Work, Vec<(Log, Message)>>,
    unconfirmed: BTreeMap<PublishId, (Work, u32)>,
    /// The end of the job as far as it is this worker's to tell, told until it is confirmed.
    farewell: Option<End>,
    farewell_sent: Option<PublishId>,
}

impl Node {
    /// A new process.
    pub(crate) fn new(member: MemberId, scenario: &Scenario, now: u64) -> Self {
        Self {
            member,
            connection: None,
            paused_until: 0,
            news: Vec::new(),
            taking: BTreeSet::new(),
            stalled_at: now,
            born: now,
            machine: JobWorker::new(member, scenario.topology.clone()),
            members: Members::default(),
            facts: JobFacts::default(),
            registry: Registry::default(),
            claim: Claim::default(),
            control_at: 0,
            registry_at: 0,
            ended: false,
            readers: BTreeMap::new(),
            store: BTreeMap::new(),
            complete: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            last_tag: 0,
            running: Vec::new(),
            outputs: BTreeMap::new(),
            unconfirmed: BTreeMap::new(),
            farewell: None,
            farewell_sent: None,
        }
    }

    /// Whether it knows that the job is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// What it does for the job, as it tells others.
    pub(crate) fn claim(&self) -> &Claim {
        &self.claim
    }

    /// How many tasks are running.
    pub(crate) fn running(&self) -> usize {
        self.running.len()
    }

    /// The logs that have something to read.
    pub(crate) fn readable<'a>(&'a self, broker: &'a Broker) -> impl Iterator<Item = Log> + 'a {
        self.readers.iter().filter(|(log, at)| broker.message(**log, **at).is_some()).map(|(log, _)| *log)
    }

    /// Whether the control log has something to read.
    pub(crate) fn can_read_control(&self, broker: &Broker) -> bool {
        (self.control_at as usize) < broker.control().len()
    }

    /// Whether the registry has something to read.
    pub(crate) fn can_read_registry(&self, broker: &Broker) -> bool {
        (self.registry_at as usize) < broker.registry().len()
    }

    /// A new connection.
    pub(crate) fn connect(&mut self, at: &mut Surroundings<'_>) {
        self.connection = Some(at.broker.connect());
        // The control log is read from its start again: it may have become shorter, and other facts may stand there now.
        self.facts = JobFacts::default();
        self.control_at = 0;
        self.handle(Event::Connected, at);
        if at.mutation == Mutation::IgnoreWaves {
            self.taking = (0..at.scenario.waves.len()).collect();
        }
        self.say_farewell(at);
    }

    /// The connection is gone, and the worker has found out.
    pub(crate) fn disconnected(&mut self, at: &mut Surroundings<'_>) {
        self.connection = None;
        self.readers.clear();
        self.taking.clear();
        self.deliveries.clear();
        self.unconfirmed.clear();
        self.farewell_sent = None;
        self.handle(Event::Disconnected, at);
    }

    /// A chunk was delivered.
    pub(crate) fn delivered(
        &mut self,
        wave: usize,
        (place, source, redelivered): (u64, Source, bool),
        at: &mut Surroundings<'_>,
    ) {
        self.last_tag += 1;
        let tag = Tag(self.last_tag);
        self.deliveries.insert(tag, Delivery { wave, place, source, acked: false });
        self.handle(Event::ChunkDelivered { tag, source, redelivered }, at);
    }

    /// Reads the next message of a log.
    pub(crate) fn read(&mut self, log: Log, at: &mut Surroundings<'_>) {
        let Some(&offset) = self.readers.get(&log) else { return };
        let Some(message) = at.broker.message(log, offset).cloned() else { return };
        self.readers.insert(log, offset + 1);
        let header = message.header;
        let actions = self.machine.handle(Event::MessageArrived { log, offset, header });
        at.trace.note(format_args!("  {log}@{offset} {header:?} -> {actions:?}"));
        let mut message = Some(message);
        for action in actions {
            if matches!(action, Action::Take | Action::Hold | Action::Drop) {
                match message.take() {
                    Some(message) => self.keep(log, message, &action, at),
                    None => at.checks.broken("one message was judged twice".to_owned()),
                }
            } else {
                self.act(action, at);
            }
        }
    }

    fn keep(&mut self, log: Log, message: Message, verdict: &Action, at: &mut Surroundings<'_>) {
        let state = self.store.entry(log).or_default();
        let is_duplicate = *verdict == Action::Drop;
        match (verdict, at.mutation) {
            (Action::Take | Action::Drop, Mutation::NoDedup) if is_duplicate || message.header.parts == 1 => {
                state.take(message);
            }
            (Action::Take | Action::Hold, Mutation::MixContents) => {
                state.take_mixed(message);
            }
            (Action::Hold, _) => state.hold(message),
            (Action::Take, _) => {
                let source = message.header.source;
                if !state.take(message) {
                    at.checks.broken(format!("{source} was taken from log {log} without all its parts"));
                }
            }
            _ => {}
        }
        if at.mutation == Mutation::ConcludeEarly && log == Log::Results {
            self.act(Action::Conclude, at);
        }
    }

    /// Reads the next fact of the control log.
    pub(crate) fn read_control(&mut self, at: &mut Surroundings<'_>) {
        let Some(fact) = at.broker.control().get(self.control_at as usize).cloned() else { return };
        let offset = self.control_at;
        self.control_at += 1;
        match self.facts.apply(offset, &fact) {
            Err(error) => at.checks.broken(format!("the facts contradict each other: {error}")),
            Ok(false) => {}
            Ok(true) => match fact {
                Fact::TableClosed { table, chunks, .. } => {
                    self.handle(Event::TableClosed { table, promise: chunks }, at);
                }
                Fact::Attempted { source, by } => self.handle(Event::Attempted { source, by }, at),
                Fact::Exonerated { source } => self.handle(Event::Exonerated { source }, at),
                _ => {}
            },
        }
    }

    /// Reads the next event of the registry.
    pub(crate) fn read_registry(&mut self, at: &mut Surroundings<'_>) {
        let Some(event) = at.broker.registry().get(self.registry_at as usize).cloned() else { return };
        if let Change::Ended(_) = self.registry.apply(self.registry_at, 1, event) {
            self.ended = true;
        }
        self.registry_at += 1;
    }

    /// One of the running tasks comes to its end. False if the worker died of it.
    pub(crate) fn finish(&mut self, index: usize, at: &mut Surroundings<'_>) -> bool {
        let Run { work, source, output } = self.running.remove(index);
        if at.checks.poison == Some(source) {
            at.checks.poisoned += 1;
            return false;
        }
        let messages = output.len() as u32;
        self.outputs.insert(work, output);
        self.handle(Event::TaskFinished { work, messages }, at);
        if let (Mutation::AckBeforeConfirm, Work::Chunk(tag)) = (at.mutation, work) {
            self.ack(tag, at);
        }
        true
    }

    /// A confirm of the broker.
    pub(crate) fn confirmed(&mut self, id: PublishId, at: &mut Surroundings<'_>) {
        if self.farewell_sent == Some(id) {
            self.farewell = None;
        }
        if let Some((work, message)) = self.unconfirmed.remove(&id) {
            self.handle(Event::Confirmed { work, message }, at);
        }
    }

    /// Nothing moves, or so it seems.
    pub(crate) fn stalled(&mut self, at: &mut Surroundings<'_>) {
        self.stalled_at = at.now;
        self.handle(Event::Stalled, at);
    }

    /// Hears what others do.
    pub(crate) fn hear(&mut self, news: News, at: &mut Surroundings<'_>) {
        match news {
            News::Heartbeat(member, claim) => {
                self.members.heard(member, BTreeMap::from([(at.job.clone(), claim)]), at.now);
            }
            News::Left(member) => {
                self.members.left(member, at.now);
            }
        }
        self.assign(at);
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, at: &mut Surroundings<'_>) {
        self.members.expire(at.now, at.silence);
        self.assign(at);
    }

    fn assign(&mut self, at: &mut Surroundings<'_>) {
        // Whoever has just come listens first.
        if at.now < self.born + at.silence / 3 {
            return;
        }
        let claim = self.members.assign(self.member, at.job, at.scenario.topology.partitions(), &self.claim);
        if claim != self.claim {
            at.trace.note(format_args!("  owns {claim:?}"));
            self.claim = claim.clone();
            self.handle(Event::OwnershipChanged { partitions: claim.partitions, results: claim.results }, at);
        }
    }

    fn handle(&mut self, event: Event, at: &mut Surroundings<'_>) {
        let is_new_connection = event == Event::Connected;
        let actions = self.machine.handle(event);
        if !actions.is_empty() {
            at.trace.note(format_args!("  -> {actions:?}"));
        }
        for action in actions {
            let is_again = is_new_connection && matches!(action, Action::Publish { .. });
            if !(is_again && at.mutation == Mutation::NoRepublish) {
                self.act(action, at);
            }
        }
    }
}
