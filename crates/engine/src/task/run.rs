//! The bridge to DataFusion: a plan, the rows of a task, and the batches that come out.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::prelude::SessionConfig;
use futures::StreamExt;

use crate::plan::source::{Rows, TaskRows};
use crate::stop::check;

thread_local! {
    /// Sorting to disk needs a tokio runtime around it; each working thread has its own small one.
    static RUNTIME: std::io::Result<tokio::runtime::Runtime> = tokio::runtime::Builder::new_current_thread().build();
}

/// How much of the memory a sort keeps for merging what it holds, in a form of about the same size, when it must spill.
#[derive(Debug, Clone, Copy)]
pub(super) enum MergeShare {
    /// Little: the task's input is small, or others share the memory.
    Little,
    /// Half, shared by the sorts of the only plan that uses this memory.
    Half { sorts: usize },
}

impl MergeShare {
    /// For a plan that has the memory for itself.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Self {
        fn sorts(plan: &Arc<dyn ExecutionPlan>) -> usize {
            usize::from(plan.is::<SortExec>()) + plan.children().into_iter().map(sorts).sum::<usize>()
        }
        Self::Half { sorts: sorts(plan).max(1) }
    }

    fn of_bytes(self, bytes: usize) -> usize {
        match self {
            Self::Little => bytes / 64,
            Self::Half { sorts } => bytes / (2 * sorts),
        }
    }
}

/// The settings of tasks in this memory. To change settings is dear, so that is done once for many tasks.
pub(super) fn task_config(config: SessionConfig, env: &RuntimeEnv, merge_share: MergeShare) -> SessionConfig {
    match env.memory_pool.memory_limit() {
        MemoryLimit::Finite(bytes) => config.with_sort_spill_reservation_bytes(merge_share.of_bytes(bytes)),
        _ => config,
    }
}

/// The context in which a plan finds its rows.
pub(super) fn task_context(config: &SessionConfig, env: &Arc<RuntimeEnv>, rows: Arc<dyn TaskRows>) -> Arc<TaskContext> {
    let config = config.clone().with_extension(Arc::new(Rows(rows)));
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
                    check()?;
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
