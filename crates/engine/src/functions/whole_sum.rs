//! Sums of whole numbers and decimals that do not wrap around.
//!
//! They are added as numbers of 128 bits, so that only the total must fit its type, whatever order the rows come in.
//! DataFusion's own wrap around without a word.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{DataFusionError, Result, ScalarValue, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::one_group::passes;

const MAX_PRECISION: u8 = 38;

/// Whether sums of this type are added here.
pub(super) fn is_whole(result: &DataType) -> bool {
    matches!(result, DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..))
}

/// The column of a partial result.
pub(super) fn state_field(name: &str, result: &DataType) -> FieldRef {
    Arc::new(Field::new(format!("{name}[sum]"), state_type(result), true))
}

fn state_type(result: &DataType) -> DataType {
    let scale = if let DataType::Decimal128(_, scale) = result { *scale } else { 0 };
    DataType::Decimal128(MAX_PRECISION, scale)
}

fn too_large(result: &DataType) -> DataFusionError {
    match result {
        DataType::Decimal128(..) => exec_datafusion_err!("a sum does not fit 38 digits; CAST the values AS DOUBLE"),
        _ => exec_datafusion_err!("a sum of whole numbers does not fit 64 bits; CAST the values AS DECIMAL(38, 0)"),
    }
}

/// The total, if it fits its type.
fn fitting(sum: i128, result: &DataType) -> Result<i128> {
    let fits = match result {
        DataType::Int64 => i64::try_from(sum).is_ok(),
        DataType::UInt64 => u64::try_from(sum).is_ok(),
        _ => sum.unsigned_abs() < 10_u128.pow(MAX_PRECISION.into()),
    };
    if fits { Ok(sum) } else { Err(too_large(result)) }
}

/// Calls for every value, with its row.
fn each(values: &ArrayRef, mut call: impl FnMut(usize, i128) -> Result<()>) -> Result<()> {
    macro_rules! each_of {
        ($type:ty) => {{
            let values = values.as_primitive::<$type>();
            match values.null_count() {
                0 => values.values().iter().enumerate().try_for_each(|(row, value)| call(row, i128::from(*value))),
                _ => (0..values.len())
                    .filter(|row| values.is_valid(*row))
                    .try_for_each(|row| call(row, i128::from(values.value(row)))),
            }
        }};
    }
    match values.data_type() {
        DataType::Int64 => each_of!(Int64Type),
        DataType::UInt64 => each_of!(UInt64Type),
        DataType::Decimal128(..) => each_of!(Decimal128Type),
        other => exec_err!("a sum of whole numbers got {other}"),
    }
}

/// The sums of many groups.
#[derive(Debug)]
pub(super) struct WholeSums {
    result: DataType,
    sums: Vec<i128>,
    /// Whether a group has any value.
    any: Vec<bool>,
}

impl WholeSums {
    pub(super) fn new(result: DataType) -> Self {
        Self { result, sums: Vec::new(), any: Vec::new() }
    }

    fn add(
        &mut self,
        values: &ArrayRef,
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_num_groups.max(self.sums.len()), 0);
        self.any.resize(self.sums.len(), false);
        each(values, |row, value| {
            if passes(filter, row) {
                let (sum, any) = (&mut self.sums[groups[row]], &mut self.any[groups[row]]);
                *sum = sum.checked_add(value).ok_or_else(|| too_large(&self.result))?;
                *any = true;
            }
            Ok(())
        })
    }

    fn take(&mut self, emit_to: EmitTo) -> impl Iterator<Item = Option<i128>> {
        let (sums, any) = (emit_to.take_needed(&mut self.sums), emit_to.take_needed(&mut self.any));
        sums.into_iter().zip(any).map(|(sum, any)| any.then_some(sum))
    }
}

impl GroupsAccumulator for WholeSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.add(&values[0], groups, filter, total_num_groups)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.add(&states[0], groups, None, total_num_groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let result = self.result.clone();
        let sums = self.take(emit_to).map(|sum| sum.map(|sum| fitting(sum, &result)).transpose());
        Ok(match &result {
            DataType::Int64 => Arc::new(sums.map(|s| s.map(|s| s.map(|s| s as i64))).collect::<Result<Int64Array>>()?),
            DataType::UInt64 => {
                Arc::new(sums.map(|s| s.map(|s| s.map(|s| s as u64))).collect::<Result<UInt64Array>>()?)
            }
            decimal => Arc::new(sums.collect::<Result<Decimal128Array>>()?.with_data_type(decimal.clone())),
        })
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = self.take(emit_to).collect();
        Ok(vec![Arc::new(sums.with_data_type(state_type(&self.result)))])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut single = vec![None; values[0].len()];
        each(&values[0], |row, value| {
            single[row] = passes(filter, row).then_some(value);
            Ok(())
        })?;
        Ok(vec![Arc::new(Decimal128Array::from(single).with_data_type(state_type(&self.result)))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.any.capacity()
    }
}

/// The sum of one group, or of a window that slides.
#[derive(Debug)]
pub(super) struct WholeSum {
    result: DataType,
    sum: i128,
    rows: i64,
}

impl WholeSum {
    pub(super) fn new(result: DataType) -> Self {
        Self { result, sum: 0, rows: 0 }
    }

    fn change(&mut self, values: &ArrayRef, away: bool) -> Result<()> {
        each(values, |_, value| {
            let sum = if away { self.sum.checked_sub(value) } else { self.sum.checked_add(value) };
            self.sum = sum.ok_or_else(|| too_large(&self.result))?;
            self.rows += if away { -1 } else { 1 };
            Ok(())
        })
    }

    fn total(&self) -> Option<i128> {
        (self.rows > 0).then_some(self.sum)
    }
}

impl Accumulator for WholeSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], false)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.change(&values[0], true)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.change(&states[0], false)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let DataType::Decimal128(precision, scale) = state_type(&self.result) else {
            return exec_err!("sums are sent as decimals");
        };
        Ok(vec![ScalarValue::Decimal128(self.total(), precision, scale)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let total = self.total().map(|sum| fitting(sum, &self.result)).transpose()?;
        Ok(match &self.result {
            DataType::Int64 => ScalarValue::Int64(total.map(|sum| sum as i64)),
            DataType::UInt64 => ScalarValue::UInt64(total.map(|sum| sum as u64)),
            DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(total, *precision, *scale),
            other => return exec_err!("a sum of whole numbers is no {other}"),
        })
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn column(values: &[i64]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn only_the_total_must_fit() {
        let mut sum = WholeSum::new(DataType::Int64);
        sum.update_batch(&[column(&[i64::MAX, i64::MAX])]).unwrap();
        assert!(sum.evaluate().unwrap_err().to_string().contains("DECIMAL(38, 0)"));
        let state = sum.state().unwrap()[0].to_array().unwrap();
        let mut groups = WholeSums::new(DataType::Int64);
        groups.merge_batch(&[state], &[1], 2).unwrap();
        groups.update_batch(&[column(&[-5, -i64::MAX])], &[1, 1], None, 2).unwrap();
        let sums = groups.evaluate(EmitTo::All).unwrap();
        assert_eq!(sums.as_primitive::<Int64Type>(), &Int64Array::from(vec![None, Some(i64::MAX - 5)]));
    }

    #[test]
    fn rows_that_leave_a_window_are_gone() {
        let mut sum = WholeSum::new(DataType::Int64);
        sum.update_batch(&[column(&[3, 4])]).unwrap();
        sum.retract_batch(&[column(&[3])]).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(Some(4)));
        sum.retract_batch(&[column(&[4])]).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Int64(None));
    }
}
