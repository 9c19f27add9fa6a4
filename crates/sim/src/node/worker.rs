//! The worker process around its parts in jobs.

use std::collections::BTreeMap;

use tenaz_core::{BoundedText, End, FaultClass, JobId, LifeSign, Log, RegistryEvent, UnservedAction, UnservedJob};

use super::{Channel, Part, Presence};
use crate::broker::{Broker, ControlEntry, Envelope, Job, PublishId};
use crate::mutation::Mutation;
use crate::options::{Setup, WorkerKind};
use crate::process::{Process, SignParts, Surroundings};

/// A worker process.
pub(crate) struct Worker {
    /// What every process has.
    pub(crate) base: Process,
    /// Its parts in jobs.
    pub(crate) parts: Parts,
}

/// The parts of a worker in jobs, and what is wrong with its channels.
pub(crate) struct Parts {
    /// For each job that is open.
    pub(crate) jobs: BTreeMap<Job, Part>,
    kind: WorkerKind,
    /// A channel that is gone although its connection is not.
    pub(crate) lost_channel: Option<Channel>,
    /// Whether the broker has forgotten that it takes chunks.
    pub(crate) is_forgotten: bool,
    /// Until when its threads are busy with something long.
    pub(crate) busy_until: u64,
    is_leaving: bool,
    unserved: BTreeMap<Job, Doubt>,
}

/// A job that this worker cannot serve, and perhaps nobody can.
#[derive(Default)]
struct Doubt {
    watch: UnservedJob,
    /// The broker shall be asked, until it has answered.
    asks: bool,
    asked: Option<PublishId>,
}

impl Worker {
    /// A new process.
    pub(crate) fn new(base: Process, kind: WorkerKind) -> Self {
        let parts = Parts {
            jobs: BTreeMap::new(),
            kind,
            lost_channel: None,
            is_forgotten: false,
            busy_until: 0,
            is_leaving: false,
            unserved: BTreeMap::new(),
        };
        Self { base, parts }
    }

    /// What it tells others of itself.
    pub(crate) fn life_sign(&self, setup: &Setup, mutation: Mutation) -> LifeSign {
        let mut said = SignParts::default();
        for (job, part) in &self.parts.jobs {
            let id = &setup.jobs[*job].card.id;
            said.under_way.insert(id.clone(), part.under_way() as u64);
            if part.presence == Presence::Working || mutation == Mutation::ClaimAfterStandingBack {
                said.claims.insert(id.clone(), part.claim().clone());
            } else {
                said.refused.insert(id.clone());
            }
        }
        if self.parts.kind == WorkerKind::OtherPlan && mutation != Mutation::OtherPlanServes {
            said.refused.extend(setup.jobs.iter().map(|job| job.card.id.clone()));
        }
        Surroundings::life_sign(&self.base, true, said)
    }

    /// Whether it works on a job, connected and awake.
    pub(crate) fn serves(&self, job: Job, now: u64, broker: &Broker) -> bool {
        let is_working = self.parts.jobs.get(&job).is_some_and(|part| part.presence == Presence::Working);
        is_working && now >= self.base.paused_until && self.base.is_served(broker)
    }

    /// Whether it is about to find that its session is of no use.
    pub(crate) fn has_lost_session(&self, broker: &Broker, mutation: Mutation) -> bool {
        let misses_channel = self.parts.lost_channel.is_some() && mutation != Mutation::LostChannel;
        !self.base.is_served(broker) || misses_channel || self.base.gives_session_up
    }

    /// Whether it was asked to leave and has nothing left to do.
    pub(crate) fn can_leave(&self) -> bool {
        self.parts.is_leaving && self.parts.jobs.values().all(Part::can_leave)
    }

    /// Whether it still works on a job.
    pub(crate) fn has_part_in(&self, job: Job) -> bool {
        self.parts.jobs.contains_key(&job)
    }

    /// The channels that may be lost.
    pub(crate) fn channels(&self) -> Vec<Channel> {
        let of_parts = self.parts.jobs.iter().flat_map(|(&job, part)| part.channels(job));
        of_parts.chain(std::iter::once(Channel::Publisher)).collect()
    }
}

