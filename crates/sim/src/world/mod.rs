//! The whole cluster in one value: whoever can do something does it, one at a time, in an order that the seed decides.

mod observe;
mod perform;
mod possible;
mod strike;

use tenaz_core::{BuildId, End, JobId, MemberId, Registry};

use crate::broker::{Broker, ConnectionId, Envelope, Job, Kept};
use crate::checks::Checks;
use crate::client::Client;
use crate::gateway::{Answer, Desk, Gateway, RequestId};
use crate::mutation::Mutation;
use crate::node::Worker;
use crate::options::{Setup, WorkerKind};
use crate::parties::Parties;
use crate::process::{News, Process, Surroundings};
use crate::rng::Rng;
use crate::step::{Pace, Step};
use crate::trace::Trace;

/// In how many of a hundred steps a worker that seems to come and go does so.
const FLAP_PERCENT: u64 = 15;
/// How often a process says that it lives in the time for which it may be silent.
const BEATS_PER_SILENCE: u64 = 6;
/// After a process has gone, the next one comes within so many steps.
const MAX_ABSENCE: u64 = 400;
/// A slow broker takes one message of each connection in so many steps.
const SLOW_STEPS: u64 = 100;

/// A cluster that works on jobs.
pub(crate) struct World {
    setup: Setup,
    broker: Broker,
    clients: Vec<Client>,
    workers: Vec<Option<Worker>>,
    gateways: Vec<Option<Gateway>>,
    rng: Rng,
    pace: Pace,
    trace: Trace,
    checks: Checks,
    /// The registry as one reads it that misses nothing.
    registry: Registry,
    registry_at: u64,
    /// The first event of the registry's log that was there at the last look.
    registry_first: u64,
    now: u64,
    last_member: u64,
    broker_down_until: u64,
    alarm_until: u64,
    full_until: u64,
    stalled_until: u64,
    slow_until: u64,
    /// For each worker: until when its disk is full. For each process: until when nobody starts one there.
    full_disks: Vec<u64>,
    absent_until: Vec<u64>,
    /// Who took part in each step so far, where that is asked for.
    took_part: Option<Vec<Parties>>,
}

impl World {
    /// A cluster that has just been started.
    pub(crate) fn new(setup: Setup) -> Self {
        let mut rng = Rng::new(setup.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0xa5a5);
        let waves: Vec<usize> = setup.jobs.iter().map(|job| job.scenario.waves.len()).collect();
        let broker = Broker::new(&waves, setup.queue_chunks, setup.registry_bytes);
        let (workers, gateways) = (setup.workers.len(), setup.gateways);
        let clients = setup.jobs.iter().enumerate().map(|(job, of)| {
            let mut client = Client::new(job, of.files.clone());
            client.away_until = of.begins_at;
            client
        });
        let clients = clients.collect();
        let poison = setup.jobs.iter().map(|job| job.poison).collect();
        let checks = Checks::new(poison, setup.steps_of(setup.patience.idle_ms));
        let (pace, mut trace) = (Pace::new(workers + gateways, &mut rng), Trace::new(setup.keep_lines));
        describe(&setup, &mut trace);
        let mut absent_until = setup.joins_at.clone();
        absent_until.resize(workers + gateways, 0);
        Self {
            broker,
            clients,
            workers: (0..workers).map(|_| None).collect(),
            gateways: (0..gateways).map(|_| None).collect(),
            rng,
            pace,
            trace,
            checks,
            registry: Registry::default(),
            registry_at: 0,
            registry_first: 0,
            now: 0,
            last_member: 0,
            broker_down_until: 0,
            alarm_until: 0,
            full_until: 0,
            stalled_until: 0,
            slow_until: 0,
            full_disks: vec![0; workers],
            absent_until,
            took_part: setup.keep_parties.then(Vec::new),
            setup,
        }
    }

