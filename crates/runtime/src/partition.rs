//! One partition of a job: the rows that wait for their task.
//!
//! Partial aggregates are merged as they come. Where the stage behind them can answer early, each merge also shows which
//! rows of the answer are certain by now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_core::{
    EdgeSums, FailedStages, Lineage, Partition, Source, StageFailure, StageId, TableId, TaskSet, Topology,
};
use tenaz_engine::{EdgeInput, JobPlan, MemoryEdge, compact, run_inner};

use crate::Error;
use crate::job_rows::{Resources, is_left_to_the_task};
use crate::limits::{EARLY_MERGE_ROWS, MANY_ROWS, MERGE_ROWS};
use crate::spool::{Budget, Spool, SpooledRows};

/// The rows that a partition holds. Whoever fills it drops duplicates first.
#[derive(Debug)]
pub(crate) struct PartitionRows {
    partition: Partition,
    partitions: u16,
    edges: BTreeMap<StageId, Arriving>,
    finished: BTreeMap<StageId, Arc<SpooledRows>>,
    /// Edges whose rows their only reader has.
    handed_out: BTreeSet<StageId>,
    /// How many outputs were taken in, by the table or stage that they come from.
    taken: BTreeMap<Producer, u64>,
    /// Which bytes the rows were made of, where that is told.
    sums: EdgeSums,
    /// Edges that have failed: their rows are not kept.
    failed: FailedStages,
    budget: Arc<Budget>,
    /// Whether somebody looks at rows that are certain before all have come.
    show_early: bool,
}

/// What makes outputs: the chunks of a table, or the tasks of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Producer {
    Chunks(TableId),
    Tasks(StageId),
}

impl Producer {
    fn of(source: Source) -> Self {
        match source {
            Source::Chunk { table, .. } => Self::Chunks(table),
            Source::Task { stage, .. } => Self::Tasks(stage),
        }
    }

    /// Whose outputs bring the rows of an edge.
    fn of_edge(topology: &Topology, edge: StageId) -> Self {
        match topology.stage(edge).tasks {
            TaskSet::PerChunk(table) => Self::Chunks(table),
            TaskSet::PerPartition | TaskSet::Single(_) => Self::Tasks(edge),
        }
    }
}

/// The input of an inner task.
pub(crate) struct PartitionInputs {
    /// The rows of the edges that it reads.
    pub(crate) rows: BTreeMap<StageId, Arc<dyn EdgeInput>>,
    /// The bytes that they were made of.
    pub(crate) lineage: u64,
    /// Why the rows are not all there, and the task must not be run.
    pub(crate) failure: Option<StageFailure>,
}

/// Rows that are still arriving over one edge.
#[derive(Debug)]
struct Arriving {
    spool: Spool,
    merge: Merge,
    /// The stage that can answer early from this edge, if somebody looks at that.
    early: Option<StageId>,
}

/// Whether and when the rows of an edge are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Merge {
    /// As soon as there are this many rows.
    At(u64),
    /// Not at all: no aggregation, or merging did not make them fewer.
    Never,
}

impl PartitionRows {
    pub(crate) fn new(topology: &Topology, partition: Partition, resources: &Resources) -> Self {
        Self {
            partition,
            partitions: topology.partitions(),
            edges: BTreeMap::new(),
            finished: BTreeMap::new(),
            handed_out: BTreeSet::new(),
            taken: BTreeMap::new(),
            sums: EdgeSums::of_partition(topology, partition),
            failed: FailedStages::default(),
            budget: Arc::clone(&resources.budget),
            show_early: resources.show_early,
        }
    }

    /// Edges have failed. What has come over them, and what still comes, is of no use to anybody.
    pub(crate) fn give_up(&mut self, failed: FailedStages) {
        failed.stages().for_each(|edge| drop(self.edges.remove(&edge)));
        self.failed.extend(failed);
    }

    /// Takes note of the bytes that an output was made of, once for all its rows.
    pub(crate) fn trace(&mut self, source: Source, lineage: Lineage) {
        self.sums.take(source, lineage);
    }

