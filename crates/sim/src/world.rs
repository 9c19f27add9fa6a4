//! The whole cluster in one value: whoever can do something does it, one at a time, in an order that the seed decides.

use tenaz_core::{Change, JobCard, JobId, MemberId, Registry, RegistryEvent};

use crate::broker::{Broker, ConnectionId};
use crate::checks::Checks;
use crate::client::Client;
use crate::faults::Fault;
use crate::node::{News, Node, Surroundings};
use crate::options::Setup;
use crate::rng::Rng;
use crate::step::{Pace, Step};
use crate::trace::Trace;

/// A quiet time of so many silences is long enough to be called a stall.
const STALL_SILENCES: u64 = 4;
/// How many heartbeats a worker keeps before it drops the oldest.
const MAX_NEWS: usize = 8;

/// A cluster that works on one job.
pub(crate) struct World {
    setup: Setup,
    job: JobId,
    broker: Broker,
    client: Client,
    slots: Vec<Option<Node>>,
    rng: Rng,
    pace: Pace,
    trace: Trace,
    checks: Checks,
    registry: Registry,
    registry_at: usize,
    now: u64,
    last_member: u64,
    broker_down_until: u64,
    moved_at: u64,
}

impl World {
    /// A cluster that has just been started and knows of the job.
    pub(crate) fn new(setup: Setup) -> Self {
        let mut rng = Rng::new(setup.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xa5a5);
        let job = JobId::from_bytes(rng.next_u64().to_be_bytes());
        let mut broker = Broker::new(setup.scenario.waves.len());
        broker.seed_registry(RegistryEvent::Created { card: card(&job, &setup) });
        let slots = (0..setup.workers).map(|_| None).collect();
        let client = Client::new(setup.twice_percent);
        let checks = Checks { poison: setup.poison, ..Checks::default() };
        let (pace, mut trace) = (Pace::new(setup.workers, &mut rng), Trace::new(setup.keep_lines));
        describe(&setup, &mut trace);
        Self {
            job,
            broker,
            client,
            slots,
            rng,
            pace,
            trace,
            checks,
            registry: Registry::default(),
            registry_at: 0,
            now: 0,
            last_member: 0,
            broker_down_until: 0,
            moved_at: 0,
            setup,
        }
    }

    /// The number of steps so far.
    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    /// What was found.
    pub(crate) fn checks(&self) -> &Checks {
        &self.checks
    }

    /// What is known of the chunks of the queues, for the limit on deaths.
    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Who concludes that a rule is broken from outside.
    pub(crate) fn checks_mut(&mut self) -> &mut Checks {
        &mut self.checks
    }

    /// The trace.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }

    /// How the job ended, if it did.
    pub(crate) fn end(&self) -> Option<&tenaz_core::End> {
        self.registry.get(&self.job).and_then(|entry| entry.end.as_ref())
    }

    /// Makes one step. Where nobody can do anything, time passes.
    pub(crate) fn step(&mut self) {
        self.now += 1;
        let steps = self.possible();
        let is_quiet = steps.iter().all(|step| step.is_chore());
        if !is_quiet {
            self.moved_at = self.now;
        }
        let Some(step) = self.pace.pick(&steps, &mut self.rng) else { return };
        self.trace.note(format_args!("{} {step}", self.now));
        self.perform(step);
        self.read_registry();
    }

    fn read_registry(&mut self) {
        while let Some(event) = self.broker.registry().get(self.registry_at) {
            if let Change::Ended(_) = self.registry.apply(self.registry_at as u64, 1, event.clone()) {
                self.trace.note(format_args!("the job has ended: {:?}", event));
            }
            self.registry_at += 1;
        }
    }

    fn possible(&self) -> Vec<Step> {
        let mut steps = Vec::with_capacity(32);
        let is_up = self.now >= self.broker_down_until;
        steps.extend(self.broker.connections().into_iter().filter(|&c| self.broker.has_outgoing(c)).map(Step::Accept));
        if self.broker.has_ghosts() && is_up {
            steps.push(Step::AcceptGhost);
        }
        self.client_steps(is_up, &mut steps);
        for (slot, node) in self.slots.iter().enumerate() {
            match node {
                None => steps.push(Step::Start(slot)),
                Some(node) if node.has_ended() || self.now < node.paused_until => {}
                Some(node) => self.node_steps(slot, node, is_up, &mut steps),
            }
        }
        steps
    }

    fn client_steps(&self, is_up: bool, steps: &mut Vec<Step>) {
        let client = &self.client;
        match client.connection {
            None if is_up => steps.push(Step::ClientConnect),
            None => {}
            Some(connection) if !self.broker.is_open(connection) => steps.push(Step::ClientNotice),
            Some(connection) => {
                if client.wants_to_send(&self.setup.scenario) {
                    steps.push(Step::ClientSend);
                }
                if client.to_close(&self.setup.scenario).is_some() {
                    steps.push(Step::ClientClose);
                }
                if self.broker.has_confirms(connection) {
                    steps.push(Step::ClientConfirm);
                }
                if client.can_read(&self.broker) {
                    steps.push(Step::ClientRead);
                }
            }
        }
    }

