//! A cluster as one gateway sees it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `GET /v1/cluster`: members, partitions, tenants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cluster {
    /// When this was so, RFC 3339.
    pub at: String,
    /// The gateway whose view this is.
    pub seen_by: String,
    /// The latest event that stood in the cluster's log then: `GET /v1/cluster/events` with it as `Last-Event-ID` goes on there.
    /// Null while the log is not read yet, or empty.
    pub event_id: Option<u64>,
    /// Whether supervisors watch the cluster.
    pub supervision: Supervision,
    /// The supervisor that leads, if one does.
    pub leader: Option<Leader>,
    /// The broker.
    pub broker: Broker,
    /// All processes, by role and name. Tenants without the scope `operate` see roles and states only.
    pub members: Vec<Member>,
    /// What each tenant uses; without the scope `operate`, only one's own line.
    pub tenants: Vec<TenantUse>,
}

/// Whether supervisors watch a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Supervision {
    /// Supervisors are configured, and one has answered.
    Watched,
    /// Supervisors are configured, and none answers: what dies stays dead.
    Unreachable,
    /// The gateway knows of no supervisors.
    None,
}

/// The supervisor that leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leader {
    /// Its name, such as `supervisor-2`.
    pub name: String,
    /// The round of its term: each election has a higher one.
    pub term: u64,
}

/// The broker, as the gateway sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Broker {
    /// Its state.
    pub state: BrokerState,
    /// More about that, for people.
    pub text: Option<String>,
}

/// The state of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BrokerState {
    /// It answers.
    Up,
    /// It cannot be reached.
    Away,
    /// It takes no messages until memory or disk is freed.
    Blocked,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// It does its work.
    Up,
    /// It has been started, and is not ready yet.
    Starting,
    /// It is about to end in order.
    Leaving,
    /// It stands back from a job or more, and says why in `text`.
    StandsBack,
    /// It was there a moment ago; its latest heartbeat is old.
    Silent,
    /// It has ended, or its connection has.
    Dead,
    /// It will not be started again until somebody looks at it.
    GivenUp,
    /// Not known: only supervisors knew it, and none answers.
    Unknown,
}

/// A process of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Member {
    /// Its name, such as `worker-2`: the same in every life. A lane of the page's time axis.
    pub name: String,
    /// worker, gateway, supervisor or broker.
    pub role: String,
    /// Which of its lives this is: each start has a higher number. Unsupervised processes have the time of their start.
    pub life: Option<u64>,
    /// Its state.
    pub state: MemberState,
    /// More about the state, for people.
    pub text: Option<String>,
    /// Its machine.
    pub host: Option<String>,
    /// Its process id.
    pub pid: Option<u32>,
    /// Where clients reach a gateway.
    pub url: Option<String>,
    /// The code that it runs.
    pub build: Option<String>,
    /// Seconds since its latest heartbeat.
    pub silent_seconds: Option<f64>,
    /// Seconds since it was started.
    pub up_seconds: Option<f64>,
    /// A counter that its own loops advance: a hang is a pulse that stands still.
    pub pulse: Option<u64>,
    /// Resident memory.
    pub memory_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u32>,
    /// CPU time since it was started.
    pub cpu_seconds: Option<f64>,
    /// How often it was started again, as its supervisors count.
    pub restarts: Option<u64>,
    /// How its previous life ended, for people: "signal 9".
    pub last_ending: Option<String>,
    /// What it owns, per job.
    pub claims: Vec<MemberClaim>,
    /// What it does now.
    pub doing: Vec<TaskUnderWay>,
}

/// What a worker owns of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemberClaim {
    /// The job.
    pub job: String,
    /// Its partitions.
    pub partitions: Vec<u16>,
    /// Whether it gathers the answers.
    pub results: bool,
    /// Chunks delivered and not acknowledged, and tasks begun.
    pub under_way: u64,
}

/// A task that runs now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TaskUnderWay {
    /// The job.
    pub job: String,
    /// In words: "stage 4 of partition 3", "chunk 17 of reviews", "the answer to q2".
    pub text: String,
    /// For how long.
    pub seconds: f64,
}

/// What a tenant uses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TenantUse {
    /// The tenant.
    pub tenant: String,
    /// Its jobs, ended ones included.
    pub jobs: u64,
    /// Those that have not ended.
    pub open_jobs: u64,
    /// Bytes of CSV worked on, over all jobs that are still known.
    pub bytes: u64,
    /// CPU seconds computed for it, by the members that are alive.
    pub cpu_seconds: f64,
}
