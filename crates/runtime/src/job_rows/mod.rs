//! What a job does with rows, on one machine as in a cluster: decoding, leaf tasks, partitions, broadcasts, inner tasks,
//! answers, the ledger.
//!
//! ```text
//!  bytes ──with_decoder──▶ batch ──run_leaf──▶ TaskOutput ──(messages, carried by somebody)──▶ take ──▶ LogRows
//!                                                                                                 │
//!                                        run_task ◀── rows of a partition's log ──────────────────┤
//!                                        make_answer, conclude ◀── rows of the results log ───────┘
//! ```
//!
//! [`JobRows`] never decides what happens when: `tenaz_core::JobDriver` does, and calls it through the engines of the
//! embedded job (`job/engine.rs`) and of the cluster's worker (`cluster/worker/engine.rs`), which add how rows travel.

mod log_rows;
mod message;
mod question_faults;
mod record_places;
mod results;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use tenaz_core::{
    Classified, ClosedTable, EdgeSums, FailedStages, FaultClass, Lineage, Log, Partition, QueryEnded, QueryId, Source,
    StageId, TableId, Topology,
};
use tenaz_csv::Decoder;
use tenaz_engine::{EdgeInput, JobPlan, LeafInput, LeafRunner, TaskOutput, Workload, run_inner};

use crate::partition::{PartitionInputs, PartitionRows};
use crate::spool::{Budget, Spool};
use crate::{Answer, Error, limits};
pub(crate) use log_rows::LogRows;
pub use message::{ChunkAccount, Message, RejectPiece};
pub(crate) use question_faults::{QuestionFaults, is_left_to_the_task};
use record_places::located_failure;
pub(crate) use record_places::{RecordPlace, RecordPlaces};
pub(crate) use results::{Conclusion, Results};

/// Rows by the edge that they travel on.
pub(crate) type EdgeRows = Vec<(StageId, RecordBatch)>;

/// How a job may compute. None of it changes an answer.
#[derive(Debug, Clone)]
pub(crate) struct Resources {
    /// Working threads.
    pub(crate) threads: usize,
    /// Bytes of rows that may rest in memory; what tasks compute with may take twice as much.
    pub(crate) memory_bytes: usize,
    /// Where temporary files go.
    pub(crate) temp_dir: PathBuf,
    /// The rows at rest, perhaps of several jobs.
    pub(crate) budget: Arc<Budget>,
    /// Whether somebody looks at rows that are certain before all have come.
    pub(crate) show_early: bool,
    /// Whether the rows of finished answers are wanted here, and not only their fingerprints.
    pub(crate) keep_answers: bool,
    /// What fails a question, and not the job.
    pub(crate) question_faults: QuestionFaults,
}

/// What a task has made: rows, and stages that failed.
pub(crate) struct TaskProduct {
    pub(crate) output: TaskOutput,
    pub(crate) failed: FailedStages,
}

/// What a task sends to one log.
pub(crate) struct LogOutput {
    pub(crate) log: Log,
    pub(crate) rows: EdgeRows,
    /// Stages whose rows would stand there.
    pub(crate) failed: FailedStages,
}

/// The rows of one job, as far as this process has to do with them.
pub(crate) struct JobRows<'a> {
    pub(crate) workload: Cow<'a, Workload>,
    pub(crate) plan: Cow<'a, JobPlan>,
    pub(crate) topology: Topology,
    resources: Resources,
    /// Memory of leaf tasks and of merging.
    env: Arc<RuntimeEnv>,
    leaves: Vec<OnceLock<LeafRunner>>,
    decoders: Vec<Mutex<Vec<Decoder>>>,
    broadcasts: Mutex<BTreeMap<StageId, Arc<dyn EdgeInput>>>,
    /// Which bytes the broadcast rows were made of.
    broadcast_sums: Mutex<EdgeSums>,
    /// Broadcasts that have failed.
    failed_broadcasts: Mutex<FailedStages>,
    /// How many stages read each edge.
    readers: BTreeMap<StageId, usize>,
}

