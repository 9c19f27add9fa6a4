//! Filters that compare columns with constants: all comparisons of a row at once.
//!
//! DataFusion evaluates each comparison of a conjunction by itself, in code that must run on any processor. Here those that
//! compare numbers or times with constants become one range per column, and are evaluated in code for this processor.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Schema, TimeUnit, TimestampMicrosecondType};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::expressions::{BinaryExpr, Column, IsNotNullExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};

use super::Expr;
use super::calendar::{Part, TIMESTAMP, clear_other_times};
use super::instead::Instead;
use super::wide::wide;
use crate::plan::can_fail;
use crate::task::failing::Named;

/// Values that lie in a range are not null and not less than `low` nor more than `high`.
#[derive(Debug, Clone, Eq)]
struct Range {
    of: Expr,
    low: i128,
    high: i128,
}

impl Hash for Range {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
        (self.low, self.high).hash(state);
    }
}

// Not derived: the derivation cannot compare what is behind a pointer without moving it.
impl PartialEq for Range {
    fn eq(&self, other: &Self) -> bool {
        self.of.eq(&other.of) && (self.low, self.high) == (other.low, other.high)
    }
}

/// The columns that a filter compares with constants, by their places, and the least and largest value that it lets pass. A row
/// with another value is filtered out, whatever else the filter asks.
pub(crate) fn column_ranges(predicate: &Expr, schema: &Schema) -> Result<Vec<(usize, i128, i128)>> {
    let mut ranges = Vec::new();
    for part in split_conjunction(predicate) {
        if let Some(Range { of, low, high }) = Range::of(part, schema)?
            && let Some(column) = of.downcast_ref::<Column>()
            && (low, high) != (i128::MIN, i128::MAX)
        {
            ranges.push((column.index(), low, high));
        }
    }
    Ok(ranges)
}

/// Whether a row lies in all ranges. Where a value is null it does not: a filter makes no difference between the two.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ranges {
    ranges: Vec<Range>,
}

impl Ranges {
    /// A predicate that filters as `predicate` does, if some of it can be had in ranges.
    pub(super) fn instead_of(predicate: &Expr, schema: &Schema) -> Result<Option<Expr>> {
        let mut ranges: Vec<Range> = Vec::new();
        let mut rest: Vec<Expr> = Vec::new();
        for part in split_conjunction(predicate) {
            let Some(range) = Range::of(part, schema)? else {
                rest.push(Arc::clone(part));
                continue;
            };
            match ranges.iter_mut().find(|known| known.of.eq(&range.of)) {
                Some(known) => (known.low, known.high) = (known.low.max(range.low), known.high.min(range.high)),
                None => ranges.push(range),
            }
        }
        if ranges.is_empty() {
            return Ok(None);
        }
        for range in ranges.iter_mut().filter(|range| can_fail(&range.of, schema)) {
            // The text of the range would not be the user's.
            range.of = Arc::new(Named(Arc::clone(&range.of)));
        }
        let ranges: Expr = Arc::new(Self { ranges });
        if rest.is_empty() {
            return Ok(Some(ranges));
        }
        Ok(Some(Arc::new(BinaryExpr::new(ranges, Operator::And, conjunction(rest)))))
    }
}

impl Range {
    fn of(part: &Expr, schema: &Schema) -> Result<Option<Self>> {
        if let Some(test) = part.downcast_ref::<IsNotNullExpr>() {
            let of = Arc::clone(test.arg());
            let known = has_plain_nulls(&of.data_type(schema)?);
            return Ok(known.then_some(Self { of, low: i128::MIN, high: i128::MAX }));
        }
        let Some(binary) = part.downcast_ref::<BinaryExpr>() else { return Ok(None) };
        let Some(bound) = binary.right().downcast_ref::<Literal>() else { return Ok(None) };
        let of = Arc::clone(binary.left());
        let data_type = of.data_type(schema)?;
        if !is_known(&data_type) || bound.value().data_type() != data_type {
            return Ok(None);
        }
        let Some(bound) = number(bound.value()) else { return Ok(None) };
        let (low, high) = match binary.op() {
            Operator::GtEq => (bound, i128::MAX),
            Operator::Gt => (bound.saturating_add(1), i128::MAX),
            Operator::LtEq => (i128::MIN, bound),
            Operator::Lt => (i128::MIN, bound.saturating_sub(1)),
            Operator::Eq => (bound, bound),
            _ => return Ok(None),
        };
        Ok(Some(Self { of, low, high }))
    }

