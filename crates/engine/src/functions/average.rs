//! `avg(value)`: an exact ratio, rounded once.
//!
//! The sum of whole numbers and decimals is kept as a decimal, so it does not depend on the order of rows; the average
//! has nine digits more than its argument. Floating-point numbers are added without loss.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, i256};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::float_sum::FloatSum;
use super::sum::{float_state, float_state_value, merge_float_states};

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
        let sum = match scale_of(args.input_fields[0].data_type()) {
            Some(scale) => {
                let decimal = DataType::Decimal128(MAX_PRECISION, scale);
                Arc::new(Field::new(format!("{}[sum]", args.name), decimal, true))
            }
            None => float_state(args.name),
        };
        Ok(vec![sum, Arc::new(Field::new(format!("{}[count]", args.name), DataType::Int64, true))])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return plan_err!("avg(DISTINCT …) is not supported; take the average of a SELECT DISTINCT");
        }
        match scale_of(args.expr_fields[0].data_type()) {
            Some(scale) => Ok(Box::new(One(DecimalAverages::new(scale)))),
            None => Ok(Box::<FloatAverage>::default()),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.is_distinct && scale_of(args.expr_fields[0].data_type()).is_some()
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match scale_of(args.expr_fields[0].data_type()) {
            Some(scale) => Ok(Box::new(DecimalAverages::new(scale))),
            None => exec_err!("avg of floats has no grouped form"),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
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

    fn resize(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.counts.resize(groups, 0);
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

fn is_in(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|f| f.is_valid(row) && f.value(row))
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
            if let Some(value) = value.filter(|_| is_in(filter, row)) {
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
        let kept = |row: usize| values.is_valid(row) && is_in(filter, row);
        let sums: Decimal128Array = (0..values.len()).map(|row| kept(row).then(|| values.value(row))).collect();
        let counts: Int64Array = (0..values.len()).map(|row| Some(i64::from(kept(row)))).collect();
        Ok(vec![Arc::new(sums.with_data_type(self.sum_type())), Arc::new(counts)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.counts.capacity() * size_of::<i64>()
    }
}

/// The same for a single group.
#[derive(Debug)]
struct One(DecimalAverages);

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values, &vec![0; values[0].len()], None, 1)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states, &vec![0; states[0].len()], 1)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.resize(1);
        let sum = ScalarValue::Decimal128(Some(self.0.sums[0]), MAX_PRECISION, self.0.scale);
        Ok(vec![sum, ScalarValue::Int64(Some(self.0.counts[0]))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.0.resize(1);
        let value = self.0.result(self.0.sums[0], self.0.counts[0])?;
        Ok(ScalarValue::Decimal128(value, MAX_PRECISION, result_scale(self.0.scale)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + GroupsAccumulator::size(&self.0)
    }
}

/// The average of floats.
#[derive(Debug, Default)]
struct FloatAverage {
    sum: FloatSum,
    count: i64,
}

impl Accumulator for FloatAverage {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = cast(&values[0], &DataType::Float64)?;
        let values = values.as_primitive::<datafusion::arrow::datatypes::Float64Type>();
        self.count += (values.len() - values.null_count()) as i64;
        values.iter().flatten().for_each(|value| self.sum.add(value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count += states[1].as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        merge_float_states(&mut self.sum, &states[0])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![float_state_value(&self.sum), ScalarValue::Int64(Some(self.count))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64((self.count > 0).then(|| self.sum.value() / self.count as f64)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sum.size()
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
