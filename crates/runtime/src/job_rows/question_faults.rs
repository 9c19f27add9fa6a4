//! Which errors fail a question, and which the whole job.

use tenaz_core::{Classified, FailedStages, FaultClass, Source, StageFailure, StageId};
use tenaz_engine::TaskOutput;

use crate::Error;

/// Tells errors that fail one question from those that fail the job.
///
/// What a query computes is its own fault wherever it runs. Memory is a fault of the process: a worker stands back, because
/// another one may have more of it. Where there is no other process, the question is given up instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuestionFaults {
    /// Whether nobody else could do what this process has too little memory for.
    pub(crate) is_alone: bool,
}

impl QuestionFaults {
    /// Whether this error fails only the questions that need what was being computed.
    pub(crate) fn has(self, error: &tenaz_engine::Error) -> bool {
        error.class() == FaultClass::Query || (self.is_alone && error.is_out_of_memory())
    }

    /// The failures of a task, if none of them fails the job.
    pub(crate) fn of_output(self, source: Source, output: &mut TaskOutput) -> Result<FailedStages, Error> {
        let mut failed = FailedStages::default();
        for (stage, error) in std::mem::take(&mut output.failures) {
            failed.note(stage, self.failure(stage, source, error)?);
        }
        Ok(failed)
    }

    /// The failure of a stage, if it does not fail the job.
    pub(crate) fn failure(
        self,
        stage: StageId,
        source: Source,
        error: tenaz_engine::Error,
    ) -> Result<StageFailure, Error> {
        if self.has(&error) {
            Ok(StageFailure::new(stage, source, error.class(), error.reason()))
        } else {
            Err(error.into())
        }
    }
}
