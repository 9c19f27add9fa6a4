//! `cluster.toml`: what a cluster consists of, and how it is kept alive.
//!
//! Reading is strict: what is not known, not possible or contradicts itself is an error that names line, column and cure. A
//! typing mistake must not become a cluster that heals a little worse.

mod broker;
mod check;
mod file;
mod here;
mod protection;
mod render;
mod sections;

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenaz_core::{ProcessName, ProcessRole, SupervisorId};

use crate::limits::MAX_CONFIG_BYTES;

pub use broker::BrokerAddress;

/// What is wrong with a `cluster.toml`.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// Its text is wrong.
    #[error("{file}:{line}:{column}: {problem}; {cure}")]
    Wrong {
        /// The file, as its reader named it.
        file: String,
        /// 1-based.
        line: usize,
        /// 1-based, in characters.
        column: usize,
        /// What was found.
        problem: String,
        /// What to write instead.
        cure: String,
    },
}

/// A cluster as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// What people call it.
    pub name: String,
    /// What all names on the broker begin with.
    pub prefix: String,
    /// The broker, if the cluster does not run one itself.
    pub broker: Option<BrokerAddress>,
    /// The private RabbitMQ node that the cluster runs itself.
    pub broker_node: Option<BrokerNode>,
    /// Where the shared key is, relative to the file.
    pub key_file: PathBuf,
    /// How death and hanging are noticed.
    pub supervision: Supervision,
    /// How often and how fast a process is started again.
    pub restarts: Restarts,
    /// Where things run.
    pub machines: Vec<Machine>,
    /// Who watches, in the order of their ids.
    pub supervisors: Vec<Supervisor>,
}

/// A private RabbitMQ node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokerNode {
    /// On which machine.
    pub machine: String,
    /// Its AMQP port, on 127.0.0.1.
    pub port: u16,
}

/// How death and hanging are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    /// How often a process says that it lives.
    pub heartbeat_every: Duration,
    /// A process that makes no progress for so long hangs, and is replaced.
    pub hang_after: Duration,
    /// A process that is not ready by then counts as a failed start.
    pub start_within: Duration,
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            heartbeat_every: Duration::from_millis(500),
            hang_after: Duration::from_secs(3),
            start_within: Duration::from_secs(60),
        }
    }
}

/// How often and how fast a process is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restarts {
    /// The wait before the second restart; the first is immediate. It doubles each time.
    pub backoff: Duration,
    /// The longest wait.
    pub backoff_cap: Duration,
    /// Ready for so long: the backoff begins anew.
    pub healthy_after: Duration,
    /// So many lives in a row that never got ready: given up.
    pub failed_starts: u32,
    /// Restarts of one process within the window.
    pub per_process: u32,
    /// Restarts of all processes within the window.
    pub per_cluster: u32,
    /// The window.
    pub window: Duration,
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            backoff: Duration::from_millis(500),
            backoff_cap: Duration::from_secs(30),
            healthy_after: Duration::from_secs(10),
            failed_starts: 5,
            per_process: 30,
            per_cluster: 150,
            window: Duration::from_secs(600),
        }
    }
}

/// A machine and what runs there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name in the file.
    pub name: String,
    /// Where the others reach it.
    pub address: IpAddr,
    /// What runs its processes.
    pub back_end: BackEnd,
    /// How many workers. Only with [`BackEnd::Processes`]: the others know by themselves what they have.
    pub workers: u32,
    /// Where its gateways listen, one each. Only with [`BackEnd::Processes`].
    pub gateways: Vec<SocketAddr>,
    /// More options for each `tenaz worker`.
    pub worker_options: Vec<String>,
    /// More options for each `tenaz gateway`.
    pub gateway_options: Vec<String>,
}

impl Machine {
    /// A machine at this address with nothing on it.
    pub fn new(name: impl Into<String>, address: IpAddr) -> Self {
        Self {
            name: name.into(),
            address,
            back_end: BackEnd::Processes,
            workers: 0,
            gateways: Vec::new(),
            worker_options: Vec::new(),
            gateway_options: Vec::new(),
        }
    }
}

/// What runs the processes of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackEnd {
    /// The supervisors themselves, as child processes.
    Processes,
    /// Docker's engine.
    Docker(DockerSettings),
    /// systemd.
    Systemd(SystemdSettings),
}

impl BackEnd {
    /// Its name in the file.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Docker(_) => "docker",
            Self::Systemd(_) => "systemd",
        }
    }
}

/// How Docker's engine is reached, and which containers are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerSettings {
    /// The engine's socket.
    pub socket: PathBuf,
    /// Containers with this label (`key=value`) belong to the cluster.
    pub label: String,
}

