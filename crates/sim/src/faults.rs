//! What goes wrong, and when.

use crate::rng::Rng;

/// A fault. Workers are named by their slot: whoever lives there at that moment is hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// kill -9 of a worker. Another process is started in its slot some time later.
    KillWorker(usize),
    /// A worker's connection is cut; it notices later.
    CutWorker(usize),
    /// The broker is killed and comes back with all it has confirmed.
    RestartBroker,
    /// As above, but the last messages of some logs are lost, although they were confirmed.
    PowerCut,
    /// A worker is stopped for so many steps and then goes on as if nothing had happened.
    Pause(usize, u64),
    /// All others believe a worker dead, although it is not.
    Suspect(usize),
    /// A worker believes that nothing moves, although it does.
    Stall(usize),
    /// The client is killed. Another comes and goes on.
    KillClient,
    /// The client's connection is cut: confirms are lost.
    CutClient,
}

impl Fault {
    /// For how many steps it lasts.
    pub(crate) fn duration(self) -> u64 {
        if let Self::Pause(_, steps) = self { steps } else { 0 }
    }
}

/// The faults of one run, each with the step before which it happens, in this order.
pub type Plan = Vec<(u64, Fault)>;

/// At most this many faults happen in a run, so that work which is merely unlucky is never given up.
pub const MAX_FAULTS: u64 = 5;

/// Faults chosen by chance, within the first `horizon` steps.
pub(crate) fn random_plan(workers: usize, horizon: u64, rng: &mut Rng) -> Plan {
    let count = rng.below(MAX_FAULTS + 1);
    let mut plan: Plan = (0..count).map(|_| (rng.below(horizon), random_fault(workers, rng))).collect();
    plan.sort_by_key(|(step, _)| *step);
    plan
}

fn random_fault(workers: usize, rng: &mut Rng) -> Fault {
    let slot = rng.index(workers);
    match rng.below(100) {
        0..35 => Fault::KillWorker(slot),
        35..50 => Fault::CutWorker(slot),
        50..60 => Fault::RestartBroker,
        60..66 => Fault::PowerCut,
        66..76 => Fault::Pause(slot, rng.between(20, 1500)),
        76..84 => Fault::Suspect(slot),
        84..88 => Fault::Stall(slot),
        88..94 => Fault::KillClient,
        _ => Fault::CutClient,
    }
}
