//! Identity comes from the input: an id never says who made a message, nor when.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A table of the job's workload, by its place in the workload file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableId(pub u16);

/// A query of the job, by its place among the queries asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryId(pub u16);

/// A stage of the job's plan. A stage has exactly one outgoing edge, so this names the edge, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageId(pub u16);

/// A slice of the job's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Partition(pub u16);

/// The code that a process runs, as a digest. Processes with the same id plan, compute and write the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BuildId(String);

impl BuildId {
    /// The build with this digest.
    pub fn new(digest: impl Into<String>) -> Self {
        Self(digest.into())
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..12).unwrap_or(&self.0))
    }
}

/// What a message was derived from. Two messages of one log with the same source are the same message.
///
/// The order of sources is the order in which a task reads its input, so that it sees the same rows in the same order
/// whoever sent them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The leaf work of one chunk, for all stages that scan its table.
    Chunk {
        /// The table the chunk belongs to.
        table: TableId,
        /// The chunk's number within the table.
        number: u64,
    },
    /// One inner task.
    Task {
        /// The stage whose work it was.
        stage: StageId,
        /// The partition it was done for.
        partition: Partition,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk { table, number } => write!(f, "chunk {number} of table {}", table.0),
            Self::Task { stage, partition } => write!(f, "stage {} of partition {}", stage.0, partition.0),
        }
    }
}

/// A job, by an id that says nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JobId(String);

impl JobId {
    /// The id with this text, if it is one: 16 characters of `0-9a-f`, so that it can be part of any name.
    pub fn parse(text: &str) -> Option<Self> {
        let plain = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        plain.then(|| Self(text.to_owned()))
    }

    /// The id made of these bytes, which should be random or a hash.
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(format!("{:016x}", u64::from_be_bytes(bytes)))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A process of the cluster in one of its lives: a process that is started again is another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A supervisor, by the number that it has in the configuration, in all its lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SupervisorId(pub u16);

impl fmt::Display for SupervisorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
