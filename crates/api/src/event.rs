//! Server-sent events.
//!
//! `GET /v1/jobs/{job}/events`: every event says how things are, not what has changed.
//!
//! | event | data |
//! |---|---|
//! | `state` | [`StateEvent`] |
//! | `table` | [`TableState`](crate::TableState) |
//! | `question` | [`Question`](crate::Question): at the beginning, and when its state changes |
//! | `progress` | [`JobProgress`](crate::JobProgress) |
//! | `stages` | a list of [`Stage`](crate::Stage)s without their plans, when counters have changed, at most once a second |
//! | `waiting` | [`WaitingEvent`] |
//! | `end` | [`JobEnd`]: the last one |
//!
//! `GET /v1/cluster/events`: `event: cluster`, `id:` the place in the cluster's log, data [`ClusterEvent`]. All that is kept comes
//! first, then what happens; with `Last-Event-ID` only what came after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::job::{ErrorRecord, JobState, Results, Waiting};

/// The state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateEvent {
    /// The state.
    pub state: JobState,
}

/// What a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingEvent {
    /// Null: it goes on.
    pub waiting_for: Option<Waiting>,
}

/// The end of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobEnd {
    /// The state.
    pub state: JobState,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorRecord>,
    /// When it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
}

/// What has happened in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClusterEventKind {
    /// A process has begun a life and joined.
    Joined,
    /// A process has left in order.
    Left,
    /// A process is dead: its queue is gone, or it is silent.
    Died,
    /// A supervisor has started a process (again).
    Started,
    /// A life has ended, as its supervisor saw; `cause` says how: "signal 9".
    Ended,
    /// A process was killed on purpose: by `tenaz chaos`, or by its supervisor because it hung.
    Killed,
    /// A process was stopped, to look like one that hangs.
    Paused,
    /// A stopped process goes on.
    Resumed,
    /// A process will not be started any more.
    GivenUp,
    /// A supervisor was elected.
    Elected,
    /// A supervisor leads no longer.
    SteppedDown,
    /// A worker has taken over partitions of a job from another one, or from nobody.
    TookOver,
    /// A worker has read all that stood in the logs of the partitions that it took over.
    Replayed,
    /// Messages that came twice were dropped; `count` says how many since the latest such event of this member and job.
    DuplicatesDropped,
    /// A process has renewed its connection to the broker.
    LinkRenewed,
    /// A worker cannot do its part of a job, and gives it to others.
    StoodBack,
    /// A job was created.
    JobCreated,
    /// A question has become final; `fingerprint` and `rows` say as what.
    QuestionFinal,
    /// A job has ended; `cause` says how.
    JobEnded,
    /// A kind that this version does not know.
    #[serde(other)]
    #[schemars(skip)]
    Unknown,
}

/// Something that has happened in the cluster, with its time and cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterEvent {
    /// When, RFC 3339 with milliseconds, by the clock of the process that saw it.
    pub at: String,
    /// What.
    pub kind: ClusterEventKind,
    /// The process that it happened to, by name: a lane of the time axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// worker, gateway, supervisor or broker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Which of its lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub life: Option<u64>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The process that saw or did it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The job that it is about. Tenants are told of their own jobs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Partitions of that job.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<u16>,
    /// How many: duplicates dropped, messages replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The round of the term of an election.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub term: Option<u64>,
    /// The question that has become final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Its fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl ClusterEvent {
    /// An event of which nothing is known yet but what it is, and when it was.
    pub fn new(kind: ClusterEventKind, at_unix_ms: u64) -> Self {
        Self {
            at: tenaz_words::rfc3339(at_unix_ms),
            kind,
            name: None,
            role: None,
            life: None,
            cause: None,
            by: None,
            job: None,
            partitions: Vec::new(),
            count: None,
            term: None,
            question: None,
            rows: None,
            fingerprint: None,
        }
    }
}
