//! What a message says about itself, and in which log it stands.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Lineage, Partition, Source};

/// A log of a job: append-only, replayable from its start by anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Log {
    /// Facts about the job itself: what it asks, what was uploaded, what was tried.
    Control,
    /// Rows for everybody who scans.
    Broadcast,
    /// Rows for the inner tasks of one partition.
    Partition(Partition),
    /// Rows of answers, and the account of every chunk.
    Results,
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("control"),
            Self::Broadcast => f.write_str("broadcast"),
            Self::Partition(partition) => write!(f, "{}", partition.0),
            Self::Results => f.write_str("results"),
        }
    }
}

/// The identity of a message within its log.
///
/// A task's output for one log may be too large for one message; then it travels in parts. `content` is a digest of the
/// whole output: parts belong together when they have the same source *and* the same content, so parts made by two
/// workers mix only where it makes no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Header {
    /// What the message was derived from.
    pub source: Source,
    /// Digest of the whole output for this log.
    pub content: u64,
    /// Which part this is, from 0.
    pub part: u32,
    /// How many parts there are, at least 1.
    pub parts: u32,
    /// Which bytes the output was made of.
    pub lineage: Lineage,
}
