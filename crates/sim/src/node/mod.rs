//! A simulated worker process: for each job the real driver in a shell of the simulator.
//!
//! ```text
//!   broker ──Read, Deliver──▶ incoming ──HandIn──▶ JobDriver ──effects──▶ broker
//!                                                   │     ▲
//!                                            queued ◀┘     └ finished
//!                                               └───Work────▶┘
//! ```
//!
//! Whatever a real worker does on another thread waits here in a queue of its own and is a step of its own.

mod effects;
mod mistakes;
mod publishing;
mod reading;
mod seat;
mod steps;
mod worker;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use tenaz_core::{Claim, Clearance, End, Finished, Input, JobDriver, JobFacts, JobSeat, Log, NotePlace, Tag};

use crate::broker::{Job, PublishId};
use crate::engine::{Finding, SimEngine};
use crate::mutation::Mutation;
use crate::process::Surroundings;
use crate::scenario::Scenario;

pub(crate) use reading::Channel;
pub(crate) use worker::{Parts, Worker};

use publishing::Sent;
use reading::{Delivery, Incoming, Reader};
use steps::QueuedStep;

/// Whether a worker takes part in the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Working,
    /// It cannot do its work at the moment.
    StoodBack,
    /// It finishes what it has begun and goes.
    Leaving,
}

/// A worker's part in one job.
pub(crate) struct Part {
    job: Job,
    scenario: Rc<Scenario>,
    driver: JobDriver<SimEngine>,
    engine: SimEngine,
    /// How often this process has begun to work on the job before.
    life: u32,
    presence: Presence,
    born: u64,
    seat: JobSeat,
    /// The seat before a takeover, for those who search too early.
    stale_seat: Option<JobSeat>,
    /// When what it owns last changed.
    acquired_ms: u64,
    /// How far the control log was followed.
    noted: NotePlace,
    has_failed: bool,
    readers: BTreeMap<Log, Reader>,
    consumers: BTreeMap<usize, u64>,
    incoming: VecDeque<Incoming>,
    deliveries: BTreeMap<Tag, Delivery>,
    last_tag: u64,
    queued: Vec<QueuedStep>,
    finished: Vec<Finished<SimEngine>>,
    unconfirmed: BTreeMap<PublishId, Sent>,
    /// The end of the job as far as it is this worker's to tell, told until it is confirmed.
    farewell: Option<End>,
}

impl Part {
    /// The part of a worker that has just heard of the job.
    pub(crate) fn new(job: Job, at: &Surroundings<'_>) -> Self {
        let (member, setup) = (at.base.member, at.job(job));
        let scenario = Rc::clone(&setup.scenario);
        Self {
            job,
            driver: JobDriver::new(member, scenario.topology.clone(), 0),
            engine: SimEngine::new(Rc::clone(&scenario), member.0, at.mutation),
            scenario,
            life: 0,
            presence: Presence::Working,
            born: at.now,
            seat: JobSeat::new(member, &setup.card, at.now_ms),
            stale_seat: None,
            acquired_ms: at.now_ms,
            noted: NotePlace::default(),
            has_failed: false,
            readers: BTreeMap::new(),
            consumers: BTreeMap::new(),
            incoming: VecDeque::new(),
            deliveries: BTreeMap::new(),
            last_tag: 0,
            queued: Vec::new(),
            finished: Vec::new(),
            unconfirmed: BTreeMap::new(),
            farewell: None,
        }
    }

    /// What it says that it owns.
    pub(crate) fn claim(&self) -> &Claim {
        self.seat.claim()
    }

    /// How much it has under way for the job.
    pub(crate) fn under_way(&self) -> usize {
        self.driver.under_way()
    }

    /// Takes its place beside the other jobs of the process.
    pub(crate) fn take_place(&mut self, at: &mut Surroundings<'_>) {
        let clearance = at.join_isolation(self.job);
        self.cleared(clearance, at);
    }

    /// What may be begun has changed.
    pub(crate) fn cleared(&mut self, clearance: Clearance, at: &mut Surroundings<'_>) {
        at.trace.note(format_args!("  job {}: {clearance:?}", self.job));
        self.handle(Input::Cleared(clearance), at);
    }

