//! One group of a grouped accumulator, for aggregates without GROUP BY and for windows.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// A grouped accumulator that also works for a window that slides: rows leave it again, and it is asked many times.
pub(super) trait SlidingGroups: GroupsAccumulator {
    /// Makes place for this many groups.
    fn resize(&mut self, groups: usize);

    /// Takes away rows of the first group that were added before.
    fn remove(&mut self, values: &[ArrayRef]) -> Result<()>;

    /// The result of the first group, which stays as it is.
    fn first_result(&mut self) -> Result<ScalarValue>;
}

/// The first group alone.
#[derive(Debug)]
pub(super) struct OneGroup<G>(pub(super) G);

fn rows(columns: &[ArrayRef]) -> usize {
    columns.first().map_or(0, |column| column.len())
}

impl<G: SlidingGroups + std::fmt::Debug + Sync> Accumulator for OneGroup<G> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values, &vec![0; rows(values)], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states, &vec![0; rows(states)], 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.remove(values)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.resize(1);
        let states = self.0.state(EmitTo::All)?;
        states.iter().map(|state| ScalarValue::try_from_array(state, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.resize(1);
        self.0.first_result()
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.0.size()
    }
}

/// Whether a row passes the FILTER of an aggregate.
pub(super) fn passes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}
