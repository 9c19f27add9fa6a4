//! Identity comes from the input: an id never says who made a message, nor when.

/// A table of the job's workload, by its place in the workload file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u16);

/// A query of the job, by its place among the queries asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u16);

/// A stage of the job's plan. A stage has exactly one outgoing edge, so this names the edge, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub u16);

/// A slice of the job's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(pub u16);

/// What a message was derived from. Two messages of one log with the same source are the same message.
///
/// The order of sources is the order in which a task reads its input, so that it sees the same rows in the same order
/// whoever sent them first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
