//! One partition of a job: its log's state and the rows that wait for their task.
//!
//! Partial aggregates are merged as they come. Where the stage behind them can answer early, each merge also shows which
//! rows of the answer are certain by now.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_core::{Inbox, Partition, Received, Source, StageId, TableId, Topology};
use tenaz_engine::{EdgeInput, JobPlan, MemoryEdge, compact, run_inner};

use crate::Error;
use crate::limits::{EARLY_MERGE_ROWS, MANY_ROWS, MERGE_ROWS};
use crate::spool::{Budget, Spool, SpooledRows};

/// A partition of a job on this machine: what has arrived, and the rows of it.
#[derive(Debug)]
pub(crate) struct PartitionState {
    inbox: Inbox,
    rows: PartitionRows,
}

/// The rows that a partition holds. Whoever fills it drops duplicates first.
#[derive(Debug)]
pub(crate) struct PartitionRows {
    partition: Partition,
    partitions: u16,
    edges: BTreeMap<StageId, Arriving>,
    finished: BTreeMap<StageId, Arc<SpooledRows>>,
    budget: Arc<Budget>,
    /// Whether somebody looks at rows that are certain before all have come.
    show_early: bool,
}

/// What a message brought about.
#[derive(Debug, Default)]
pub(crate) struct Arrival {
    /// Stages that now have all their input.
    pub(crate) ready: Vec<StageId>,
    /// Rows of answers that are certain by now, by the stage that will make them.
    pub(crate) early: Vec<(StageId, RecordBatch)>,
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

impl PartitionState {
    pub(crate) fn new(topology: &Topology, partition: Partition, budget: Arc<Budget>, show_early: bool) -> Self {
        let inbox = Inbox::of_partition(topology, partition);
        Self { inbox, rows: PartitionRows::new(topology, partition, budget, show_early) }
    }

    /// Takes a message in, unless it was seen before.
    pub(crate) fn receive(
        &mut self,
        plan: &JobPlan,
        env: &Arc<RuntimeEnv>,
        source: Source,
        rows: Vec<(StageId, RecordBatch)>,
    ) -> Result<Arrival, Error> {
        if self.inbox.receive(source) == Received::Duplicate {
            return Ok(Arrival::default());
        }
        let early = self.rows.take(plan, env, source, rows)?;
        Ok(Arrival { ready: self.inbox.take_ready(), early })
    }

    pub(crate) fn close_table(&mut self, table: TableId, chunks: u64) -> Result<Vec<StageId>, Error> {
        self.inbox.close_table(table, chunks)?;
        Ok(self.inbox.take_ready())
    }

    /// Stages that are ready without any input.
    pub(crate) fn take_ready(&mut self) -> Vec<StageId> {
        self.inbox.take_ready()
    }

    /// See [`PartitionRows::inputs`].
    pub(crate) fn inputs(
        &mut self,
        edges: &[StageId],
        keep: impl Fn(StageId) -> bool,
    ) -> BTreeMap<StageId, Arc<dyn EdgeInput>> {
        self.rows.inputs(edges, keep)
    }
}

impl PartitionRows {
    pub(crate) fn new(topology: &Topology, partition: Partition, budget: Arc<Budget>, show_early: bool) -> Self {
        let (edges, finished) = (BTreeMap::new(), BTreeMap::new());
        Self { partition, partitions: topology.partitions(), edges, finished, budget, show_early }
    }

    /// Takes rows in. Returns rows of answers that are certain by now, by the stage that will make them.
    pub(crate) fn take(
        &mut self,
        plan: &JobPlan,
        env: &Arc<RuntimeEnv>,
        source: Source,
        rows: Vec<(StageId, RecordBatch)>,
    ) -> Result<Vec<(StageId, RecordBatch)>, Error> {
        let mut early = Vec::new();
        for (edge, batch) in rows {
            let (budget, early_is_seen) = (&self.budget, self.show_early);
            let begin = || Arriving::new(plan, edge, Arc::clone(budget), early_is_seen);
            let arriving = self.edges.entry(edge).or_insert_with(begin);
            arriving.spool.push(source, batch)?;
            let merged = arriving.merge_if_due(plan, edge, source, env)?;
            if let (Some(stage), Some(merged)) = (arriving.early, merged) {
                let rows: Arc<dyn EdgeInput> = Arc::new(MemoryEdge(merged));
                let inputs = BTreeMap::from([(edge, rows)]);
                let output = run_inner(plan, stage, self.partition, self.partitions, inputs, env)?;
                early.extend(output.results);
            }
        }
        Ok(early)
    }

    /// The complete rows of the edges a task reads. An edge that several stages read stays for the others.
    pub(crate) fn inputs(
        &mut self,
        edges: &[StageId],
        keep: impl Fn(StageId) -> bool,
    ) -> BTreeMap<StageId, Arc<dyn EdgeInput>> {
        let mut inputs: BTreeMap<StageId, Arc<dyn EdgeInput>> = BTreeMap::new();
        for &edge in edges {
            if let Some(arriving) = self.edges.remove(&edge) {
                self.finished.insert(edge, Arc::new(arriving.spool.into_input()));
            }
            let rows = if keep(edge) { self.finished.get(&edge).cloned() } else { self.finished.remove(&edge) };
            if let Some(rows) = rows {
                inputs.insert(edge, rows);
            }
        }
        inputs
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
    /// Returns what is left of them.
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
        let merged = compact(plan, edge, batches, env)?;
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
