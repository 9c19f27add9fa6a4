//! Executes a leader's orders on one machine.
//!
//! Every order is checked against the fence, executed and recorded under the lock of the cluster's directory. So it does not
//! matter which supervisor of the machine was asked, nor how many ask at once: an order of a leader that was replaced is
//! refused, and no process is started twice.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tenaz_core::{Ending, Fence, Incarnation, OutsideCause, ProcessName, ProcessRole, Streak, SupervisorId, Term};

use crate::backend::docker::Docker;
use crate::backend::processes::Processes;
use crate::backend::systemd::Systemd;
use crate::backend::{Backend, BackendError, Found};
use crate::config::{BackEnd, Config, DockerSettings, SystemdSettings};
use crate::error::Error;
use crate::home::{Home, HomeLock};
use crate::limits::{GIVEN_UP_LINES, NOTE_PATIENCE};
use crate::records::{Records, read_json, write_json};
use tenaz_words::unix_ms;

pub use crate::records::{GivenUp, History, PastEnding};

/// What a leader wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start a process that does not run.
    Start {
        /// Which.
        name: ProcessName,
        /// As which life: higher than all before.
        incarnation: Incarnation,
        /// Why, for people.
        because: String,
        /// What the leader has counted: it is written down, so that the next leader counts on.
        #[serde(default)]
        streak: Streak,
    },
    /// End a life at once.
    Kill {
        /// Whose.
        name: ProcessName,
        /// Which life.
        incarnation: Incarnation,
        /// Why, for people.
        because: String,
    },
    /// Ask a life to end in good order.
    Stop {
        /// Whose.
        name: ProcessName,
        /// Which life.
        incarnation: Incarnation,
    },
    /// Write down that a process is not started any more.
    GiveUp {
        /// Which.
        name: ProcessName,
        /// Why, for people.
        reason: String,
    },
}

impl Order {
    /// The process that is meant.
    pub fn name(&self) -> &ProcessName {
        match self {
            Self::Start { name, .. }
            | Self::Kill { name, .. }
            | Self::Stop { name, .. }
            | Self::GiveUp { name, .. } => name,
        }
    }
}

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderResult {
    /// It was executed.
    Done,
    /// Refused: a leader of this higher term has given orders here.
    Fenced(Term),
    /// Refused: the cluster is being taken down.
    Closed,
    /// Refused: what the order supposed is not so.
    OutOfDate(String),
    /// It was tried, and something outside of the process was in the way, which may pass.
    Obstructed(OutsideCause, String),
    /// It was tried and went wrong.
    Failed(String),
}

impl fmt::Display for OrderResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Fenced(term) => write!(f, "refused: a leader of term {term} has given orders since"),
            Self::Closed => f.write_str("refused: the cluster is being taken down"),
            Self::OutOfDate(detail) => write!(f, "out of date: {detail}"),
            Self::Obstructed(_, detail) | Self::Failed(detail) => f.write_str(detail),
        }
    }
}

/// A process of this machine and its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineProcess {
    /// As it is.
    pub found: Found,
    /// What was before.
    pub history: History,
}

/// Executes orders on one machine.
#[derive(Debug, Clone)]
pub struct Executor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    home: Home,
    records: Records,
    config: Config,
    machine: String,
    backend: Arc<dyn Backend>,
}

impl Executor {
    /// The executor of a machine of cluster.toml.
    ///
    /// # Errors
    /// There is no such machine.
    pub fn open(home: &Home, config: &Config, machine: &str) -> Result<Self, Error> {
        let Some(found) = config.machine(machine) else {
            let known: Vec<&str> = config.machines.iter().map(|m| m.name.as_str()).collect();
            return Err(Error::NoSuchMachine { name: machine.to_owned(), known: known.join(", ") });
        };
        let backend: Arc<dyn Backend> = match &found.back_end {
            BackEnd::Processes => Arc::new(Processes::new(home, config, machine)),
            // Taken apart as a whole: a setting that is forgotten here would have no effect.
            BackEnd::Docker(DockerSettings { socket, label }) => Arc::new(Docker::new(socket, label)?),
            BackEnd::Systemd(SystemdSettings { units, user }) => Arc::new(Systemd::new(units, *user)?),
        };
        Ok(Self::with_backend(home, config, machine, backend))
    }

    /// The same with any back-end.
    pub fn with_backend(home: &Home, config: &Config, machine: &str, backend: Arc<dyn Backend>) -> Self {
        let (home, config, machine) = (home.clone(), config.clone(), machine.to_owned());
        Self { inner: Arc::new(Inner { records: home.records(), home, config, machine, backend }) }
    }

    /// The machine of cluster.toml.
    pub fn machine(&self) -> &str {
        &self.inner.machine
    }