    /// Takes a complete output in. Returns rows of answers that are certain by now, by the stage that will make them.
    pub(crate) fn take(
        &mut self,
        plan: &JobPlan,
        env: &Arc<RuntimeEnv>,
        source: Source,
        rows: Vec<(StageId, RecordBatch)>,
    ) -> Result<Vec<(StageId, RecordBatch)>, Error> {
        let mut early = Vec::new();
        *self.taken.entry(Producer::of(source)).or_insert(0) += 1;
        for (edge, batch) in rows {
            if self.failed.has(edge) {
                continue;
            }
            let (budget, early_is_seen) = (&self.budget, self.show_early);
            let begin = || Arriving::new(plan, edge, Arc::clone(budget), early_is_seen);
            let arriving = self.edges.entry(edge).or_insert_with(begin);
            arriving.spool.push(source, batch)?;
            let merged = arriving.merge_if_due(plan, edge, source, env)?;
            if let (Some(stage), Some(merged)) = (arriving.early, merged) {
                let rows: Arc<dyn EdgeInput> = Arc::new(MemoryEdge(merged));
                let inputs = BTreeMap::from([(edge, rows)]);
                let output = run_inner(plan, stage, self.partition, self.partitions, inputs, env)?;
                // If it fails for good, the task that has all rows says so.
                if let Some((_, error)) = output.failures.into_iter().find(|(_, error)| !is_left_to_the_task(error)) {
                    return Err(error.into());
                }
                early.extend(output.results);
            }
        }
        Ok(early)
    }

    /// The complete rows of the edges that the stage's task reads. An edge that several stages read stays for the others.
    ///
    /// Rows are conserved: they must come from as many outputs as have arrived (`sources`), and rows that only one task
    /// reads are handed out once. Anything else would be an answer with rows missing, and fails the job instead.
    pub(crate) fn inputs(
        &mut self,
        topology: &Topology,
        stage: StageId,
        sources: u64,
        keep: impl Fn(StageId) -> bool,
    ) -> Result<PartitionInputs, Error> {
        let edges = &topology.stage(stage).reads;
        let task = Source::Task { stage, partition: self.partition };
        let taken_over = |edge: &StageId| self.taken.get(&Producer::of_edge(topology, *edge)).copied().unwrap_or(0);
        let taken = edges.iter().filter(|edge| topology.arrives_in(**edge, self.partition)).map(taken_over).sum();
        if taken != sources {
            return Err(tenaz_core::Error::InputLost { task, counted: sources, taken }.into());
        }
        let lineage = self.sums.of_edges(edges);
        let failure = self.failed.among(edges).cloned();
        let mut inputs: BTreeMap<StageId, Arc<dyn EdgeInput>> = BTreeMap::new();
        for &edge in edges {
            if !keep(edge) && !self.handed_out.insert(edge) {
                return Err(tenaz_core::Error::InputTakenTwice { task, edge }.into());
            }
            if let Some(arriving) = self.edges.remove(&edge) {
                self.finished.insert(edge, Arc::new(arriving.spool.into_input()));
            }
            let rows = if keep(edge) { self.finished.get(&edge).cloned() } else { self.finished.remove(&edge) };
            if let Some(rows) = rows {
                inputs.insert(edge, rows);
            }
            if !keep(edge) {
                self.sums.forget(edge);
            }
        }
        Ok(PartitionInputs { rows: inputs, lineage, failure })
    }
}

impl Arriving {
    fn new(plan: &JobPlan, edge: StageId, budget: Arc<Budget>, show_early: bool) -> Self {
        let early = plan.stages.iter().position(|stage| show_early && stage.early && stage.reads == [edge]);
        let early = early.map(|index| StageId(index as u16));
        let merge = match plan.stage(edge).compaction {
            Some(_) if early.is_some() => Merge::At(EARLY_MERGE_ROWS),
            Some(_) => Merge::At(MERGE_ROWS),
            None => Merge::Never,
        };
        Self { spool: Spool::new(budget), merge, early }
    }

