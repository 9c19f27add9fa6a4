//! What is seen of processes, what to do about it, and how they stand.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::super::{Ending, Incarnation, OutsideCause, ProcessName, ProcessRole};

/// What is seen of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperEvent {
    /// The back-end has looked at it.
    Seen {
        /// The process.
        name: ProcessName,
        /// What it does.
        role: ProcessRole,
        /// The life that runs, if one does.
        running: Option<Incarnation>,
        /// The life that ended last, and how, if none runs. Neither: it was never started.
        ended: Option<(Incarnation, Ending)>,
        /// What the records say of it.
        past: Past,
    },
    /// A heartbeat of it has come.
    Heard {
        /// The process.
        name: ProcessName,
        /// The life that sent it.
        incarnation: Incarnation,
        /// Whether it does its work.
        ready: bool,
        /// Whether it is about to end because it was asked to.
        draining: bool,
        /// How far its main loop is.
        pulse: u64,
    },
    /// A [`KeeperAction::Probe`] has had its answer, or has had none in time.
    Probed {
        /// The process.
        name: ProcessName,
        /// The life that was meant.
        incarnation: Incarnation,
        /// How far its main loop is, if it answered.
        pulse: Option<u64>,
    },
    /// Time has passed. Comes several times a second; when it comes late, this supervisor was asleep itself.
    Ticked,
    /// An action was not carried out, or nobody knows whether it was.
    OrderFailed {
        /// The process.
        name: ProcessName,
        /// The life that was meant.
        incarnation: Incarnation,
        /// How far it got.
        failure: OrderFailure,
        /// What went wrong, for people.
        reason: String,
    },
    /// The cluster is being stopped: nothing is started any more.
    Closed,
}

/// Why nothing came of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderFailure {
    /// It never got that far, or nobody knows whether it did.
    NotTried,
    /// It was tried, and something outside of the process was in the way. That passes, and counts against nobody.
    Obstructed(OutsideCause),
    /// It was tried and did not work: a failed start.
    Failed,
}

/// What the records say of a process. They outlive every supervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Past {
    /// When it was restarted, as far as that may still matter.
    pub restarts_ms: Vec<u64>,
    /// What was recorded with the latest start.
    pub streak: Streak,
    /// How long the life that ended last had lasted, if known.
    pub lived_ms: Option<u64>,
    /// Why it was given up, if it was.
    pub given_up: Option<String>,
}

/// What is counted until a process is well again. It is recorded with every start, so that another leader counts on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streak {
    /// Lives in a row that never got ready.
    pub failed_starts: u32,
    /// Restarts since a life was ready for long enough to be called healthy, but for those that the next field counts.
    pub restarts: u32,
    /// Restarts since then after an end for an outside cause. They make the waits longer, and are never a reason to give up.
    #[serde(default)]
    pub obstructed: u32,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeeperAction {
    /// Start a process as this life.
    Start {
        /// The process.
        name: ProcessName,
        /// Higher than all before.
        incarnation: Incarnation,
        /// To be recorded with the start: see [`Past::streak`].
        streak: Streak,
        /// Why, for people: how the life before ended.
        why: String,
    },
    /// End this life at once.
    Kill {
        /// The process.
        name: ProcessName,
        /// The life.
        incarnation: Incarnation,
        /// Why.
        why: Trouble,
    },
    /// Ask this life over HTTP how it is, and answer with [`KeeperEvent::Probed`], be it that there was no answer.
    Probe {
        /// The process.
        name: ProcessName,
        /// The life.
        incarnation: Incarnation,
    },
    /// Record that this process is not started any more.
    GiveUp {
        /// The process.
        name: ProcessName,
        /// Why, for people.
        reason: String,
    },
}

/// What is wrong with a process that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// It answers, and its main loop stands still.
    Frozen {
        /// For how long.
        for_ms: u64,
    },
    /// It neither sends heartbeats nor answers.
    Silent {
        /// For how long.
        for_ms: u64,
    },
    /// It has not got ready.
    NotReady {
        /// For how long.
        for_ms: u64,
    },
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |ms: &u64| *ms as f64 / 1_000.0;
        match self {
            Self::Frozen { for_ms } => write!(f, "hung: no progress for {:.1} s", seconds(for_ms)),
            Self::Silent { for_ms } => write!(f, "hung: no heartbeat and no answer for {:.1} s", seconds(for_ms)),
            Self::NotReady { for_ms } => write!(f, "not ready {:.1} s after its start", seconds(for_ms)),
        }
    }
}

/// How a process stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessState {
    /// It runs, and is not ready (yet, or for the moment).
    Starting,
    /// It does its work.
    Ready,
    /// It was ready, and its heartbeats do not arrive.
    Quiet,
    /// It is about to end, as it was asked to.
    Draining,
    /// It runs and makes no progress: it is being ended.
    Hung,
    /// It has ended and is to be started again in a moment.
    Waiting,
    /// It would be started if something else were not in the way.
    Held,
    /// It is not started any more.
    GivenUp,
    /// It has ended, as was intended.
    Stopped,
    /// Nobody has looked at it for a while.
    Unknown,
}

impl ProcessState {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Starting,
        Self::Ready,
        Self::Quiet,
        Self::Draining,
        Self::Hung,
        Self::Waiting,
        Self::Held,
        Self::GivenUp,
        Self::Stopped,
        Self::Unknown,
    ];

    /// For people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Quiet => "quiet",
            Self::Draining => "draining",
            Self::Hung => "hung",
            Self::Waiting => "waiting",
            Self::Held => "held",
            Self::GivenUp => "given up",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for ProcessState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a process stands, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// In a word.
    pub state: ProcessState,
    /// How long until something is done about it, if that is known.
    pub wait_ms: Option<u64>,
    /// Why, for people.
    pub detail: Option<String>,
}
