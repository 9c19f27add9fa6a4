//! Every pair of faults near each other in one small job: each first fault in every situation in which it can strike, and then
//! every second one, within so many steps, in every situation that the first has led to.
//!
//! Which positions of a fault are the same situation, and why one of them is enough, is said in `parties.rs`.

use tenaz_core::Error;

use crate::faults::{Fault, ONE_OF_EACH, Plan};
use crate::options::Options;
use crate::parties::Parties;
use crate::run::{Report, run};
use crate::scenario::Shape;

/// Two faults are a pair if they are at most so many steps apart.
pub const PAIR_STEPS: u64 = 100;
/// Workers of a small job.
const WORKERS: usize = 2;

/// All pairs of faults of one small job.
#[derive(Debug, Clone)]
pub struct Pairs {
    shape: Shape,
    seed: u64,
    /// The first faults, each with the step before which it comes.
    firsts: Vec<(u64, Fault)>,
    steps: u64,
}

impl Pairs {
    /// The pairs in the small job that a shape and a seed describe.
    pub fn new(shape: Shape, seed: u64) -> Result<Self, Error> {
        let mut pairs = Self { shape, seed, firsts: Vec::new(), steps: 0 };
        let calm = run(&Options { keep_parties: true, ..pairs.options(Plan::new()) })?;
        pairs.steps = calm.steps;
        pairs.firsts = situations(&calm.took_part, 0..calm.steps);
        Ok(pairs)
    }

    /// The first faults.
    pub fn firsts(&self) -> &[(u64, Fault)] {
        &self.firsts
    }

    /// How many steps the job takes without any fault.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How many pairs there are if every position counts.
    pub fn positions(&self) -> u64 {
        self.steps * (PAIR_STEPS + 1) * (ONE_OF_EACH.len() as u64).pow(2)
    }

    /// What a run with these faults is asked for.
    pub fn options(&self, plan: Plan) -> Options {
        Options { seed: self.seed, shape: Some(self.shape), plan: Some(plan), ..Options::default() }
    }

    /// Runs the job with one fault, and then with every second one that may strike after it. `each` gets every run; one that
    /// ended because the second fault struck nobody is a run of the first alone, and says so ([`Report::missed`]).
    pub fn after(&self, first: (u64, Fault), mut each: impl FnMut(Options, Report)) -> Result<(), Error> {
        let asked = self.options(vec![first]);
        let alone = run(&Options { keep_parties: true, until_miss: true, ..asked.clone() })?;
        let (missed, took_part) = (alone.missed, alone.took_part.clone());
        each(asked, alone);
        if missed {
            return Ok(());
        }
        for second in situations(&took_part, first.0..first.0 + PAIR_STEPS + 1) {
            let asked = self.options(vec![first, second]);
            let report = run(&Options { until_miss: true, ..asked.clone() })?;
            each(asked, report);
        }
        Ok(())
    }
}

/// For every kind of fault the earliest step of each situation within these steps.
fn situations(took_part: &[Parties], within: std::ops::Range<u64>) -> Plan {
    let mut plan = Plan::new();
    for fault in ONE_OF_EACH {
        let struck = Parties::of_fault(fault, WORKERS);
        let is_new = |step: u64| {
            let before = step.checked_sub(1).and_then(|before| took_part.get(before as usize));
            step == within.start || before.is_some_and(|parties| parties.meet(struck))
        };
        plan.extend(within.clone().filter(|&step| is_new(step)).map(|step| (step, fault)));
    }
    plan
}