    /// Merges partial aggregates once enough have come, so that what rests here is bounded by groups, not by chunks.
    /// Returns what is left of them. When it comes to that depends on the order of arrival, so a merge that fails fails
    /// nothing: the rows stay as they are, and the task that has all of them decides.
    fn merge_if_due(
        &mut self,
        plan: &JobPlan,
        edge: StageId,
        source: Source,
        env: &Arc<RuntimeEnv>,
    ) -> Result<Option<Vec<RecordBatch>>, Error> {
        let Merge::At(due) = self.merge else { return Ok(None) };
        if self.spool.rows() < due {
            return Ok(None);
        }
        if self.spool.has_spilled() {
            self.merge = Merge::Never;
            return Ok(None);
        }
        let before = self.spool.rows();
        let batches = self.spool.take_memory();
        let merged = match compact(plan, edge, batches.clone(), env) {
            Err(error) if is_left_to_the_task(&error) => {
                self.merge = Merge::Never;
                batches.into_iter().try_for_each(|batch| self.spool.push(source, batch))?;
                return Ok(None);
            }
            merged => merged?,
        };
        for batch in &merged {
            self.spool.push(source, batch.clone())?;
        }
        let after = self.spool.rows();
        // The next merge comes when the rows have multiplied, so all merges together cost a constant factor. Where
        // merging hardly makes many rows fewer it is given up, unless somebody waits for what it shows.
        self.merge = match self.early {
            Some(_) => Merge::At((after * 3).max(EARLY_MERGE_ROWS)),
            None if after * 2 <= before || before < MANY_ROWS => Merge::At((after * 4).max(MERGE_ROWS)),
            None => Merge::Never,
        };
        Ok(Some(merged))
    }
}

#[cfg(test)]
mod tests {
    use tenaz_core::Error as Broken;
    use tenaz_engine::Workload;

    use super::*;

    /// A stage that reads the rows of one table's chunks, in a real plan.
    fn reader_of_chunks(topology: &Topology) -> (StageId, TableId) {
        let found = topology.stages().find_map(|(stage, shape)| match shape.reads[..] {
            [edge] if topology.runs_on(stage, Partition(0)) => match topology.stage(edge).tasks {
                TaskSet::PerChunk(table) => Some((stage, table)),
                _ => None,
            },
            _ => None,
        });
        found.expect("some query aggregates a table")
    }

    fn after_chunks(plan: &JobPlan, topology: &Topology, table: TableId, chunks: u64) -> PartitionRows {
        let resources = Resources {
            threads: 1,
            memory_bytes: 1 << 20,
            temp_dir: std::env::temp_dir(),
            budget: Budget::new(1 << 20, std::env::temp_dir()),
            show_early: false,
            keep_answers: false,
            question_faults: crate::job_rows::QuestionFaults::of_lone_process(),
        };
        let mut rows = PartitionRows::new(topology, Partition(0), &resources);
        let env = Arc::new(RuntimeEnv::default());
        for number in 0..chunks {
            rows.take(plan, &env, Source::Chunk { table, number }, Vec::new()).expect("an output without rows");
        }
        rows
    }

    #[test]
    fn a_task_gets_the_rows_of_every_output_that_has_arrived_or_fails() {
        let plan = JobPlan::new(&Workload::load("coffee").expect("a bundled workload")).expect("a plan");
        let topology = plan.topology(2).expect("a topology");
        let (stage, table) = reader_of_chunks(&topology);
        let inputs = |chunks: u64, sources: u64| {
            after_chunks(&plan, &topology, table, chunks).inputs(&topology, stage, sources, |_| false).map(|_| ())
        };
        assert!(inputs(3, 3).is_ok());
        for (taken, counted) in [(2, 3), (0, 1), (4, 3)] {
            let error = inputs(taken, counted).expect_err("the counts differ");
            let task = Source::Task { stage, partition: Partition(0) };
            let expected = Broken::InputLost { task, counted, taken };
            assert!(matches!(&error, Error::Protocol(broken) if *broken == expected), "{error}");
        }
    }

    #[test]
    fn rows_that_one_task_reads_are_handed_out_once() {
        let plan = JobPlan::new(&Workload::load("coffee").expect("a bundled workload")).expect("a plan");
        let topology = plan.topology(2).expect("a topology");
        let (stage, table) = reader_of_chunks(&topology);
        let mut rows = after_chunks(&plan, &topology, table, 1);
        assert!(rows.inputs(&topology, stage, 1, |_| true).is_ok());
        assert!(rows.inputs(&topology, stage, 1, |_| true).is_ok(), "an edge with several readers is kept for all");
        assert!(rows.inputs(&topology, stage, 1, |_| false).is_ok());
        let error = rows.inputs(&topology, stage, 1, |_| false).map(|_| ()).expect_err("it was handed out");
        assert!(matches!(error, Error::Protocol(Broken::InputTakenTwice { .. })), "{error}");
    }
}
