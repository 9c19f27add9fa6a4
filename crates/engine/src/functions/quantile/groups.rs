//! The values of many groups, and what lies in their middle.

use std::cmp::Ordering;
use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, ListArray, PrimitiveArray,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Field};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use num_bigint::BigInt;

use crate::functions::distinct_rows::one_of_equals;
use crate::functions::dyadic::Dyadic;
use crate::functions::one_group::{SlidingGroups, passes};
use crate::functions::share::{Between, Share};

/// What the result is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome {
    /// The exact middle with this precision and scale, which is one digit more than the values have.
    Decimal(u8, i8),
    Float,
}

/// A value that has an order and an exact size.
pub(super) trait Value: Copy + Debug + Send + Sync {
    fn order(&self, other: &Self) -> Ordering;
    /// In units of the last digit; nothing of what is infinite.
    fn exact(self) -> Option<Dyadic>;
    fn units(self) -> Option<i128>;
    fn float(self) -> f64;
    /// The value that stands for all that are equal to it.
    fn one_of_equals(self) -> Self {
        self
    }
}

macro_rules! whole_value {
    ($native:ty) => {
        impl Value for $native {
            fn order(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            fn exact(self) -> Option<Dyadic> {
                Some(Dyadic::new(BigInt::from(self), 0))
            }

            fn units(self) -> Option<i128> {
                Some(i128::from(self))
            }

            fn float(self) -> f64 {
                self as f64
            }
        }
    };
}

whole_value!(i64);
whole_value!(i128);

impl Value for f64 {
    fn order(&self, other: &Self) -> Ordering {
        self.total_cmp(other)
    }

    fn exact(self) -> Option<Dyadic> {
        self.is_finite().then(|| Dyadic::of_float(self))
    }

    fn units(self) -> Option<i128> {
        None
    }

    fn float(self) -> f64 {
        self
    }

    fn one_of_equals(self) -> Self {
        one_of_equals(self)
    }
}

/// The values of many groups.
#[derive(Debug)]
pub(super) struct QuantileGroups<T: ArrowPrimitiveType> {
    data_type: DataType,
    share: Share,
    outcome: Outcome,
    distinct: bool,
    groups: Vec<Vec<T::Native>>,
    /// Bytes that the values hold.
    heap: usize,
}

impl<T: ArrowPrimitiveType> QuantileGroups<T>
where
    T::Native: Value,
{
    pub(super) fn new(data_type: DataType, share: Share, outcome: Outcome, distinct: bool) -> Self {
        Self { data_type, share, outcome, distinct, groups: Vec::new(), heap: 0 }
    }

    fn extend(&mut self, group: usize, more: impl IntoIterator<Item = T::Native>) {
        let values = &mut self.groups[group];
        let before = values.capacity();
        values.extend(more);
        self.heap += (values.capacity() - before) * size_of::<T::Native>();
    }

    fn take(&mut self, emit_to: EmitTo) -> Vec<Vec<T::Native>> {
        let taken = emit_to.take_needed(&mut self.groups);
        let bytes = taken.iter().map(|values| values.capacity() * size_of::<T::Native>()).sum();
        self.heap = self.heap.saturating_sub(bytes);
        taken
    }

    /// The two values next to the wanted place, and the place.
    fn neighbours(&self, values: &mut Vec<T::Native>) -> Option<(T::Native, T::Native, Between)> {
        let order = |a: &T::Native, b: &T::Native| a.order(b);
        if self.distinct {
            values.iter_mut().for_each(|value| *value = value.one_of_equals());
            values.sort_unstable_by(order);
            values.dedup_by(|a, b| a.order(b).is_eq());
        }
        if values.is_empty() {
            return None;
        }
        let place = self.share.between(values.len());
        let (_, lower, above) = values.select_nth_unstable_by(place.lower, order);
        let upper = above.iter().copied().min_by(order).unwrap_or(*lower);
        Some((*lower, upper, place))
    }

    fn float(&self, values: &mut Vec<T::Native>) -> Option<f64> {
        let (lower, upper, Between { further: (over, under), .. }) = self.neighbours(values)?;
        if over == 0 {
            upper_of_one(lower, &self.data_type)
        } else if let (Some(low), Some(high)) = (lower.exact(), upper.exact()) {
            let whole = |value: u128| Dyadic::new(BigInt::from(value), 0);
            let sum = low.times(&whole(under - over)).plus(&high.times(&whole(over)));
            Some(sum.over(&whole(under).times(&unit(&self.data_type))))
        } else {
            Some(lower.float() + upper.float())
        }
    }

    /// The middle in units of a digit more.
    fn decimal(&self, values: &mut Vec<T::Native>) -> Result<Option<i128>> {
        let Some((lower, upper, Between { further: (over, _), .. })) = self.neighbours(values) else { return Ok(None) };
        let upper = if over == 0 { lower } else { upper };
        let (Some(lower), Some(upper)) = (lower.units(), upper.units()) else {
            return exec_err!("a median of decimals got something else");
        };
        // The mean is half the sum, and there is one digit more: 10 / 2.
        match lower.checked_add(upper).and_then(|sum| sum.checked_mul(5)) {
            Some(middle) if middle.unsigned_abs() < 10_u128.pow(38) => Ok(Some(middle)),
            _ => exec_err!("a median does not fit 38 digits; CAST the values AS DOUBLE"),
        }
    }
}

/// The value of a last digit, by which units are divided.
fn unit(data_type: &DataType) -> Dyadic {
    match data_type {
        DataType::Decimal128(_, scale) if *scale > 0 => {
            Dyadic::new(BigInt::from(10).pow(scale.unsigned_abs().into()), 0)
        }
        _ => Dyadic::from(1),
    }
}

fn upper_of_one<V: Value>(value: V, data_type: &DataType) -> Option<f64> {
    Some(value.exact().map_or(value.float(), |exact| exact.over(&unit(data_type))))
}

impl<T: ArrowPrimitiveType> GroupsAccumulator for QuantileGroups<T>
where
    T::Native: Value,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total_num_groups: usize,
    ) -> Result<()> {
        self.resize(total_num_groups);
        for (row, value) in values[0].as_primitive::<T>().iter().enumerate() {
            if passes(filter, row) {
                self.extend(groups[row], value);
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total_num_groups: usize) -> Result<()> {
        self.resize(total_num_groups);
        let Some(lists) = states[0].as_list_opt::<i32>() else {
            return exec_err!("a partial result of a median has another shape");
        };
        for (list, group) in lists.iter().zip(groups) {
            if let Some(list) = list {
                self.extend(*group, list.as_primitive::<T>().iter().flatten());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let mut taken = self.take(emit_to);
        match self.outcome {
            Outcome::Float => {
                let results = taken.iter_mut().map(|values| self.float(values));
                Ok(Arc::new(results.collect::<Float64Array>()))
            }
            Outcome::Decimal(precision, scale) => {
                let results =
                    taken.iter_mut().map(|values| self.decimal(values)).collect::<Result<Decimal128Array>>()?;
                Ok(Arc::new(results.with_data_type(DataType::Decimal128(precision, scale))))
            }
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let taken = self.take(emit_to);
        let offsets = OffsetBuffer::from_lengths(taken.iter().map(Vec::len));
        let values = PrimitiveArray::<T>::from_iter_values(taken.into_iter().flatten());
        let values = values.with_data_type(self.data_type.clone());
        let item = Arc::new(Field::new_list_field(self.data_type.clone(), true));
        Ok(vec![Arc::new(ListArray::try_new(item, offsets, Arc::new(values), None)?)])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = values[0].len();
        let mut single = Self::new(self.data_type.clone(), self.share, self.outcome, self.distinct);
        single.update_batch(values, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        single.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.heap + self.groups.capacity() * size_of::<Vec<T::Native>>()
    }
}

impl<T: ArrowPrimitiveType> SlidingGroups for QuantileGroups<T>
where
    T::Native: Value,
{
    fn resize(&mut self, groups: usize) {
        self.groups.resize_with(groups.max(self.groups.len()), Vec::new);
    }

    fn remove(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        let mut away: Vec<T::Native> = values[0].as_primitive::<T>().iter().flatten().collect();
        away.sort_unstable_by(T::Native::order);
        let kept = &mut self.groups[0];
        kept.sort_unstable_by(T::Native::order);
        let mut away = away.into_iter().peekable();
        kept.retain(|value| away.next_if(|gone| gone.order(value).is_eq()).is_none());
        Ok(())
    }

    fn first_result(&mut self) -> Result<ScalarValue> {
        // The values stay: those of a window may come twice although only one counts.
        let mut values = self.groups[0].clone();
        Ok(match self.outcome {
            Outcome::Float => ScalarValue::Float64(self.float(&mut values)),
            Outcome::Decimal(precision, scale) => ScalarValue::Decimal128(self.decimal(&mut values)?, precision, scale),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{Float64Type, Int64Type};
    use datafusion::logical_expr::Accumulator;

    use super::*;
    use crate::functions::one_group::OneGroup;

    #[test]
    fn the_middle_of_whole_numbers_is_exact() {
        let mut groups = QuantileGroups::<Int64Type>::new(DataType::Int64, Share::HALF, Outcome::Decimal(20, 1), false);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![Some(i64::MAX), None, Some(i64::MAX - 1), Some(7)]));
        groups.update_batch(&[values], &[0, 0, 0, 1], None, 3).unwrap();
        let middles = groups.evaluate(EmitTo::All).unwrap();
        let expected = vec![Some(i128::from(i64::MAX) * 10 - 5), Some(70), None];
        assert_eq!(
            middles.as_primitive::<datafusion::arrow::datatypes::Decimal128Type>().iter().collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn values_that_leave_a_window_are_gone_once() {
        let groups = QuantileGroups::<Float64Type>::new(DataType::Float64, Share::HALF, Outcome::Float, true);
        let mut one = OneGroup(groups);
        let column = |values: &[f64]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
        one.update_batch(&[column(&[2.0, 1.0, 2.0, 4.0])]).unwrap();
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Float64(Some(2.0)));
        one.retract_batch(&[column(&[2.0])]).unwrap();
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Float64(Some(2.0)));
        one.retract_batch(&[column(&[2.0])]).unwrap();
        assert_eq!(one.evaluate().unwrap(), ScalarValue::Float64(Some(2.5)));
    }

    #[test]
    fn between_infinite_neighbours_there_is_no_number() {
        let mut groups = QuantileGroups::<Float64Type>::new(DataType::Float64, Share::HALF, Outcome::Float, false);
        let values: ArrayRef = Arc::new(Float64Array::from(vec![f64::NEG_INFINITY, f64::INFINITY, 1.0, f64::INFINITY]));
        groups.update_batch(&[values], &[0, 0, 1, 1], None, 2).unwrap();
        let middles = groups.evaluate(EmitTo::All).unwrap();
        let middles = middles.as_primitive::<Float64Type>();
        assert!(middles.value(0).is_nan());
        assert_eq!(middles.value(1), f64::INFINITY);
    }
}