impl<'a> JobRows<'a> {
    pub(crate) fn new(
        workload: Cow<'a, Workload>,
        plan: Cow<'a, JobPlan>,
        partitions: u16,
        resources: Resources,
    ) -> Result<Self, Error> {
        let topology = plan.topology(partitions.max(1))?;
        let mut readers = BTreeMap::new();
        for stage in &plan.stages {
            for &edge in stage.reads.iter().chain(&stage.broadcasts) {
                *readers.entry(edge).or_insert(0) += 1;
            }
        }
        Ok(Self {
            env: working_memory(resources.memory_bytes, &resources.temp_dir, 1)?,
            leaves: plan.scans.iter().map(|_| OnceLock::new()).collect(),
            decoders: plan.scans.iter().map(|_| Mutex::default()).collect(),
            broadcasts: Mutex::default(),
            broadcast_sums: Mutex::new(EdgeSums::of_broadcast(&topology)),
            failed_broadcasts: Mutex::default(),
            readers,
            resources,
            workload,
            plan,
            topology,
        })
    }

    pub(crate) fn table_name(&self, table: TableId) -> &str {
        self.workload.tables.get(usize::from(table.0)).map_or("?", |table| table.name.as_str())
    }

    /// The scan of a table, by its place in the plan.
    pub(crate) fn scan_of(&self, table: TableId) -> Option<usize> {
        self.plan.scans.iter().position(|scan| scan.table == table)
    }

    pub(crate) fn spool(&self) -> Spool {
        Spool::new(Arc::clone(&self.resources.budget))
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.resources.budget
    }

    /// The log as nobody has read it yet.
    pub(crate) fn open(&self, log: Log) -> LogRows {
        match log {
            Log::Partition(partition) => {
                LogRows::Partition(Mutex::new(PartitionRows::new(&self.topology, partition, &self.resources)))
            }
            Log::Results => LogRows::Results(Mutex::new(Results::new(self))),
            Log::Broadcast | Log::Control => LogRows::Broadcast(Mutex::default()),
        }
    }

    /// Decoders keep their working memory, so they are passed on from task to task. A new one has room for chunks of
    /// `batch_bytes`, where that is known.
    pub(crate) fn with_decoder<T>(
        &self,
        scan: usize,
        batch_bytes: Option<usize>,
        work: impl FnOnce(&mut Decoder) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let decoder = lock(&self.decoders[scan]).pop();
        let mut decoder = match decoder {
            Some(decoder) => decoder,
            None => {
                let plan = &self.plan.scans[scan];
                let layout = Arc::clone(&self.workload.tables[usize::from(plan.table.0)].layout);
                let decoder = plan.decoder(layout)?;
                batch_bytes.into_iter().fold(decoder, Decoder::with_batch_bytes)
            }
        };
        let done = work(&mut decoder);
        lock(&self.decoders[scan]).push(decoder);
        done
    }

    /// Runs every query's leaf stage on the rows of a chunk, which are from these places. Those that need a broadcast which has
    /// failed have failed with it.
    pub(crate) fn run_leaf(
        &self,
        scan: usize,
        input: &LeafInput,
        places: &dyn RecordPlaces,
    ) -> Result<TaskProduct, Error> {
        let runner = self.leaf_runner(scan)?;
        let mut output = runner.run(input);
        let mut failed = FailedStages::default();
        for (stage, error) in std::mem::take(&mut output.failures) {
            let located = if places.are_wanted(stage) && error.class() == FaultClass::Query {
                located_failure(runner, stage, input, places)
            } else {
                None
            };
            let of_chunk = || self.resources.question_faults.failure(stage, places.source(), error);
            failed.note(stage, located.map_or_else(of_chunk, Ok)?);
        }
        failed.extend(self.leaves_without_broadcasts(scan));
        Ok(TaskProduct { output, failed })
    }

    /// Leaf stages that cannot have rows, because a broadcast that they need has failed.
    fn leaves_without_broadcasts(&self, scan: usize) -> FailedStages {
        let broadcasts = lock(&self.failed_broadcasts);
        let mut failed = FailedStages::default();
        for &leaf in &self.plan.scans[scan].leaves {
            if let Some(failure) = broadcasts.among(&self.plan.stage(leaf).broadcasts) {
                failed.note(leaf, failure.clone());
            }
        }
        failed
    }

