//! What goes wrong, and when.

use std::fmt;
use std::str::FromStr;

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
    /// For so many steps a worker's heartbeats come and fail to come: the others take its partitions over, give them back, and
    /// take them over again.
    Flap(usize, u64),
    /// A worker believes that nothing moves, although it does.
    Stall(usize),
    /// The client is killed. Another comes and goes on.
    KillClient,
    /// The client's connection is cut: confirms are lost.
    CutClient,
    /// For so many steps the disk of a worker's machine is full, and whatever it works on fails.
    FullDisk(usize, u64),
    /// A worker is asked to leave. Another joins some time later.
    Drain(usize),
    /// For so many steps the broker refuses some of what is published.
    FullQueues(u64),
    /// For so many steps the broker takes nothing.
    Alarm(u64),
    /// For so many steps the broker forgets to wake a worker's readers, unless they subscribe again.
    SilentStreams(usize, u64),
    /// One channel of a worker is gone, though its connection is not.
    LoseChannel(usize),
    /// The broker has forgotten that a worker takes chunks.
    ForgetConsumer(usize),
    /// kill -9 of a gateway. Another process is started in its place some time later.
    KillGateway(usize),
    /// A gateway's connection to the broker is cut; it notices later.
    CutGateway(usize),
    /// A gateway's connection refuses every chunk from now on, as if the queues were full.
    RefusingChannel(usize),
    /// A client goes away for so many steps. Then another comes and goes on.
    LeaveClient(usize, u64),
    /// A client does not want its job any more.
    Cancel(usize),
    /// A work queue that has stored nothing yet never will: it was not written to disk when the broker was killed.
    DeadQueue(usize),
    /// For so many steps the disk of the broker stands still: no queue takes anything.
    StalledDisk(u64),
    /// For so many steps the broker takes little.
    SlowBroker(u64),
    /// For so many steps all threads of a worker are busy with one task.
    LongTask(usize, u64),
}

/// The names of all kinds of faults.
pub const FAULT_KINDS: [&str; 26] = [
    "kill of a worker",
    "cut of a worker",
    "restart of the broker",
    "power cut",
    "pause",
    "suspicion",
    "flap",
    "stall",
    "kill of the client",
    "cut of the client",
    "full disk",
    "drain",
    "full queues",
    "alarm",
    "silent streams",
    "lost channel",
    "forgotten consumer",
    "kill of a gateway",
    "cut of a gateway",
    "refusing channel",
    "absent client",
    "cancel",
    "dead queue",
    "stalled disk",
    "slow broker",
    "long task",
];

impl Fault {
    /// Its kind, by its place in [`FAULT_KINDS`].
    pub fn kind(self) -> usize {
        match self {
            Self::KillWorker(_) => 0,
            Self::CutWorker(_) => 1,
            Self::RestartBroker => 2,
            Self::PowerCut => 3,
            Self::Pause(..) => 4,
            Self::Suspect(_) => 5,
            Self::Flap(..) => 6,
            Self::Stall(_) => 7,
            Self::KillClient => 8,
            Self::CutClient => 9,
            Self::FullDisk(..) => 10,
            Self::Drain(_) => 11,
            Self::FullQueues(_) => 12,
            Self::Alarm(_) => 13,
            Self::SilentStreams(..) => 14,
            Self::LoseChannel(_) => 15,
            Self::ForgetConsumer(_) => 16,
            Self::KillGateway(_) => 17,
            Self::CutGateway(_) => 18,
            Self::RefusingChannel(_) => 19,
            Self::LeaveClient(..) => 20,
            Self::Cancel(_) => 21,
            Self::DeadQueue(_) => 22,
            Self::StalledDisk(_) => 23,
            Self::SlowBroker(_) => 24,
            Self::LongTask(..) => 25,
        }
    }

