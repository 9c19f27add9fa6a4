//! Which record of a chunk a leaf stage fails at.
//!
//! An operator knows the row that it cannot take, but not the record that the row was made of: filters, joins and groupings lie
//! between. So a stage that has failed is run again over halves of the chunk's records until one record is left. That costs about as
//! much as running it once more, and nothing where nothing fails.

use std::ops::Range;

use datafusion::common::DataFusionError;
use tenaz_core::{Classified, FaultClass, StageId};

use super::leaf::{LeafInput, LeafRunner, LeafStage};
use crate::Error;
use crate::error::named_value_error;

/// A record that a stage fails at, whatever other records there are.
#[derive(Debug)]
pub struct FailingRecord {
    /// Which row of the chunk it is.
    pub row: usize,
    /// What the stage says of it.
    pub error: Error,
}

impl LeafRunner {
    /// The first record of the chunk that the stage fails at. `None` if no record does that alone: a sum may be too large, or the
    /// stage fails without any.
    pub fn failing_record(&self, stage: StageId, input: &LeafInput) -> Option<FailingRecord> {
        let stage = self.stages.iter().find(|known| known.id == stage)?;
        let error = |rows: Range<usize>| self.error_of(stage, input, rows);
        if error(0..0).is_some() {
            return None;
        }
        let mut rows = 0..input.rows.num_rows();
        while rows.len() > 1 {
            let middle = rows.start + rows.len() / 2;
            rows = if error(rows.start..middle).is_some() { rows.start..middle } else { middle..rows.end };
        }
        let row = rows.start;
        let cause = stage.explained(error(rows.clone())?, &self.context(&input.rows.slice(row, rows.len())));
        let is_of_row = named_value_error(&cause).is_none_or(|error| error.is_of_row);
        let error = Error::Query { queries: stage.queries.clone(), cause };
        (is_of_row && error.class() == FaultClass::Query).then_some(FailingRecord { row, error })
    }

    /// What the stage says of these rows of the chunk, if it cannot take them.
    fn error_of(&self, stage: &LeafStage, input: &LeafInput, rows: Range<usize>) -> Option<DataFusionError> {
        let context = self.context(&input.rows.slice(rows.start, rows.len()));
        stage.run(&context, input.source, &mut self.no_output()).err()
    }
}
