//! `date_trunc` and `date_bin` of times that DataFusion's nanoseconds do not reach: before 1677 and after 2262.
//!
//! DataFusion's `date_trunc` fails there, and its `date_bin` gives null. Here the first one works, and the second one says so.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions::datetime::{date_bin, date_trunc};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Both functions, to take the place of DataFusion's.
pub(super) fn all() -> [ScalarUDF; 2] {
    [Wrapped(Which::Trunc, date_trunc()), Wrapped(Which::Bin, date_bin())].map(ScalarUDF::from)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Which {
    Trunc,
    Bin,
}

/// DataFusion's function in all but some values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Wrapped(Which, Arc<ScalarUDF>);

impl ScalarUDFImpl for Wrapped {
    fn name(&self) -> &str {
        self.1.name()
    }

    fn aliases(&self) -> &[String] {
        self.1.aliases()
    }

    fn signature(&self) -> &Signature {
        self.1.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.1.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.1.return_field_from_args(args)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.1.coerce_types(types)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.1.output_ordering(inputs)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.0 {
            Which::Trunc => match start_of(&args.args) {
                Some(starts) => Ok(starts),
                None => self.1.invoke_with_args(args),
            },
            Which::Bin => {
                let nulls = args.args[1].clone().into_array(args.number_rows)?.null_count();
                let rows = args.number_rows;
                let step_is_null = matches!(&args.args[0], ColumnarValue::Scalar(step) if step.is_null());
                let bins = self.1.invoke_with_args(args)?;
                let found = bins.clone().into_array(rows)?.null_count();
                if found > nulls && !step_is_null {
                    return exec_err!("date_bin takes times from 1678 to 2261 only; a time here lies outside");
                }
                Ok(bins)
            }
        }
    }
}

/// The starts of weeks, months, quarters or years of times in microseconds.
fn start_of(args: &[ColumnarValue]) -> Option<ColumnarValue> {
    let [ColumnarValue::Scalar(unit), times] = args else { return None };
    let unit = unit.try_as_str()??.to_ascii_lowercase();
    let start: fn(i64) -> i64 = match unit.as_str() {
        // The first day that is counted was a Thursday, and weeks begin on Monday.
        "week" => |day| day - (day + 3).rem_euclid(7),
        "month" => |day| first_of(day, 1),
        "quarter" => |day| first_of(day, 3),
        "year" => |day| first_of(day, 12),
        _ => return None,
    };
    let of_micros = |micros: i64| start(micros.div_euclid(MICROS_PER_DAY)) * MICROS_PER_DAY;
    match times {
        ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(micros, None)) => {
            Some(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(micros.map(of_micros), None)))
        }
        ColumnarValue::Array(times) if times.data_type() == &DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let times = times.as_primitive::<TimestampMicrosecondType>();
            let starts: PrimitiveArray<TimestampMicrosecondType> = times.unary(of_micros);
            Some(ColumnarValue::Array(Arc::new(starts)))
        }
        _ => None,
    }
}

/// The first day of the month of a day, or of the first month of its `months`: 3 for a quarter, 12 for a year.
fn first_of(day: i64, months: i64) -> i64 {
    // Years that begin in March have their leap day at the end; 400 of them have 146097 days.
    let from_march = day + 719_468;
    let (era, day_of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = (month_from_march + 2) % 12;
    let year = era * 400 + year_of_era + i64::from(month < 2);
    let month = month / months * months;
    let (year, month_from_march) = (year - i64::from(month < 2), (month + 10) % 12);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month_from_march + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::common::config::ConfigOptions;

    use super::*;

    fn called(function: &ScalarUDF, unit: &str, micros: i64) -> Result<ScalarValue> {
        let time = DataType::Timestamp(TimeUnit::Microsecond, None);
        let args = vec![
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(unit.to_owned()))),
            ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(micros), None)),
        ];
        let field = |data_type: &DataType| Arc::new(Field::new("x", data_type.clone(), true));
        let result = function.invoke_with_args(ScalarFunctionArgs {
            args,
            arg_fields: vec![field(&DataType::Utf8), field(&time)],
            number_rows: 1,
            return_field: field(&time),
            config_options: Arc::new(ConfigOptions::default()),
        })?;
        match result {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(values) => ScalarValue::try_from_array(&values, 0),
        }
    }

    #[test]
    fn starts_are_those_of_datafusion_where_it_has_any() {
        let [ours, _] = all();
        for unit in ["week", "month", "quarter", "year"] {
            // From 1700 to 2200, at all times of the day.
            for step in 0..20_000_i64 {
                let micros = (-98_615 + step * 9) * MICROS_PER_DAY + step * 7_919_777 % MICROS_PER_DAY;
                let (ours, theirs) = (called(&ours, unit, micros), called(&date_trunc(), unit, micros));
                assert_eq!(ours.unwrap(), theirs.unwrap(), "{unit} of {micros}");
            }
        }
    }

    #[test]
    fn every_year_of_four_digits_has_its_starts() {
        let [ours, _] = all();
        let micros = |day: i64| ScalarValue::TimestampMicrosecond(Some(day * MICROS_PER_DAY), None);
        // 9999-12-31, a Friday; 0001-01-01, a Monday.
        for (day, unit, start) in [
            (2_932_896, "year", 2_932_532),
            (2_932_896, "quarter", 2_932_805),
            (2_932_896, "month", 2_932_866),
            (2_932_896, "week", 2_932_892),
            (-719_162, "year", -719_162),
            (-719_162, "week", -719_162),
        ] {
            let noon = day * MICROS_PER_DAY + MICROS_PER_DAY / 2;
            assert_eq!(called(&ours, unit, noon).unwrap(), micros(start), "{unit} of day {day}");
        }
    }
}
