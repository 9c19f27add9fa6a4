//! Parts of dates and times, for columns of many rows.
//!
//! DataFusion takes every value apart on its own. Neighbouring rows are mostly of one month and of one day, so here a value is
//! only taken apart when it lies outside that of the one before; the others cost a comparison.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int32Array, PrimitiveArray};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Int32Type, Time64NanosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Literal};

use super::Expr;
use super::instead::Form;
use super::wide::wide;

const MICROS_PER_HOUR: i64 = 3_600_000_000;
const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;
const NANOS_PER_MICRO: i64 = 1_000;
/// The type of columns of times.
pub(super) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Days since 1970 from 1700-01-01 up to 2200-01-01. What lies outside is DataFusion's: its nanoseconds end in 1677 and
/// 2262, and what it then does is its own.
const DAYS: std::ops::Range<i64> = -98_615..84_006;

/// What is asked of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// `CAST(… AS TIME)`.
    TimeOfDay,
    /// `date_trunc`.
    StartOfYear,
    StartOfQuarter,
    StartOfMonth,
    /// `date_part`.
    Year,
    Quarter,
    Month,
    Hour,
}

impl Form for Part {
    fn of(expr: &Expr) -> Option<(Self, Expr)> {
        let (part, argument) = if let Some(cast) = expr.downcast_ref::<CastExpr>() {
            (Part::time_of_day(cast.cast_type())?, cast.expr())
        } else {
            let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
            let [what, argument] = function.args() else { return None };
            let what = what.downcast_ref::<Literal>()?.value().try_as_str()??;
            (Part::named(function.name(), what)?, argument)
        };
        Some((part, Arc::clone(argument)))
    }

    fn of_all(&self, values: &dyn Array) -> Option<ArrayRef> {
        if values.data_type() == &TIMESTAMP {
            self.of_times(values.as_primitive())
        } else if values.data_type() == &DataType::Date32 {
            self.of_dates(values.as_primitive())
        } else {
            None
        }
    }
}

impl Part {
    fn time_of_day(cast_to: &DataType) -> Option<Self> {
        (cast_to == &DataType::Time64(TimeUnit::Nanosecond)).then_some(Self::TimeOfDay)
    }

    fn named(function: &str, what: &str) -> Option<Self> {
        Some(match (function, what.to_ascii_lowercase().as_str()) {
            ("date_trunc", "year") => Self::StartOfYear,
            ("date_trunc", "quarter") => Self::StartOfQuarter,
            ("date_trunc", "month") => Self::StartOfMonth,
            ("date_part", "year") => Self::Year,
            ("date_part", "quarter") => Self::Quarter,
            ("date_part", "month") => Self::Month,
            ("date_part", "hour") => Self::Hour,
            _ => return None,
        })
    }

    fn of_times(self, times: &PrimitiveArray<TimestampMicrosecondType>) -> Option<ArrayRef> {
        let start = |year, month| Month::new(year, month).first_day * MICROS_PER_DAY;
        Some(match self {
            Self::TimeOfDay => {
                Arc::new(by_day::<Time64NanosecondType>(times, |since_midnight| since_midnight * NANOS_PER_MICRO)?)
            }
            Self::Hour => {
                Arc::new(by_day::<Int32Type>(times, |since_midnight| (since_midnight / MICROS_PER_HOUR) as i32)?)
            }
            Self::StartOfYear => {
                Arc::new(by_month::<_, TimestampMicrosecondType>(times, MICROS_PER_DAY, |m| start(m.year, 1))?)
            }
            Self::StartOfQuarter => Arc::new(by_month::<_, TimestampMicrosecondType>(times, MICROS_PER_DAY, |m| {
                start(m.year, (m.month - 1) / 3 * 3 + 1)
            })?),
            Self::StartOfMonth => {
                Arc::new(by_month::<_, TimestampMicrosecondType>(times, MICROS_PER_DAY, |m| start(m.year, m.month))?)
            }
            Self::Year | Self::Quarter | Self::Month => Arc::new(self.number_by_month(times, MICROS_PER_DAY)?),
        })
    }