    fn node_steps(&self, slot: usize, node: &Node, is_up: bool, steps: &mut Vec<Step>) {
        steps.extend((node.running() > 0).then_some(Step::Finish(slot)));
        steps.extend((!node.news.is_empty()).then_some(Step::Hear(slot)));
        steps.push(Step::Tick(slot));
        let Some(connection) = node.connection else {
            steps.extend(is_up.then_some(Step::Connect(slot)));
            return;
        };
        if !self.broker.is_open(connection) {
            return steps.push(Step::Notice(slot));
        }
        steps.push(Step::Heartbeat(slot));
        let can_take = |wave: &&usize| self.broker.can_deliver(connection, **wave, self.setup.prefetch);
        steps.extend(node.taking.iter().filter(can_take).map(|&wave| Step::Deliver(slot, wave)));
        steps.extend(node.readable(&self.broker).map(|log| Step::Read(slot, log)));
        steps.extend(node.can_read_control(&self.broker).then_some(Step::ReadControl(slot)));
        steps.extend(node.can_read_registry(&self.broker).then_some(Step::ReadRegistry(slot)));
        steps.extend(self.broker.has_confirms(connection).then_some(Step::Confirm(slot)));
        let long = STALL_SILENCES * self.setup.silence;
        if self.now > self.moved_at.max(node.stalled_at) + long {
            steps.push(Step::Stall(slot));
        }
    }

    fn perform(&mut self, step: Step) {
        match step {
            Step::Accept(connection) => {
                if let Some(envelope) = self.broker.accept(connection, &mut self.rng) {
                    self.trace.note(format_args!("  accepted {envelope:?}"));
                }
            }
            Step::AcceptGhost => {
                if let Some(envelope) = self.broker.accept_ghost(&mut self.rng) {
                    self.trace.note(format_args!("  accepted late {envelope:?}"));
                }
            }
            Step::ClientConnect => self.client.connect(&mut self.broker),
            Step::ClientNotice => self.client.disconnected(),
            Step::ClientSend => {
                self.client.send(&self.setup.scenario, &mut self.broker, &mut self.rng, &mut self.trace);
            }
            Step::ClientClose => {
                if let Some(table) = self.client.to_close(&self.setup.scenario) {
                    self.client.close(table, &self.setup.scenario, &mut self.broker, &mut self.trace);
                }
            }
            Step::ClientConfirm => {
                let connection = self.client.connection.unwrap_or_default();
                if let Some(id) = self.broker.take_confirm(connection, &mut self.rng) {
                    self.client.confirmed(id, &mut self.broker, &mut self.trace);
                }
            }
            Step::ClientRead => {
                if let Err(error) = self.client.read(&self.broker) {
                    self.checks.broken(format!("the facts contradict each other: {error}"));
                }
            }
            Step::Start(slot) => self.start(slot),
            Step::Heartbeat(slot) => self.heartbeat(slot),
            Step::Deliver(slot, wave) => {
                let connection = self.connection_of(slot);
                if let Some(delivery) = self.broker.deliver(connection, wave) {
                    self.trace.note(format_args!("  {delivery:?}"));
                    self.with_node(slot, |node, at| node.delivered(wave, delivery, at));
                }
            }
            Step::Confirm(slot) => {
                let connection = self.connection_of(slot);
                if let Some(id) = self.broker.take_confirm(connection, &mut self.rng) {
                    self.with_node(slot, |node, at| node.confirmed(id, at));
                }
            }
            Step::Finish(slot) => self.finish(slot),
            Step::Hear(slot) => {
                let pick = self.rng.next_u64() as usize;
                self.with_node(slot, |node, at| {
                    let news = node.news.remove(pick % node.news.len());
                    node.hear(news, at);
                });
            }
            Step::Connect(slot) => self.with_node(slot, Node::connect),
            Step::Notice(slot) => self.with_node(slot, Node::disconnected),
            Step::Read(slot, log) => self.with_node(slot, |node, at| node.read(log, at)),
            Step::ReadControl(slot) => self.with_node(slot, Node::read_control),
            Step::ReadRegistry(slot) => self.with_node(slot, Node::read_registry),
            Step::Tick(slot) => self.with_node(slot, Node::tick),
            Step::Stall(slot) => self.with_node(slot, Node::stalled),
        }
    }

