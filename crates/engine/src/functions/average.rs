//! `avg(value)`: an exact ratio, rounded once.
//!
//! The sum of whole numbers and decimals is kept as a decimal, so it does not depend on the order of rows; the average
//! has nine digits more than its argument. Floating-point numbers are added without loss.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, i256};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::distinct_rows::DistinctRows;
use super::moments::{MomentGroups, Statistic};
use super::one_group::{OneGroup, SlidingGroups, passes};
use super::ordered::rows_field;

/// Digits that an average has more than its argument.
const MORE_DIGITS: i8 = 9;
const MAX_PRECISION: u8 = 38;

/// The exact average.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct ExactAverage {
    signature: Signature,
}

impl ExactAverage {
    pub(super) fn new() -> Self {
        Self { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

/// The scale of the argument, or `None` for floating-point numbers.
fn scale_of(argument: &DataType) -> Option<i8> {
    match argument {
        DataType::Decimal128(_, scale) => Some(*scale),
        _ => None,
    }
}

fn result_scale(scale: i8) -> i8 {
    (scale + MORE_DIGITS).min(MAX_PRECISION as i8 - 1).max(scale)
}

impl AggregateUDFImpl for ExactAverage {
    fn name(&self) -> &str {
        "avg"
    }

    fn aliases(&self) -> &[String] {
        static ALIASES: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| vec!["mean".to_owned()]);
        &ALIASES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        let [argument] = args else { return plan_err!("avg takes one argument") };
        Ok(vec![match argument {
            DataType::Decimal128(..) => argument.clone(),
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => DataType::Decimal128(*p, *s),
            t if t.is_integer() => DataType::Decimal128(20, 0),
            DataType::Null | DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
            other => return plan_err!("avg takes numbers, not {other}"),
        }])
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        Ok(match scale_of(&args[0]) {
            Some(scale) => DataType::Decimal128(MAX_PRECISION, result_scale(scale)),
            None => DataType::Float64,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            return Ok(vec![rows_field(args.name)]);
        }
        let Some(scale) = scale_of(args.input_fields[0].data_type()) else {
            return Ok(Statistic::Average.state_fields(args.name));
        };
        let sum = Field::new(format!("{}[sum]", args.name), DataType::Decimal128(MAX_PRECISION, scale), true);
        let count = Field::new(format!("{}[count]", args.name), DataType::Int64, true);
        Ok(vec![Arc::new(sum), Arc::new(count)])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let scale = scale_of(args.expr_fields[0].data_type());
        if args.is_distinct {
            return Ok(Box::new(DistinctRows::new(args.expr_fields, move || Ok(of_one_group(scale)))?));
        }
        Ok(of_one_group(scale))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match scale_of(args.expr_fields[0].data_type()) {
            Some(scale) => Ok(Box::new(DecimalAverages::new(scale))),
            None => Ok(Box::new(MomentGroups::new(Statistic::Average))),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

fn of_one_group(scale: Option<i8>) -> Box<dyn Accumulator> {
    match scale {
        Some(scale) => Box::new(OneGroup(DecimalAverages::new(scale))),
        None => Box::new(OneGroup(MomentGroups::new(Statistic::Average))),
    }
}

/// sum / count with `more` digits, rounded half away from zero.
fn ratio(sum: i128, count: i64, more: i8) -> Result<i128> {
    let over = i256::from_i128(sum).checked_mul(i256::from_i128(10i128.pow(more as u32)));
    let under = i256::from_i128(i128::from(count));
    let half = i256::from_i128(i128::from(count / 2 + count % 2));
    let rounded = over.and_then(|over| {
        let quotient = over.checked_div(under)?;
        let rest = over.checked_rem(under)?;
        let away = if rest < i256::ZERO { rest.checked_neg()? } else { rest };
        if away < half || rest == i256::ZERO {
            return Some(quotient);
        }
        let step = if sum < 0 { i256::MINUS_ONE } else { i256::ONE };
        quotient.checked_add(step)
    });
    match rounded.and_then(|r| r.to_i128()) {
        Some(value) => Ok(value),
        None => exec_err!("an average does not fit 38 digits"),
    }
}

/// Sums and counts of many groups.
#[derive(Debug)]
struct DecimalAverages {
    scale: i8,
    sums: Vec<i128>,
    counts: Vec<i64>,
}

impl DecimalAverages {
    fn new(scale: i8) -> Self {
        Self { scale, sums: Vec::new(), counts: Vec::new() }
    }

    fn add(&mut self, group: usize, sum: i128, count: i64) -> Result<()> {
        let Some(total) = self.sums[group].checked_add(sum) else {
            return exec_err!("the sum of an average does not fit 38 digits");
        };
        self.sums[group] = total;
        self.counts[group] += count;
        Ok(())
    }

    fn sum_type(&self) -> DataType {
        DataType::Decimal128(MAX_PRECISION, self.scale)
    }

    fn result(&self, sum: i128, count: i64) -> Result<Option<i128>> {
        if count == 0 {
            return Ok(None);
        }
        ratio(sum, count, result_scale(self.scale) - self.scale).map(Some)
    }
}

impl GroupsAccumulator for DecimalAverages {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        let values = values[0].as_primitive::<Decimal128Type>();
        for (row, (&group, value)) in groups.iter().zip(values.iter()).enumerate() {
            if let Some(value) = value.filter(|_| passes(filter, row)) {
                self.add(group, value, 1)?;
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        let sums = states[0].as_primitive::<Decimal128Type>();
        let counts = states[1].as_primitive::<Int64Type>();
        for (&group, (sum, count)) in groups.iter().zip(sums.iter().zip(counts.iter())) {
            if let (Some(sum), Some(count)) = (sum, count) {
                self.add(group, sum, count)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let sums = emit_to.take_needed(&mut self.sums);
        let counts = emit_to.take_needed(&mut self.counts);
        let averages = sums.into_iter().zip(counts).map(|(sum, count)| self.result(sum, count));
        let averages: Decimal128Array = averages.collect::<Result<Vec<_>>>()?.into_iter().collect();
        let data_type = DataType::Decimal128(MAX_PRECISION, result_scale(self.scale));
        Ok(Arc::new(averages.with_data_type(data_type)))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let sums: Decimal128Array = emit_to.take_needed(&mut self.sums).into();
        let counts: Int64Array = emit_to.take_needed(&mut self.counts).into();
        Ok(vec![Arc::new(sums.with_data_type(self.sum_type())), Arc::new(counts)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<Decimal128Type>();
        let kept = |row: usize| values.is_valid(row) && passes(filter, row);
        let sums: Decimal128Array = (0..values.len()).map(|row| kept(row).then(|| values.value(row))).collect();
        let counts: Int64Array = (0..values.len()).map(|row| Some(i64::from(kept(row)))).collect();
        Ok(vec![Arc::new(sums.with_data_type(self.sum_type())), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}

impl SlidingGroups for DecimalAverages {
    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups.max(self.sums.len()), 0);
        self.counts.resize(self.sums.len(), 0);
    }

    fn remove(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        values[0].as_primitive::<Decimal128Type>().iter().flatten().try_for_each(|value| self.add(0, -value, -1))
    }

    fn first_result(&mut self) -> Result<ScalarValue> {
        let value = self.result(self.sums[0], self.counts[0])?;
        Ok(ScalarValue::Decimal128(value, MAX_PRECISION, result_scale(self.scale)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_rounded_once_half_away_from_zero() {
        assert_eq!(ratio(10, 4, 0).expect("fits"), 3);
        assert_eq!(ratio(-10, 4, 0).expect("fits"), -3);
        assert_eq!(ratio(1, 3, 9).expect("fits"), 333_333_333);
        assert_eq!(ratio(2, 3, 9).expect("fits"), 666_666_667);
        assert_eq!(ratio(-2, 3, 9).expect("fits"), -666_666_667);
        assert_eq!(ratio(0, 7, 9).expect("fits"), 0);
        assert_eq!(ratio(7, 7, 2).expect("fits"), 100);
        assert!(ratio(i128::MAX, 1, 9).is_err());
    }
}