    fn of_dates(self, dates: &PrimitiveArray<Date32Type>) -> Option<ArrayRef> {
        match self {
            Self::Year | Self::Quarter | Self::Month => Some(Arc::new(self.number_by_month(dates, 1)?)),
            _ => None,
        }
    }

    fn number_by_month<T>(self, values: &PrimitiveArray<T>, per_day: i64) -> Option<Int32Array>
    where
        T: ArrowPrimitiveType<Native: Into<i64>>,
    {
        by_month(values, per_day, |month| match self {
            Self::Year => month.year as i32,
            Self::Quarter => (month.month as i32 - 1) / 3 + 1,
            _ => month.month as i32,
        })
    }
}

/// A function of the time since midnight, for every value. None if a value lies outside [`DAYS`].
fn by_day<O: ArrowPrimitiveType>(
    times: &PrimitiveArray<TimestampMicrosecondType>,
    function: impl Fn(i64) -> O::Native,
) -> Option<PrimitiveArray<O>> {
    // The midnight before the value before; none: no value has a time since then.
    let mut midnight = None;
    let mut results = Vec::with_capacity(times.len());
    for block in times.values().chunks(64) {
        // Mostly all are of the same day, so that no value needs a division to find it.
        if let Some(start) = midnight
            && block.iter().fold(true, |all, time| all & ((time.wrapping_sub(start) as u64) < MICROS_PER_DAY as u64))
        {
            results.extend(block.iter().map(|time| function(time - start)));
            continue;
        }
        for time in block {
            let day = time.div_euclid(MICROS_PER_DAY);
            if !DAYS.contains(&day) {
                return None;
            }
            midnight = Some(day * MICROS_PER_DAY);
            results.push(function(time - day * MICROS_PER_DAY));
        }
    }
    Some(PrimitiveArray::new(results.into(), times.nulls().cloned()))
}

/// Clears the bits of times that do not lie in a range of nanoseconds since midnight. False: a value lies outside [`DAYS`], so
/// that not all were.
pub(super) fn clear_other_times(times: &[i64], low: i128, high: i128, bits: &mut [u64]) -> bool {
    let nanos = i128::from(NANOS_PER_MICRO);
    // The first microsecond that lies in the range, and the last one; those before midnight and after the day do no harm.
    let low = low.clamp(0, i128::from(MICROS_PER_DAY) * nanos);
    let high = high.clamp(-1, i128::from(MICROS_PER_DAY) * nanos);
    let (low, high) = ((low + nanos - 1).div_euclid(nanos) as i64, high.div_euclid(nanos) as i64);
    if low > high {
        bits.fill(0);
        return true;
    }
    let width = (high - low) as u64;
    wide(|| clear_other_micros(times, low, width, bits))
}

#[inline(always)]
fn clear_other_micros(times: &[i64], low: i64, width: u64, bits: &mut [u64]) -> bool {
    let mut midnight = 0;
    for (block, word) in times.chunks(64).zip(bits) {
        // Mostly all are of the day of the one before, so that no value needs a division to find it.
        let (mut is_same_day, mut inside) = (true, 0);
        for (place, time) in block.iter().enumerate() {
            let since = time.wrapping_sub(midnight);
            is_same_day &= (since as u64) < MICROS_PER_DAY as u64;
            inside |= u64::from(since.wrapping_sub(low) as u64 <= width) << place;
        }
        if !is_same_day {
            inside = 0;
            for (place, time) in block.iter().enumerate() {
                let day = time.div_euclid(MICROS_PER_DAY);
                if !DAYS.contains(&day) {
                    return false;
                }
                midnight = day * MICROS_PER_DAY;
                inside |= u64::from((time - midnight).wrapping_sub(low) as u64 <= width) << place;
            }
        }
        *word &= inside;
    }
    true
}