    fn leaf_runner(&self, scan: usize) -> Result<&LeafRunner, Error> {
        if let Some(runner) = self.leaves[scan].get() {
            return Ok(runner);
        }
        let broadcasts = lock(&self.broadcasts).clone();
        let count = self.topology.partitions();
        let without: BTreeSet<StageId> = self.leaves_without_broadcasts(scan).stages().collect();
        let env = Arc::clone(&self.env);
        let runner = LeafRunner::new(&self.plan, &self.plan.scans[scan], count, broadcasts, &without, env)?;
        Ok(self.leaves[scan].get_or_init(|| runner))
    }

    /// What the broadcast rows that the leaf tasks of a table use were made of.
    pub(crate) fn broadcast_lineage(&self, table: TableId) -> u64 {
        lock(&self.broadcast_sums).of_edges(&self.topology.broadcasts_of(table))
    }

    /// Takes a complete output in: one message, or all parts of it in order, each with its place in the log. Returns rows of
    /// answers that are certain by now, by the stage that will make them.
    pub(crate) fn take(&self, rows: &LogRows, parts: Vec<(u64, Message)>) -> Result<EdgeRows, Error> {
        match rows {
            LogRows::Partition(rows) => self.take_rows(&mut lock(rows), parts),
            LogRows::Broadcast(arriving) => {
                let mut arriving = lock(arriving);
                parts.into_iter().try_for_each(|(_, part)| self.take_broadcast(&mut arriving, part))?;
                Ok(Vec::new())
            }
            LogRows::Results(results) => {
                let mut results = lock(results);
                parts.into_iter().try_for_each(|(offset, part)| results.take(self, offset, part))?;
                Ok(Vec::new())
            }
        }
    }

    fn take_rows(&self, rows: &mut PartitionRows, mut parts: Vec<(u64, Message)>) -> Result<EdgeRows, Error> {
        let Some(id) = parts.first().map(|(_, part)| part.id) else { return Ok(Vec::new()) };
        for (_, part) in &mut parts {
            rows.give_up(std::mem::take(&mut part.failed));
        }
        let batches = parts.into_iter().flat_map(|(_, part)| part.rows).collect();
        rows.trace(id.source, id.lineage);
        rows.take(&self.plan, &self.env, id.source, batches)
    }

    fn take_broadcast(&self, arriving: &mut BTreeMap<StageId, Spool>, part: Message) -> Result<(), Error> {
        // What holds for a whole output is taken from its first part.
        if part.id.part == 0 {
            lock(&self.broadcast_sums).take(part.id.source, part.id.lineage);
        }
        if !part.failed.is_empty() {
            lock(&self.failed_broadcasts).extend(part.failed);
        }
        for (edge, batch) in part.rows {
            arriving.entry(edge).or_insert_with(|| self.spool()).push(part.id.source, batch)?;
        }
        Ok(())
    }

    /// A broadcast has all its rows.
    pub(crate) fn complete_broadcast(&self, rows: &LogRows, edge: StageId) {
        let LogRows::Broadcast(arriving) = rows else { return };
        let spool = lock(arriving).remove(&edge).unwrap_or_else(|| self.spool());
        lock(&self.broadcasts).insert(edge, Arc::new(spool.into_input()));
    }