    fn with_node(&mut self, slot: usize, act: impl FnOnce(&mut Node, &mut Surroundings<'_>)) {
        let Some(node) = self.slots.get_mut(slot).and_then(Option::as_mut) else { return };
        let mut at = Surroundings {
            scenario: &self.setup.scenario,
            job: &self.job,
            broker: &mut self.broker,
            trace: &mut self.trace,
            checks: &mut self.checks,
            mutation: self.setup.mutation,
            now: self.now,
            silence: self.setup.silence,
        };
        act(node, &mut at);
    }

    fn connection_of(&self, slot: usize) -> ConnectionId {
        self.slots[slot].as_ref().and_then(|node| node.connection).unwrap_or_default()
    }

    fn start(&mut self, slot: usize) {
        self.last_member += 1;
        let member = MemberId(self.last_member);
        self.trace.note(format_args!("  member {member}"));
        self.slots[slot] = Some(Node::new(member, &self.setup.scenario, self.now));
    }

    fn heartbeat(&mut self, slot: usize) {
        let Some(node) = &self.slots[slot] else { return };
        self.tell_others(slot, News::Heartbeat(node.member, node.claim().clone()));
    }

    /// News travels through the broker: whoever is not connected misses it.
    fn tell_others(&mut self, slot: usize, news: News) {
        for (other, node) in self.slots.iter_mut().enumerate() {
            let Some(node) = node.as_mut().filter(|_| other != slot) else { continue };
            if node.connection.is_some_and(|connection| self.broker.is_open(connection)) {
                if node.news.len() == MAX_NEWS {
                    node.news.remove(0);
                }
                node.news.push(news.clone());
            }
        }
    }

    fn finish(&mut self, slot: usize) {
        let pick = self.rng.next_u64() as usize;
        let mut survived = true;
        self.with_node(slot, |node, at| survived = node.finish(pick % node.running(), at));
        if !survived {
            self.trace.note(format_args!("  worker {slot} dies of it"));
            self.kill(slot);
        }
    }

    fn kill(&mut self, slot: usize) -> bool {
        let Some(node) = self.slots[slot].take() else { return false };
        if let Some(connection) = node.connection {
            self.broker.cut(connection, &mut self.rng);
        }
        // Its queue is gone: some hear of that at once, others have to wait for its silence.
        if self.rng.chance(60) {
            self.tell_others(slot, News::Left(node.member));
        }
        true
    }

    /// Lets a fault happen.
    pub(crate) fn strike(&mut self, fault: Fault) {
        let hit = match fault {
            Fault::KillWorker(slot) => self.kill(slot),
            Fault::CutWorker(slot) => self.cut(self.connection_of(slot)),
            Fault::RestartBroker => self.restart_broker(),
            Fault::PowerCut => {
                let lost = self.broker.lose_tails(&mut self.rng);
                self.trace.note(format_args!("  {lost} messages are lost"));
                self.restart_broker()
            }
            Fault::Pause(slot, steps) => match &mut self.slots[slot] {
                Some(node) => {
                    node.paused_until = self.now + steps;
                    let connection = node.connection.unwrap_or_default();
                    // The broker gives a silent consumer up some time; this one may wake up before that.
                    if self.rng.chance(50) {
                        self.cut(connection);
                    }
                    true
                }
                None => false,
            },
            Fault::Suspect(slot) => match &self.slots[slot] {
                Some(node) => {
                    let news = News::Left(node.member);
                    self.tell_others(slot, news);
                    true
                }
                None => false,
            },
            Fault::Stall(slot) => {
                let is_free = self.slots[slot].as_ref().is_some_and(|node| self.now >= node.paused_until);
                if is_free {
                    self.with_node(slot, Node::stalled);
                }
                is_free
            }
            Fault::KillClient => {
                let was_connected = self.cut(self.client.connection.unwrap_or_default());
                self.client.disconnected();
                was_connected
            }
            Fault::CutClient => self.cut(self.client.connection.unwrap_or_default()),
        };
        self.trace.note(format_args!("{} FAULT {fault:?}{}", self.now, if hit { "" } else { " (hits nobody)" }));
        if hit {
            self.checks.fired.push(fault);
        }
    }

    fn cut(&mut self, connection: ConnectionId) -> bool {
        let is_open = self.broker.is_open(connection);
        self.broker.cut(connection, &mut self.rng);
        is_open
    }

    fn restart_broker(&mut self) -> bool {
        for connection in self.broker.connections() {
            self.broker.cut(connection, &mut self.rng);
        }
        self.broker_down_until = self.now + self.rng.below(30);
        true
    }
}

fn describe(setup: &Setup, trace: &mut Trace) {
    let scenario = &setup.scenario;
    trace.note(format_args!("{:?}, {} partitions", scenario.shape, scenario.topology.partitions()));
    for (table, chunks) in scenario.tables.iter().enumerate() {
        trace.note(format_args!("table {table}: {chunks:?}"));
    }
    trace.note(format_args!("{} workers, prefetch {}, silence {}", setup.workers, setup.prefetch, setup.silence));
    trace.note(format_args!("faults: {:?}", setup.plan));
}

fn card(job: &JobId, setup: &Setup) -> JobCard {
    JobCard {
        id: job.clone(),
        tenant: "public".to_owned(),
        workload: "simulated".to_owned(),
        partitions: setup.scenario.topology.partitions(),
        waves: setup.scenario.waves.len() as u16,
        tables: Default::default(),
        spec_digest: String::new(),
        created_ms: 0,
    }
}