    /// The process has a new connection.
    pub(crate) fn connected(&mut self, at: &mut Surroundings<'_>) {
        self.heard(at);
        self.handle(Input::Connected, at);
        self.say_farewell(at);
    }

    /// The connection is gone. What was read before and waits to be handed in stays.
    pub(crate) fn disconnected(&mut self, at: &mut Surroundings<'_>) {
        self.readers.clear();
        self.consumers.clear();
        self.unconfirmed.clear();
        self.handle(Input::Disconnected, at);
    }

    /// Whether it has stood back.
    pub(crate) fn has_stood_back(&self) -> bool {
        self.presence == Presence::StoodBack
    }

    /// Works on the job again, as one that has never heard of it.
    pub(crate) fn rejoin(&mut self, at: &mut Surroundings<'_>) {
        if at.mutation != Mutation::SameLife {
            self.life += 1;
        }
        let member = at.base.member;
        self.driver = JobDriver::new(member, self.scenario.topology.clone(), self.life);
        self.engine = SimEngine::new(Rc::clone(&self.scenario), member.0, at.mutation);
        self.presence = Presence::Working;
        self.born = at.now;
        self.seat = JobSeat::new(member, &at.job(self.job).card, at.now_ms);
        self.noted = NotePlace::default();
        self.readers.clear();
        self.consumers.clear();
        self.give_incoming_back(at);
        if at.mutation != Mutation::StaleFinished {
            self.queued.clear();
            self.finished.clear();
        }
        self.unconfirmed.retain(|_, sent| !sent.belongs_to_task());
        self.take_place(at);
        if at.base.connection.is_some() {
            self.handle(Input::Connected, at);
        }
        self.read_notes(at);
    }

    /// Asks the worker to leave. False if it does so already.
    pub(crate) fn drain(&mut self, at: &mut Surroundings<'_>) {
        if self.presence == Presence::Leaving {
            return;
        }
        self.presence = Presence::Leaving;
        self.seat.leave();
        if at.mutation == Mutation::DrainAcks {
            let tags: Vec<Tag> = self.deliveries.keys().copied().collect();
            tags.into_iter().for_each(|tag| self.ack(tag, at));
        }
        self.handle(Input::Drain, at);
    }

    /// Whether a worker that leaves has nothing left to do.
    pub(crate) fn can_leave(&self) -> bool {
        self.presence == Presence::Leaving && self.driver.has_drained() && self.farewell.is_none()
    }

    /// Lets the driver know, and does what it says.
    fn handle(&mut self, input: Input<SimEngine>, at: &mut Surroundings<'_>) {
        let (input, hint) = self.spoil_input(input, at);
        let Some(facts) = self.facts(at) else { return };
        let effects = self.driver.handle(&self.engine, facts, input);
        for effect in effects {
            if let Some(effect) = self.spoil_effect(effect, &hint, at) {
                self.carry_out(effect, at);
            }
        }
        at.report_exposure(self.job, self.driver.exposure());
    }

    /// The facts of the job, as far as the process has read them.
    fn facts<'a>(&self, at: &'a Surroundings<'_>) -> Option<&'a JobFacts> {
        let job = match at.mutation {
            Mutation::FactsOfOther => (self.job + 1) % at.setup.jobs.len(),
            _ => self.job,
        };
        at.base.jobs.get(&job).map(|booked| &booked.control.facts)
    }

    /// Hands what the engine has seen to the checks.
    fn report_findings(&self, at: &mut Surroundings<'_>) {
        for finding in self.engine.findings() {
            match finding {
                Finding::Broken(rule) => at.checks.broken(rule),
                Finding::Answered(query, results) => {
                    at.checks.answered(self.job, query, &self.scenario, &results);
                }
                Finding::Concluded(results) => at.checks.conclude(self.job, &self.scenario, &results),
                Finding::RealEnd(end) => {
                    let Some(job) = self.scenario.real() else { continue };
                    let results = at.broker.real_results(self.job);
                    at.checks
                        .conclude_real(self.job, |log_is_whole| job.judge(&*end, log_is_whole.then_some(&results)));
                }
            }
        }
    }
}
