//! The results log as its owner sees it: rows of answers, the account of every chunk, and the closing checks.

use std::collections::BTreeMap;

use tenaz_cluster::{IndexedRows, ResultIndex};
use tenaz_core::{ClosedTable, Ledger, LineageCheck, QueryId, Source, TableId};
use tenaz_engine::{Edge, JobPlan};

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
}

/// A job that has come to its end.
#[derive(Debug)]
pub(crate) struct Conclusion {
    /// One per query, in the order asked.
    pub(crate) answers: Vec<Answer>,
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
        }
    }

    pub(super) fn take(&mut self, plan: &JobPlan, offset: u64, part: Message) -> Result<(), Error> {
        let source = part.id.source;
        // What holds for a whole output is taken from its first part.
        if part.id.part == 0 {
            self.lineage.take(source, part.id.lineage);
        }
        self.index.read_to = self.index.read_to.max(offset + 1);
        if let Some(rejects) = &part.rejects {
            self.index.rejects.note(offset, rejects.records.num_rows());
        }
        for (stage, batch) in part.rows {
            let Edge::Results(query) = plan.stage(stage).edge else { continue };
            self.index.queries[usize::from(query.0)].note(offset, batch.num_rows());
            self.spools[usize::from(query.0)].push(source, batch)?;
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

    /// The rows of a query, to make its answer of; `nothing` takes their place.
    pub(super) fn take_rows_of(&mut self, query: QueryId, nothing: Spool) -> Spool {
        std::mem::replace(&mut self.spools[usize::from(query.0)], nothing)
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
        let answers: Option<Vec<Answer>> = gathered.answers.into_iter().collect();
        Ok(Conclusion {
            answers: answers.ok_or_else(no_results)?,
            ledger: gathered.ledger,
            reasons: gathered.reasons,
            index: gathered.index,
        })
    }
}

fn no_results() -> Error {
    let message = "an answer is missing although all its rows have come".to_owned();
    Error::Crashed { task: "concluding the job".to_owned(), message }
}
