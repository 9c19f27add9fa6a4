//! The bridge to DataFusion: a plan, the rows of a task, and the batches that come out.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;

use crate::plan::source::{Rows, TaskRows};

thread_local! {
    /// Sorting to disk needs a tokio runtime around it; each working thread has its own small one.
    static RUNTIME: std::io::Result<tokio::runtime::Runtime> = tokio::runtime::Builder::new_current_thread().build();
}

/// The context in which a plan finds its rows.
pub(super) fn task_context(config: &SessionConfig, env: &Arc<RuntimeEnv>, rows: Arc<dyn TaskRows>) -> Arc<TaskContext> {
    let mut config = config.clone().with_extension(Arc::new(Rows(rows)));
    // A sort that spills merges what it holds in a form of about the same size: half of the memory is kept for that.
    if let MemoryLimit::Finite(bytes) = env.memory_pool.memory_limit() {
        config = config.with_sort_spill_reservation_bytes(bytes / 2);
    }
    let none = Default::default;
    let context = TaskContext::new(
        None,
        String::new(),
        config,
        none(),
        Default::default(),
        Default::default(),
        Default::default(),
        Arc::clone(env),
    );
    Arc::new(context)
}

/// Runs a plan to its end on this thread and hands every batch to `take`.
pub(super) fn run_plan(
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
    mut take: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    RUNTIME.with(|runtime| {
        let runtime = runtime.as_ref().map_err(|e| internal_datafusion_err!("no runtime for a task: {e}"))?;
        runtime.block_on(async {
            for partition in 0..plan.properties().output_partitioning().partition_count() {
                let mut stream = plan.execute(partition, Arc::clone(context))?;
                while let Some(batch) = stream.next().await {
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        take(batch)?;
                    }
                }
            }
            Ok(())
        })
    })
}
