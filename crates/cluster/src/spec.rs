//! What a job asks, and how it ended, as it travels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tenaz_core::{Fact, FailedQuery, FileEntry, OffsetRanges, WorkloadText};

/// What a job asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The version of tenaz that planned it, for people; the job's card names the build.
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
        short_digest(&serde_json::to_vec(self).expect("a spec is plain data"))
    }
}

/// The first half of the bytes' SHA-256, in hexadecimal digits.
pub fn short_digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A message of a job's control log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// What the job asks: the first message. Repeated when its creation was in doubt.
    Spec(Box<JobSpec>),
    /// A fact.
    Fact(Fact),
    /// Written by a process that reads the log from its start: when it reads this, it has read all that was there before.
    Mark(u64),
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
    /// When it became final, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_at_ms: Option<u64>,
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
    /// Chunks that they were cut into.
    pub chunks: u64,
}

/// Where the rows of one answer, or the bad records, stand in a results log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedRows {
    /// How many there are.
    pub rows: u64,
    /// Offsets of the messages that carry them.
    pub at: OffsetRanges,
}

impl IndexedRows {
    /// Takes note of the rows of the message at `offset`.
    pub fn note(&mut self, offset: u64, rows: usize) {
        if rows > 0 {
            self.rows += rows as u64;
            self.at.insert(offset);
        }
    }
}

/// Where rows stand in a results log, most of whose messages may be accounts of chunks without any. It saves reading,
/// and proves nothing: a lone broker whose power was cut may have given the offsets to other messages. A reader that does not
/// find as many rows as promised reads the whole log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultIndex {
    /// The offset behind the last message that counts: the end stands there, or later.
    pub read_to: u64,
    /// The rows of the queries, in the order asked.
    pub queries: Vec<IndexedRows>,
    /// The bad records.
    pub rejects: IndexedRows,
}

/// The last message of a results log: everything is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultEnd {
    /// The queries that were answered, in the order asked.
    pub queries: Vec<QueryEnd>,
    /// Those that could not be answered, in the order asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedQuery>,
    /// The tables read, in the workload's order.
    pub tables: Vec<TableEnd>,
    /// Where the rows are, if the writer knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<ResultIndex>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tenaz_core::{DoneSummary, End};

    use super::*;

    #[test]
    fn an_end_of_a_job_without_numbers_is_an_end_all_the_same() {
        let read = |text: &str| serde_json::from_str::<End>(text).unwrap();
        assert_eq!(read(r#"{"state":"done"}"#), End::Done(DoneSummary::default()));
        let done = End::Done(DoneSummary { chunks: 262, records: 7, end_from: 270, ..DoneSummary::default() });
        assert_eq!(read(&serde_json::to_string(&done).unwrap()), done);
    }

    #[test]
    fn messages_without_rows_are_not_in_the_index() {
        let mut indexed = IndexedRows::default();
        indexed.note(3, 0);
        assert_eq!(indexed, IndexedRows::default());
        indexed.note(4, 7);
        assert_eq!((indexed.rows, indexed.at.ranges()), (7, [(4, 5)].as_slice()));
    }
}