    /// Clears the bits of rows of a batch that do not lie in the range.
    fn clear_others_of(&self, batch: &RecordBatch, bits: &mut [u64]) -> Result<()> {
        let rows = batch.num_rows();
        if let Some(Instead { form: Part::TimeOfDay, argument, .. }) = self.of.downcast_ref::<Instead<Part>>()
            && let ColumnarValue::Array(times) = argument.evaluate(batch)?
            && times.data_type() == &TIMESTAMP
            && let times = times.as_primitive::<TimestampMicrosecondType>()
            && clear_other_times(times.values(), self.low, self.high, bits)
        {
            times.nulls().into_iter().for_each(|nulls| clear_nulls(nulls, bits));
            return Ok(());
        }
        self.clear_others(&self.of.evaluate(batch)?.into_array(rows)?, bits);
        Ok(())
    }

    /// Clears the bits of rows that do not lie in the range.
    fn clear_others(&self, values: &ArrayRef, bits: &mut [u64]) {
        if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
            clear_nulls(nulls, bits);
        }
        if (self.low, self.high) == (i128::MIN, i128::MAX) {
            return;
        }
        if self.low > self.high {
            return bits.fill(0);
        }
        match values.data_type() {
            DataType::Decimal128(..) => {
                clear_decimals(values.as_primitive::<Decimal128Type>().values(), self.low, self.high, bits);
            }
            _ => {
                let Some((low, width)) = words(self.low, self.high) else { return bits.fill(0) };
                let data = values.to_data();
                if data.data_type().primitive_width() == Some(8) {
                    clear_outside(&data.buffer::<i64>(0)[..data.len()], low, width, bits);
                } else {
                    let values = &data.buffer::<i32>(0)[..data.len()];
                    clear(values, |value| i64::from(value).wrapping_sub(low) as u64 <= width, bits);
                }
            }
        }
    }
}

fn is_known(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Int64
            | DataType::Date32
            | DataType::Timestamp(TimeUnit::Microsecond, None)
            | DataType::Time64(TimeUnit::Nanosecond)
            | DataType::Decimal128(..)
    )
}

/// Whether what is null stands in the column itself.
fn has_plain_nulls(data_type: &DataType) -> bool {
    use DataType::{Dictionary, Null, RunEndEncoded, Union};
    !matches!(data_type, Null | Dictionary(..) | RunEndEncoded(..) | Union(..))
}

fn number(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int64(value)
        | ScalarValue::TimestampMicrosecond(value, None)
        | ScalarValue::Time64Nanosecond(value) => value.map(i128::from),
        ScalarValue::Date32(value) => value.map(i128::from),
        ScalarValue::Decimal128(value, ..) => *value,
        _ => None,
    }
}

/// The range as its first number and how many follow, cut to 64 bits. None if nothing is left.
fn words(low: i128, high: i128) -> Option<(i64, u64)> {
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    if low > most || high < least {
        return None;
    }
    let (low, high) = (low.max(least), high.min(most));
    Some((low as i64, (high - low) as u64))
}

/// Clears the bits of values that are not wanted; 64 values for each word.
#[inline(always)]
fn clear<T: Copy>(values: &[T], wanted: impl Fn(T) -> bool, bits: &mut [u64]) {
    for (values, word) in values.chunks(64).zip(bits) {
        let mut found = 0;
        for (place, value) in values.iter().enumerate() {
            found |= u64::from(wanted(*value)) << place;
        }
        *word &= found;
    }
}

/// Clears the bits of numbers that are not in a range.
fn clear_outside(values: &[i64], low: i64, width: u64, bits: &mut [u64]) {
    wide(|| clear(values, |value| value.wrapping_sub(low) as u64 <= width, bits));
}

/// The same for decimals, most of which have no more than 64 bits.
fn clear_decimals(values: &[i128], low: i128, high: i128, bits: &mut [u64]) {
    match words(low, high) {
        None => clear(values, |value| low <= value && value <= high, bits),
        Some((first, width)) => wide(|| {
            for (values, word) in values.chunks(64).zip(bits) {
                let (mut inside, mut too_wide) = (0, 0);
                for (place, value) in values.iter().enumerate() {
                    let number = *value as i64;
                    too_wide |= (*value >> 64) as i64 ^ number >> 63;
                    inside |= u64::from(number.wrapping_sub(first) as u64 <= width) << place;
                }
                if too_wide == 0 {
                    *word &= inside;
                } else {
                    clear(values, |value| low <= value && value <= high, std::slice::from_mut(word));
                }
            }
        }),
    }
}

