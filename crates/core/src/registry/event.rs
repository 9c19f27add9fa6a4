//! What is written into the registry's log. Every text in it is bounded: all processes keep it, and write it again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{BoundedText, BuildId, FailedQuery, FaultClass, JobId, TableId};

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum End {
    /// All answers are in the results log.
    Done(DoneSummary),
    /// It could not succeed.
    Failed {
        /// A stable word for programs.
        code: String,
        /// For people: what happened, and what to do.
        reason: BoundedText,
        /// Whose fault it is. Ends that were written before there were classes do not say; most of those are the data's.
        #[serde(default = "class_of_old_ends")]
        class: FaultClass,
    },
    /// A client cancelled it.
    Cancelled,
    /// No client came back in time.
    Expired,
}

fn class_of_old_ends() -> FaultClass {
    FaultClass::Data
}

impl End {
    /// Whether all answers are in the results log.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }
}

/// A done job in a few numbers: lists of jobs need no other log for them, however large the job was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DoneSummary {
    /// Chunks of all tables.
    pub chunks: u64,
    /// Bytes of CSV in them.
    pub bytes: u64,
    /// Records in them.
    pub records: u64,
    /// Records rejected.
    pub rejected: u64,
    /// Queries answered.
    pub answers: u64,
    /// An offset of the results log: the end of the results stands there, or a few messages later.
    pub end_from: u64,
    /// Queries that could not be answered: the first [`MAX_TOLD_FAILURES`](crate::limits::MAX_TOLD_FAILURES) of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedQuery>,
}

/// What everybody must know of a job to find and clean up all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCard {
    /// The job.
    pub id: JobId,
    /// Who it belongs to.
    pub tenant: String,
    /// The workload's name, for people.
    pub workload: String,
    /// How many partitions it has.
    pub partitions: u16,
    /// How many waves of chunks.
    pub waves: u16,
    /// The tables that its queries read: the upload is complete when these are.
    pub tables: BTreeSet<TableId>,
    /// Digest of all that was asked: creating the same job again is harmless, another with the same id is refused.
    pub spec_digest: String,
    /// The build that planned it. Other builds may number stages differently, or compute something else.
    #[serde(default)]
    pub build: BuildId,
    /// Digest of the plan: a worker whose own plan differs does not take part.
    #[serde(default)]
    pub plan_digest: String,
    /// When it was created, in milliseconds since 1970, for people.
    pub created_ms: u64,
}

/// An event of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum RegistryEvent {
    /// A job exists. Written before anything of it is made, so that whatever is made is known to somebody.
    Created {
        /// The job.
        card: JobCard,
    },
    /// All queues and logs of the job exist: they may be read. (A broker may crash a connection that reads a stream which is
    /// just being made.)
    Prepared {
        /// The job.
        id: JobId,
    },
    /// A job has ended. The first end counts.
    Ended {
        /// The job.
        id: JobId,
        /// How.
        end: End,
    },
    /// All that belonged to the job is gone.
    Removed {
        /// The job.
        id: JobId,
    },
    /// Nothing: a process that reads its own mark has read all that was written before.
    Mark {
        /// Whose mark.
        number: u64,
    },
    /// A job that is still there, as known to the writer: keeps it from being forgotten.
    Still {
        /// The job.
        card: JobCard,
        /// How it ended, if it did.
        end: Option<End>,
        /// Whether all its queues and logs exist.
        prepared: bool,
    },
}

impl RegistryEvent {
    /// The job that it is about.
    pub fn job(&self) -> Option<&JobId> {
        match self {
            Self::Created { card } | Self::Still { card, .. } => Some(&card.id),
            Self::Prepared { id } | Self::Ended { id, .. } | Self::Removed { id } => Some(id),
            Self::Mark { .. } => None,
        }
    }
}