    /// Who took part in each step.
    pub(crate) fn take_parties(&mut self) -> Vec<Parties> {
        self.took_part.take().unwrap_or_default()
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

    /// For rules that are broken from outside.
    pub(crate) fn checks_mut(&mut self) -> &mut Checks {
        &mut self.checks
    }

    /// The trace.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace
    }

    /// How the jobs ended, those that did.
    pub(crate) fn ends(&self) -> Vec<Option<End>> {
        self.checks.ended.clone()
    }

    /// Whether every process that lives knows that all jobs have ended, and what they leave is cleaned up where that is waited
    /// for.
    pub(crate) fn is_settled(&self) -> bool {
        let knows = |base: &Process, id: &JobId| match base.registry.get(id) {
            Some(entry) => entry.end.is_some(),
            None => base.registry.is_caught_up(),
        };
        let mut jobs = self.setup.jobs.iter().enumerate();
        jobs.all(|(job, of)| {
            let id = &of.card.id;
            let workers =
                self.workers.iter().flatten().all(|worker| !worker.has_part_in(job) && knows(&worker.base, id));
            let gateways = self.gateways.iter().flatten().all(|gateway| knows(&gateway.base, id));
            let is_clean = self.broker.kept(job) == Kept::Nothing && self.registry.get(id).is_none();
            let is_trimmed = self.broker.kept(job) != Kept::Everything;
            let is_tidy = (is_clean || !self.setup.until_removed) && (is_trimmed || !self.setup.until_trimmed);
            workers && gateways && is_tidy
        })
    }

