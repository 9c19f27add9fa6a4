//! One run from its seed to its verdict.

use tenaz_core::limits::{MAX_CHUNK_ATTEMPTS, MAX_TASK_ATTEMPTS, UNSERVED_MS};
use tenaz_core::{End, Error, Source};

use crate::broker::MAX_TAIL;
use crate::faults::{Fault, Plan};
use crate::options::{JobSetup, Options, Setup, WorkerKind};
use crate::parties::Parties;
use crate::scenario::Shape;
use crate::world::World;

/// So many steps after the last fault the job must have come to its end.
pub const MAX_QUIET_STEPS: u64 = 60_000;
/// After the end of the job the workers go on for so many steps at least, because not all of them know.
const AFTERMATH: u64 = 60;
/// So many steps after the end of the job, and after the last fault, all workers must have heard of it.
const MAX_AFTERMATH: u64 = 8_000;

/// What became of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Its kind of job.
    pub shape: Shape,
    /// What broke, if anything did.
    pub violation: Option<String>,
    /// How the first job ended.
    pub end: Option<End>,
    /// How all jobs ended.
    pub ends: Vec<Option<End>>,
    /// Jobs that may have ended in another way than by being done, and why.
    pub allowed: Vec<Allowed>,
    /// How many steps it took.
    pub steps: u64,
    /// How often the job was concluded.
    pub conclusions: u64,
    /// The faults that hit something.
    pub fired: Vec<Fault>,
    /// The faults that were planned.
    pub plan: Plan,
    /// How often a worker stood back.
    pub stood_back: u64,
    /// How often a worker gave a connection up over which nothing was delivered.
    pub given_up: u64,
    /// How often a job was written into the registry again.
    pub mentions: u64,
    /// Whether the run went on until everything was removed.
    pub until_removed: bool,
    /// The digest of the trace.
    pub digest: u64,
    /// The trace, where it was asked for.
    pub lines: Vec<String>,
    /// Whether it was ended by a fault that struck nobody.
    pub missed: bool,
    /// Who took part in each step, where that was asked for.
    pub(crate) took_part: Vec<Parties>,
}

/// What else than answers a job may come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// What kills its workers.
    pub poison: Option<Source>,
    /// A chunk that was sent in two versions.
    pub changed: Option<Source>,
    /// Somebody wanted to cancel it.
    pub cancelled: bool,
    /// Its client may be away for so long that it expires.
    pub expires: bool,
    /// There may be no worker that can serve it.
    pub unserved: bool,
}

impl Allowed {
    fn permits(&self, end: &End) -> bool {
        match end {
            End::Done(_) => self.poison.is_none(),
            End::Cancelled => self.cancelled,
            End::Expired => self.expires,
            End::Failed { code, .. } => match code.as_str() {
                "quarantined" => self.poison.is_some(),
                "contradiction" => self.changed.is_some(),
                "unserved" => self.unserved,
                _ => false,
            },
        }
    }
}

fn allowed(setup: &Setup) -> Vec<Allowed> {
    let is_struck = |is_it: &dyn Fn(&Fault) -> bool| setup.plan.iter().any(|(_, fault)| is_it(fault));
    let disks = setup.plan.iter().filter(|(_, fault)| matches!(fault, Fault::FullDisk(..)));
    let unable_steps: u64 = disks.map(|(_, fault)| fault.duration()).sum();
    let is_mixed = setup.workers.iter().any(|kind| *kind != WorkerKind::Right);
    let of = |(number, job): (usize, &JobSetup)| Allowed {
        poison: job.poison,
        changed: job.scenario.changed.as_ref().map(|changed| changed.source),
        cancelled: is_struck(&|fault| *fault == Fault::Cancel(number)),
        expires: is_struck(&|fault| matches!(fault, Fault::LeaveClient(of, _) if *of == number)),
        unserved: is_mixed || unable_steps >= setup.steps_of(UNSERVED_MS) / 2,
    };
    setup.jobs.iter().enumerate().map(of).collect()
}