    /// The same for half the time, if it lasts.
    pub(crate) fn half_as_long(self) -> Option<Self> {
        let half = |steps: u64| (steps > 1).then_some(steps / 2);
        Some(match self {
            Self::Pause(slot, steps) => Self::Pause(slot, half(steps)?),
            Self::Flap(slot, steps) => Self::Flap(slot, half(steps)?),
            Self::FullDisk(slot, steps) => Self::FullDisk(slot, half(steps)?),
            Self::FullQueues(steps) => Self::FullQueues(half(steps)?),
            Self::Alarm(steps) => Self::Alarm(half(steps)?),
            Self::SilentStreams(slot, steps) => Self::SilentStreams(slot, half(steps)?),
            Self::LeaveClient(job, steps) => Self::LeaveClient(job, half(steps)?),
            Self::StalledDisk(steps) => Self::StalledDisk(half(steps)?),
            Self::SlowBroker(steps) => Self::SlowBroker(half(steps)?),
            Self::LongTask(slot, steps) => Self::LongTask(slot, half(steps)?),
            _ => return None,
        })
    }

    /// For how many steps it lasts.
    pub(crate) fn duration(self) -> u64 {
        match self {
            Self::Pause(_, steps)
            | Self::Flap(_, steps)
            | Self::FullDisk(_, steps)
            | Self::FullQueues(steps)
            | Self::Alarm(steps)
            | Self::SilentStreams(_, steps)
            | Self::LeaveClient(_, steps)
            | Self::StalledDisk(steps)
            | Self::SlowBroker(steps)
            | Self::LongTask(_, steps) => steps,
            _ => 0,
        }
    }

    /// Whether somebody may believe after it that something was lost: because it is, or because nothing moves for long.
    pub(crate) fn may_look_like_a_loss(self) -> bool {
        matches!(
            self,
            Self::PowerCut
                | Self::Stall(_)
                | Self::Pause(..)
                | Self::Flap(..)
                | Self::Alarm(_)
                | Self::SilentStreams(..)
                | Self::SlowBroker(_)
        )
    }
}

impl fmt::Display for Fault {
    /// As it is written on a command line: its name, the slot of the worker and the number of steps, where it has them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{self:?}");
        f.write_str(&text.replace(['(', ','], ":").replace([')', ' '], ""))
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(':');
        let name = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        let slot = |at: usize| numbers.get(at).map(|&number| number as usize);
        let fault = match (name, slot(0), numbers.get(1), numbers.first()) {
            ("KillWorker", Some(slot), ..) => Self::KillWorker(slot),
            ("CutWorker", Some(slot), ..) => Self::CutWorker(slot),
            ("RestartBroker", ..) => Self::RestartBroker,
            ("PowerCut", ..) => Self::PowerCut,
            ("Pause", Some(slot), Some(&steps), _) => Self::Pause(slot, steps),
            ("Suspect", Some(slot), ..) => Self::Suspect(slot),
            ("Flap", Some(slot), Some(&steps), _) => Self::Flap(slot, steps),
            ("Stall", Some(slot), ..) => Self::Stall(slot),
            ("KillClient", ..) => Self::KillClient,
            ("CutClient", ..) => Self::CutClient,
            ("FullDisk", Some(slot), Some(&steps), _) => Self::FullDisk(slot, steps),
            ("Drain", Some(slot), ..) => Self::Drain(slot),
            ("FullQueues", _, _, Some(&steps)) => Self::FullQueues(steps),
            ("Alarm", _, _, Some(&steps)) => Self::Alarm(steps),
            ("SilentStreams", Some(slot), Some(&steps), _) => Self::SilentStreams(slot, steps),
            ("LoseChannel", Some(slot), ..) => Self::LoseChannel(slot),
            ("ForgetConsumer", Some(slot), ..) => Self::ForgetConsumer(slot),
            ("KillGateway", Some(slot), ..) => Self::KillGateway(slot),
            ("CutGateway", Some(slot), ..) => Self::CutGateway(slot),
            ("RefusingChannel", Some(slot), ..) => Self::RefusingChannel(slot),
            ("LeaveClient", Some(job), Some(&steps), _) => Self::LeaveClient(job, steps),
            ("Cancel", Some(job), ..) => Self::Cancel(job),
            ("DeadQueue", Some(job), ..) => Self::DeadQueue(job),
            ("StalledDisk", _, _, Some(&steps)) => Self::StalledDisk(steps),
            ("SlowBroker", _, _, Some(&steps)) => Self::SlowBroker(steps),
            ("LongTask", Some(slot), Some(&steps), _) => Self::LongTask(slot, steps),
            _ => return Err(format!("{text:?} is no fault")),
        };
        Ok(fault)
    }
}