    /// Runs an inner task. `sources` is how many outputs the protocol has counted for it; the rows must come from as many.
    /// None: nobody waits for it any more. A task whose input has failed is not run: of what has come it could only make a
    /// wrong answer.
    pub(crate) fn run_task(
        &self,
        (stage, partition): (StageId, Partition),
        sources: u64,
        rows: Arc<LogRows>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<(Lineage, TaskProduct)>, Error> {
        let LogRows::Partition(held) = &*rows else { return Ok(None) };
        let PartitionInputs { rows: mut inputs, lineage: input, failure } =
            lock(held).inputs(&self.topology, stage, sources, |edge| self.keeps(edge))?;
        drop(rows);
        let edges = &self.plan.stage(stage).broadcasts;
        let broadcasts = lock(&self.broadcast_sums).of_edges(edges);
        let lineage = Lineage { input, broadcasts };
        let count = self.topology.partitions();
        if let Some(failure) = failure.into_iter().chain(lock(&self.failed_broadcasts).among(edges).cloned()).min() {
            let failed = FailedStages::from(vec![(stage, failure)]);
            return Ok(Some((lineage, TaskProduct { output: TaskOutput::new(count), failed })));
        }
        {
            let complete = lock(&self.broadcasts);
            let wanted = edges.iter().filter_map(|edge| complete.get_key_value(edge));
            inputs.extend(wanted.map(|(edge, rows)| (*edge, Arc::clone(rows))));
        }
        if !is_wanted() {
            return Ok(None);
        }
        let env = self.task_memory()?;
        let mut output = run_inner(&self.plan, stage, partition, count, inputs, &env)?;
        let source = Source::Task { stage, partition };
        let failed = self.resources.question_faults.of_output(source, &mut output)?;
        Ok(Some((lineage, TaskProduct { output, failed })))
    }

    /// Whether several stages read an edge.
    fn keeps(&self, edge: StageId) -> bool {
        self.readers.get(&edge).copied().unwrap_or(0) > 1
    }

    /// Each inner task has memory of its own: what it may use does not depend on what others do.
    fn task_memory(&self) -> Result<Arc<RuntimeEnv>, Error> {
        working_memory(self.resources.memory_bytes, &self.resources.temp_dir, self.resources.threads)
    }

    /// Puts an answer together from its complete rows, after the closing checks of its tables. A query that has failed has none.
    pub(crate) fn make_answer(
        &self,
        rows: &LogRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, Error> {
        let LogRows::Results(results) = rows else { return Err(results::no_results()) };
        lock(results).check(self, closed, Some(query))?;
        self.answer_of_rows(results, query)?;
        lock(results).ended(self, query)
    }

    fn answer_of_rows(&self, results: &Mutex<Results>, query: QueryId) -> Result<(), Error> {
        let Some(taken) = lock(results).take_rows_of(self, query) else { return Ok(()) };
        let env = self.task_memory()?;
        let planned = &self.plan.queries[usize::from(query.0)];
        match Answer::new(planned, taken, &env, &self.resources.budget) {
            Ok(answer) if self.resources.keep_answers => lock(results).put_answer(query, answer),
            Ok(answer) => lock(results).put_answer(query, answer.without_rows(&self.resources.budget)),
            Err(Error::Engine(error)) => {
                let stage = planned.answers.first().copied().unwrap_or(StageId(0));
                let source = Source::Task { stage, partition: Partition(0) };
                let failure = self.resources.question_faults.failure(stage, source, error)?;
                lock(results).fail(self, FailedStages::from(vec![(stage, failure)]));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// What a task sends to each log that waits for it, even if there are no rows for it.
    pub(crate) fn outputs_by_log(&self, source: Source, product: TaskProduct) -> Vec<LogOutput> {
        let TaskProduct { output, failed } = product;
        let TaskOutput { mut partitions, mut broadcast, mut results, .. } = output;
        let logs = self.topology.destinations(source).into_iter();
        let rows = logs.map(|log| {
            let rows = match log {
                Log::Partition(partition) => std::mem::take(&mut partitions[usize::from(partition.0)]),
                Log::Broadcast => std::mem::take(&mut broadcast),
                Log::Results => std::mem::take(&mut results),
                Log::Control => Vec::new(),
            };
            LogOutput { log, rows, failed: failed.for_log(&self.topology, log) }
        });
        rows.collect()
    }
}

/// Memory for what tasks compute with (sorts, hash tables): twice what rows at rest may use, shared by `tasks` at a time.
pub(crate) fn working_memory(memory_bytes: usize, temp_dir: &Path, tasks: usize) -> Result<Arc<RuntimeEnv>, Error> {
    let bytes = (memory_bytes.saturating_mul(2) / tasks).max(limits::MIN_WORKING_BYTES);
    let builder = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    // The system's own place is only touched when something is spilled; a named one at once.
    let builder = if temp_dir == std::env::temp_dir() { builder } else { builder.with_temp_file_path(temp_dir) };
    builder.build_arc().map_err(|error| match error {
        DataFusionError::IoError(source) => Error::Temporary { dir: temp_dir.to_owned(), source },
        other => other.into(),
    })
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside a task fails the job (see `guarded`), so a poisoned state is never used for an answer.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
