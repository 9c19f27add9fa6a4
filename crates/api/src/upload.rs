//! Chunks and files on their way.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenaz_core::ChunkDigest;

use crate::schema;

/// Runs of chunk numbers, each as `[first, end)`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// These runs.
    pub fn new(ranges: Vec<(u64, u64)>) -> Self {
        Self(ranges)
    }

    /// Whether there is no number in them.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(first, end)| first >= end)
    }

    /// Whether a number is in one of them.
    pub fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|(first, end)| (*first..*end).contains(&number))
    }

    /// The numbers below `limit`.
    pub fn numbers(&self, limit: u64) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(move |(first, end)| *first..(*end).min(limit))
    }
}

/// What became of a chunk that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChunkStatus {
    /// It is in the cluster now.
    Received,
    /// It was there already.
    Duplicate,
}

/// The receipt of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChunkReceipt {
    /// Its number within the table.
    pub chunk: u64,
    /// What became of it.
    pub status: ChunkStatus,
}

/// What a table consists of: either so many chunks, or these whole files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finish {
    /// Its chunks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u64>,
    /// Its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<u64>,
    /// The bytes of its files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Its whole files, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Vec<u32>>,
}

/// What is still missing of a finished table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishAnswer {
    /// The table.
    pub table: String,
    /// Its chunks.
    pub chunks: u64,
    /// Those that are missing.
    #[schemars(schema_with = "schema::ranges")]
    pub missing: Ranges,
}

/// A whole file that is in the cluster. With its table, if that is finished with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "File")]
pub struct FileReceipt {
    /// Its number within the table.
    pub file: u32,
    /// Chunks that it was cut into.
    pub chunks: u64,
    /// Its records.
    pub records: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The table, if it is finished with this file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Chunks of that table that are missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::ranges")]
    pub missing: Option<Ranges>,
}

/// What is missing of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TableMissing {
    /// Its name.
    pub name: String,
    /// Whether it is known how many chunks it has.
    #[serde(default)]
    pub closed: bool,
    /// The chunks that are missing.
    #[schemars(schema_with = "schema::ranges")]
    pub missing: Ranges,
}

/// What is missing of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// By table.
    pub tables: Vec<TableMissing>,
}

/// Digests of a table's chunks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Digests {
    /// The table.
    #[serde(default)]
    pub table: String,
    /// The first chunk asked for.
    #[serde(default)]
    pub from: u64,
    /// The first 64 bits of the SHA-256 of each chunk before compression; null: no such chunk was received.
    #[schemars(schema_with = "schema::digests")]
    pub digests: Vec<Option<ChunkDigest>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_before_their_end() {
        let ranges = Ranges::new(vec![(0, 2), (5, 6), (7, 7)]);
        assert_eq!(ranges.numbers(100).collect::<Vec<_>>(), [0, 1, 5]);
        assert_eq!(ranges.numbers(1).collect::<Vec<_>>(), [0]);
        assert!(ranges.contains(5) && !ranges.contains(2) && !ranges.contains(7));
        assert!(!ranges.is_empty() && Ranges::new(vec![(3, 3)]).is_empty());
    }
}
