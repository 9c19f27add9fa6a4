//! Stages that failed: one question that cannot be answered does not take the others with it.
//!
//! ```text
//!  a task fails for one of its stages ──▶ its messages say so, instead of rows ──▶ whoever takes them notes it
//!                                                                                       │
//!   a stage that reads a failed one is not run: its messages pass the failure on ◀──────┤
//!   a query whose rows come from a failed stage has no answer, and says why ◀───────────┘
//! ```
//!
//! A failure is part of an output like its rows: it travels in the same message, which is told from its copies by the same
//! id, and is counted by the same arithmetic. So deaths and redeliveries cannot change which queries fail. Which failure is
//! told, where a query has several, is a matter of order ([`StageFailure`]), not of time.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::MAX_FAILURE_TEXT_BYTES;
use crate::{BoundedText, FaultClass, Log, QueryId, Route, Source, StageId, Topology};

/// Why a stage has no rows: the failure of its own task, or of a task of a stage that it depends on.
///
/// Failures are ordered by the stage that failed, and then by the task, as its input stands in the data. The smallest is told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct StageFailure {
    /// The stage whose task failed.
    pub stage: StageId,
    /// The task, or the chunk whose leaf work it was.
    pub source: Source,
    /// Whose fault it is.
    pub class: FaultClass,
    /// For people: what happened, and what to do.
    pub text: BoundedText,
}

impl StageFailure {
    /// The failure of a stage's own task. Its text is cut to [`MAX_FAILURE_TEXT_BYTES`]: it stands in every message of the
    /// task.
    pub fn new(stage: StageId, source: Source, class: FaultClass, text: impl Into<String>) -> Self {
        Self { stage, source, class, text: BoundedText::within(text, MAX_FAILURE_TEXT_BYTES) }
    }
}

/// The stages that have failed, each with the smallest of its failures, as far as they are known in one place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(StageId, StageFailure)>", into = "Vec<(StageId, StageFailure)>")]
pub struct FailedStages(BTreeMap<StageId, StageFailure>);

impl FailedStages {
    /// Whether none has failed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes note of a failure of a stage, its own or one that it has inherited.
    pub fn note(&mut self, stage: StageId, failure: StageFailure) {
        match self.0.get_mut(&stage) {
            Some(known) if *known <= failure => {}
            Some(known) => *known = failure,
            None => drop(self.0.insert(stage, failure)),
        }
    }

    /// Takes note of all these failures.
    pub fn extend(&mut self, others: Self) {
        others.0.into_iter().for_each(|(stage, failure)| self.note(stage, failure));
    }

    /// The stages.
    pub fn stages(&self) -> impl Iterator<Item = StageId> + '_ {
        self.0.keys().copied()
    }

    /// Whether this stage has failed.
    pub fn has(&self, stage: StageId) -> bool {
        self.0.contains_key(&stage)
    }

    /// The smallest failure of these stages: whoever needs the rows of all of them has failed with it.
    pub fn among<'a>(&self, stages: impl IntoIterator<Item = &'a StageId>) -> Option<&StageFailure> {
        stages.into_iter().filter_map(|stage| self.0.get(stage)).min()
    }

    /// Those whose rows would stand in this log.
    pub fn for_log(&self, topology: &Topology, log: Log) -> Self {
        let goes_there = |stage: StageId| match log {
            Log::Control => false,
            Log::Broadcast => topology.stage(stage).route == Route::Broadcast,
            Log::Partition(partition) => topology.arrives_in(stage, partition),
            Log::Results => matches!(topology.stage(stage).route, Route::Results(_)),
        };
        let there = self.0.iter().filter(|(stage, _)| goes_there(**stage));
        Self(there.map(|(stage, failure)| (*stage, failure.clone())).collect())
    }

    /// The failure of a query: the smallest of the stages whose rows are its answer.
    pub fn of_query(&self, topology: &Topology, query: QueryId) -> Option<&StageFailure> {
        let answers = self.0.iter().filter(|(stage, _)| topology.stage(**stage).route == Route::Results(query));
        answers.map(|(_, failure)| failure).min()
    }
}