/// A function of the month, for every value. None if a value lies outside [`DAYS`].
fn by_month<T, O>(
    values: &PrimitiveArray<T>,
    per_day: i64,
    function: impl Fn(&Month) -> O::Native,
) -> Option<PrimitiveArray<O>>
where
    T: ArrowPrimitiveType<Native: Into<i64>>,
    O: ArrowPrimitiveType,
{
    // The month of the value before, as its first moment and its length.
    let (mut start, mut length, mut result) = (0i64, 0u64, O::Native::default());
    let mut results = Vec::with_capacity(values.len());
    for block in values.values().chunks(64) {
        // Mostly all are of the same month, which is found out without a branch for each.
        let is_outside = |value: T::Native| value.into().wrapping_sub(start) as u64 >= length;
        if !block.iter().fold(false, |any, value| any | is_outside(*value)) {
            results.resize(results.len() + block.len(), result);
            continue;
        }
        for &value in block {
            let value: i64 = value.into();
            if value.wrapping_sub(start) as u64 >= length {
                let day = value.div_euclid(per_day);
                if !DAYS.contains(&day) {
                    return None;
                }
                let month = Month::of(day);
                (start, length) = (month.first_day * per_day, (month.days * per_day) as u64);
                result = function(&month);
            }
            results.push(result);
        }
    }
    Some(PrimitiveArray::new(results.into(), values.nulls().cloned()))
}

/// A month of the Gregorian calendar.
struct Month {
    year: i64,
    month: i64,
    /// Its first day, counted from 1970.
    first_day: i64,
    days: i64,
}

impl Month {
    fn new(year: i64, month: i64) -> Self {
        let next = if month == 12 { days_before(year + 1, 1) } else { days_before(year, month + 1) };
        let first_day = days_before(year, month);
        Self { year, month, first_day, days: next - first_day }
    }

    /// The month of a day in [`DAYS`].
    fn of(day: i64) -> Self {
        // 400 years have 146097 days, so the guess is the year or its neighbour.
        let mut year = 1970 + (day * 400).div_euclid(146_097);
        while days_before(year + 1, 1) <= day {
            year += 1;
        }
        while days_before(year, 1) > day {
            year -= 1;
        }
        let month = (2..=12).take_while(|month| days_before(year, *month) <= day).last().unwrap_or(1);
        Self::new(year, month)
    }
}