fn clear_nulls(nulls: &NullBuffer, bits: &mut [u64]) {
    let valid = nulls.inner().bit_chunks();
    for (word, valid) in bits.iter_mut().zip(valid.iter_padded()) {
        *word &= valid;
    }
}

impl PhysicalExpr for Ranges {
    fn data_type(&self, _: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let mut bits = vec![u64::MAX; rows.div_ceil(64)];
        for range in &self.ranges {
            range.clear_others_of(batch, &mut bits)?;
        }
        // Arrow's bitmaps are little-endian by byte, as are these words on every platform Arrow supports.
        let bits = BooleanBuffer::new(Buffer::from_vec(bits), 0, rows);
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(bits, None))))
    }

    fn children(&self) -> Vec<&Expr> {
        self.ranges.iter().map(|range| &range.of).collect()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Expr>) -> Result<Expr> {
        let ranges = self.ranges.iter().zip(children).map(|(range, of)| Range { of, ..range.clone() });
        Ok(Arc::new(Self { ranges: ranges.collect() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, range) in self.ranges.iter().enumerate() {
            let and = if place == 0 { "" } else { " AND " };
            write!(f, "{and}{} in {}..={}", range.of, range.low, range.high)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{
        Date32Array, Decimal128Array, Int64Array, StringViewArray, TimestampMicrosecondArray,
    };
    use datafusion::common::cast::as_boolean_array;
    use datafusion::physical_expr::expressions::{CastExpr, IsNullExpr, col, lit};

    use super::*;

    fn rows() -> RecordBatch {
        let number = |row: i64| if row % 7 == 3 { None } else { Some((row * 7919) % 201 - 100) };
        let numbers: Vec<Option<i64>> = (0..300).map(number).collect();
        let mut extremes = numbers.clone();
        (extremes[0], extremes[1], extremes[2]) = (Some(i64::MIN), Some(i64::MAX), Some(0));
        let mut decimals: Vec<Option<i128>> = numbers.iter().map(|n| n.map(i128::from)).collect();
        // Of more than 64 bits, and as close to it as can be.
        (decimals[70], decimals[71]) = (Some(1 << 64), Some(-(1 << 64) + 57));
        (decimals[140], decimals[141]) = (Some(i128::from(i64::MIN)), Some(i128::from(i64::MAX)));
        (decimals[142], decimals[200]) = (Some(i128::from(i64::MAX) + 1), Some(i128::from(i64::MIN) - 1));
        let decimals = Decimal128Array::from(decimals);
        let dates: Date32Array = numbers.iter().map(|n| n.map(|n| n as i32)).collect();
        let texts: StringViewArray = numbers.iter().map(|n| n.map(|n| n.to_string())).collect();
        let columns: [(&str, ArrayRef); 5] = [
            ("text", Arc::new(texts)),
            ("n", Arc::new(Int64Array::from(extremes))),
            ("t", Arc::new(TimestampMicrosecondArray::from(numbers))),
            ("m", Arc::new(decimals.with_precision_and_scale(30, 3).unwrap())),
            ("d", Arc::new(dates)),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, values)| (name, values, true))).unwrap()
    }

    fn selected(predicate: &Expr, batch: &RecordBatch) -> Vec<bool> {
        let values = predicate.evaluate(batch).unwrap().into_array(batch.num_rows()).unwrap();
        as_boolean_array(&values).unwrap().iter().map(|value| value == Some(true)).collect()
    }

    #[test]
    fn ranges_select_what_comparisons_do() {
        let batch = rows();
        let schema = batch.schema();
        let column = |name: &str| col(name, &schema).unwrap();
        let bounds = |name: &str, value: i64| match name {
            "n" => lit(value),
            "t" => lit(ScalarValue::TimestampMicrosecond(Some(value), None)),
            "m" => lit(ScalarValue::Decimal128(Some(i128::from(value)), 30, 3)),
            _ => lit(ScalarValue::Date32(Some(value as i32))),
        };
        let compare =
            |name: &str, op, value| -> Expr { Arc::new(BinaryExpr::new(column(name), op, bounds(name, value))) };
        let not_null = |name: &str| -> Expr { Arc::new(IsNotNullExpr::new(column(name))) };
        use Operator::{Eq, Gt, GtEq, Lt, LtEq};
        let mut predicates: Vec<Vec<Expr>> = Vec::new();
        for name in ["n", "t", "m", "d"] {
            for value in [-100, -1, 0, 57, 100] {
                predicates.extend([Eq, Gt, GtEq, Lt, LtEq].map(|op| vec![compare(name, op, value)]));
            }
            predicates.push(vec![compare(name, GtEq, -30), compare(name, Lt, 41), not_null("n")]);
            predicates.push(vec![compare(name, Gt, 5), compare(name, Lt, 5)]);
            predicates.push(vec![not_null(name)]);
        }
        predicates.push(vec![compare("n", Gt, i64::MAX), not_null("d")]);
        predicates.push(vec![compare("n", LtEq, i64::MIN)]);
        predicates.push(vec![not_null("text"), compare("n", Lt, 3)]);
        for value in [1 << 64, i128::from(i64::MAX), i128::from(i64::MIN) - 1] {
            let bound = lit(ScalarValue::Decimal128(Some(value), 30, 3));
            let compare = |op| -> Expr { Arc::new(BinaryExpr::new(column("m"), op, Arc::clone(&bound))) };
            predicates.extend([Eq, Gt, GtEq, Lt, LtEq].map(|op| vec![compare(op)]));
        }
        let is_null: Expr = Arc::new(IsNullExpr::new(column("t")));
        predicates.push(vec![compare("n", LtEq, i64::MAX), is_null, compare("d", Gt, -60)]);
        for parts in predicates {
            let plain = conjunction(parts);
            let ours = Ranges::instead_of(&plain, &schema).unwrap().unwrap();
            for batch in [batch.clone(), batch.slice(5, 130), batch.slice(64, 64), batch.slice(10, 0)] {
                assert_eq!(selected(&ours, &batch), selected(&plain, &batch), "{plain}");
            }
        }
        let unlike: Expr = Arc::new(BinaryExpr::new(column("n"), Operator::NotEq, lit(5i64)));
        assert!(Ranges::instead_of(&unlike, &schema).unwrap().is_none());
        let null: Expr = Arc::new(BinaryExpr::new(column("n"), Operator::Eq, lit(ScalarValue::Int64(None))));
        assert!(Ranges::instead_of(&null, &schema).unwrap().is_none());
    }

    #[test]
    fn ranges_of_times_of_day_select_what_comparisons_do() {
        const DAY: i64 = 86_400_000_000;
        let time = |row: i64| {
            // The day changes at any place of a block, there and back, and both of its ends are met.
            let (day, place) = (row / 331 - row / 997 - 3, row * 7_919 % 331);
            let moment = if place == 330 { DAY - 1 } else { DAY / 330 * place };
            (row % 50 != 0).then_some(day * DAY + moment)
        };
        let near: Vec<Option<i64>> = (0..2_000).map(time).collect();
        let mut far = near.clone();
        far[1_500] = Some(-200_000 * DAY);
        for times in [near, far] {
            let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
            let batch = RecordBatch::try_from_iter_with_nullable([("t", times, true)]).unwrap();
            let schema = batch.schema();
            let nanos = DataType::Time64(TimeUnit::Nanosecond);
            let of_day: Expr = Arc::new(CastExpr::new(col("t", &schema).unwrap(), nanos, None));
            let moments =
                [0, 1, 999, 1_000, 1_001, DAY / 330 * 100_000, DAY * 500, DAY * 1_000 - 1_000, DAY * 1_000 - 1];
            use Operator::{Eq, Gt, GtEq, Lt, LtEq};
            for (op, nanos) in [Eq, Gt, GtEq, Lt, LtEq].iter().flat_map(|op| moments.map(|nanos| (*op, nanos))) {
                let bound = lit(ScalarValue::Time64Nanosecond(Some(nanos)));
                let plain: Expr = Arc::new(BinaryExpr::new(Arc::clone(&of_day), op, bound));
                let faster = crate::task::fast::faster_expr(Arc::clone(&plain)).unwrap().data;
                let ours = Ranges::instead_of(&faster, &schema).unwrap().unwrap();
                for batch in [batch.clone(), batch.slice(5, 1_300)] {
                    assert_eq!(selected(&ours, &batch), selected(&plain, &batch), "{plain}");
                }
            }
        }
    }
}
