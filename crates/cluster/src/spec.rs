//! What a job asks, and how it ended, as it travels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenaz_core::{Fact, FileEntry, WorkloadText};

/// What a job asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The version of tenaz that planned it: plans of other versions may differ.
    pub version: String,
    /// The workload.
    pub workload: WorkloadText,
    /// The queries asked, in this order; empty: all.
    pub queries: Vec<String>,
    /// How many partitions.
    pub partitions: u16,
    /// Bytes of a chunk: whoever resumes an upload must cut at the same places.
    pub chunk_bytes: u64,
    /// Whether the first bad record fails the job.
    pub strict: bool,
    /// The client's files, where it told.
    #[serde(default)]
    pub files: Vec<FileEntry>,
}

impl JobSpec {
    /// The digest that tells two requests apart.
    pub fn digest(&self) -> String {
        let text = serde_json::to_vec(self).expect("a spec is plain data");
        Sha256::digest(&text).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A message of a job's control log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// What the job asks: the first message. Repeated when its creation was in doubt.
    Spec(Box<JobSpec>),
    /// A fact.
    Fact(Fact),
}

/// The end of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueryEnd {
    /// Its name.
    pub name: String,
    /// Rows of the answer.
    pub rows: u64,
    /// SHA-256 of the answer's CSV form.
    pub fingerprint: String,
    /// Whether the order of rows is part of the answer.
    pub ordered: bool,
}

/// The account of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    pub reasons: BTreeMap<String, u64>,
    /// Bytes of its files.
    pub bytes: u64,
}

/// The last message of a results log: everything is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultEnd {
    /// The queries, in the order asked.
    pub queries: Vec<QueryEnd>,
    /// The tables read, in the workload's order.
    pub tables: Vec<TableEnd>,
}
