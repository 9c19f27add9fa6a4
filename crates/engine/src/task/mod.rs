//! Running one task: a stage's plan over the task's rows, and its output sorted by where it must go.
//!
//! A task is a pure function of its rows. It never knows who runs it, nor when, nor how often it was run before.

mod explaining;
mod failing;
mod failing_record;
mod fast;
mod inner;
mod leaf;
mod output;
mod run;
mod sort;
mod stoppable;

use std::fmt::Debug;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;

pub use failing_record::FailingRecord;
pub(crate) use fast::column_ranges;
pub use inner::{compact, run_inner};
pub use leaf::{LeafInput, LeafRunner};
pub use output::{TaskOutput, tight};
pub use sort::sort_rows;

/// Rows that came over an edge. They may be read more than once.
pub trait EdgeInput: Debug + Send + Sync {
    /// The rows, in the order of their sources.
    fn batches(&self) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send>;
    /// The memory that all of them take.
    fn bytes(&self) -> usize;
}

/// Rows that are held in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryEdge(pub Vec<RecordBatch>);

impl EdgeInput for MemoryEdge {
    fn batches(&self) -> Box<dyn Iterator<Item = Result<RecordBatch>> + Send> {
        Box::new(self.0.clone().into_iter().map(Ok))
    }

    fn bytes(&self) -> usize {
        self.0.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}
