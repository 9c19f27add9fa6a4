//! Which errors fail a question, and which the whole job.

use std::collections::BTreeSet;

use tenaz_core::{Classified, FailedStages, FaultClass, Source, StageFailure, StageId};
use tenaz_engine::TaskOutput;

use crate::Error;

/// Tells errors that fail one question from those that fail the job.
///
/// What a query computes is its own fault wherever it runs. Memory is a fault of the process: a worker stands back, because
/// another one may have more of it. Where no other process could do it either, the question is given up instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QuestionFaults {
    without_more_memory: MemoryElsewhere,
}

/// Where nobody has more memory than this process.
#[derive(Debug, Clone, PartialEq, Eq)]
enum MemoryElsewhere {
    /// There is no other process.
    Nowhere,
    /// There is none for these stages: all workers have stood back.
    NotFor(BTreeSet<StageId>),
}

impl QuestionFaults {
    /// Of a job that this process does alone.
    pub(crate) fn of_lone_process() -> Self {
        Self { without_more_memory: MemoryElsewhere::Nowhere }
    }

    /// Of a worker, after every worker had too little memory for these stages.
    pub(crate) fn of_worker(given_up: BTreeSet<StageId>) -> Self {
        Self { without_more_memory: MemoryElsewhere::NotFor(given_up) }
    }

    /// Whether this error of a stage fails only the questions that need its rows.
    fn has(&self, stage: StageId, error: &tenaz_engine::Error) -> bool {
        let nobody_has_more = match &self.without_more_memory {
            MemoryElsewhere::Nowhere => true,
            MemoryElsewhere::NotFor(stages) => stages.contains(&stage),
        };
        error.class() == FaultClass::Query || (nobody_has_more && error.is_out_of_memory())
    }

    /// The failures of a task, if none of them fails the job.
    pub(crate) fn of_output(&self, source: Source, output: &mut TaskOutput) -> Result<FailedStages, Error> {
        let mut failed = FailedStages::default();
        for (stage, error) in std::mem::take(&mut output.failures) {
            failed.note(stage, self.failure(stage, source, error)?);
        }
        Ok(failed)
    }

    /// The failure of a stage, if it does not fail the job.
    pub(crate) fn failure(
        &self,
        stage: StageId,
        source: Source,
        error: tenaz_engine::Error,
    ) -> Result<StageFailure, Error> {
        if self.has(stage, &error) {
            Ok(StageFailure::new(stage, source, error.class(), error.reason()))
        } else if error.is_out_of_memory() {
            Err(Error::TooLittleMemory { stage, error })
        } else {
            Err(error.into())
        }
    }
}

/// Whether work that only saves work may be left undone because of this error: the task that has all rows decides.
pub(crate) fn is_left_to_the_task(error: &tenaz_engine::Error) -> bool {
    error.class() == FaultClass::Query || error.is_out_of_memory()
}