/// One fault of each kind, for a cluster of two workers.
pub const ONE_OF_EACH: [Fault; 26] = [
    Fault::KillWorker(0),
    Fault::CutWorker(0),
    Fault::RestartBroker,
    Fault::PowerCut,
    Fault::Pause(0, 700),
    Fault::Suspect(1),
    Fault::Flap(1, 200),
    Fault::Stall(0),
    Fault::KillClient,
    Fault::CutClient,
    Fault::FullDisk(1, 300),
    Fault::Drain(1),
    Fault::FullQueues(100),
    Fault::Alarm(100),
    Fault::SilentStreams(1, 400),
    Fault::LoseChannel(1),
    Fault::ForgetConsumer(0),
    Fault::KillGateway(0),
    Fault::CutGateway(0),
    Fault::RefusingChannel(0),
    Fault::LeaveClient(0, 300),
    Fault::Cancel(0),
    Fault::DeadQueue(0),
    Fault::StalledDisk(200),
    Fault::SlowBroker(300),
    Fault::LongTask(1, 400),
];

/// The faults of one run, each with the step before which it happens, in this order.
pub type Plan = Vec<(u64, Fault)>;

/// At most this many faults happen in a run, so that work which is merely unlucky is never given up.
pub const MAX_FAULTS: u64 = 5;

/// Faults chosen by chance, within the first `horizon` steps.
pub(crate) fn random_plan(workers: usize, gateways: usize, horizon: u64, rng: &mut Rng) -> Plan {
    let count = rng.below(MAX_FAULTS + 1);
    let mut plan: Plan = (0..count).map(|_| (rng.below(horizon), random_fault(workers, gateways, rng))).collect();
    plan.sort_by_key(|(step, _)| *step);
    plan
}

fn random_fault(workers: usize, gateways: usize, rng: &mut Rng) -> Fault {
    let (slot, gateway, job) = (rng.index(workers), rng.index(gateways), rng.index(2));
    match rng.below(140) {
        0..22 => Fault::KillWorker(slot),
        22..32 => Fault::CutWorker(slot),
        32..38 => Fault::RestartBroker,
        38..43 => Fault::PowerCut,
        43..49 => Fault::Pause(slot, rng.between(20, 1500)),
        49..53 => Fault::Suspect(slot),
        53..57 => Fault::Flap(slot, rng.between(50, 800)),
        57..61 => Fault::Stall(slot),
        61..65 => Fault::KillClient,
        65..69 => Fault::CutClient,
        69..76 => Fault::FullDisk(slot, rng.between(20, 1500)),
        76..80 => Fault::Drain(slot),
        80..85 => Fault::FullQueues(rng.between(20, 400)),
        85..88 => Fault::Alarm(rng.between(20, 600)),
        88..92 => Fault::SilentStreams(slot, rng.between(20, 1500)),
        92..97 => Fault::LoseChannel(slot),
        97..100 => Fault::ForgetConsumer(slot),
        100..109 => Fault::KillGateway(gateway),
        109..114 => Fault::CutGateway(gateway),
        114..118 => Fault::RefusingChannel(gateway),
        118..121 => Fault::LeaveClient(job, if rng.chance(50) { rng.between(50, 1500) } else { 1_000_000 }),
        121..123 => Fault::Cancel(job),
        123..129 => Fault::DeadQueue(job),
        129..132 => Fault::StalledDisk(rng.between(20, 3000)),
        132..136 => Fault::SlowBroker(rng.between(20, 3000)),
        _ => Fault::LongTask(slot, rng.between(20, 3000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_read_as_it_is_written_and_there_is_one_of_each_kind() {
        for (kind, fault) in ONE_OF_EACH.into_iter().enumerate() {
            assert_eq!(fault.to_string().parse(), Ok(fault));
            assert_eq!(fault.kind(), kind);
        }
        assert!("Pause:1".parse::<Fault>().is_err());
        for fault in ONE_OF_EACH {
            let half = fault.half_as_long().map_or(0, Fault::duration);
            assert_eq!(half, fault.duration() / 2, "{fault}");
        }
    }
}
