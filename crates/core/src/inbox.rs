//! What has arrived in one log, and which tasks have all their input.
//!
//! ```text
//!  receive(source) ──▶ seen before? ──yes──▶ Duplicate: the caller drops the message untouched
//!                           │ no
//!                           ▼
//!                    count it for its edges ──▶ all ids promised are in? ──▶ take_ready() names the stage, once
//!                           ▲
//!  close_table(t, n) ───────┘  (the promise: table t has n chunks)
//! ```
//!
//! Completion is arithmetic over ids: no timeouts, no end markers, no order of arrival.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Error, IntervalSet, Partition, Promise, Route, Source, StageId, TableId, TaskSet, Topology};

/// Whether a message is news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// First of its id: use it.
    New,
    /// Seen before, or of no source that the job has: drop it before it touches any state.
    Duplicate,
}

/// The state of one log: a partition's, or the broadcast's.
#[derive(Debug, Clone)]
pub struct Inbox {
    chunks: Vec<IntervalSet>,
    promised: Vec<Option<Promise>>,
    tasks: BTreeMap<StageId, IntervalSet>,
    waiting: Vec<Waiting>,
    ready: Vec<StageId>,
    edges: BTreeMap<StageId, Producer>,
}

/// A stage whose input here is not complete.
#[derive(Debug, Clone)]
struct Waiting {
    stage: StageId,
    missing: BTreeSet<StageId>,
}

#[derive(Debug, Clone, Copy)]
enum Producer {
    Chunks(TableId),
    Tasks(u64),
}

impl Inbox {
    /// The inbox of a partition's log: it becomes ready with every inner stage that runs on this partition.
    pub fn of_partition(topology: &Topology, partition: Partition) -> Self {
        let arrives = |stage: &StageId| topology.arrives_in(*stage, partition);
        let waiting = topology
            .stages()
            .filter(|(id, _)| topology.runs_on(*id, partition))
            .map(|(stage, shape)| Waiting { stage, missing: shape.reads.iter().copied().filter(arrives).collect() })
            .collect();
        Self::new(topology, waiting, arrives)
    }

    /// The inbox of the broadcast log: it becomes ready with every broadcast *edge*, named by the stage that sends it.
    pub fn of_broadcast(topology: &Topology) -> Self {
        let arrives = |stage: &StageId| topology.stage(*stage).route == Route::Broadcast;
        let waiting = topology
            .stages()
            .filter(|(id, _)| arrives(id))
            .map(|(stage, _)| Waiting { stage, missing: BTreeSet::from([stage]) })
            .collect();
        Self::new(topology, waiting, arrives)
    }

    /// The inbox of the results log: it becomes ready with every edge that carries an answer.
    pub fn of_results(topology: &Topology) -> Self {
        let arrives = |stage: &StageId| matches!(topology.stage(*stage).route, Route::Results(_));
        let waiting = topology
            .stages()
            .filter(|(id, _)| arrives(id))
            .map(|(stage, _)| Waiting { stage, missing: BTreeSet::from([stage]) })
            .collect();
        Self::new(topology, waiting, arrives)
    }

    fn new(topology: &Topology, waiting: Vec<Waiting>, arrives: impl Fn(&StageId) -> bool) -> Self {
        let edges = topology
            .stages()
            .filter(|(id, _)| arrives(id))
            .map(|(id, shape)| match shape.tasks {
                TaskSet::PerChunk(table) => (id, Producer::Chunks(table)),
                TaskSet::PerPartition | TaskSet::Single(_) => (id, Producer::Tasks(topology.inner_tasks(id))),
            })
            .collect();
        let mut inbox = Self {
            chunks: vec![IntervalSet::default(); topology.tables()],
            promised: vec![None; topology.tables()],
            tasks: BTreeMap::new(),
            waiting,
            ready: Vec::new(),
            edges,
        };
        inbox.promote();
        inbox
    }

    /// Takes note of a message. Only [`Received::New`] may touch the receiver's state.
    pub fn receive(&mut self, source: Source) -> Received {
        if !self.is_possible(source) {
            return Received::Duplicate;
        }
        let fresh = match source {
            Source::Chunk { table, number } => self.chunks[usize::from(table.0)].insert(number),
            Source::Task { stage, partition } => self.tasks.entry(stage).or_default().insert(u64::from(partition.0)),
        };
        if !fresh {
            return Received::Duplicate;
        }
        let possibly_complete = match source {
            Source::Chunk { table, .. } => {
                let table = usize::from(table.0);
                self.promised[table].as_ref().is_some_and(|promise| promise.len() == self.chunks[table].len())
            }
            Source::Task { .. } => true,
        };
        if possibly_complete {
            self.advance();
        }
        Received::New
    }

