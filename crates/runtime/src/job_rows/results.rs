//! The results log as its owner sees it: rows of answers, the account of every chunk, and the closing checks.

use std::collections::BTreeMap;

use tenaz_cluster::{IndexedRows, ResultIndex};
use tenaz_core::{ClosedTable, FailedQuery, FailedStages, Ledger, LineageCheck, QueryId, Source, TableId};
use tenaz_engine::Edge;

use super::{ChunkAccount, JobRows, LogRows, Message, lock};
use crate::spool::Spool;
use crate::{Answer, Error};

/// Rows of answers and the accounts of chunks, as far as they have come.
pub(crate) struct Results {
    spools: Vec<Spool>,
    answers: Vec<Option<Answer>>,
    ledger: Ledger,
    /// Rejected records of each table, by reason.
    reasons: Vec<BTreeMap<String, u64>>,
    /// Where in the log the rows of each answer stand.
    index: ResultIndex,
    /// Which bytes all of it was made of.
    lineage: LineageCheck,
    /// Stages whose rows would be here if they had not failed.
    failed: FailedStages,
}

/// A job that has come to its end.
#[derive(Debug)]
pub(crate) struct Conclusion {
    /// One per query that was answered, in the order asked.
    pub(crate) answers: Vec<Answer>,
    /// The queries that could not be answered, in the order asked.
    pub(crate) failed: Vec<FailedQuery>,
    pub(crate) ledger: Ledger,
    /// Rejected records of each table, by reason.
    pub(crate) reasons: Vec<BTreeMap<String, u64>>,
    pub(crate) index: ResultIndex,
}

impl Results {
    pub(super) fn new(job: &JobRows<'_>) -> Self {
        let (queries, tables) = (job.plan.queries.len(), job.workload.tables.len());
        Self {
            spools: (0..queries).map(|_| job.spool()).collect(),
            answers: (0..queries).map(|_| None).collect(),
            ledger: Ledger::new(tables),
            reasons: vec![BTreeMap::new(); tables],
            index: ResultIndex { queries: vec![IndexedRows::default(); queries], ..ResultIndex::default() },
            lineage: LineageCheck::default(),
            failed: FailedStages::default(),
        }
    }

    pub(super) fn take(&mut self, job: &JobRows<'_>, offset: u64, part: Message) -> Result<(), Error> {
        let source = part.id.source;
        // What holds for a whole output is taken from its first part.
        if part.id.part == 0 {
            self.lineage.take(source, part.id.lineage);
        }
        self.index.read_to = self.index.read_to.max(offset + 1);
        self.fail(job, part.failed);
        if let Some(rejects) = &part.rejects {
            self.index.rejects.note(offset, rejects.records.num_rows());
        }
        for (stage, batch) in part.rows {
            let Edge::Results(query) = job.plan.stage(stage).edge else { continue };
            self.index.queries[usize::from(query.0)].note(offset, batch.num_rows());
            if self.failed.of_query(&job.topology, query).is_none() {
                self.spools[usize::from(query.0)].push(source, batch)?;
            }
        }
        if let (Source::Chunk { table, .. }, Some(account)) = (source, part.account) {
            self.account(table, account);
        }
        Ok(())
    }

    fn account(&mut self, table: TableId, account: ChunkAccount) {
        let table = usize::from(table.0);
        self.ledger.read(table, account.records);
        self.ledger.decoded(table, account.accepted, account.rejected);
        for (reason, count) in account.reasons {
            *self.reasons[table].entry(reason).or_insert(0) += count;
        }
    }

    /// Stages of answers have failed: rows that have come of them are of no use.
    pub(super) fn fail(&mut self, job: &JobRows<'_>, failed: FailedStages) {
        for stage in failed.stages() {
            let Edge::Results(query) = job.plan.stage(stage).edge else { continue };
            self.spools[usize::from(query.0)] = job.spool();
        }
        self.failed.extend(failed);
    }

    /// The rows of a query, to make its answer of; none if it has failed.
    pub(super) fn take_rows_of(&mut self, job: &JobRows<'_>, query: QueryId) -> Option<Spool> {
        let has_failed = self.failed.of_query(&job.topology, query).is_some();
        (!has_failed).then(|| std::mem::replace(&mut self.spools[usize::from(query.0)], job.spool()))
    }

    pub(super) fn put_answer(&mut self, query: QueryId, answer: Answer) {
        self.answers[usize::from(query.0)] = Some(answer);
    }
}

impl JobRows<'_> {
    /// The closing checks: all answers are made of one version of every chunk, and records are conserved. `closed` says how
    /// many records each table was promised to have.
    pub(crate) fn conclude(
        &self,
        rows: &LogRows,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<Conclusion, Error> {
        let LogRows::Results(results) = rows else { return Err(no_results()) };
        let gathered = std::mem::replace(&mut *lock(results), Results::new(self));
        let checked = gathered.lineage.check(&self.topology);
        checked.map_err(|error| Error::Mixed(error.in_words(|id| self.table_name(id).to_owned())))?;
        if let Err(imbalance) = gathered.ledger.check() {
            return Err(Error::Imbalance { table: self.workload.tables[imbalance.table].name.clone(), imbalance });
        }
        for scan in &self.plan.scans {
            let counts = gathered.ledger.tables()[usize::from(scan.table.0)];
            let promised = closed.get(&scan.table).and_then(|closed| closed.records).unwrap_or(counts.records);
            if promised != counts.records {
                let what = format!("table {}", self.table_name(scan.table));
                return Err(Error::Miscounted { what, promised, found: counts.records });
            }
        }
        let (mut answers, mut failed) = (Vec::new(), Vec::new());
        for (index, (planned, answer)) in self.plan.queries.iter().zip(gathered.answers).enumerate() {
            match (gathered.failed.of_query(&self.topology, QueryId(index as u16)), answer) {
                (Some(failure), _) => failed.push(FailedQuery {
                    name: planned.name.clone(),
                    class: failure.class,
                    text: failure.text.clone(),
                }),
                (None, Some(answer)) => answers.push(answer),
                (None, None) => return Err(no_results()),
            }
        }
        Ok(Conclusion { answers, failed, ledger: gathered.ledger, reasons: gathered.reasons, index: gathered.index })
    }
}

fn no_results() -> Error {
    let message = "an answer is missing although all its rows have come".to_owned();
    Error::Crashed { task: "concluding the job".to_owned(), message }
}
