//! What a driver needs somebody else for: computing with rows.

use std::collections::BTreeMap;

use crate::{Classified, ClosedTable, Log, Partition, QueryEnded, QueryId, Source, StageId, TableId};

/// One message of an output, with its place in the log that it stood in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart<B> {
    /// Its offset in the log.
    pub offset: u64,
    /// What it carries.
    pub body: B,
}

/// Messages, each for a log.
type Messages<S> = Vec<(Log, S)>;

/// Computes with the rows of one job.
///
/// The driver decides what is done and in which order, the engine does it. All methods but [`open`](Self::open) are called
/// by [`Step::run`](super::Step::run), on whatever thread the shell chooses; the driver's own thread never waits for them.
/// For one log the driver never has two [`take`](Self::take) or [`complete_broadcast`](Self::complete_broadcast) run at the
/// same time; everything else may run side by side.
///
/// Every method is a function of its arguments and of what was taken from the same log before: the same input gives the same
/// rows, on whatever worker.
pub trait RowEngine {
    /// The rows taken from one log since this worker began to read it. Shared by steps that run on different threads.
    type LogRows;
    /// What a message carries when it arrives.
    type Body;
    /// What a message carries when it is sent. It is kept, and perhaps sent again, until the log has it.
    type Sent: Clone;
    /// What lets another message of the same log come, when it is dropped.
    type Permit;
    /// A delivered chunk.
    type Leaf;
    /// Rows of an answer that are certain before its input is complete.
    type Early;
    /// The end of the job as it is told: fingerprints, counts.
    type End: Clone;
    /// Why something could not be done.
    type Error: Classified;

    /// The log as nobody has read it yet.
    fn open(&self, log: Log) -> Self::LogRows;

    /// Runs the leaf work of a chunk. Returns a message for every log that waits for it.
    fn run_chunk(&self, leaf: Self::Leaf) -> Result<Vec<(Log, Self::Sent)>, Self::Error>;

    /// Takes a complete output into the rows of a log: all its parts, in order.
    fn take(
        &self,
        log: Log,
        rows: &Self::LogRows,
        source: Source,
        parts: Vec<LogPart<Self::Body>>,
    ) -> Result<Option<Self::Early>, Self::Error>;

    /// A broadcast edge has all its rows: makes them ready for those who read them.
    fn complete_broadcast(&self, rows: &Self::LogRows, edge: StageId) -> Result<(), Self::Error>;

    /// Runs an inner task. `sources` is how many outputs the protocol has counted over the edges that it reads; rows are
    /// conserved only if those taken come from as many. Where the rows are taken out of the log, `is_wanted` tells whether
    /// anybody still waits for the task.
    fn run_task(
        &self,
        task: (StageId, Partition),
        sources: u64,
        rows: std::sync::Arc<Self::LogRows>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Messages<Self::Sent>>, Self::Error>;

    /// Makes the answer of a query whose rows are all in, after the closing checks of the tables that it is made of: their
    /// accounts are complete. What comes back is final.
    fn make_answer(
        &self,
        rows: &Self::LogRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, Self::Error>;

    /// Checks the ledger against what the tables were closed with, and puts the end together.
    fn conclude(&self, rows: &Self::LogRows, closed: &BTreeMap<TableId, ClosedTable>)
    -> Result<Self::End, Self::Error>;
}
