//! How a cluster is: what `tenaz status` shows, and how it is asked for.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole, ProcessState, SupervisorId, Term};
use tenaz_vitals::{ClusterId, Counters, Key};

use crate::config::{Config, ProcessSpec};
use crate::error::Error;
use crate::home::Home;
use crate::limits::ASK_EACH;
use crate::peers::{Answer, Request, ask_once};

/// How a cluster is, as one supervisor sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The cluster's name.
    pub cluster: String,
    /// Who leads, if anybody does.
    pub leader: Option<SupervisorId>,
    /// The leader's term.
    pub term: Option<Term>,
    /// Whose view this is; nobody's if no supervisor answers.
    pub seen_by: Option<SupervisorId>,
    /// Whether the cluster is being stopped.
    pub closed: bool,
    /// All that are configured.
    pub supervisors: Vec<SupervisorStatus>,
    /// Those that clients can use now.
    pub gateways: Vec<GatewayStatus>,
    /// All processes, supervisors first.
    pub processes: Vec<ProcessStatus>,
    /// What the supervisor that answered has counted.
    pub counters: StatusCounters,
}

/// A supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisorStatus {
    /// Its number.
    pub id: SupervisorId,
    /// Where it runs.
    pub machine: String,
    /// Where it listens.
    pub listen: std::net::SocketAddr,
    /// Whether the supervisor that answered reaches it.
    pub connected: bool,
}

/// A gateway that can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Its name.
    pub name: ProcessName,
    /// Where clients reach it.
    pub url: String,
}

/// A process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Its name.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Where it runs.
    pub machine: String,
    /// Its process id, while it runs.
    pub pid: Option<u32>,
    /// How it stands.
    pub state: ProcessState,
    /// More about that, for people.
    pub detail: Option<String>,
    /// How long until something is done about it, if that is known.
    pub wait_seconds: Option<f64>,
    /// Its latest life.
    pub incarnation: Incarnation,
    /// How often it was started again.
    pub restarts: u64,
    /// How long ago its latest heartbeat came.
    pub heartbeat_age_seconds: Option<f64>,
    /// Whether that said that it does its work.
    pub ready: bool,
    /// How long it has been running, as it says.
    pub up_seconds: Option<f64>,
    /// What it has done, as it says.
    pub counters: Option<Counters>,
    /// Where it answers `/healthz` and `/metrics`.
    pub http: Option<std::net::SocketAddr>,
    /// Where clients reach it.
    pub url: Option<String>,
    /// How the life before ended, for people.
    pub last_ending: Option<LastEnding>,
    /// Why it is not started any more.
    pub given_up: Option<GivenUpStatus>,
    /// Where to read what it writes, for people.
    pub log: Option<String>,
}

/// How a life ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastEnding {
    /// Which.
    pub incarnation: Incarnation,
    /// How.
    pub ending: Ending,
    /// The same, for people.
    pub how: String,
    /// When.
    pub at_unix_ms: u64,
}

/// Why a process is not started any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUpStatus {
    /// The reason, for people.
    pub reason: String,
    /// Since when.
    pub at_unix_ms: u64,
    /// What its latest life wrote last.
    pub last_lines: Vec<String>,
}

/// What a supervisor has counted since it was started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCounters {
    /// Heartbeats that were believed.
    pub heartbeats: u64,
    /// Heartbeats that were not, by reason.
    pub heartbeats_refused: BTreeMap<String, u64>,
    /// Connections of peers that were not believed, by reason.
    pub peer_messages_refused: BTreeMap<String, u64>,
}

impl Status {
    /// Whether it is the leader's own view.
    pub fn is_of_leader(&self) -> bool {
        self.leader.is_some() && self.leader == self.seen_by
    }

    /// Lines of logs are long, and can be read where they are.
    pub(crate) fn leave_out_lines(&mut self) {
        let given_up = self.processes.iter_mut().filter_map(|process| process.given_up.as_mut());
        given_up.for_each(|given_up| given_up.last_lines.clear());
    }
}

