//! What a job does: its stages, with counters, and who owns its partitions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// For what a stage has one task each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageTasks {
    /// Each chunk of a table.
    Chunk,
    /// Each partition.
    Partition,
    /// The job.
    Single,
}

/// How rows leave a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StageEdge {
    /// To the partition of a key.
    Hash,
    /// To all partitions in turn.
    Spread,
    /// To one partition.
    One,
    /// To every worker.
    Broadcast,
    /// Into an answer.
    Results,
}

/// The least, the middle and the largest of a number over a stage's partitions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skew {
    /// The least.
    pub min: u64,
    /// The one in the middle.
    pub median: u64,
    /// The largest.
    pub max: u64,
}

/// A stage of a job. The stages are the nodes of a graph; `table`, `reads` and `broadcasts` are its edges.
///
/// What it has done is added up over the members that are alive: work that is done again after a death counts again, and what a
/// dead member had counted is missing. Answers do not depend on these numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Its number, from 0.
    pub stage: u16,
    /// What it does, in a few words, such as "filter reviews" or "join".
    pub label: String,
    /// For what it has one task each.
    pub tasks: StageTasks,
    /// The table that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The stages whose rows it reads.
    #[serde(default)]
    pub reads: Vec<u16>,
    /// The stages whose broadcast rows it reads.
    #[serde(default)]
    pub broadcasts: Vec<u16>,
    /// How its rows leave it.
    pub edge: StageEdge,
    /// The question that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// Its operators, outermost first, indented by depth.
    #[serde(default)]
    pub plan: Vec<String>,
    /// Tasks that it has in all, once that is known.
    #[serde(default)]
    pub tasks_known: Option<u64>,
    /// Tasks done.
    #[serde(default)]
    pub tasks_done: u64,
    /// Tasks that run now.
    #[serde(default)]
    pub running: u64,
    /// Rows read.
    #[serde(default)]
    pub rows_in: u64,
    /// Bytes read: of CSV for a leaf stage, of columns in memory for others.
    #[serde(default)]
    pub bytes_in: u64,
    /// Rows made.
    #[serde(default)]
    pub rows_out: u64,
    /// Bytes made, of columns in memory.
    #[serde(default)]
    pub bytes_out: u64,
    /// Seconds that its tasks have computed, added up.
    #[serde(default)]
    pub busy_seconds: f64,
    /// Rows read per partition.
    #[serde(default)]
    pub skew: Option<Skew>,
}

/// A partition and the member that owns it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartitionOwner {
    /// The partition; null: the answers, which have an owner of their own.
    pub partition: Option<u16>,
    /// The member's name; null while no living member owns it.
    pub member: Option<String>,
}