/// Runs a cluster until its jobs have ended, or a rule is broken.
pub fn run(options: &Options) -> Result<Report, Error> {
    let setup = Setup::new(options)?;
    let (seed, shape, until_removed) = (setup.seed, setup.jobs[0].scenario.shape, setup.until_removed);
    let (allowed, plan) = (allowed(&setup), setup.plan.clone());
    let mut faults = plan.iter().copied().peekable();
    let last_fault = last_fault(&setup);
    let mut world = World::new(setup);
    let (mut ended_at, mut missed) = (None, false);
    'steps: while world.checks().violation.is_none() {
        while let Some((_, fault)) = faults.next_if(|(step, _)| *step <= world.now()) {
            missed |= !world.strike(fault) && options.until_miss;
            if missed {
                break 'steps;
            }
        }
        world.step();
        if world.checks().ended.iter().all(Option::is_some) {
            let ended_at = *ended_at.get_or_insert(world.now());
            if world.now() >= ended_at + AFTERMATH && world.is_settled() {
                break;
            }
            if world.now() > ended_at.max(last_fault) + MAX_AFTERMATH {
                let left = world.what_is_left();
                world.checks_mut().broken(format!("{left} {MAX_AFTERMATH} steps after the end"));
            }
        } else if world.now() > last_fault + MAX_QUIET_STEPS {
            world.checks_mut().broken(format!("a job has not ended {MAX_QUIET_STEPS} steps after the last fault"));
        }
    }
    check_ends(&mut world, &allowed);
    let took_part = world.take_parties();
    let (steps, ends, checks) = (world.now(), world.ends(), world.checks().clone());
    let trace = world.into_trace();
    Ok(Report {
        seed,
        shape,
        violation: checks.violation,
        end: ends.first().cloned().flatten(),
        ends,
        allowed,
        steps,
        conclusions: checks.conclusions.iter().sum(),
        fired: checks.fired,
        plan,
        stood_back: checks.stood_back,
        given_up: checks.given_up,
        mentions: checks.mentions,
        until_removed,
        digest: trace.digest(),
        lines: trace.into_lines(),
        missed,
        took_part,
    })
}

/// When nothing goes wrong any more. A full disk does not count while another worker has room: the job must not wait for it.
fn last_fault(setup: &Setup) -> u64 {
    let is_waited_for = |fault: &Fault| match fault {
        Fault::FullDisk(..) => setup.workers.len() == 1,
        // The job expires meanwhile.
        Fault::LeaveClient(..) => false,
        // Slow is no excuse.
        Fault::SlowBroker(_) => false,
        // Its readers subscribe again.
        Fault::SilentStreams(..) => false,
        _ => true,
    };
    let end = |(step, fault): &(u64, Fault)| step + if is_waited_for(fault) { fault.duration() } else { 0 };
    let joins = setup.joins_at.iter().copied().chain(setup.jobs.iter().map(|job| job.begins_at));
    setup.plan.iter().map(end).chain(joins).max().unwrap_or(0)
}

/// A task that kills its workers is given up after so many deaths; and no job ends in a way that nothing has led to.
fn check_ends(world: &mut World, allowed: &[Allowed]) {
    for (job, allowed) in allowed.iter().enumerate() {
        if let Some(end) = world.checks().ended[job].clone().filter(|end| !allowed.permits(end)) {
            world.checks_mut().broken(format!("job {job} has ended in a way that nothing has led to: {end:?}"));
        }
        let Some(poison) = allowed.poison else { continue };
        let limit = match poison {
            // A chunk that nobody had before is run without further ado.
            Source::Chunk { .. } => MAX_CHUNK_ATTEMPTS as u64 + world.broker().copies(job, poison),
            Source::Task { .. } => MAX_TASK_ATTEMPTS as u64,
        };
        // What was announced may be forgotten in a power cut.
        let power_cuts = world.checks().fired.iter().filter(|fault| **fault == Fault::PowerCut).count() as u64;
        let limit = limit + power_cuts * MAX_TAIL as u64;
        let deaths = world.checks().poisoned[job];
        if deaths > limit {
            world.checks_mut().broken(format!("{poison} has killed {deaths} workers, but {limit} is the limit"));
        }
    }
}
