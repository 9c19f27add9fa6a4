//! What stops a file from being read. A bad record does not: it is a [`Reject`](crate::Reject).

use arrow_schema::ArrowError;
use tenaz_core::{Classified, FaultClass};

/// What stops a file from being read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The outside world: the reader failed.
    #[error("the file cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// The input: its header does not name the columns of the layout.
    #[error("the header does not match the table: {problem}. Header found: {found}")]
    Header {
        /// Which name differs, and what was expected.
        problem: String,
        /// The header as it stands in the file, shortened.
        found: String,
    },
    /// The caller: no record can be read by this layout.
    #[error("the layout is not usable: {what}")]
    Layout {
        /// What is wrong with it.
        what: String,
    },
    /// The caller: a projected column does not exist.
    #[error("column number {index} is asked for, but the layout has {columns} columns")]
    Projection {
        /// The column asked for, counted from 0.
        index: usize,
        /// How many there are.
        columns: usize,
    },
    /// The caller: a chunk is larger than [`MAX_CHUNK_BYTES`](crate::limits::MAX_CHUNK_BYTES).
    #[error("a chunk of {bytes} bytes is too large to decode")]
    ChunkTooLarge {
        /// The size of the chunk.
        bytes: usize,
    },
    /// This crate: Arrow refused a batch.
    #[error("decoded columns do not form a batch: {0}")]
    Batch(#[from] ArrowError),
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Io(source) => FaultClass::of_system_error(source, FaultClass::Data),
            // Whoever uploads a chunk chooses its size.
            Self::Header { .. } | Self::ChunkTooLarge { .. } => FaultClass::Data,
            // Layouts come from workload files.
            Self::Layout { .. } => FaultClass::Query,
            Self::Projection { .. } | Self::Batch(_) => FaultClass::Bug,
        }
    }
}