    /// Whether a message of this source has been received.
    pub fn has(&self, source: Source) -> bool {
        match source {
            Source::Chunk { table, number } => {
                self.chunks.get(usize::from(table.0)).is_some_and(|chunks| chunks.contains(number))
            }
            Source::Task { stage, partition } => {
                self.tasks.get(&stage).is_some_and(|tasks| tasks.contains(u64::from(partition.0)))
            }
        }
    }

    /// The promise: `table` has exactly `chunks` chunks. Repeating it is harmless, contradicting it is an error.
    pub fn close_table(&mut self, table: TableId, chunks: u64) -> Result<(), Error> {
        self.promise(table, &Promise::count(chunks))
    }

    /// The promise: `table` has exactly these chunks. Repeating it is harmless, contradicting it is an error.
    pub fn promise(&mut self, table: TableId, promise: &Promise) -> Result<(), Error> {
        promise.check()?;
        let index = usize::from(table.0);
        match &self.promised[index] {
            Some(before) if before != promise => {
                return Err(Error::ClosedTwice { table, before: before.len(), now: promise.len() });
            }
            Some(_) => return Ok(()),
            None => self.promised[index] = Some(promise.clone()),
        }
        if let Some(number) = promise.stray(&self.chunks[index]) {
            return Err(Error::ChunkBeyondEnd { table, chunks: promise.len(), number });
        }
        self.advance();
        Ok(())
    }

    /// Whether all chunks of the table are known and have arrived.
    pub fn has_all_chunks(&self, table: TableId) -> bool {
        let table = usize::from(table.0);
        self.promised[table].as_ref().is_some_and(|promise| promise.len() == self.chunks[table].len())
    }

    /// How many chunks of the table have arrived.
    pub fn chunks_arrived(&self, table: TableId) -> u64 {
        self.chunks[usize::from(table.0)].len()
    }

    /// How many outputs have arrived over these edges, each counted once for every edge that it serves.
    pub fn arrived_over(&self, edges: &[StageId]) -> u64 {
        let arrived = |edge: &StageId| match self.edges.get(edge) {
            Some(Producer::Chunks(table)) => self.chunks_arrived(*table),
            Some(Producer::Tasks(_)) => self.tasks.get(edge).map_or(0, IntervalSet::len),
            None => 0,
        };
        edges.iter().map(arrived).sum()
    }

    /// The chunks of the table that were promised and have not arrived.
    pub fn missing_chunks(&self, table: TableId) -> Vec<(u64, u64)> {
        let table = usize::from(table.0);
        self.promised[table].as_ref().map_or_else(Vec::new, |promise| promise.missing_from(&self.chunks[table]))
    }

    /// The stages that have become complete since the last call; each is named exactly once.
    pub fn take_ready(&mut self) -> Vec<StageId> {
        std::mem::take(&mut self.ready)
    }

