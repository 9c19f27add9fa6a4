//! Leaf tasks: every stage that scans a table, over one decoded chunk of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{FairSpillPool, MemoryLimit};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{replace_children_if_necessary, reset_plan_states};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::prelude::SessionConfig;
use tenaz_core::{Partition, Source, StageId};

use super::explaining::explained;
use super::failing::{named_arguments, named_failures};
use super::fast::faster;
use super::run::{MergeShare, run_plan, task_config, task_context};
use super::stoppable::stoppable;
use super::{EdgeInput, TaskOutput};
use crate::Error;
use crate::limits::{BATCH_ROWS, RUNS_PER_INSTANCE};
use crate::plan::source::TaskRows;
use crate::plan::{Edge, JobPlan, ScanPlan, session_config};
use crate::task_fault::is_out_of_memory;

/// A decoded chunk: the columns of the shared scan.
#[derive(Debug)]
pub struct LeafInput {
    /// Which chunk it is.
    pub source: Source,
    /// Its accepted records, with the columns of [`ScanPlan::columns`].
    pub rows: RecordBatch,
}

/// Runs the leaf stages of one table, chunk after chunk, from any number of threads.
#[derive(Debug)]
pub struct LeafRunner {
    config: SessionConfig,
    env: Arc<RuntimeEnv>,
    columns: Vec<usize>,
    broadcasts: Arc<BTreeMap<StageId, Arc<dyn EdgeInput>>>,
    pub(super) stages: Vec<LeafStage>,
    partitions: u16,
    /// Held by whoever runs a stage in memory of its own.
    alone: Mutex<()>,
}

#[derive(Debug)]
pub(super) struct LeafStage {
    pub(super) id: StageId,
    /// The names of those who need its rows.
    pub(super) queries: String,
    edge: Edge,
    instance: Mutex<Instance>,
}

/// A plan that is run again and again: its build sides are built once, its counters grow a little with each run.
#[derive(Debug)]
struct Instance {
    plan: Arc<dyn ExecutionPlan>,
    runs: usize,
}

/// A top-k passes what it has seen on to later runs of the same instance. That would be right in the end, but a task's
/// output would depend on what else its thread worked on. So the operators from the root down to a top-k are made anew;
/// what lies below, such as the build side of a join, is kept.
fn with_fresh_tops(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
    let fresh = children.iter().map(with_fresh_tops).collect::<Result<Vec<_>>>()?;
    if fresh.iter().any(Option::is_some) {
        let children = fresh.into_iter().zip(children).map(|(new, old)| new.unwrap_or(old)).collect();
        return Ok(Some(replace_children_if_necessary(Arc::clone(plan), children)?));
    }
    let is_top = plan.fetch().is_some() && (plan.is::<SortExec>() || plan.is::<AggregateExec>());
    is_top.then(|| Arc::clone(plan).reset_state()).transpose()
}

impl LeafStage {
    fn plan(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let mut instance = self.instance.lock().unwrap_or_else(PoisonError::into_inner);
        if instance.runs == RUNS_PER_INSTANCE {
            instance.plan = reset_plan_states(Arc::clone(&instance.plan))?;
            instance.runs = 0;
        }
        instance.runs += 1;
        let plan = Arc::clone(&instance.plan);
        Ok(with_fresh_tops(&plan)?.unwrap_or(plan))
    }

    /// Runs the stage. What it has begun and not finished must not be found by the next run.
    pub(super) fn run(&self, context: &Arc<TaskContext>, source: Source, output: &mut TaskOutput) -> Result<()> {
        let ran =
            run_plan(&self.plan()?, context, |batch| output.add(self.id, &self.edge, Partition(0), source, batch));
        if ran.is_err() {
            self.instance.lock().unwrap_or_else(PoisonError::into_inner).runs = RUNS_PER_INSTANCE;
        }
        ran
    }
}

impl LeafStage {
    /// The error of a run in this context, with the expression that failed.
    pub(super) fn explained(&self, error: DataFusionError, context: &Arc<TaskContext>) -> DataFusionError {
        match self.plan() {
            Ok(plan) => explained(error, &plan, context),
            Err(_) => error,
        }
    }
}

