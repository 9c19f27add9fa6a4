//! What one message carries, whether it travels as bytes or stays in memory.

use std::collections::BTreeMap;

use datafusion::arrow::record_batch::RecordBatch;
use serde::{Deserialize, Serialize};
use tenaz_core::{FailedStages, Header, StageId};

use crate::Error;
use crate::rejects::with_names;

/// What became of the records of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkAccount {
    /// Records that whoever cut the chunk counted.
    pub records: u64,
    /// Records that became rows.
    pub accepted: u64,
    /// Records that did not.
    pub rejected: u64,
    /// Those by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reasons: BTreeMap<String, u64>,
    /// Bytes of CSV.
    pub bytes: u64,
}

/// A message with rows.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its identity.
    pub id: Header,
    /// Its rows.
    pub rows: Vec<(StageId, RecordBatch)>,
    /// What became of a chunk's records.
    pub account: Option<ChunkAccount>,
    /// Bad ones.
    pub rejects: Option<RejectPiece>,
    /// Stages whose rows would be here if they had not failed. In the first part.
    pub failed: FailedStages,
}

/// Some bad records of a chunk. All of them as rows of `rejects.csv` can be a hundred times as large as the chunk, so they
/// become that when somebody asks for them, one piece at a time.
#[derive(Debug, Clone)]
pub struct RejectPiece {
    /// Their table.
    pub table: String,
    /// Their file.
    pub file: String,
    /// The records; the columns are those of [`crate::reject_piece_schema`].
    pub records: RecordBatch,
}

impl RejectPiece {
    /// The records as rows of `rejects.csv`.
    pub fn rows(&self) -> Result<RecordBatch, Error> {
        with_names(&self.table, &self.file, &self.records)
    }
}