    /// Whether everything this log will ever hold has arrived and been named ready.
    pub fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.ready.is_empty()
    }

    /// What is still missing, for people: the edges that are not complete.
    pub fn missing(&self) -> BTreeSet<StageId> {
        self.waiting.iter().flat_map(|w| w.missing.iter().copied()).collect()
    }

    /// Whether the job has such a source at all: a stray message must not count for a promised one.
    fn is_possible(&self, source: Source) -> bool {
        match source {
            Source::Chunk { table, number } => match self.promised.get(usize::from(table.0)) {
                None => false,
                Some(promise) => promise.as_ref().is_none_or(|promise| promise.has(number)),
            },
            Source::Task { stage, partition } => match self.edges.get(&stage) {
                Some(Producer::Tasks(tasks)) => *tasks == 1 || u64::from(partition.0) < *tasks,
                Some(Producer::Chunks(_)) | None => false,
            },
        }
    }

    fn edge_complete(&self, edge: StageId) -> bool {
        match self.edges.get(&edge) {
            None => false,
            Some(Producer::Chunks(table)) => self.has_all_chunks(*table),
            Some(Producer::Tasks(n)) => self.tasks.get(&edge).map_or(0, IntervalSet::len) == *n,
        }
    }

    fn advance(&mut self) {
        let complete: Vec<StageId> = self.edges.keys().copied().filter(|&edge| self.edge_complete(edge)).collect();
        for waiting in &mut self.waiting {
            for edge in &complete {
                waiting.missing.remove(edge);
            }
        }
        self.promote();
    }

    fn promote(&mut self) {
        let ready = &mut self.ready;
        self.waiting.retain(|waiting| {
            if waiting.missing.is_empty() {
                ready.push(waiting.stage);
            }
            !waiting.missing.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueryId, StageShape};
    use proptest::prelude::*;

    fn two_tables_joined(partitions: u16) -> Topology {
        let leaf = |table| StageShape {
            tasks: TaskSet::PerChunk(TableId(table)),
            reads: vec![],
            broadcasts: vec![],
            route: Route::Hash,
        };
        let stages = vec![
            leaf(0),
            leaf(1),
            StageShape {
                tasks: TaskSet::PerPartition,
                reads: vec![StageId(0), StageId(1)],
                broadcasts: vec![],
                route: Route::One(Partition(0)),
            },
            StageShape {
                tasks: TaskSet::Single(Partition(0)),
                reads: vec![StageId(2)],
                broadcasts: vec![],
                route: Route::Results(QueryId(0)),
            },
        ];
        Topology::new(partitions, 2, stages).expect("a valid topology")
    }

    #[derive(Debug, Clone, Copy)]
    enum Event {
        Got(Source),
        Closed(TableId, u64),
    }

    fn all_events(partitions: u16, chunks: [u64; 2]) -> Vec<Event> {
        let mut events = Vec::new();
        for table in 0..2u16 {
            events.push(Event::Closed(TableId(table), chunks[usize::from(table)]));
            for number in 0..chunks[usize::from(table)] {
                events.push(Event::Got(Source::Chunk { table: TableId(table), number }));
            }
        }
        for partition in 0..partitions {
            events.push(Event::Got(Source::Task { stage: StageId(2), partition: Partition(partition) }));
        }
        events
    }

    proptest! {
        /// Any order, any duplicates: each stage is ready exactly once, and only when the last id is in.
        #[test]
        fn readiness_does_not_depend_on_order_or_repetition(
            (partitions, chunks, order) in (1u16..4, [0u64..5, 0u64..5]).prop_flat_map(|(p, c)| {
                let mut events = all_events(p, c);
                events.extend(events.clone());
                (Just(p), Just(c), Just(events).prop_shuffle())
            })
        ) {
            let topology = two_tables_joined(partitions);
            let mut inbox = Inbox::of_partition(&topology, Partition(0));
            let mut named = inbox.take_ready();
            let mut seen = BTreeSet::new();
            let mut closed = BTreeSet::new();
            for event in order {
                match event {
                    Event::Got(source) => {
                        let expected = if seen.insert(source) { Received::New } else { Received::Duplicate };
                        prop_assert_eq!(inbox.receive(source), expected);
                    }
                    Event::Closed(table, n) => {
                        closed.insert(table);
                        inbox.close_table(table, n).expect("the same promise each time");
                    }
                }
                let now = inbox.take_ready();
                let chunks_in = seen.iter().filter(|s| matches!(s, Source::Chunk { .. })).count() as u64;
                let leaf_done = closed.len() == 2 && chunks_in == chunks[0] + chunks[1];
                prop_assert_eq!(named.contains(&StageId(2)) || now.contains(&StageId(2)), leaf_done);
                named.extend(now);
            }
            named.sort();
            prop_assert_eq!(named, vec![StageId(2), StageId(3)]);
            prop_assert!(inbox.is_done());
        }
    }

    #[test]
    fn a_contradicted_promise_is_an_error() {
        let mut inbox = Inbox::of_partition(&two_tables_joined(1), Partition(0));
        assert_eq!(inbox.close_table(TableId(0), 3), Ok(()));
        assert_eq!(inbox.close_table(TableId(0), 3), Ok(()));
        assert!(matches!(inbox.close_table(TableId(0), 4), Err(Error::ClosedTwice { .. })));
        inbox.receive(Source::Chunk { table: TableId(1), number: 7 });
        assert!(matches!(inbox.close_table(TableId(1), 2), Err(Error::ChunkBeyondEnd { .. })));
    }

    #[test]
    fn a_stage_may_not_read_ahead() {
        let shape = StageShape {
            tasks: TaskSet::PerPartition,
            reads: vec![StageId(0)],
            broadcasts: vec![],
            route: Route::Hash,
        };
        assert!(matches!(Topology::new(1, 1, vec![shape]), Err(Error::ForwardRead { .. })));
    }
}