    /// The name of its back-end.
    pub fn back_end(&self) -> &'static str {
        self.inner.backend.kind()
    }

    /// Executes an order, unless its term is too old or the cluster is being taken down. Goes on to the end when the caller
    /// stops waiting.
    pub async fn execute(&self, term: Term, order: &Order) -> OrderResult {
        let (inner, order) = (Arc::clone(&self.inner), order.clone());
        done(tokio::spawn(async move { inner.execute(term, &order).await }).await)
    }

    /// All processes of the machine, running or not.
    ///
    /// # Errors
    /// The back-end does not answer.
    pub async fn inspect(&self) -> Result<Vec<MachineProcess>, Error> {
        let found = self.inner.backend.inspect().await?;
        let inner = Arc::clone(&self.inner);
        let with_history = tokio::task::spawn_blocking(move || inner.with_history(found)).await;
        with_history.map_err(|error| Error::Interrupted(error.to_string()))
    }

    /// Returns when a process has ended since the last call, or something else may have changed. May return early.
    pub async fn changed(&self) {
        self.inner.backend.changed().await;
    }

    /// The last lines that the latest life of a process wrote, oldest first.
    pub async fn last_lines(&self, name: &ProcessName, lines: usize) -> Vec<String> {
        self.inner.backend.last_lines(name, lines).await
    }

    /// Starts a supervisor of this machine that does not live.
    ///
    /// The only thing that is done without a leader's term: else the survivors could never become a majority again. It is
    /// harmless, for a supervisor changes nothing by being there, and two of one name cannot be.
    pub async fn revive_supervisor(&self, id: SupervisorId) -> OrderResult {
        let inner = Arc::clone(&self.inner);
        done(tokio::spawn(async move { inner.revive(id).await }).await)
    }
}

fn done(result: Result<OrderResult, tokio::task::JoinError>) -> OrderResult {
    result.unwrap_or_else(|error| OrderResult::Failed(format!("the order was interrupted: {error}")))
}

impl Inner {
    async fn execute(self: &Arc<Self>, term: Term, order: &Order) -> OrderResult {
        // Before the lock: it may take a while.
        let last_lines = match order {
            Order::GiveUp { name, .. } => self.backend.last_lines(name, GIVEN_UP_LINES).await,
            _ => Vec::new(),
        };
        let _lock = match self.lock().await {
            Ok(lock) => lock,
            Err(error) => return went_wrong(&error),
        };
        let result = match self.admit(term) {
            Err(refusal) => refusal,
            Ok(()) => self.carry_out(order, last_lines).await,
        };
        if !matches!(result, OrderResult::Done) {
            self.home.event(
                "refused",
                json!({"name": order.name(), "order": order, "term": term.to_string(), "result": result}),
            );
        }
        result
    }

    async fn lock(self: &Arc<Self>) -> Result<HomeLock, Error> {
        let home = self.home.clone();
        let locked = tokio::task::spawn_blocking(move || home.lock()).await;
        locked.map_err(|error| Error::Interrupted(error.to_string()))?
    }

    /// Under the lock. The term is written down before anything is done for it.
    fn admit(&self, term: Term) -> Result<(), OrderResult> {
        let path = self.home.run("fence.json");
        let seen: Option<Term> = read_json(&path);
        if seen.is_none() && path.exists() {
            self.home.event("fence_lost", json!({"file": path, "because": "it was damaged; it begins anew"}));
        }
        let mut fence = Fence::default();
        if let Some(seen) = seen {
            // An empty fence admits everything.
            let _ = fence.admit(seen);
        }
        fence.admit(term).map_err(OrderResult::Fenced)?;
        if fence.highest() != seen {
            write_json(&path, &term).map_err(|error| went_wrong(&error))?;
        }
        Ok(())
    }

    async fn carry_out(&self, order: &Order, last_lines: Vec<String>) -> OrderResult {
        match order {
            Order::Start { name, incarnation, because, streak } => {
                self.start(name, *incarnation, because, *streak).await
            }
            Order::Kill { name, incarnation, because } => {
                let result = self.backend.kill(name, *incarnation).await;
                if result.is_ok() {
                    self.home.event("killed", json!({"name": name, "incarnation": incarnation, "because": because}));
                }
                answer(result)
            }
            Order::Stop { name, incarnation } => {
                let result = self.backend.stop(name, *incarnation).await;
                if result.is_ok() {
                    self.home.event("stopped", json!({"name": name, "incarnation": incarnation}));
                }
                answer(result)
            }
            Order::GiveUp { name, reason } => self.give_up(name, reason, last_lines),
        }
    }