/// Which of systemd's units are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdSettings {
    /// Their names, such as `tenaz-worker@1.service`.
    pub units: Vec<String>,
    /// Whether they belong to the user's systemd and not to the system's.
    pub user: bool,
}

/// A supervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Supervisor {
    /// Higher ids win elections.
    pub id: SupervisorId,
    /// Where it runs.
    pub machine: String,
    /// TCP for the other supervisors and `tenaz status`, UDP for heartbeats.
    pub listen: SocketAddr,
}

impl Supervisor {
    /// Its name as a process.
    pub fn name(&self) -> ProcessName {
        ProcessName::numbered(ProcessRole::Supervisor, u32::from(self.id.0))
    }
}

/// A process that the supervisors start themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessSpec {
    /// Its name in the cluster.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Where it runs.
    pub machine: String,
    /// Where it listens: gateways, supervisors and the broker.
    pub listen: Option<SocketAddr>,
    /// More options for its command line.
    pub options: Vec<String>,
}

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// What is wrong, where, and what to write instead.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let unreadable = |source| ConfigError::Unreadable { path: path.to_owned(), source };
        let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
        if bytes > MAX_CONFIG_BYTES {
            let text = format!("it has {bytes} bytes, and the limit for such a file is {MAX_CONFIG_BYTES}");
            return Err(unreadable(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text)));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Checks a text. `file_name` is for its errors.
    ///
    /// # Errors
    /// What is wrong, where, and what to write instead.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, ConfigError> {
        check::parse(text, file_name)
    }

    /// The file that describes this cluster, with a word about every field. Reading it gives this cluster again.
    pub fn to_toml(&self) -> String {
        render::render(self)
    }

    /// All processes that the supervisors start themselves, in the order of their start: supervisors, broker, workers,
    /// gateways. What Docker or systemd runs is not here: those know what they have.
    pub fn processes(&self) -> Vec<ProcessSpec> {
        let mut found: Vec<ProcessSpec> = self.supervisors.iter().map(ProcessSpec::supervisor).collect();
        found.extend(self.broker_node.iter().map(ProcessSpec::broker));
        let own = || self.machines.iter().filter(|m| m.back_end == BackEnd::Processes);
        for machine in own() {
            for _ in 0..machine.workers {
                let number = found.iter().filter(|p| p.role == ProcessRole::Worker).count() + 1;
                found.push(ProcessSpec::on(machine, ProcessRole::Worker, number, None, &machine.worker_options));
            }
        }
        for machine in own() {
            for &listen in &machine.gateways {
                let number = found.iter().filter(|p| p.role == ProcessRole::Gateway).count() + 1;
                let options = &machine.gateway_options;
                found.push(ProcessSpec::on(machine, ProcessRole::Gateway, number, Some(listen), options));
            }
        }
        found
    }

    /// A machine by name.
    pub fn machine(&self, name: &str) -> Option<&Machine> {
        self.machines.iter().find(|machine| machine.name == name)
    }

    /// A supervisor by id.
    pub fn supervisor(&self, id: SupervisorId) -> Option<&Supervisor> {
        self.supervisors.iter().find(|supervisor| supervisor.id == id)
    }

    /// How many supervisors must agree.
    pub fn majority(&self) -> usize {
        self.supervisors.len() / 2 + 1
    }

    /// What is allowed, but probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let supervisors = self.supervisors.len();
        if supervisors.is_multiple_of(2) {
            found.push(format!(
                "{supervisors} supervisors bear the loss of no more than {} would: use an odd number",
                supervisors - 1
            ));
        }
        found
    }
}

impl ProcessSpec {
    fn supervisor(supervisor: &Supervisor) -> Self {
        Self {
            name: supervisor.name(),
            role: ProcessRole::Supervisor,
            machine: supervisor.machine.clone(),
            listen: Some(supervisor.listen),
            options: Vec::new(),
        }
    }

    fn broker(node: &BrokerNode) -> Self {
        Self {
            name: ProcessName::numbered(ProcessRole::Broker, 1),
            role: ProcessRole::Broker,
            machine: node.machine.clone(),
            listen: Some(SocketAddr::from(([127, 0, 0, 1], node.port))),
            options: Vec::new(),
        }
    }

    fn on(machine: &Machine, role: ProcessRole, number: usize, listen: Option<SocketAddr>, options: &[String]) -> Self {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            name: ProcessName::numbered(role, number),
            role,
            machine: machine.name.clone(),
            listen,
            options: options.to_vec(),
        }
    }
}

#[cfg(test)]
mod effects;
#[cfg(test)]
mod tests;
