//! Answers: from complete results to the end of the job.
//!
//! ```text
//!  all rows of a query in, all chunks of its tables accounted for ──▶ MakeAnswer ─▶ AnswerMade: the query is final
//!                    every query made, every chunk accounted for ──▶ Conclude ─▶ Concluded ─▶ AnnounceEnd
//! ```
//!
//! A query waits for its own tables only: others may still be uploaded when its answer is final.
//!
//! Only the owner of the results log has this state. It begins anew when the log is acquired anew: a number tells the
//! answers of one ownership from those of the next.

use std::collections::{BTreeMap, BTreeSet};

use super::{Action, JobWorker};
use crate::{QueryId, Route, StageId, TableId, Topology};

/// How far the owner of the results is with the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answers {
    /// Which ownership of the results log this is.
    conclusion: u64,
    queries: BTreeMap<QueryId, Answer>,
    /// The tables whose accounts must be complete before a query's answer is final.
    tables: BTreeMap<QueryId, BTreeSet<TableId>>,
    end: End,
}

/// One query's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// So many stages have not sent all their rows.
    Open(usize),
    /// All rows are in; chunks of its tables are not accounted for yet.
    Unaccounted,
    /// The driver makes it, however long that takes.
    Making,
    Made,
}

/// The end of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    /// The driver checks the ledger.
    Concluding,
    /// It may have to be announced again.
    Concluded,
}

impl Answers {
    pub(super) fn new(topology: &Topology, conclusion: u64) -> Self {
        let mut queries = BTreeMap::new();
        for (_, shape) in topology.stages() {
            if let Route::Results(query) = shape.route {
                let Answer::Open(stages) = queries.entry(query).or_insert(Answer::Open(0)) else { continue };
                *stages += 1;
            }
        }
        let tables = queries.keys().map(|&query| (query, topology.tables_of(query))).collect();
        Self { conclusion, queries, tables, end: End::Open }
    }

    /// Answers that are being made, and the conclusion.
    pub(super) fn under_way(&self) -> usize {
        let making = self.queries.values().filter(|answer| **answer == Answer::Making).count();
        making + usize::from(self.end == End::Concluding)
    }

    pub(super) fn is_concluded(&self) -> bool {
        self.end == End::Concluded
    }

    /// All rows of a stage are in the results log.
    fn complete(&mut self, topology: &Topology, stage: StageId) {
        let Route::Results(query) = topology.stage(stage).route else { return };
        match self.queries.get_mut(&query) {
            Some(Answer::Open(stages @ 2..)) => *stages -= 1,
            Some(answer @ Answer::Open(_)) => *answer = Answer::Unaccounted,
            Some(Answer::Unaccounted | Answer::Making | Answer::Made) | None => {}
        }
    }

    /// The queries whose answers are to be made now.
    fn begin(&mut self, is_accounted: impl Fn(TableId) -> bool) -> Vec<QueryId> {
        let mut begun = Vec::new();
        for (&query, answer) in &mut self.queries {
            let tables = self.tables.get(&query).into_iter().flatten();
            if *answer == Answer::Unaccounted && tables.copied().all(&is_accounted) {
                *answer = Answer::Making;
                begun.push(query);
            }
        }
        begun
    }
}

impl JobWorker {
    /// Has complete answers made, and the job concluded when all of them are.
    pub(super) fn advance_results(&mut self, actions: &mut Vec<Action>) {
        let (Some(results), Some(answers)) = (&mut self.results, &mut self.answers) else { return };
        for stage in results.inbox_mut().take_ready() {
            answers.complete(&self.topology, stage);
        }
        let (inbox, conclusion) = (results.inbox(), answers.conclusion);
        let begun = answers.begin(|table| inbox.has_all_chunks(table)).into_iter();
        actions.extend(begun.map(|query| Action::MakeAnswer { query, conclusion }));
        let mut scanned = self.waves.iter().flat_map(|wave| &wave.tables);
        let all_made = answers.queries.values().all(|answer| *answer == Answer::Made);
        if answers.end == End::Open && all_made && inbox.is_done() && scanned.all(|&table| inbox.has_all_chunks(table))
        {
            answers.end = End::Concluding;
            actions.push(Action::Conclude { conclusion: answers.conclusion });
        }
    }

    pub(super) fn answer_made(&mut self, query: QueryId, conclusion: u64, actions: &mut Vec<Action>) {
        let Some(answers) = self.answers.as_mut().filter(|answers| answers.conclusion == conclusion) else { return };
        if let Some(answer @ Answer::Making) = answers.queries.get_mut(&query) {
            *answer = Answer::Made;
        }
        self.advance_results(actions);
    }

    pub(super) fn concluded(&mut self, conclusion: u64, actions: &mut Vec<Action>) {
        let Some(answers) = self.answers.as_mut().filter(|answers| answers.conclusion == conclusion) else { return };
        if answers.end == End::Concluding {
            answers.end = End::Concluded;
            actions.push(Action::AnnounceEnd);
        }
    }
}