impl LeafRunner {
    /// `broadcasts` must hold every edge in [`ScanPlan::needs`]. Stages in `without` are not run: their rows cannot be had.
    pub fn new(
        plan: &JobPlan,
        scan: &ScanPlan,
        partitions: u16,
        broadcasts: BTreeMap<StageId, Arc<dyn EdgeInput>>,
        without: &BTreeSet<StageId>,
        env: Arc<RuntimeEnv>,
    ) -> Result<Self, Error> {
        let stages = scan.leaves.iter().filter(|id| !without.contains(id)).map(|&id| {
            let stage = plan.stage(id);
            let (queries, edge) = (plan.queries_behind(id), stage.edge.clone());
            let plan = faster(named_arguments(reset_plan_states(Arc::clone(&stage.plan))?)?)?;
            let plan = stoppable(named_failures(plan)?)?;
            let instance = Instance { plan, runs: 0 };
            Ok(LeafStage { id, queries, edge, instance: Mutex::new(instance) })
        });
        Ok(Self {
            config: task_config(session_config(), &env, MergeShare::Little),
            env,
            columns: scan.columns.clone(),
            broadcasts: Arc::new(broadcasts),
            stages: stages.collect::<Result<_>>()?,
            partitions,
            alone: Mutex::default(),
        })
    }

    /// Runs every stage over one chunk. One that fails does not keep the others from their rows: [`TaskOutput::failures`] tells
    /// of it.
    pub fn run(&self, input: &LeafInput) -> TaskOutput {
        let context = self.context(&input.rows);
        let mut output = self.no_output();
        for stage in &self.stages {
            let mut ran = stage.run(&context, input.source, &mut output);
            if ran.as_ref().is_err_and(is_out_of_memory) {
                output.drop_rows(stage.id);
                ran = self.run_alone(stage, &context, input.source, &mut output);
            }
            if let Err(cause) = ran {
                let cause = stage.explained(cause, &context);
                output.fail(stage.id, Error::Query { queries: stage.queries.clone(), cause });
            }
        }
        output
    }

    /// The context in which a stage finds these rows of a chunk.
    pub(super) fn context(&self, rows: &RecordBatch) -> Arc<TaskContext> {
        let rows = ChunkRows {
            batches: sliced(rows),
            columns: self.columns.clone(),
            broadcasts: Arc::clone(&self.broadcasts),
        };
        task_context(&self.config, &self.env, Arc::new(rows))
    }

    /// A place for the rows of a task.
    pub(super) fn no_output(&self) -> TaskOutput {
        TaskOutput::new(self.partitions)
    }

    /// Runs a stage that had too little memory beside what other threads do once more, in memory of its own: a question must not
    /// fail because another one is greedy. One at a time, so that memory stays bounded.
    fn run_alone(
        &self,
        stage: &LeafStage,
        context: &Arc<TaskContext>,
        source: Source,
        output: &mut TaskOutput,
    ) -> Result<()> {
        let _turn = self.alone.lock().unwrap_or_else(PoisonError::into_inner);
        let MemoryLimit::Finite(bytes) = self.env.memory_pool.memory_limit() else {
            return stage.run(context, source, output);
        };
        let env = RuntimeEnvBuilder::from_runtime_env(&self.env).with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
        let rows = context.session_config().clone();
        let context = TaskContext::default().with_session_config(rows).with_runtime(env.build_arc()?);
        stage.run(&Arc::new(context), source, output)
    }
}

/// The chunk in pieces that stay in the cache while several operators work on them.
fn sliced(rows: &RecordBatch) -> Vec<RecordBatch> {
    let starts = (0..rows.num_rows()).step_by(BATCH_ROWS);
    starts.map(|start| rows.slice(start, BATCH_ROWS.min(rows.num_rows() - start))).collect()
}

struct ChunkRows {
    batches: Vec<RecordBatch>,
    columns: Vec<usize>,
    broadcasts: Arc<BTreeMap<StageId, Arc<dyn EdgeInput>>>,
}

impl TaskRows for ChunkRows {
    fn scan(&self, columns: &[usize]) -> Result<Vec<RecordBatch>> {
        let places = columns.iter().map(|column| match self.columns.binary_search(column) {
            Ok(place) => Ok(place),
            Err(_) => internal_err!("column {column} is not part of the shared scan"),
        });
        let places = places.collect::<Result<Vec<_>>>()?;
        self.batches.iter().map(|batch| Ok(batch.project(&places)?)).collect()
    }

    fn edge(&self, edge: StageId) -> Result<Box<dyn Iterator<Item = Result<RecordBatch>> + Send>> {
        match self.broadcasts.get(&edge) {
            Some(input) => Ok(input.batches()),
            None => internal_err!("broadcast of stage {} is not complete", edge.0),
        }
    }
}
