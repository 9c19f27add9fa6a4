//! What can happen next, and how likely it is.

use std::fmt;

use tenaz_core::Log;

use crate::broker::{ConnectionId, Job};
use crate::rng::Rng;

/// One step of one party. Processes are named by their slots: first the workers, then the gateways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The broker takes what a connection sent.
    Accept(ConnectionId),
    /// The broker takes what a dead connection sent.
    AcceptGhost,
    /// A client asks a gateway something.
    ClientAsk(Job),
    /// A client reads an answer.
    ClientHear(Job),
    /// A gateway begins a request.
    Serve(usize),
    /// A gateway goes on with a request.
    GoOn(usize),
    /// A process is started.
    Start(usize),
    /// A process connects.
    Connect(usize),
    /// A process finds its connection dead.
    Notice(usize),
    /// A worker gets a chunk of a wave.
    Deliver(usize, Job, usize),
    /// A worker reads a message of a log.
    Read(usize, Job, Log),
    /// A process reads a fact.
    ReadControl(usize, Job),
    /// A process reads the registry.
    ReadRegistry(usize),
    /// A process gets a confirm.
    Confirm(usize),
    /// The driver of a worker gets what was read.
    HandIn(usize, Job),
    /// A thread of a worker runs a step.
    Work(usize, Job),
    /// The driver of a worker gets what came of a step.
    HandInFinished(usize, Job),
    /// A part of a worker in a job hears what it may begin.
    HearClearance(usize),
    /// A worker works on a job again after it stood back.
    Rejoin(usize, Job),
    /// A worker that was asked to leave goes.
    Leave(usize),
    /// A process says that it lives.
    Heartbeat(usize),
    /// A process hears of another.
    Hear(usize),
    /// A process looks at its clock.
    Tick(usize),
}

impl Step {
    /// Whether the step is part of keeping the cluster together and not of working on a job.
    pub(crate) fn is_chore(self) -> bool {
        matches!(self, Self::Heartbeat(_) | Self::Hear(_) | Self::Tick(_))
    }

    /// The process that makes it.
    pub(crate) fn slot(self) -> Option<usize> {
        match self {
            Self::Start(slot)
            | Self::Serve(slot)
            | Self::GoOn(slot)
            | Self::Connect(slot)
            | Self::Notice(slot)
            | Self::Deliver(slot, ..)
            | Self::Read(slot, ..)
            | Self::ReadControl(slot, _)
            | Self::ReadRegistry(slot)
            | Self::Confirm(slot)
            | Self::HandIn(slot, _)
            | Self::Work(slot, _)
            | Self::HandInFinished(slot, _)
            | Self::HearClearance(slot)
            | Self::Rejoin(slot, _)
            | Self::Leave(slot)
            | Self::Heartbeat(slot)
            | Self::Hear(slot)
            | Self::Tick(slot) => Some(slot),
            _ => None,
        }
    }

    fn kind(self) -> usize {
        match self {
            Self::Accept(_) => 0,
            Self::AcceptGhost => 1,
            Self::Connect(_) | Self::Notice(_) => 2,
            Self::ClientAsk(_) | Self::ClientHear(_) => 3,
            Self::Confirm(_) => 4,
            Self::ReadControl(..) => 5,
            Self::Start(_) | Self::Rejoin(..) | Self::Leave(_) => 6,
            Self::Deliver(..) => 7,
            Self::Read(_, _, Log::Results) => 8,
            Self::Read(_, _, Log::Broadcast) => 9,
            Self::Read(..) => 10,
            Self::ReadRegistry(_) => 11,
            Self::Work(..) => 12,
            Self::Heartbeat(_) | Self::Hear(_) | Self::Tick(_) => 13,
            Self::HandIn(..) | Self::HearClearance(_) => 14,
            Self::HandInFinished(..) => 15,
            Self::Serve(_) | Self::GoOn(_) => 16,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

const KINDS: usize = 17;

/// How fast everything goes in this run: slow readers, slow workers and slow confirms find different mistakes.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    kinds: [u64; KINDS],
    slots: Vec<u64>,
}

impl Pace {
    /// A pace chosen by chance.
    pub(crate) fn new(processes: usize, rng: &mut Rng) -> Self {
        let mut kinds = [0; KINDS];
        kinds.iter_mut().for_each(|weight| *weight = 4 << rng.below(5));
        kinds[13] = 3;
        Self { kinds, slots: (0..processes).map(|_| 1 << rng.below(3)).collect() }
    }

    fn weight(&self, step: Step) -> u64 {
        let slot = step.slot().filter(|_| !step.is_chore());
        self.kinds[step.kind()] * slot.map_or(2, |slot| self.slots[slot])
    }

    /// One of the steps.
    pub(crate) fn pick(&self, steps: &[Step], rng: &mut Rng) -> Option<Step> {
        let total: u64 = steps.iter().map(|&step| self.weight(step)).sum();
        let mut left = rng.below(total);
        steps.iter().copied().find(|&step| {
            let weight = self.weight(step);
            let is_it = left < weight;
            left = left.saturating_sub(weight);
            is_it
        })
    }
}
