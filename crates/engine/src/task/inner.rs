//! Inner tasks: one stage over the complete input of one partition.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use tenaz_core::{Partition, Source, StageId};

use super::explaining::explained;
use super::failing::{named_arguments, named_failures};
use super::fast::{faster, spilling};
use super::run::{MergeShare, run_plan, task_config, task_context};
use super::stoppable::stoppable;
use super::{EdgeInput, MemoryEdge, TaskOutput};
use crate::Error;
use crate::limits::GROUPS_PER_INPUT;
use crate::plan::source::TaskRows;
use crate::plan::{JobPlan, session_config};

/// Runs the task of `stage` for `partition`. An edge without an entry in `inputs` has no rows there. If the stage fails, the
/// output has no rows, and [`TaskOutput::failures`] tells why.
pub fn run_inner(
    plan: &JobPlan,
    stage: StageId,
    partition: Partition,
    partitions: u16,
    inputs: BTreeMap<StageId, Arc<dyn EdgeInput>>,
    env: &Arc<RuntimeEnv>,
) -> Result<TaskOutput, Error> {
    let task = plan.stage(stage);
    let bytes = inputs.values().map(|input| input.bytes()).sum();
    let instance = named_arguments(reset_plan_states(Arc::clone(&task.plan))?)?;
    let instance = if groups_fit(bytes, env) { faster(instance)? } else { spilling(instance)? };
    let instance = stoppable(named_failures(instance)?)?;
    let config = task_config(session_config(), env, MergeShare::of(&instance));
    let context = task_context(&config, env, Arc::new(EdgeRows(inputs)));
    let source = Source::Task { stage, partition };
    let mut output = TaskOutput::new(partitions);
    let ran = run_plan(&instance, &context, |batch| output.add(stage, &task.edge, Partition(0), source, batch));
    if let Err(cause) = ran {
        let cause = explained(cause, &instance, &context);
        output.fail(stage, Error::Query { queries: plan.queries_behind(stage), cause });
    }
    Ok(output)
}

/// Merges what has arrived over `edge` so far into less of the same, where the edge ends in an aggregation.
pub fn compact(
    plan: &JobPlan,
    edge: StageId,
    batches: Vec<RecordBatch>,
    env: &Arc<RuntimeEnv>,
) -> Result<Vec<RecordBatch>, Error> {
    let Some(merge) = &plan.stage(edge).compaction else { return Ok(batches) };
    let input: Arc<dyn EdgeInput> = Arc::new(MemoryEdge(batches));
    let bytes = input.bytes();
    let rows = Arc::new(EdgeRows(BTreeMap::from([(edge, input)])));
    let context = task_context(&task_config(session_config(), env, MergeShare::Little), env, rows);
    let mut merged = Vec::new();
    let mut instance = reset_plan_states(Arc::clone(merge))?;
    if groups_fit(bytes, env) {
        instance = faster(instance)?;
    }
    run_plan(&instance, &context, |batch| {
        merged.push(batch);
        Ok(())
    })?;
    Ok(merged)
}

/// Whether all groups of so many bytes of rows fit into the memory of a task. If not, DataFusion's aggregation spills.
fn groups_fit(bytes: usize, env: &RuntimeEnv) -> bool {
    match env.memory_pool.memory_limit() {
        MemoryLimit::Finite(limit) => bytes.saturating_mul(GROUPS_PER_INPUT) <= limit,
        MemoryLimit::Infinite => true,
        MemoryLimit::Unknown => false,
    }
}

pub(super) struct EdgeRows(pub(super) BTreeMap<StageId, Arc<dyn EdgeInput>>);

impl TaskRows for EdgeRows {
    fn scan(&self, _: &[usize]) -> Result<Vec<RecordBatch>> {
        internal_err!("an inner task has no chunk")
    }

    fn edge(&self, edge: StageId) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        match self.0.get(&edge) {
            Some(input) => Ok(input.batches()),
            None => Ok(Box::new(std::iter::empty())),
        }
    }
}
