//! `try_to_date(text[, format, …])` and `try_to_timestamp(text[, format, …])`: null where a text is no date or time.
//!
//! `to_date` fails on the first text that does not fit; in a column that people have typed there always is one. Formats are
//! those of `to_date` and `to_char` (`%d/%m/%Y`), and the first one that fits counts. Without a format: as `TRY_CAST`.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};
use datafusion::arrow::array::{Array, ArrayRef, Date32Array, StringViewArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// Days from the beginning of chrono's count to 1970.
const DAYS_BEFORE_1970: i32 = 719_163;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Target {
    Date,
    Timestamp,
}

/// One of the two functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Lenient {
    target: Target,
    signature: Signature,
}

/// Both functions.
pub(super) fn all() -> [Lenient; 2] {
    [Target::Date, Target::Timestamp]
        .map(|target| Lenient { target, signature: Signature::user_defined(Volatility::Immutable) })
}

impl ScalarUDFImpl for Lenient {
    fn name(&self) -> &str {
        match self.target {
            Target::Date => "try_to_date",
            Target::Timestamp => "try_to_timestamp",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |of: &DataType| of.is_string() || of.is_null();
        if types.is_empty() || !types.iter().all(is_text) {
            return plan_err!("{} takes a text and formats such as '%d/%m/%Y'", self.name());
        }
        Ok(vec![DataType::Utf8View; types.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.target {
            Target::Date => DataType::Date32,
            Target::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|arg| arg.to_array(rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let texts = as_string_view_array(&arrays[0])?;
        let formats = arrays[1..].iter().map(|array| as_string_view_array(array)).collect::<Result<Vec<_>>>()?;
        let values = if formats.is_empty() { self.as_written(texts)? } else { self.in_formats(texts, &formats) };
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?));
        }
        Ok(ColumnarValue::Array(values))
    }
}

impl Lenient {
    /// Texts as a cast reads them.
    fn as_written(&self, texts: &StringViewArray) -> Result<ArrayRef> {
        let trimmed: StringViewArray = texts.iter().map(|text| text.map(str::trim)).collect();
        let options = CastOptions { safe: true, ..CastOptions::default() };
        Ok(cast_with_options(&trimmed, &self.return_type(&[])?, &options)?)
    }

    /// Texts in the first format that fits.
    fn in_formats(&self, texts: &StringViewArray, formats: &[&StringViewArray]) -> ArrayRef {
        let times = (0..texts.len()).map(|row| {
            let text = (!texts.is_null(row)).then(|| texts.value(row).trim())?;
            let mut formats = formats.iter().filter(|format| !format.is_null(row)).map(|format| format.value(row));
            formats.find_map(|format| read(text, format))
        });
        match self.target {
            Target::Date => {
                let days = |time: NaiveDateTime| time.num_days_from_ce() - DAYS_BEFORE_1970;
                Arc::new(times.map(|time| time.map(days)).collect::<Date32Array>())
            }
            Target::Timestamp => {
                let micros = |time: NaiveDateTime| time.and_utc().timestamp_micros();
                Arc::new(times.map(|time| time.map(micros)).collect::<TimestampMicrosecondArray>())
            }
        }
    }
}

/// A date and time in a format, in UTC if it has a zone; the beginning of a day if it has no time.
fn read(text: &str, format: &str) -> Option<NaiveDateTime> {
    let zoned = || DateTime::parse_from_str(text, format).ok().map(|time| time.naive_utc());
    let plain = || NaiveDateTime::parse_from_str(text, format).ok();
    let day = || NaiveDate::parse_from_str(text, format).ok().map(|day| day.and_time(NaiveTime::MIN));
    zoned().or_else(plain).or_else(day)
}