    /// What hinders the end.
    pub(crate) fn what_is_left(&self) -> &'static str {
        let is_clean = |job: Job| match self.broker.kept(job) {
            Kept::Nothing => true,
            Kept::Results => !self.setup.until_removed,
            Kept::Everything => !self.setup.until_removed && !self.setup.until_trimmed,
        };
        match !(0..self.setup.jobs.len()).all(is_clean) {
            true => "what a job has on the broker was not removed",
            false => "a process has not heard of the end, or a job is not removed,",
        }
    }

    /// Makes one step. Where nobody can do anything, time passes.
    pub(crate) fn step(&mut self) {
        self.now += 1;
        if self.now < self.slow_until && self.now.is_multiple_of(SLOW_STEPS) {
            self.accept_slowly();
        }
        if self.now.is_multiple_of((self.setup.silence / BEATS_PER_SILENCE).max(1)) {
            self.beat();
        }
        let steps = self.possible();
        let picked = self.pace.pick(&steps, &mut self.rng);
        let owner = picked.and_then(|step| self.owner(step));
        let published = self.broker.published();
        if let Some(step) = picked {
            self.trace.note(format_args!("{} {step}", self.now));
            self.perform(step);
        }
        self.note_parties(picked, owner, published);
        self.flap();
        self.observe();
    }

    /// The process over whose connection the broker accepts something.
    fn owner(&self, step: Step) -> Option<usize> {
        let Step::Accept(connection) = step else { return None };
        self.processes().find(|(_, base)| base.connection == Some(connection)).map(|(slot, _)| slot)
    }

    fn note_parties(&mut self, picked: Option<Step>, owner: Option<usize>, published: u64) {
        let workers = self.workers.len();
        // Clocks strike, and workers that seem to come and go do so, whatever else happens.
        let is_beat = self.now.is_multiple_of((self.setup.silence / BEATS_PER_SILENCE).max(1));
        let is_flapping = self.workers.iter().flatten().any(|worker| self.now < worker.base.flaps_until);
        let has_published = self.broker.published() > published;
        let Some(took_part) = &mut self.took_part else { return };
        took_part.push(match picked {
            _ if is_beat || is_flapping || self.now < self.slow_until => Parties::ALL,
            Some(step) => Parties::of_step(step, owner, has_published, workers),
            None => Parties::default(),
        });
    }

    /// Heartbeats come from clocks: however much else there is to do, processes that are awake send and hear them.
    fn beat(&mut self) {
        let is_awake = |base: &Process| self.now >= base.paused_until;
        let awake: Vec<usize> = self.processes().filter(|(_, base)| is_awake(base)).map(|(slot, _)| slot).collect();
        for &slot in &awake {
            let now = self.now;
            let is_heard = |base: &mut Process| base.connection.is_some() && now >= base.flaps_until;
            let is_served = self.process_mut(slot).is_some_and(is_heard);
            let connection = self.connection_of(slot);
            let is_in_line =
                self.setup.mutation == Mutation::BeatsInLine && self.broker.has_outgoing(connection, false);
            if is_served && self.broker.is_open(connection) && !is_in_line {
                self.heartbeat(slot);
            }
        }
        for slot in awake {
            let news = self.process_mut(slot).map(|base| std::mem::take(&mut base.news)).unwrap_or_default();
            news.into_iter().for_each(|news| self.hear(slot, news));
        }
    }

    /// Workers that seem to come and go do so now and then, and the others find out at once.
    fn flap(&mut self) {
        for slot in 0..self.workers.len() {
            let Some(worker) = self.workers[slot].as_ref().filter(|w| self.now < w.base.flaps_until) else { continue };
            let (member, sign) = (worker.base.member, worker.life_sign(&self.setup, self.setup.mutation));
            if !self.rng.chance(FLAP_PERCENT) {
                continue;
            }
            let news = if self.rng.chance(50) { News::Lost(member) } else { News::Sign(sign) };
            let is_awake = |base: &Process| self.now >= base.paused_until;
            let others: Vec<usize> =
                self.processes().filter(|&(o, base)| o != slot && is_awake(base)).map(|(o, _)| o).collect();
            for other in others {
                self.hear(other, news.clone());
            }
        }
    }

    /// All processes that live, with their slots.
    fn processes(&self) -> impl Iterator<Item = (usize, &Process)> {
        let workers = self.workers.iter().enumerate().filter_map(|(slot, w)| Some((slot, &w.as_ref()?.base)));
        let first = self.workers.len();
        let gateways =
            self.gateways.iter().enumerate().filter_map(move |(g, of)| Some((first + g, &of.as_ref()?.base)));
        workers.chain(gateways)
    }

    fn process_mut(&mut self, slot: usize) -> Option<&mut Process> {
        match slot.checked_sub(self.workers.len()) {
            None => self.workers[slot].as_mut().map(|worker| &mut worker.base),
            Some(gateway) => self.gateways.get_mut(gateway)?.as_mut().map(|gateway| &mut gateway.base),
        }
    }

    fn connection_of(&mut self, slot: usize) -> ConnectionId {
        self.process_mut(slot).and_then(|base| base.connection).unwrap_or_default()
    }

    /// Lets a worker act.
    fn with_worker<T: Default>(
        &mut self,
        slot: usize,
        act: impl FnOnce(&mut crate::node::Parts, &mut Surroundings<'_>) -> T,
    ) -> T {
        let Some(Worker { base, parts }) = &mut self.workers[slot] else { return T::default() };
        let mut at = Surroundings {
            base,
            setup: &self.setup,
            broker: &mut self.broker,
            trace: &mut self.trace,
            checks: &mut self.checks,
            mutation: self.setup.mutation,
            now: self.now,
            now_ms: self.setup.ms_of(self.now),
            disk_is_full: self.now < self.full_disks[slot],
            blocked_until: self.alarm_until,
            is_stalled: self.now < self.stalled_until,
        };
        act(parts, &mut at)
    }

    /// Lets a gateway act, and hands its answers to the clients.
    fn with_gateway<T: Default>(
        &mut self,
        gateway: usize,
        act: impl FnOnce(&mut Desk, &mut Surroundings<'_>) -> T,
    ) -> T {
        let Some(Gateway { base, desk }) = &mut self.gateways[gateway] else { return T::default() };
        let mut at = Surroundings {
            base,
            setup: &self.setup,
            broker: &mut self.broker,
            trace: &mut self.trace,
            checks: &mut self.checks,
            mutation: self.setup.mutation,
            now: self.now,
            now_ms: self.setup.ms_of(self.now),
            disk_is_full: false,
            blocked_until: self.alarm_until,
            is_stalled: self.now < self.stalled_until,
        };
        let done = act(desk, &mut at);
        let answers: Vec<(RequestId, Answer)> = std::mem::take(&mut desk.answers);
        answers.into_iter().for_each(|(id, answer)| self.clients[id.0].answered(id, answer));
        done
    }

    fn hear(&mut self, slot: usize, news: News) {
        match slot.checked_sub(self.workers.len()) {
            None => self.with_worker(slot, |parts, at| {
                at.hear(news);
                parts.reassign(at);
            }),
            Some(gateway) => self.with_gateway(gateway, |_, at| at.hear(news)),
        }
    }

    fn accepted(&mut self, envelope: Option<Envelope>) {
        if let Some(envelope) = envelope {
            self.trace.note(format_args!("  accepted {envelope}"));
            self.checks.accepted(&envelope, &self.broker);
        }
    }

    fn start(&mut self, slot: usize) {
        self.last_member += 1;
        let member = MemberId(self.last_member);
        self.trace.note(format_args!("  member {member}"));
        let kind = self.setup.workers.get(slot).copied();
        let build = BuildId::new(if kind == Some(WorkerKind::OtherBuild) { "theirs" } else { "ours" });
        let base = Process::new(member, build, &self.setup);
        match kind {
            Some(kind) => self.workers[slot] = Some(Worker::new(base, kind)),
            None => {
                let gateway = slot - self.workers.len();
                self.gateways[gateway] = Some(Gateway::new(base, self.setup.file_places));
            }
        }
    }

    /// News travels through the broker: a process that is not connected misses it.
    fn tell_others(&mut self, slot: usize, news: &News) {
        let is_served = |base: &Process| base.is_served(&self.broker);
        let others: Vec<usize> =
            self.processes().filter(|&(o, base)| o != slot && is_served(base)).map(|(o, _)| o).collect();
        for other in others {
            if let Some(base) = self.process_mut(other) {
                base.tell(news.clone());
            }
        }
    }

    /// A process is gone: some hear of that at once, others have to wait for its silence.
    fn bury(&mut self, slot: usize, base: &Process) {
        self.broker.cut(base.connection.unwrap_or_default(), &mut self.rng);
        if self.rng.chance(60) {
            self.tell_others(slot, &News::left(base.member));
        }
    }

    fn kill_worker(&mut self, slot: usize) -> bool {
        let Some(worker) = self.workers[slot].take() else { return false };
        self.bury(slot, &worker.base);
        true
    }

    fn kill_gateway(&mut self, gateway: usize) -> bool {
        let Some(killed) = self.gateways[gateway].take() else { return false };
        let slot = self.workers.len() + gateway;
        self.bury(slot, &killed.base);
        self.absent_until[slot] = self.now + self.rng.below(MAX_ABSENCE / 4);
        for id in killed.into_requests() {
            self.clients[id.0].answered(id, Answer::Lost);
        }
        true
    }
}

fn describe(setup: &Setup, trace: &mut Trace) {
    for (job, of) in setup.jobs.iter().enumerate() {
        let scenario = &of.scenario;
        trace.note(format_args!("job {job}: {:?}, {} partitions", scenario.shape, scenario.topology.partitions()));
        for (table, chunks) in scenario.tables.iter().enumerate() {
            trace.note(format_args!("table {table}: {chunks:?}"));
        }
    }
    let (workers, gateways, prefetch) = (&setup.workers, setup.gateways, setup.prefetch);
    trace
        .note(format_args!("workers {workers:?}, {gateways} gateways, prefetch {prefetch}, silence {}", setup.silence));
    trace.note(format_args!("faults: {:?}", setup.plan));
}
