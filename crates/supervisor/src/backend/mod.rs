//! Where processes run: one small interface, three back-ends.

pub mod docker;
pub mod limits;
mod orders;
pub mod processes;
pub mod systemd;
mod time;
mod watch;

use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tenaz_core::{Ending, Incarnation, OutsideCause, ProcessName, ProcessRole};

use self::orders::last_of;

/// A process as it really is, or was when it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its name in the cluster.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Its latest life; 0 if it was never started.
    pub incarnation: Incarnation,
    /// Its process id, while it runs.
    pub pid: Option<u32>,
    /// How it ended, when it has.
    pub ended: Option<Ending>,
    /// The name under which it sends heartbeats, if that is not `name` (a container's id, say).
    pub alias: Option<String>,
    /// Where to read what it wrote, for people: a file, or a command.
    pub log: Option<String>,
}

impl Found {
    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.pid.is_some()
    }
}

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The back-end has no process of this name.
    #[error("there is no process {0}")]
    NoSuchProcess(ProcessName),
    /// Another life of the process runs, or it has been stopped on purpose: the order is out of date.
    #[error("the order for {name} is out of date: {detail}")]
    OutOfDate {
        /// The process.
        name: ProcessName,
        /// What is the case instead.
        detail: String,
    },
    /// The program cannot be started at all.
    #[error("{program} cannot be started: {detail}", program = program.display())]
    CannotStart {
        /// The program.
        program: PathBuf,
        /// Why.
        detail: String,
    },
    /// Something that is nobody's fault here is in the way, and may pass: a full disk, say.
    #[error("{what}: {cause} ({detail})")]
    Obstructed {
        /// What was tried.
        what: String,
        /// What is in the way.
        cause: OutsideCause,
        /// The system's words.
        detail: String,
    },
    /// The engine that runs the processes does not answer, or says no.
    #[error("{what}: {detail}")]
    Refused {
        /// What was tried.
        what: String,
        /// The answer.
        detail: String,
    },
}

/// Runs the processes of one machine.
///
/// Orders name the life that they mean, so one that comes late never hits a later life.
#[async_trait]
pub trait Backend: Send + Sync + std::fmt::Debug {
    /// For people: `processes`, `docker`, `systemd`.
    fn kind(&self) -> &'static str;

    /// All processes that this back-end is responsible for, running or not, as they are now.
    async fn inspect(&self) -> Result<Vec<Found>, BackendError>;

    /// Starts a process that does not run, as this life, which must be higher than all before.
    async fn start(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError>;

    /// Ends this life at once (SIGKILL). Done if it has already ended.
    async fn kill(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError>;

    /// Asks this life to end in good order (SIGTERM). Done if it has already ended.
    async fn stop(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError>;

    /// Returns when a process has ended since the last call, or something else may have changed. May return early.
    async fn changed(&self);

    /// The last lines that the latest life of a process wrote, oldest first.
    async fn last_lines(&self, name: &ProcessName, lines: usize) -> Vec<String>;
}
