use crate::{ChaosError, ChunkDigest, Classified, Failure, FaultClass, QueryId, Source, StageId, TableId};

/// What can be wrong with the events of a job. All of them mean that two parties disagree about the job: none is
/// cured by trying again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A number is over a bound of [`crate::limits`].
    #[error("{what} is {found}, but the limit is {limit}")]
    Limit {
        /// What was counted.
        what: &'static str,
        /// The number found.
        found: u64,
        /// The largest number allowed.
        limit: u64,
    },
    /// A stage reads a stage that does not come before it, so nothing could ever be complete.
    #[error("stage {stage:?} reads stage {reads:?}, which does not come before it")]
    ForwardRead {
        /// The reading stage.
        stage: StageId,
        /// The stage that is read too early.
        reads: StageId,
    },
    /// A table was closed twice with different numbers of chunks.
    #[error("table {table:?} was closed with {before} chunks and then with {now}")]
    ClosedTwice {
        /// The table.
        table: TableId,
        /// Chunks promised first.
        before: u64,
        /// Chunks promised now.
        now: u64,
    },
    /// A chunk arrived whose number the closed table does not have.
    #[error("table {table:?} was closed with {chunks} chunks, but chunk {number} arrived")]
    ChunkBeyondEnd {
        /// The table.
        table: TableId,
        /// Chunks promised.
        chunks: u64,
        /// The stray chunk.
        number: u64,
    },
    /// The rows of a task's input do not come from as many outputs as the protocol has counted.
    #[error("{task} reads rows of {counted} outputs, but rows of {taken} were taken in")]
    InputLost {
        /// The task.
        task: Source,
        /// Outputs whose ids have arrived.
        counted: u64,
        /// Outputs whose rows are there.
        taken: u64,
    },
    /// Rows that only one task reads were asked for again.
    #[error("the rows of stage {edge:?} for {task} were handed out before")]
    InputTakenTwice {
        /// The task that asks.
        task: Source,
        /// The stage that made the rows.
        edge: StageId,
    },
    /// A chunk was sent twice with different bytes.
    #[error(
        "chunk {number} of table {table:?} was sent twice with different bytes (digests {before} and {now}): its file was changed, or two clients have different files"
    )]
    ChunkChanged {
        /// The table.
        table: TableId,
        /// The chunk.
        number: u64,
        /// The digest of the bytes that were known first.
        before: ChunkDigest,
        /// The digest of the others.
        now: ChunkDigest,
    },
    /// A receipt does not have one digest per chunk.
    #[error("a receipt names {chunks} chunks of table {table:?} and {digests} digests")]
    BadReceipt {
        /// The table.
        table: TableId,
        /// Its chunks.
        chunks: u64,
        /// Its digests.
        digests: usize,
    },
    /// Tasks of a stage were made of other bytes than those that the chunks' accounts tell of.
    #[error(
        "the rows of stage {stage:?} were not made of the chunks that are accounted for: a chunk came in two versions, or rows were lost on the way to their task"
    )]
    MixedInput {
        /// The stage.
        stage: StageId,
    },
    /// Two processes came to different ends of a query.
    #[error("query {query:?} has ended with two different answers")]
    AnsweredTwice {
        /// The query.
        query: QueryId,
    },
    /// Chunks of a table were read with other broadcast rows than those that the chunks' accounts tell of.
    #[error(
        "chunks of table {table:?} were joined with rows of small tables that are not those accounted for: a chunk came in two versions"
    )]
    MixedBroadcast {
        /// The table.
        table: TableId,
    },
}

impl Error {
    /// The error in words, with the tables' names instead of their numbers.
    pub fn in_words(&self, name: impl Fn(TableId) -> String) -> String {
        match self {
            Self::ClosedTwice { table, before, now } => {
                format!("table {} was closed with {before} chunks and then with {now}", name(*table))
            }
            Self::ChunkBeyondEnd { table, chunks, number } => {
                format!("table {} was closed with {chunks} chunks, but chunk {number} arrived", name(*table))
            }
            Self::ChunkChanged { table, number, before, now } => format!(
                "chunk {number} of table {} was sent twice with different bytes (digests {before} and {now}): its file was \
                 changed, or two clients have different files; submit the job again",
                name(*table)
            ),
            Self::MixedBroadcast { table } => format!(
                "chunks of table {} were joined with rows of small tables that are not those accounted for: a chunk came \
                 in two versions; submit the job again",
                name(*table)
            ),
            other => other.to_string(),
        }
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Limit { .. } => FaultClass::Query,
            // Only clients decide how a file is cut and what a chunk holds.
            Self::ClosedTwice { .. }
            | Self::ChunkBeyondEnd { .. }
            | Self::ChunkChanged { .. }
            | Self::MixedInput { .. }
            | Self::MixedBroadcast { .. } => FaultClass::Data,
            Self::ForwardRead { .. }
            | Self::InputLost { .. }
            | Self::InputTakenTwice { .. }
            | Self::AnsweredTwice { .. }
            | Self::BadReceipt { .. } => FaultClass::Bug,
        }
    }
}

impl Classified for Failure {
    fn class(&self) -> FaultClass {
        match self {
            // Bad records are rejected and memory is bounded: nothing that a user can write may kill a process.
            Self::Quarantined { .. } => FaultClass::Bug,
            Self::Contradiction(error) => error.class(),
        }
    }
}

impl Classified for ChaosError {
    fn class(&self) -> FaultClass {
        FaultClass::Query
    }
}
