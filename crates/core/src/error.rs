use crate::{StageId, TableId};

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
}
