//! The rows a worker has taken from one log.

use std::collections::BTreeSet;

use tenaz_core::{EdgeSums, FailedStages, Lineage, LineageCheck, Source, StageId, TaskSet, Topology};

use crate::rows::{Message, Row};

/// The rows of one log, in the order in which they arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogState {
    taken: Vec<Message>,
    /// Edges whose rows their only reader has.
    handed_out: BTreeSet<StageId>,
}

impl LogState {
    /// Takes an output in: all its parts, in order.
    pub(crate) fn take(&mut self, parts: impl IntoIterator<Item = Message>) {
        self.taken.extend(parts);
    }

    /// The rows taken, each with its edge.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (StageId, Row)> + '_ {
        self.taken.iter().flat_map(|message| message.rows.iter().copied())
    }

    /// The stages of which somebody has said that they have failed.
    pub(crate) fn failed(&self) -> FailedStages {
        let mut failed = FailedStages::default();
        self.taken.iter().for_each(|message| failed.extend(message.failed.clone()));
        failed
    }

    /// The rows of one edge.
    pub(crate) fn rows_of(&self, edge: StageId) -> Vec<Row> {
        self.rows().filter(|(stage, _)| *stage == edge).map(|(_, row)| row).collect()
    }

    /// The rows of one edge for a task that reads it. If no other stage reads it, they are gone from here: none the second
    /// time.
    pub(crate) fn hand_out(&mut self, topology: &Topology, edge: StageId) -> Option<Vec<Row>> {
        if self.handed_out.contains(&edge) {
            return None;
        }
        if topology.stages().filter(|(_, shape)| shape.reads.contains(&edge)).count() == 1 {
            self.handed_out.insert(edge);
        }
        Some(self.rows_of(edge))
    }

    /// How many outputs were taken in over these edges, each counted once for every edge that it serves.
    pub(crate) fn sources_over(&self, topology: &Topology, edges: &[StageId]) -> u64 {
        let serves = |source: Source, edge: StageId| match (source, topology.stage(edge).tasks) {
            (Source::Chunk { table, .. }, TaskSet::PerChunk(of)) => table == of,
            (Source::Task { stage, .. }, _) => stage == edge,
            (Source::Chunk { .. }, _) => false,
        };
        let first_parts = || self.taken.iter().filter(|message| message.header.part == 0);
        let over = |edge| first_parts().filter(|message| serves(message.header.source, edge)).count() as u64;
        edges.iter().map(|&edge| over(edge)).sum()
    }

    /// What was taken, each output once.
    fn outputs(&self) -> impl Iterator<Item = (Source, Lineage)> + '_ {
        let first_parts = self.taken.iter().filter(|message| message.header.part == 0);
        first_parts.map(|message| (message.header.source, message.header.lineage))
    }

    /// The combined lineage of what was taken; `sums` is that of nothing.
    pub(crate) fn sums(&self, mut sums: EdgeSums) -> EdgeSums {
        self.outputs().for_each(|(source, lineage)| sums.take(source, lineage));
        sums
    }

    /// The lineage of what was taken from the results log.
    pub(crate) fn lineage(&self) -> LineageCheck {
        let mut check = LineageCheck::default();
        self.outputs().for_each(|(source, lineage)| check.take(source, lineage));
        check
    }

    /// The accounts of chunks.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (Source, u64)> + '_ {
        self.taken.iter().filter_map(|message| message.records.map(|records| (message.header.source, records)))
    }
}
