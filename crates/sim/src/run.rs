//! One run from its seed to its verdict.

use tenaz_core::limits::{MAX_CHUNK_ATTEMPTS, MAX_TASK_ATTEMPTS};
use tenaz_core::{End, Error, Source};

use crate::broker::MAX_TAIL;
use crate::faults::Fault;
use crate::options::{Options, Setup};
use crate::scenario::Shape;
use crate::world::World;

/// So many steps after the last fault the job must have come to its end.
pub const MAX_QUIET_STEPS: u64 = 60_000;
/// After the end of the job the workers go on for so many steps, because not all of them know.
const AFTERMATH: u64 = 60;

/// What became of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its seed.
    pub seed: u64,
    /// Its kind of job.
    pub shape: Shape,
    /// What broke, if anything did.
    pub violation: Option<String>,
    /// How the job ended.
    pub end: Option<End>,
    /// How many steps it took.
    pub steps: u64,
    /// How often the job was concluded.
    pub conclusions: u64,
    /// The faults that hit something.
    pub fired: Vec<Fault>,
    /// What killed its workers.
    pub poison: Option<Source>,
    /// The digest of the trace.
    pub digest: u64,
    /// The trace, where it was asked for.
    pub lines: Vec<String>,
}

/// Runs a cluster until its job has ended, or a rule is broken.
pub fn run(options: &Options) -> Result<Report, Error> {
    let setup = Setup::new(options)?;
    let (seed, shape, poison) = (setup.seed, setup.scenario.shape, setup.poison);
    let mut plan = setup.plan.clone().into_iter().peekable();
    let last_fault = setup.plan.iter().map(|(step, fault)| step + fault.duration()).max().unwrap_or(0);
    let mut world = World::new(setup);
    let mut ended_at = None;
    while world.checks().violation.is_none() {
        while let Some((_, fault)) = plan.next_if(|(step, _)| *step <= world.now()) {
            world.strike(fault);
        }
        world.step();
        if world.end().is_some() {
            let ended_at = *ended_at.get_or_insert(world.now());
            if world.now() >= ended_at + AFTERMATH {
                break;
            }
        } else if world.now() > last_fault + MAX_QUIET_STEPS {
            world.checks_mut().broken(format!("the job has not ended {MAX_QUIET_STEPS} steps after the last fault"));
        }
    }
    check_end(&mut world, poison);
    let (steps, end, checks) = (world.now(), world.end().cloned(), world.checks().clone());
    let trace = world.into_trace();
    Ok(Report {
        seed,
        shape,
        violation: checks.violation,
        end,
        steps,
        conclusions: checks.conclusions,
        fired: checks.fired,
        poison,
        digest: trace.digest(),
        lines: trace.into_lines(),
    })
}

/// A task that kills its workers is given up after so many deaths; everything else is done.
fn check_end(world: &mut World, poison: Option<Source>) {
    let Some(poison) = poison else { return };
    let limit = match poison {
        // A chunk that nobody had before is run without further ado.
        Source::Chunk { .. } => MAX_CHUNK_ATTEMPTS as u64 + world.broker().copies(poison),
        Source::Task { .. } => MAX_TASK_ATTEMPTS as u64,
    };
    // What was announced may be forgotten in a power cut.
    let power_cuts = world.checks().fired.iter().filter(|fault| **fault == Fault::PowerCut).count() as u64;
    let limit = limit + power_cuts * MAX_TAIL as u64;
    let deaths = world.checks().poisoned;
    if deaths > limit {
        world.checks_mut().broken(format!("{poison} has killed {deaths} workers, but {limit} is the limit"));
    }
}
