//! One partition of a job: its log's state and the rows that wait for their task.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_core::{Inbox, Partition, Received, Source, StageId, TableId, Topology};
use tenaz_engine::{EdgeInput, JobPlan, compact};

use crate::limits::MERGE_ROWS;
use crate::spool::{Budget, Spool, SpooledRows};
use crate::Error;

/// What a partition holds.
#[derive(Debug)]
pub(crate) struct PartitionState {
    inbox: Inbox,
    edges: BTreeMap<StageId, Arriving>,
    finished: BTreeMap<StageId, Arc<SpooledRows>>,
    budget: Arc<Budget>,
}

/// Rows that are still arriving over one edge.
#[derive(Debug)]
struct Arriving {
    spool: Spool,
    merge: Merge,
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
    pub(crate) fn new(topology: &Topology, partition: Partition, budget: Arc<Budget>) -> Self {
        let inbox = Inbox::of_partition(topology, partition);
        Self { inbox, edges: BTreeMap::new(), finished: BTreeMap::new(), budget }
    }

    /// Takes a message in, unless it was seen before. Returns the stages that now have all their input.
    pub(crate) fn receive(
        &mut self,
        plan: &JobPlan,
        env: &Arc<RuntimeEnv>,
        source: Source,
        rows: Vec<(StageId, RecordBatch)>,
    ) -> Result<Vec<StageId>, Error> {
        if self.inbox.receive(source) == Received::Duplicate {
            return Ok(Vec::new());
        }
        for (edge, batch) in rows {
            let budget = &self.budget;
            let arriving = self.edges.entry(edge).or_insert_with(|| Arriving {
                spool: Spool::new(Arc::clone(budget)),
                merge: match plan.stage(edge).compaction {
                    Some(_) => Merge::At(MERGE_ROWS as u64),
                    None => Merge::Never,
                },
            });
            arriving.spool.push(source, batch)?;
            arriving.merge_if_due(plan, edge, source, env)?;
        }
        Ok(self.inbox.take_ready())
    }

    pub(crate) fn close_table(&mut self, table: TableId, chunks: u64) -> Result<Vec<StageId>, Error> {
        self.inbox.close_table(table, chunks)?;
        Ok(self.inbox.take_ready())
    }

    /// Stages that are ready without any input.
    pub(crate) fn take_ready(&mut self) -> Vec<StageId> {
        self.inbox.take_ready()
    }

    /// The complete rows of the edges a task reads. An edge that several stages read stays for the others.
    pub(crate) fn inputs(&mut self, edges: &[StageId], keep: impl Fn(StageId) -> bool) -> BTreeMap<StageId, Arc<dyn EdgeInput>> {
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
    /// Partial aggregates are merged as they come, so what rests here is bounded by groups, not by chunks.
    fn merge_if_due(
        &mut self,
        plan: &JobPlan,
        edge: StageId,
        source: Source,
        env: &Arc<RuntimeEnv>,
    ) -> Result<(), Error> {
        let Merge::At(due) = self.merge else { return Ok(()) };
        if self.spool.rows() < due {
            return Ok(());
        }
        if self.spool.has_spilled() {
            self.merge = Merge::Never;
            return Ok(());
        }
        let before = self.spool.rows();
        let batches = self.spool.take_memory().into_iter().map(|(_, batch)| batch).collect();
        for batch in compact(plan, edge, batches, env)? {
            self.spool.push(source, batch)?;
        }
        let after = self.spool.rows();
        let worthwhile = after * 2 <= before;
        self.merge = if worthwhile { Merge::At((after * 4).max(MERGE_ROWS as u64)) } else { Merge::Never };
        Ok(())
    }
}
