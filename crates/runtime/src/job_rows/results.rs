//! The results log as its owner sees it: rows of answers, the account of every chunk, and the closing checks.

use std::collections::BTreeMap;

use tenaz_cluster::{IndexedRows, ResultIndex};
use tenaz_core::{
    ClosedTable, FailedQuery, FailedStages, Ledger, LineageCheck, QueryEnded, QueryId, QueryOutcome, Source, TableId,
};
use tenaz_engine::Edge;

use super::{ChunkAccount, JobRows, LogRows, Message, lock};
use crate::answer::now_ms;
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

    /// The closing checks: answers are made of one version of every chunk, and records are conserved. Of one query, or of all.
    /// `closed` says how many records each table was promised to have.
    pub(super) fn check(
        &self,
        job: &JobRows<'_>,
        closed: &BTreeMap<TableId, ClosedTable>,
        only: Option<QueryId>,
    ) -> Result<(), Error> {
        let checked = match only {
            None => self.lineage.check(&job.topology),
            Some(query) => self.lineage.check_query(&job.topology, query),
        };
        checked.map_err(|error| Error::Mixed(error.in_words(|id| job.table_name(id).to_owned())))?;
        let complete = only.map(|query| job.topology.tables_of(query));
        let scanned = job.plan.scans.iter().map(|scan| scan.table);
        for table in scanned.filter(|table| complete.as_ref().is_none_or(|complete| complete.contains(table))) {
            let index = usize::from(table.0);
            self.ledger
                .check_table(index)
                .map_err(|imbalance| Error::Imbalance { table: job.table_name(table).to_owned(), imbalance })?;
            let found = self.ledger.tables()[index].records;
            let promised = closed.get(&table).and_then(|closed| closed.records).unwrap_or(found);
            if promised != found {
                return Err(Error::Miscounted { what: format!("table {}", job.table_name(table)), promised, found });
            }
        }
        Ok(())
    }

    /// What has come of a query whose answer was made, or has failed.
    pub(super) fn ended(&self, job: &JobRows<'_>, query: QueryId) -> Result<QueryEnded, Error> {
        match (self.failed.of_query(&job.topology, query), &self.answers[usize::from(query.0)]) {
            (Some(failure), _) => {
                let outcome = QueryOutcome::Failed { class: failure.class, text: failure.text.clone() };
                Ok(QueryEnded { outcome, at_ms: now_ms() })
            }
            (None, Some(answer)) => {
                let outcome = QueryOutcome::Answered { rows: answer.rows, fingerprint: answer.fingerprint.clone() };
                Ok(QueryEnded { outcome, at_ms: answer.final_at_ms })
            }
            (None, None) => Err(no_results()),
        }
    }

    /// The answer to a query, for as long as somebody looks at it.
    pub(crate) fn take_answer(&mut self, query: QueryId) -> Option<Answer> {
        self.answers[usize::from(query.0)].take()
    }

    /// The rows of a query, to make its answer of; none if it has failed.
    pub(super) fn take_rows_of(&mut self, job: &JobRows<'_>, query: QueryId) -> Option<Spool> {
        let has_failed = self.failed.of_query(&job.topology, query).is_some();
        (!has_failed).then(|| std::mem::replace(&mut self.spools[usize::from(query.0)], job.spool()))
    }

    pub(crate) fn put_answer(&mut self, query: QueryId, answer: Answer) {
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
        gathered.check(self, closed, None)?;
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

pub(super) fn no_results() -> Error {
    let message = "an answer is missing although all its rows have come".to_owned();
    Error::Crashed { task: "concluding the job".to_owned(), message }
}
