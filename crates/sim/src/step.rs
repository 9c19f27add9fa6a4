//! What can happen next, and how likely it is.

use std::fmt;

use tenaz_core::Log;

use crate::broker::ConnectionId;
use crate::rng::Rng;

/// One step of one party. Workers are named by their slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The broker takes what a connection sent.
    Accept(ConnectionId),
    /// The broker takes what a dead connection sent.
    AcceptGhost,
    /// The client connects.
    ClientConnect,
    /// The client finds its connection dead.
    ClientNotice,
    /// The client sends a chunk.
    ClientSend,
    /// The client closes a table.
    ClientClose,
    /// The client gets a confirm.
    ClientConfirm,
    /// The client reads a fact.
    ClientRead,
    /// A worker process is started.
    Start(usize),
    /// A worker connects.
    Connect(usize),
    /// A worker finds its connection dead.
    Notice(usize),
    /// A worker gets a chunk of a wave.
    Deliver(usize, usize),
    /// A worker reads a message of a log.
    Read(usize, Log),
    /// A worker reads a fact.
    ReadControl(usize),
    /// A worker reads the registry.
    ReadRegistry(usize),
    /// A worker gets a confirm.
    Confirm(usize),
    /// A worker finishes a task.
    Finish(usize),
    /// A worker says that it lives.
    Heartbeat(usize),
    /// A worker hears of another.
    Hear(usize),
    /// A worker looks at its clock.
    Tick(usize),
    /// A worker finds that nothing moves.
    Stall(usize),
}

impl Step {
    /// Whether the step is part of keeping the cluster together and not of working on the job.
    pub(crate) fn is_chore(self) -> bool {
        matches!(self, Self::Heartbeat(_) | Self::Hear(_) | Self::Tick(_) | Self::Stall(_))
    }

    fn slot(self) -> Option<usize> {
        match self {
            Self::Start(slot)
            | Self::Connect(slot)
            | Self::Notice(slot)
            | Self::Deliver(slot, _)
            | Self::Read(slot, _)
            | Self::ReadControl(slot)
            | Self::ReadRegistry(slot)
            | Self::Confirm(slot)
            | Self::Finish(slot)
            | Self::Heartbeat(slot)
            | Self::Hear(slot)
            | Self::Tick(slot)
            | Self::Stall(slot) => Some(slot),
            _ => None,
        }
    }

    fn kind(self) -> usize {
        match self {
            Self::Accept(_) => 0,
            Self::AcceptGhost => 1,
            Self::ClientConnect | Self::ClientNotice | Self::Connect(_) | Self::Notice(_) => 2,
            Self::ClientSend | Self::ClientClose => 3,
            Self::ClientConfirm | Self::Confirm(_) => 4,
            Self::ClientRead | Self::ReadControl(_) => 5,
            Self::Start(_) => 6,
            Self::Deliver(..) => 7,
            Self::Read(_, Log::Results) => 8,
            Self::Read(_, Log::Broadcast) => 9,
            Self::Read(..) => 10,
            Self::ReadRegistry(_) => 11,
            Self::Finish(_) => 12,
            Self::Heartbeat(_) | Self::Hear(_) | Self::Tick(_) => 13,
            Self::Stall(_) => 14,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

const KINDS: usize = 15;

/// How fast everything goes in this run: slow readers, slow workers and slow confirms find different mistakes.
#[derive(Debug, Clone)]
pub(crate) struct Pace {
    kinds: [u64; KINDS],
    slots: Vec<u64>,
}

impl Pace {
    /// A pace chosen by chance.
    pub(crate) fn new(workers: usize, rng: &mut Rng) -> Self {
        let mut kinds = [0; KINDS];
        kinds.iter_mut().for_each(|weight| *weight = 4 << rng.below(5));
        kinds[13] = 3;
        kinds[14] = 1;
        Self { kinds, slots: (0..workers).map(|_| 1 << rng.below(3)).collect() }
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