/// Asks the supervisors in turn how the cluster is. The leader's view is the best; without a leader, that of whoever answers.
///
/// # Errors
/// Nobody answers in time, with what each of them did instead.
pub async fn ask(config: &Config, key: &Key, cluster: &ClusterId, deadline: Duration) -> Result<Status, Error> {
    let until = Instant::now() + deadline;
    let mut others: VecDeque<_> = config.supervisors.iter().collect();
    let (mut best, mut failures): (Option<Status>, Vec<String>) = (None, Vec::new());
    while let Some(supervisor) = others.pop_front() {
        let left = until.saturating_duration_since(Instant::now()).min(ASK_EACH);
        if left.is_zero() {
            break;
        }
        match ask_once(supervisor.listen, key, cluster, Request::Status, left).await {
            Ok(Answer::Status(status)) if status.is_of_leader() => return Ok(*status),
            Ok(Answer::Status(status)) => {
                // It knows whom to ask.
                if let Some(at) = others.iter().position(|other| Some(other.id) == status.leader)
                    && let Some(leader) = others.remove(at)
                {
                    others.push_front(leader);
                }
                if best.as_ref().is_none_or(|best| status.term > best.term) {
                    best = Some(*status);
                }
            }
            Ok(answer) => failures.push(format!("supervisor {} answered {answer:?}", supervisor.id)),
            Err(error) => failures.push(format!("supervisor {} at {}: {error}", supervisor.id, supervisor.listen)),
        }
    }
    best.ok_or_else(|| Error::NoAnswer { detail: failures.join("; ") })
}

/// What this machine itself shows, when no supervisor answers.
pub fn without_supervisors(home: &Home, config: &Config) -> Status {
    let running = home.running();
    let process = |spec: ProcessSpec| {
        let member = running.iter().find(|member| member.name == spec.name);
        let record = home.records().read_or_new(&spec.name, spec.role);
        let last = record.history.endings.last();
        ProcessStatus {
            pid: member.map(|member| member.pid),
            state: if member.is_some() { ProcessState::Unknown } else { ProcessState::Stopped },
            detail: Some(if member.is_some() { "runs unwatched" } else { "does not run" }.to_owned()),
            wait_seconds: None,
            incarnation: member.map_or(record.incarnation, |member| member.incarnation),
            restarts: record.history.restarts,
            heartbeat_age_seconds: None,
            ready: false,
            up_seconds: member.map(|member| member.age_ms as f64 / 1000.0),
            counters: None,
            http: None,
            url: spec.listen.filter(|_| spec.role == ProcessRole::Gateway).map(|listen| format!("http://{listen}")),
            last_ending: last.map(|last| LastEnding {
                incarnation: last.incarnation,
                ending: last.ending,
                how: last.ending.to_string(),
                at_unix_ms: last.at_unix_ms,
            }),
            given_up: record.history.given_up.as_ref().map(|given_up| GivenUpStatus {
                reason: given_up.reason.clone(),
                at_unix_ms: given_up.at_unix_ms,
                last_lines: given_up.last_lines.clone(),
            }),
            log: Some(home.log_path(&spec.name).display().to_string()),
            name: spec.name,
            role: spec.role,
            machine: spec.machine,
        }
    };
    let processes: Vec<ProcessStatus> = config.processes().into_iter().map(process).collect();
    let gateways = processes.iter().filter(|process| process.pid.is_some());
    let gateways =
        gateways.filter_map(|process| Some(GatewayStatus { name: process.name.clone(), url: process.url.clone()? }));
    let supervisor = |known: &crate::config::Supervisor| SupervisorStatus {
        id: known.id,
        machine: known.machine.clone(),
        listen: known.listen,
        connected: false,
    };
    Status {
        cluster: config.name.clone(),
        leader: None,
        term: None,
        seen_by: None,
        closed: home.is_closed(),
        supervisors: config.supervisors.iter().map(supervisor).collect(),
        gateways: gateways.collect(),
        processes,
        counters: StatusCounters::default(),
    }
}