impl From<Vec<(StageId, StageFailure)>> for FailedStages {
    fn from(failures: Vec<(StageId, StageFailure)>) -> Self {
        let mut failed = Self::default();
        failures.into_iter().for_each(|(stage, failure)| failed.note(stage, failure));
        failed
    }
}

impl From<FailedStages> for Vec<(StageId, StageFailure)> {
    fn from(failed: FailedStages) -> Self {
        failed.0.into_iter().collect()
    }
}

/// A query that could not be answered, while others of its job were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedQuery {
    /// Its name.
    pub name: String,
    /// Whose fault it is.
    pub class: FaultClass,
    /// For people: what happened, and what to do.
    pub text: BoundedText,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Partition, StageShape, TableId, TaskSet};

    fn chunk(number: u64) -> Source {
        Source::Chunk { table: TableId(0), number }
    }

    fn failure(stage: u16, number: u64) -> StageFailure {
        let text = format!("stage {stage}, chunk {number}");
        StageFailure::new(StageId(stage), chunk(number), FaultClass::Query, text)
    }

    /// Two leaf stages, 0 and 1; stage 3 answers with the rows of 2, which reads 0, and stage 4 with those of 0.
    fn topology() -> Topology {
        let leaf =
            |route| StageShape { tasks: TaskSet::PerChunk(TableId(0)), reads: vec![], broadcasts: vec![], route };
        let inner = |reads: &[u16], route| StageShape {
            tasks: TaskSet::PerPartition,
            reads: reads.iter().map(|&read| StageId(read)).collect(),
            broadcasts: vec![],
            route,
        };
        let stages = vec![
            leaf(Route::Hash),
            leaf(Route::Broadcast),
            inner(&[0], Route::One(Partition(1))),
            inner(&[2], Route::Results(QueryId(0))),
            inner(&[0], Route::Results(QueryId(1))),
        ];
        Topology::new(2, 1, stages).expect("a valid topology")
    }

    #[test]
    fn the_smallest_failure_is_told_whatever_comes_first() {
        let all = [failure(0, 7), failure(0, 2), failure(1, 0), failure(0, 3)];
        for first in 0..all.len() {
            let mut failed = FailedStages::default();
            for n in 0..all.len() {
                failed.note(StageId(2), all[(first + n) % all.len()].clone());
            }
            assert_eq!(failed.among(&[StageId(2)]), Some(&failure(0, 2)));
        }
    }

    #[test]
    fn a_failure_goes_where_the_rows_would_have_gone() {
        let topology = topology();
        let mut failed = FailedStages::default();
        (0..5).for_each(|stage| failed.note(StageId(stage), failure(0, 0)));
        let goes = |log| failed.for_log(&topology, log).stages().map(|stage| stage.0).collect::<Vec<_>>();
        assert_eq!(goes(Log::Partition(Partition(0))), [0]);
        assert_eq!(goes(Log::Partition(Partition(1))), [0, 2]);
        assert_eq!(goes(Log::Broadcast), [1]);
        assert_eq!(goes(Log::Results), [3, 4]);
    }

    #[test]
    fn only_queries_whose_rows_are_missing_have_failed() {
        let topology = topology();
        let mut failed = FailedStages::default();
        failed.note(StageId(4), failure(1, 3));
        assert_eq!(failed.of_query(&topology, QueryId(0)), None);
        assert_eq!(failed.of_query(&topology, QueryId(1)), Some(&failure(1, 3)));
    }

    #[test]
    fn a_long_text_is_cut() {
        let long = StageFailure::new(StageId(0), chunk(0), FaultClass::Query, "x".repeat(1 << 20));
        assert!(long.text.len() <= MAX_FAILURE_TEXT_BYTES && long.text.ends_with("bytes)"));
    }
}
