//! What must hold at every step, and what a conclusion must say.

use std::collections::{BTreeMap, BTreeSet};

use tenaz_core::{Failure, JobWorker, Ledger, QueryId, Route, Source, TableId};

use crate::broker::Broker;
use crate::faults::Fault;
use crate::rows::Row;
use crate::scenario::Scenario;
use crate::store::LogState;

/// The findings of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Checks {
    /// The first rule that was broken.
    pub(crate) violation: Option<String>,
    /// How often somebody concluded.
    pub(crate) conclusions: u64,
    /// How often a worker died of the poisoned task.
    pub(crate) poisoned: u64,
    /// The faults that really hit something.
    pub(crate) fired: Vec<Fault>,
    /// What kills every worker that runs it.
    pub(crate) poison: Option<Source>,
}

impl Checks {
    /// Takes note of a broken rule.
    pub(crate) fn broken(&mut self, rule: String) {
        self.violation.get_or_insert(rule);
    }

    /// Outputs before acknowledgement: every log the chunk must write to has all its parts.
    pub(crate) fn ack(&mut self, source: Source, machine: &JobWorker, broker: &Broker) {
        for log in machine.topology().destinations(source) {
            if !broker.was_accepted(log, source) {
                self.broken(format!("{source} was acknowledged before its output was in log {log}"));
            }
        }
    }

    /// The answer is the oracle's, and every chunk is accounted for once.
    pub(crate) fn conclude(&mut self, scenario: &Scenario, results: &LogState) {
        self.conclusions += 1;
        if let Some(poison) = self.poison {
            return self.broken(format!("a job concluded although {poison} can never be done"));
        }
        let mut found: BTreeMap<QueryId, Vec<Row>> = scenario.answer.keys().map(|&query| (query, Vec::new())).collect();
        for (stage, row) in results.rows() {
            if let Route::Results(query) = scenario.topology.stage(stage).route {
                found.entry(query).or_default().push(row);
            }
        }
        found.values_mut().for_each(|rows| rows.sort());
        if found != scenario.answer {
            return self.broken(format!("the answer is {found:?}, but {:?} is right", scenario.answer));
        }
        self.account(scenario, results);
    }

    fn account(&mut self, scenario: &Scenario, results: &LogState) {
        let mut ledger = Ledger::new(scenario.topology.tables());
        let mut seen = BTreeSet::new();
        for (source, records) in results.accounts() {
            let Source::Chunk { table, .. } = source else { continue };
            if !seen.insert(source) {
                self.broken(format!("{source} was accounted for twice"));
            }
            ledger.decoded(usize::from(table.0), records, 0);
        }
        for table in 0..scenario.topology.tables() {
            ledger.read(table, scenario.records(TableId(table as u16)));
        }
        if let Err(imbalance) = ledger.check() {
            self.broken(format!("records are not conserved: {imbalance}"));
        }
        let chunks: u64 = (0..scenario.topology.tables()).map(|table| scenario.chunks(TableId(table as u16))).sum();
        if seen.len() as u64 != chunks {
            self.broken(format!("{} of {chunks} chunks were accounted for", seen.len()));
        }
    }

    /// A job may fail only for its poison, and must name it.
    pub(crate) fn fail(&mut self, failure: &Failure) {
        match (failure, self.poison) {
            (Failure::Quarantined { task, .. }, Some(poison)) if *task == poison => {}
            _ => self.broken(format!("a job failed that should not: {failure}")),
        }
    }
}