/// Days from 1970-01-01 to the first of a month.
fn days_before(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let years = year - 1;
    // 719162 days lie between 0001-01-01 and 1970-01-01.
    years * 365 + years / 4 - years / 100 + years / 400 - 719_162
        + BEFORE[month as usize - 1]
        + i64::from(is_leap && month > 2)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Date32Array, TimestampMicrosecondArray};
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::arrow::record_batch::RecordBatch;
    use datafusion::common::config::ConfigOptions;
    use datafusion::functions::datetime;
    use datafusion::logical_expr::ScalarUDF;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::{Column, lit};

    use super::*;
    use crate::task::fast::instead::Instead;

    fn check(plain: &Expr, column: &ArrayRef) {
        let calendar = Instead::<Part>::of(plain).unwrap();
        let batch = RecordBatch::try_from_iter_with_nullable([("t", Arc::clone(column), true)]).unwrap();
        let rows = batch.num_rows();
        let expected = plain.evaluate(&batch).unwrap().into_array(rows).unwrap();
        assert!(calendar.form.of_all(column).is_some(), "{plain}: not left to DataFusion");
        assert_eq!(&calendar.evaluate(&batch).unwrap().into_array(rows).unwrap(), &expected, "{plain}");
    }

    fn function(udf: Arc<ScalarUDF>, what: &str, column_type: DataType) -> Expr {
        let args = vec![lit(what), Arc::new(Column::new("t", 0)) as Expr];
        let schema = Schema::new(vec![Field::new("t", column_type, true)]);
        Arc::new(ScalarFunctionExpr::try_new(udf, args, &schema, Arc::new(ConfigOptions::default())).unwrap())
    }

    /// Every day from 1700 up to 2200, at its first moment, its last and one between; some are null.
    fn times() -> ArrayRef {
        let times = DAYS.flat_map(|day| {
            let start = day * MICROS_PER_DAY;
            [Some(start), Some(start + day.rem_euclid(86_400) * 1_000_003), None, Some(start + MICROS_PER_DAY - 1)]
        });
        Arc::new(times.collect::<TimestampMicrosecondArray>())
    }

    #[test]
    fn every_day_of_five_centuries_is_as_datafusion_says() {
        let times = times();
        let time_of_day = DataType::Time64(TimeUnit::Nanosecond);
        check(&(Arc::new(CastExpr::new(Arc::new(Column::new("t", 0)), time_of_day, None)) as Expr), &times);
        for what in ["year", "QUARTER", "month"] {
            check(&function(datetime::date_trunc(), what, TIMESTAMP), &times);
        }
        for what in ["year", "quarter", "Month", "hour"] {
            check(&function(datetime::date_part(), what, TIMESTAMP), &times);
        }
        let dates: ArrayRef = Arc::new(DAYS.map(|day| Some(day as i32)).collect::<Date32Array>());
        for what in ["year", "quarter", "month"] {
            check(&function(datetime::date_part(), what, DataType::Date32), &dates);
        }
    }

    #[test]
    fn months_that_come_in_any_order_are_told_apart() {
        let days = (0..5_000i64).map(|i| DAYS.start + (i * 7_919 * 31) % (DAYS.end - DAYS.start));
        let times: ArrayRef =
            Arc::new(days.map(|day| Some(day * MICROS_PER_DAY + 1)).collect::<TimestampMicrosecondArray>());
        check(&function(datetime::date_trunc(), "month", TIMESTAMP), &times);
        check(&function(datetime::date_part(), "year", TIMESTAMP), &times);
    }

    #[test]
    fn many_times_of_the_same_day_are_as_datafusion_says() {
        let times = (0..2_000i64).map(|i| {
            // The day changes at any place of a block, there and back, and both of its ends are met.
            let (day, place) = (20_000 + i / 331 - i / 997, i * 7_919 % 331);
            let moment = if place == 330 { MICROS_PER_DAY - 1 } else { MICROS_PER_DAY / 330 * place };
            (i % 50 != 0).then_some(day * MICROS_PER_DAY + moment)
        });
        let times: ArrayRef = Arc::new(times.collect::<TimestampMicrosecondArray>());
        let time_of_day = DataType::Time64(TimeUnit::Nanosecond);
        check(&(Arc::new(CastExpr::new(Arc::new(Column::new("t", 0)), time_of_day, None)) as Expr), &times);
        check(&function(datetime::date_part(), "hour", TIMESTAMP), &times);
    }

    #[test]
    fn times_far_away_and_other_parts_stay_with_datafusion() {
        for day in [DAYS.start - 1, DAYS.end] {
            let times = TimestampMicrosecondArray::from(vec![0, day * MICROS_PER_DAY]);
            for part in [Part::TimeOfDay, Part::Hour, Part::Year, Part::StartOfMonth] {
                assert!(part.of_all(&times).is_none(), "{part:?}");
            }
        }
        assert!(Instead::<Part>::of(&function(datetime::date_trunc(), "week", TIMESTAMP)).is_none());
        assert!(Instead::<Part>::of(&function(datetime::date_part(), "second", TIMESTAMP)).is_none());
        let date_trunc = function(datetime::date_trunc(), "month", DataType::Timestamp(TimeUnit::Second, None));
        let seconds: ArrayRef = Arc::new(datafusion::arrow::array::TimestampSecondArray::from(vec![86_400 * 45]));
        let batch = RecordBatch::try_from_iter([("t", seconds)]).unwrap();
        let calendar = Instead::<Part>::of(&date_trunc).unwrap();
        let (ours, theirs) = (calendar.evaluate(&batch).unwrap(), date_trunc.evaluate(&batch).unwrap());
        assert_eq!(&ours.into_array(1).unwrap(), &theirs.into_array(1).unwrap());
    }
}
