//! What happens to a supervisor, what it does about it, and what supervisors say to each other.

use serde::{Deserialize, Serialize};

use super::Term;
use crate::SupervisorId;

/// What supervisors say to each other. Any of it may be lost, repeated, late or out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// To a higher one: do you live? Then I need not stand (the bully's "election").
    Ask {
        /// The highest round heard of.
        round: u64,
    },
    /// To a lower one: I live, leave it to me (the bully's "answer").
    Alive {
        /// The highest round heard of.
        round: u64,
    },
    /// I want to lead in this term.
    Campaign {
        /// The term.
        term: Term,
    },
    /// You may, as far as I am concerned: I shall follow no lower term.
    Grant {
        /// The term asked for.
        term: Term,
    },
    /// You may not.
    Refuse {
        /// The term asked for, or led.
        term: Term,
        /// The term that is in its way.
        because: Term,
    },
    /// I lead (the bully's "coordinator").
    Beat {
        /// In this term.
        term: Term,
        /// Counts up within the term.
        number: u64,
    },
    /// I follow.
    Ack {
        /// The term of the beat.
        term: Term,
        /// The number of the beat.
        number: u64,
    },
}

impl Message {
    /// The highest round that the message tells of.
    pub fn round(&self) -> u64 {
        match *self {
            Self::Ask { round } | Self::Alive { round } => round,
            Self::Refuse { term, because } => term.round.max(because.round),
            Self::Campaign { term } | Self::Grant { term } | Self::Beat { term, .. } | Self::Ack { term, .. } => {
                term.round
            }
        }
    }
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The driver's clock has moved on by one tick. Ticks that were missed are not made up for: see [`Event::Woken`].
    Ticked,
    /// A message has arrived.
    Arrived {
        /// Who sent it.
        from: SupervisorId,
        /// What it says.
        message: Message,
    },
    /// A hint: this supervisor seems to be gone. Saves waiting, and is never more than a guess.
    PeerSuspected(SupervisorId),
    /// A hint: it lives after all.
    PeerHeard(SupervisorId),
    /// The process was stopped for longer than a tick or so, or cut off from the broker, and nothing that it believes
    /// about the others is fresh.
    Woken,
    /// An executor has refused an order because it has seen this term.
    Fenced(Term),
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Send a message, once, without waiting for it to arrive.
    Send {
        /// To whom.
        to: SupervisorId,
        /// What.
        message: Message,
    },
    /// Lead from now on. Every order must carry the term.
    BecomeLeader {
        /// The term.
        term: Term,
    },
    /// Stop giving orders at once.
    StepDown {
        /// The term that is over for this supervisor.
        term: Term,
    },
    /// Somebody else leads now.
    Follow {
        /// In this term.
        term: Term,
    },
}
