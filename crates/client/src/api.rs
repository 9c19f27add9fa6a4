//! What travels between clients and gateways as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tenaz_core::{ChunkDigest, FailedQuery, FaultClass};
pub use tenaz_core::{FileEntry, WorkloadText};

use crate::Ranges;

/// A job to be made.
#[derive(Debug, Clone, Serialize)]
pub struct NewJob {
    /// The workload.
    pub workload: WorkloadText,
    /// The queries asked; empty: all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
    /// Whether the first bad record fails the job.
    pub strict: bool,
    /// Bytes of all files.
    pub data_bytes: u64,
    /// Slices of the keys; `None`: by the size of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u16>,
    /// Bytes of a chunk; `None`: as the gateway likes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<u64>,
    /// The files.
    pub files: Vec<FileEntry>,
}

/// A job that was made.
#[derive(Debug, Clone, Deserialize)]
pub struct NewJobAnswer {
    /// Its id.
    pub job: String,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// The tables to send, those that others wait for first.
    pub tables: Vec<String>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Chunks are still missing.
    Uploading,
    /// All chunks are there.
    Processing,
    /// The answers are there.
    Done,
    /// It failed.
    Failed,
    /// Somebody cancelled it.
    Cancelled,
    /// Nobody went on with it.
    Expired,
    /// A state that this version does not know.
    #[serde(other)]
    Unknown,
}

/// What a job asks.
#[derive(Debug, Clone, Deserialize)]
pub struct Spec {
    /// The workload.
    pub workload: WorkloadText,
    /// The queries asked; empty: all.
    #[serde(default)]
    pub queries: Vec<String>,
    /// Whether the first bad record fails the job.
    #[serde(default)]
    pub strict: bool,
    /// The files, where the client told.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

/// How far a table is.
#[derive(Debug, Clone, Deserialize)]
pub struct TableState {
    /// Its name.
    pub name: String,
    /// Whether it is known how many chunks it has.
    #[serde(default)]
    pub closed: bool,
}

/// How far a job is.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobProgress {
    /// Chunks worked on.
    pub chunks: u64,
    /// Chunks that the cluster knows of.
    pub chunks_known: u64,
    /// Bytes worked on.
    pub bytes: u64,
    /// Records worked on.
    pub records: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Queries answered.
    pub answers: u64,
}

/// A line of the list of jobs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct JobLine {
    /// Its id.
    #[serde(rename(deserialize = "job"))]
    pub id: String,
    /// The workload's name.
    pub workload: String,
    /// Where it stands.
    pub state: String,
    /// When it was made.
    #[serde(default)]
    pub created: String,
    /// How far it is.
    #[serde(default)]
    pub progress: JobProgress,
}

/// The list of jobs.
#[derive(Debug, Deserialize)]
pub(crate) struct JobLines {
    pub(crate) jobs: Vec<JobLine>,
}

/// What a job waits for: a code for programs and a text for people.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Told {
    /// The stable code.
    pub code: String,
    /// The text.
    pub text: String,
}

/// Why a job failed, or why a stream of rows has no end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ErrorRecord {
    /// The stable code.
    pub code: String,
    /// The text.
    pub text: String,
    /// Whose fault it is. Gateways that do not say are older than classes; they told of jobs that failed for good.
    #[serde(default = "class_of_old_records")]
    pub class: FaultClass,
    /// How the job ended, if that is the reason. Otherwise the gateway could not do it, and another one may.
    #[serde(default)]
    pub state: Option<State>,
}

fn class_of_old_records() -> FaultClass {
    FaultClass::Data
}

/// The end of a query.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct QueryEnd {
    /// Its name.
    pub name: String,
    /// Rows of the answer.
    pub rows: u64,
    /// SHA-256 of the answer's CSV form.
    pub fingerprint: String,
}

/// The account of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TableEnd {
    /// Its name.
    pub name: String,
    /// Records read.
    pub records: u64,
    /// Records that became rows.
    pub accepted: u64,
    /// Records that did not.
    pub rejected: u64,
    /// Rejected records by reason.
    #[serde(default)]
    pub reasons: BTreeMap<String, u64>,
    /// Bytes of its files.
    #[serde(default)]
    pub bytes: u64,
}

/// The results of a job that is done.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Results {
    /// The queries that were answered, in the order asked.
    pub queries: Vec<QueryEnd>,
    /// Those that could not be answered.
    #[serde(default)]
    pub failed: Vec<FailedQuery>,
    /// The tables read, in the workload's order.
    pub tables: Vec<TableEnd>,
}

/// A job, as a gateway sees it.
#[derive(Debug, Clone, Deserialize)]
pub struct Job {
    /// Its id.
    pub job: String,
    /// Where it stands.
    pub state: State,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// What it asks.
    pub spec: Spec,
    /// Its tables.
    #[serde(default)]
    pub tables: Vec<TableState>,
    /// How far it is.
    #[serde(default)]
    pub progress: JobProgress,
    /// Why it cannot advance.
    #[serde(default)]
    pub waiting_for: Option<Told>,
    /// Why it failed.
    #[serde(default)]
    pub error: Option<ErrorRecord>,
    /// When it is done.
    #[serde(default)]
    pub results: Option<Results>,
}

/// What is missing of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct TableMissing {
    /// Its name.
    pub name: String,
    /// Whether it is known how many chunks it has.
    #[serde(default)]
    pub closed: bool,
    /// The chunks that are missing.
    pub missing: Ranges,
}

/// What is missing of a job.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Missing {
    /// By table.
    pub tables: Vec<TableMissing>,
}

/// Digests of a table's chunks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Digests {
    /// From the chunk asked for on; null: no such chunk was received.
    pub(crate) digests: Vec<Option<ChunkDigest>>,
}

/// What a table consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Finish {
    /// Its chunks.
    pub chunks: u64,
    /// Its records.
    pub records: u64,
    /// The bytes of its files.
    pub bytes: u64,
}

/// Why a gateway refused: RFC 9457.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Problem {
    pub(crate) code: String,
    /// Proxies and old gateways do not say.
    #[serde(default)]
    pub(crate) class: Option<FaultClass>,
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) detail: String,
}