    async fn start(&self, name: &ProcessName, incarnation: Incarnation, because: &str, streak: Streak) -> OrderResult {
        if self.home.is_closed() {
            return OrderResult::Closed;
        }
        let result = self.backend.start(name, incarnation).await;
        if result.is_ok() {
            self.note_start(name, incarnation, streak);
            let life = self.records.read(name).and_then(|record| record.life);
            let pid = life.map(|life| life.pid);
            let fields = json!({"name": name, "incarnation": incarnation, "pid": pid, "because": because});
            self.home.event("started", fields);
        }
        answer(result)
    }

    /// A back-end that keeps no records of its own gets its history here.
    fn note_start(&self, name: &ProcessName, incarnation: Incarnation, streak: Streak) {
        let role = role_of(name);
        let mut record = self.records.read_or_new(name, role);
        let before = record.clone();
        if record.incarnation < incarnation {
            record.begin(incarnation, None, unix_ms());
        }
        record.history.streak = streak;
        if record != before
            && let Err(error) = self.records.write(&record)
        {
            tracing::warn!(%name, %error, "a start cannot be written down");
        }
    }

    fn give_up(&self, name: &ProcessName, reason: &str, last_lines: Vec<String>) -> OrderResult {
        let mut record = self.records.read_or_new(name, role_of(name));
        if record.history.given_up.is_some() {
            return OrderResult::Done;
        }
        let given_up = GivenUp { reason: reason.to_owned(), at_unix_ms: unix_ms(), last_lines };
        let fields = json!({"name": name, "incarnation": record.incarnation, "reason": reason, "last_lines": given_up.last_lines});
        record.history.given_up = Some(given_up);
        match self.records.write(&record) {
            Ok(()) => {
                self.home.event("given_up", fields);
                OrderResult::Done
            }
            Err(error) => went_wrong(&error),
        }
    }

    async fn revive(self: &Arc<Self>, id: SupervisorId) -> OrderResult {
        let here = self.config.supervisor(id).filter(|supervisor| supervisor.machine == self.machine);
        let Some(supervisor) = here else {
            return OrderResult::Failed(format!("supervisor {id} does not belong to machine {:?}", self.machine));
        };
        let _lock = match self.lock().await {
            Ok(lock) => lock,
            Err(error) => return went_wrong(&error),
        };
        let name = supervisor.name();
        let record = self.records.read_or_new(&name, ProcessRole::Supervisor);
        if record.history.given_up.is_some() {
            return OrderResult::OutOfDate(format!("{name} was given up"));
        }
        // The back-end looks whether it lives, by its record, by the census and by the lock on its name.
        let because = if record.incarnation == Incarnation(0) { "first start" } else { "revived without a leader" };
        // Docker and systemd count lives by the time of their starts.
        let found = self.backend.inspect().await.unwrap_or_default();
        let latest = found.iter().filter(|found| found.name == name).map(|found| found.incarnation).max();
        let latest = latest.unwrap_or_default().max(record.incarnation);
        self.start(&name, Incarnation(latest.0 + 1), because, record.history.streak).await
    }

    fn with_history(&self, found: Vec<Found>) -> Vec<MachineProcess> {
        let with = |found: Found| {
            let mut record = self.records.read_or_new(&found.name, found.role);
            // A back-end that keeps no records of its own: what it says of the end is written down here.
            if let Some(ending) = found.ended
                && found.incarnation.0 > 0
                && record.end(found.incarnation, ending)
            {
                self.note_ending(&found, ending);
            }
            MachineProcess { history: record.history, found }
        };
        found.into_iter().map(with).collect()
    }

    fn note_ending(&self, found: &Found, ending: Ending) {
        let Ok(_lock) = self.home.lock_within(NOTE_PATIENCE) else { return };
        let mut record = self.records.read_or_new(&found.name, found.role);
        if record.end(found.incarnation, ending) && self.records.write(&record).is_ok() {
            self.home.ended(&found.name, found.incarnation, ending);
        }
    }
}

fn answer(result: Result<(), BackendError>) -> OrderResult {
    match result {
        Ok(()) => OrderResult::Done,
        Err(BackendError::OutOfDate { detail, .. }) => OrderResult::OutOfDate(detail),
        Err(error) => went_wrong(&error.into()),
    }
}

fn went_wrong(error: &Error) -> OrderResult {
    match error.outside_cause() {
        Some(cause) => OrderResult::Obstructed(cause, error.to_string()),
        None => OrderResult::Failed(error.to_string()),
    }
}

/// Only for the record of a process that no back-end of ours has described: `ROLE-N` is how they are called.
fn role_of(name: &ProcessName) -> ProcessRole {
    name.as_str().split('-').next().and_then(|role| role.parse().ok()).unwrap_or(ProcessRole::Worker)
}

#[cfg(test)]
mod tests;
