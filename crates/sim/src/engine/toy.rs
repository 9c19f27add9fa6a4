//! Rows of two numbers, computed by the simulator itself: what a mistake does to them is cheap to see.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tenaz_core::{
    ClosedTable, EdgeSums, Error, FailedStages, Ledger, Lineage, Log, Partition, QueryEnded, QueryId, Source, StageId,
    TableId,
};

use super::{Finding, StepError};
use crate::broker::ChunkCopy;
use crate::mutation::Mutation;
use crate::rows::{Message, Row, TaskRows};
use crate::scenario::Scenario;
use crate::store::LogState;

/// The rows that one reading of a log has given.
pub(crate) type ToyRows = Rc<RefCell<LogState>>;

/// Computes with the rows of one worker's part in the job.
pub(crate) struct ToyEngine {
    scenario: Rc<Scenario>,
    /// Stands for all that makes the order of rows differ from worker to worker.
    turn: u64,
    mutation: Mutation,
    /// The rows of complete broadcasts.
    broadcasts: RefCell<BTreeMap<StageId, Vec<Row>>>,
    /// Which bytes the broadcasts were made of.
    broadcast_sums: RefCell<EdgeSums>,
    /// Broadcasts that have failed.
    failed_broadcasts: RefCell<FailedStages>,
    /// The rows of the present reading of each log, for mistakes that look them up.
    opened: RefCell<BTreeMap<Log, ToyRows>>,
    findings: RefCell<Vec<Finding>>,
}

impl ToyEngine {
    /// The engine of a worker that has just heard of the job.
    pub(crate) fn new(scenario: Rc<Scenario>, turn: u64, mutation: Mutation) -> Self {
        Self {
            scenario,
            turn,
            mutation,
            broadcasts: RefCell::default(),
            broadcast_sums: RefCell::default(),
            failed_broadcasts: RefCell::default(),
            opened: RefCell::default(),
            findings: RefCell::default(),
        }
    }