impl Parts {
    /// The waves of which it takes chunks.
    pub(crate) fn takes(&self) -> impl Iterator<Item = (Job, usize)> + '_ {
        let all = self.jobs.iter().flat_map(|(&job, part)| part.takes().map(move |wave| (job, wave)));
        all.filter(|&(job, wave)| !self.is_forgotten && self.lost_channel != Some(Channel::Consumer(job, wave)))
    }

    /// The logs that have something to read.
    pub(crate) fn readable<'a>(&'a self, broker: &'a Broker) -> impl Iterator<Item = (Job, Log)> + 'a {
        let all = self.jobs.iter().flat_map(|(&job, part)| part.readable(broker).map(move |log| (job, log)));
        all.filter(|&(job, log)| self.lost_channel != Some(Channel::Reader(job, log)))
    }

    /// How many readers and subscriptions it has.
    pub(crate) fn connect(&mut self, at: &mut Surroundings<'_>) {
        at.connect();
        self.jobs.values_mut().for_each(|part| part.connected(at));
    }

    pub(crate) fn disconnected(&mut self, at: &mut Surroundings<'_>) {
        at.disconnected();
        self.lost_channel = None;
        self.is_forgotten = false;
        // Nobody answers what went over a lost connection.
        self.unserved.values_mut().for_each(|doubt| doubt.asked = None);
        self.jobs.values_mut().for_each(|part| part.disconnected(at));
    }

    /// The broker has answered.
    pub(crate) fn confirmed(&mut self, id: PublishId, is_accepted: bool, at: &mut Surroundings<'_>) {
        if at.settled(id, is_accepted) {
            return;
        }
        if let Some(doubt) = self.unserved.values_mut().find(|doubt| doubt.asked == Some(id)) {
            doubt.asked = None;
            if is_accepted {
                doubt.asks = false;
                doubt.watch.answered(at.now_ms);
            }
            return;
        }
        if let Some(part) = self.jobs.values_mut().find(|part| part.has_sent(id)) {
            part.confirmed(id, is_accepted, at);
        }
    }

    /// Reads the registry, and begins or ends parts in jobs.
    pub(crate) fn read_registry(&mut self, at: &mut Surroundings<'_>) {
        at.read_registry();
        self.begin_and_end_parts(at);
    }

    fn begin_and_end_parts(&mut self, at: &mut Surroundings<'_>) {
        for job in 0..at.setup.jobs.len() {
            let card = &at.setup.jobs[job].card;
            let is_ready = at.base.is_ready(job, &card.id);
            let can_serve = self.kind == WorkerKind::Right
                || (self.kind == WorkerKind::OtherPlan && at.mutation == Mutation::OtherPlanServes);
            if is_ready && can_serve && !self.is_leaving && !self.jobs.contains_key(&job) {
                let mut part = Part::new(job, at);
                part.take_place(at);
                if at.base.connection.is_some() {
                    part.connected(at);
                }
                part.read_notes(at);
                self.jobs.insert(job, part);
            }
            // A job that has ended, or is gone.
            let is_over = at.base.end_of(&card.id).is_some() || at.base.registry.get(&card.id).is_none();
            if is_over && self.jobs.contains_key(&job) {
                match at.mutation {
                    Mutation::OneEndsAll => {
                        let all = std::mem::take(&mut self.jobs);
                        all.into_keys().for_each(|job| leave_job(job, at));
                    }
                    _ => {
                        self.jobs.remove(&job);
                        leave_job(job, at);
                    }
                }
            }
        }
    }

    /// A part hears what it may begin.
    pub(crate) fn hear_clearance(&mut self, at: &mut Surroundings<'_>) {
        let Some((job, clearance)) = at.next_cleared() else { return };
        if let Some(part) = self.jobs.get_mut(&job) {
            part.cleared(clearance, at);
        }
    }

    /// Reads a control log.
    pub(crate) fn read_control(&mut self, job: Job, at: &mut Surroundings<'_>) {
        at.read_control(job);
        if !self.jobs.contains_key(&job) {
            self.begin_and_end_parts(at);
        }
        if let Some(part) = self.jobs.get_mut(&job) {
            part.read_notes(at);
        }
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, at: &mut Surroundings<'_>) {
        at.look_around();
        self.jobs.values_mut().for_each(|part| part.tick(at));
        let under_way = |(job, part): (&Job, &Part)| (at.job(*job).card.id.clone(), part.under_way() as u64);
        let under_way: BTreeMap<JobId, u64> = self.jobs.iter().map(under_way).collect();
        at.tend_jobs(&under_way);
        (0..at.setup.jobs.len()).for_each(|job| self.look_on(job, at));
    }

    /// Something was heard of others.
    pub(crate) fn reassign(&mut self, at: &mut Surroundings<'_>) {
        self.jobs.values_mut().for_each(|part| part.assign(at));
    }

    /// A job that is open and that this worker cannot serve: if nobody can, somebody must say so.
    fn look_on(&mut self, job: Job, at: &mut Surroundings<'_>) {
        let card = &at.setup.jobs[job].card;
        let has_stood_back = self.jobs.get(&job).is_some_and(Part::has_stood_back);
        let cannot = has_stood_back || self.kind != WorkerKind::Right;
        if !cannot || !at.base.is_open(&card.id) || self.is_leaving || at.mutation == Mutation::NoUnserved {
            self.unserved.remove(&job);
            return;
        }
        let doubt = self.unserved.entry(job).or_default();
        let able = at.base.roster.workers().able(&card.id, &card.build);
        match doubt.watch.look(able, at.now_ms) {
            Some(UnservedAction::GiveUp) => {
                at.checks.unserved(job, at.now, at.setup.silence);
                let reason = BoundedText::from("no worker can serve the job".to_owned());
                let end = End::Failed { code: "unserved".to_owned(), reason, class: FaultClass::Process };
                at.write_registry(RegistryEvent::Ended { id: card.id.clone(), end });
                self.unserved.remove(&job);
                return;
            }
            Some(UnservedAction::AskBroker) => doubt.asks = true,
            None => {}
        }
        doubt.asks &= able == 0;
        if let Some(connection) = at.base.connection.filter(|_| doubt.asks && doubt.asked.is_none()) {
            let mark = Envelope::Control(job, ControlEntry::Mark(0));
            doubt.asked = Some(at.broker.publish(connection, mark, at.now));
        }
    }

    /// Asks the worker to leave. False if it does so already.
    pub(crate) fn drain(&mut self, at: &mut Surroundings<'_>) -> bool {
        let is_new = !self.is_leaving;
        self.is_leaving = true;
        self.jobs.values_mut().for_each(|part| part.drain(at));
        is_new
    }
}

fn leave_job(job: Job, at: &mut Surroundings<'_>) {
    at.trace.note(format_args!("  job {job} is over here"));
    at.leave_isolation(job);
    if let Some(connection) = at.base.connection {
        at.broker.leave_job(connection, job);
    }
}
