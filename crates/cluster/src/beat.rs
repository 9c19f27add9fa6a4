//! Heartbeats: who is there, what it does, how far it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenaz_core::{BoundedText, BuildId, Claim, JobId, MemberId};

use crate::ProcessSigns;

/// The kinds of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Runs tasks.
    Worker,
    /// Serves clients.
    Gateway,
}

/// How far a job is, as the owner of its results sees it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobProgress {
    /// Chunks worked on.
    pub chunks: u64,
    /// Bytes of CSV in them.
    pub bytes: u64,
    /// Records in them.
    pub records: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Inner tasks done whose rows are answers.
    pub answers: u64,
}

impl JobProgress {
    /// A number that grows with the job's progress.
    pub fn steps(&self) -> u64 {
        self.chunks.saturating_add(self.answers)
    }
}

/// What members say about a job, taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobActivity {
    /// Chunks delivered and not acknowledged, and tasks begun.
    pub under_way: u64,
    /// [`JobProgress::steps`] of the member that knows most.
    pub steps: u64,
}

/// A heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beat {
    /// Who.
    pub member: MemberId,
    /// What kind of process.
    pub role: Role,
    /// Its machine and process id, for people.
    pub host: String,
    /// Its process id.
    pub pid: u32,
    /// Where a gateway listens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The code that it runs.
    #[serde(default)]
    pub build: BuildId,
    /// Jobs that a worker cannot serve although it runs their build, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<JobId, BoundedText>,
    /// What a worker owns.
    #[serde(default)]
    pub claims: BTreeMap<JobId, Claim>,
    /// What an owner of results knows.
    #[serde(default)]
    pub progress: BTreeMap<JobId, JobProgress>,
    /// Chunks that were delivered to a worker and are not acknowledged, and tasks that it has begun, per job. The broker does not
    /// say how many chunks are unacknowledged.
    #[serde(default)]
    pub under_way: BTreeMap<JobId, u64>,
    /// What it is called and what it uses, for people.
    #[serde(default)]
    pub signs: ProcessSigns,
    /// Whether it is about to leave: its part goes to others at once.
    #[serde(default)]
    pub leaving: bool,
    /// A member that this one has found dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone: Option<MemberId>,
}