    /// What it has seen since it was asked last.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.findings.take()
    }

    /// The rows of the present reading of a log.
    pub(crate) fn rows(&self, log: Log) -> Option<ToyRows> {
        self.opened.borrow().get(&log).cloned()
    }

    fn broken(&self, rule: String) {
        self.findings.borrow_mut().push(Finding::Broken(rule));
    }

    fn broadcast(&self, edge: StageId) -> Vec<Row> {
        self.broadcasts.borrow().get(&edge).cloned().unwrap_or_default()
    }

    fn broadcast_lineage<'a>(&self, edges: impl IntoIterator<Item = &'a StageId>) -> u64 {
        self.broadcast_sums.borrow().of_edges(edges)
    }

    fn expect_broadcasts<'a>(&self, source: Source, edges: impl IntoIterator<Item = &'a StageId>) {
        let complete = self.broadcasts.borrow();
        if let Some(edge) = edges.into_iter().find(|edge| !complete.contains_key(edge)) {
            self.broken(format!("{source} was begun before broadcast {} was complete", edge.0));
        }
    }

    fn snapshot(&self, state: &LogState, edge: StageId) {
        self.broadcasts.borrow_mut().entry(edge).or_insert_with(|| state.rows_of(edge));
        self.failed_broadcasts.borrow_mut().extend(state.failed());
        *self.broadcast_sums.borrow_mut() = state.sums(EdgeSums::of_broadcast(&self.scenario.topology));
    }

    /// The records of the results against those that the tables were closed with.
    fn balance(
        &self,
        results: &LogState,
        closed: &BTreeMap<TableId, ClosedTable>,
        complete: &BTreeSet<TableId>,
    ) -> Result<(), StepError> {
        let tables = self.scenario.topology.tables();
        let mut ledger = Ledger::new(tables);
        for (source, records) in results.accounts() {
            if let Source::Chunk { table, .. } = source {
                ledger.decoded(usize::from(table.0), records, 0);
            }
        }
        for &table in complete {
            let records = closed.get(&table).and_then(|closed| closed.records).ok_or(StepError::NotClosed(table))?;
            ledger.read(usize::from(table.0), records);
            ledger.check_table(usize::from(table.0)).map_err(StepError::Imbalance)?;
        }
        Ok(())
    }

    fn task_rows(
        &self,
        (stage, partition): (StageId, Partition),
        rows: &ToyRows,
    ) -> Result<(Vec<Vec<Row>>, u64), StepError> {
        let topology = &self.scenario.topology;
        let reads = &topology.stage(stage).reads;
        let task = Source::Task { stage, partition };
        let lineage = rows.borrow().sums(EdgeSums::of_partition(topology, partition)).of_edges(reads);
        let hand_out = |&edge: &StageId| match rows.borrow_mut().hand_out(topology, edge) {
            Some(rows) => Ok(rows),
            None if self.mutation == Mutation::LookUpLate => Ok(Vec::new()),
            None => Err(StepError::Contradiction(Error::InputTakenTwice { task, edge })),
        };
        Ok((reads.iter().map(hand_out).collect::<Result<_, _>>()?, lineage))
    }

    /// Runs an inner task over whatever rows these are. `sources` is what they are counted against, if at all.
    pub(crate) fn run_over(
        &self,
        (stage, partition): (StageId, Partition),
        sources: Option<u64>,
        rows: &ToyRows,
    ) -> Result<Vec<(Log, Message)>, StepError> {
        let shape = self.scenario.topology.stage(stage);
        let task = Source::Task { stage, partition };
        self.expect_broadcasts(task, &shape.broadcasts);
        let taken = rows.borrow().sources_over(&self.scenario.topology, &shape.reads);
        if let Some(counted) = sources.filter(|&counted| counted != taken) {
            return Err(StepError::Contradiction(Error::InputLost { task, counted, taken }));
        }
        let (inputs, input) = self.task_rows((stage, partition), rows)?;
        let (failed, broadcasts) = (rows.borrow().failed(), self.failed_broadcasts.borrow());
        let inherited = failed.among(&shape.reads).into_iter().chain(broadcasts.among(&shape.broadcasts)).min();
        let inherited = inherited.filter(|_| self.mutation != Mutation::ComputeOnPartialInput).cloned();
        let mut made = TaskRows::default();
        self.scenario.run((stage, task), inherited, &inputs, |edge| self.broadcast(edge), &mut made);
        let lineage = Lineage { input, broadcasts: self.broadcast_lineage(&shape.broadcasts) };
        Ok(self.scenario.messages((task, lineage), &made, self.turn))
    }

    /// The rows of a log that nobody has read yet.
    pub(super) fn open(&self, log: Log) -> ToyRows {
        let mut opened = self.opened.borrow_mut();
        match opened.get(&log) {
            Some(rows) if self.mutation == Mutation::KeepReleased => Rc::clone(rows),
            _ => {
                let rows = ToyRows::default();
                opened.insert(log, Rc::clone(&rows));
                rows
            }
        }
    }

    /// The leaf work of a chunk.
    pub(super) fn run_chunk(&self, leaf: ChunkCopy) -> Vec<(Log, Message)> {
        let ChunkCopy { source, version } = leaf;
        let Source::Chunk { table, number } = source else { return Vec::new() };
        let edges = self.scenario.topology.broadcasts_of(table);
        self.expect_broadcasts(source, &edges);
        let failed = self.failed_broadcasts.borrow();
        let made = self.scenario.run_chunk((table, number), version, |edge| self.broadcast(edge), &failed);
        let digest = self.scenario.digest(source, version);
        let lineage = Lineage::of_chunk(digest, self.broadcast_lineage(&edges));
        self.scenario.messages((source, lineage), &made, self.turn)
    }

    /// Takes all parts of an output in.
    pub(super) fn take(&self, log: Log, rows: &ToyRows, source: Source, mut messages: Vec<Message>) {
        let expected = messages.first().map_or(0, |first| first.header.parts as usize);
        if messages.len() != expected {
            self.broken(format!("{source} was taken from log {log} without all its parts"));
        }
        if self.mutation == Mutation::TakeLastPart {
            messages.drain(..messages.len() - 1);
        }
        if self.mutation == Mutation::ForgetFailures {
            messages.iter_mut().for_each(|message| message.failed = FailedStages::default());
        }
        let mut state = rows.borrow_mut();
        state.take(messages);
        if self.mutation == Mutation::SnapshotEarly && log == Log::Broadcast {
            let edges: Vec<StageId> = state.rows().map(|(edge, _)| edge).collect();
            edges.into_iter().for_each(|edge| self.snapshot(&state, edge));
        }
    }

    /// A broadcast has all its rows.
    pub(super) fn complete_broadcast(&self, rows: &ToyRows, edge: StageId) {
        self.snapshot(&rows.borrow(), edge);
    }

    /// The rows stay: the conclusion is checked against all of them.
    pub(crate) fn make_answer(
        &self,
        rows: &ToyRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, StepError> {
        let results = rows.borrow();
        let topology = &self.scenario.topology;
        let lineage = results.lineage().check_query(topology, query).map_err(StepError::Contradiction);
        let balanced = self.balance(&results, closed, &topology.tables_of(query));
        let is_checked = self.mutation != Mutation::NoLineage;
        if is_checked && self.scenario.changed.is_some() {
            lineage?;
            balanced?;
            self.findings.borrow_mut().push(Finding::Answered(query, results.clone()));
        } else {
            // Every chunk came in one version: the oracle judges first, so that it is seen what a mistake would lead to.
            self.findings.borrow_mut().push(Finding::Answered(query, results.clone()));
            if is_checked {
                lineage?;
            }
            balanced?;
        }
        Ok(QueryEnded { outcome: self.scenario.outcome(&results, query), at_ms: self.turn })
    }

    /// The results are taken out of the log: they can be had once.
    pub(crate) fn conclude(&self, rows: &ToyRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<(), StepError> {
        let results = rows.take();
        let tables = (0..self.scenario.topology.tables() as u16).map(TableId).collect();
        let lineage = results.lineage().check(&self.scenario.topology).map_err(StepError::Contradiction);
        if self.mutation != Mutation::NoLineage && self.scenario.changed.is_some() {
            lineage?;
            self.balance(&results, closed, &tables)?;
            self.findings.borrow_mut().push(Finding::Concluded(results));
        } else {
            // Every chunk came in one version: the oracle judges first, so that it is seen what a mistake would lead to.
            let balanced = self.balance(&results, closed, &tables);
            self.findings.borrow_mut().push(Finding::Concluded(results));
            if self.mutation != Mutation::NoLineage {
                lineage?;
            }
            balanced?;
        }
        Ok(())
    }
}
