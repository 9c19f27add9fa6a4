//! Values of answers, whichever engine they come from.

use std::cmp::Ordering;
use std::fmt;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, TimeUnit, TimestampMicrosecondType,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value as Json;

/// A value. Whole numbers and decimals are one kind: 2 and 2.00 are equal.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// Without zeros at the end: digits, and how many of them are behind the point.
    Number(i128, i32),
    Float(f64),
    Text(String),
    /// Days since 1970.
    Date(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    List(Vec<Value>),
    Other(String),
}

/// Rows of an answer.
pub type Answer = Vec<Vec<Value>>;

/// Statistics and functions of the mathematical library may differ from DuckDB's by this share, or by this much near zero. Nothing
/// else has a tolerance.
const RELATIVE: f64 = 1e-9;
const NEAR_ZERO: f64 = 1e-9;

fn number(digits: i128, scale: i32) -> Value {
    let (mut digits, mut scale) = (digits, scale);
    while digits % 10 == 0 && (scale > 0 || digits != 0) && scale > i32::MIN {
        if digits == 0 {
            return Value::Number(0, 0);
        }
        digits /= 10;
        scale -= 1;
    }
    Value::Number(digits, if digits == 0 { 0 } else { scale })
}

impl Value {
    /// The value that `duckdb_answers.py` wrote.
    pub fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Array(items) => Self::List(items.iter().map(Self::from_json).collect()),
            Json::String(text) => {
                let (tag, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
                let parsed = match tag {
                    "b" => Some(Self::Bool(rest == "true")),
                    "n" => parse_number(rest),
                    "f" => rest.parse().ok().map(Self::Float),
                    "t" => Some(Self::Text(rest.to_owned())),
                    "d" => rest.parse().ok().map(Self::Date),
                    "m" => rest.parse().ok().map(Self::Timestamp),
                    _ => None,
                };
                parsed.unwrap_or_else(|| Self::Other(rest.to_owned()))
            }
            other => Self::Other(other.to_string()),
        }
    }

    /// All rows of some batches.
    pub fn rows(batches: &[RecordBatch]) -> Answer {
        let rows = batches.iter().flat_map(|batch| {
            let columns: Vec<Vec<Self>> = batch.columns().iter().map(Self::column).collect();
            (0..batch.num_rows()).map(move |row| columns.iter().map(|column| column[row].clone()).collect())
        });
        rows.collect()
    }

    fn column(array: &ArrayRef) -> Vec<Self> {
        let each = |value: &dyn Fn(usize) -> Self| {
            (0..array.len()).map(|row| if array.is_null(row) { Self::Null } else { value(row) }).collect()
        };
        let cast = |to: &DataType| cast(array, to).expect("a cast that loses nothing");
        match array.data_type() {
            DataType::Null => vec![Self::Null; array.len()],
            DataType::Boolean => each(&|row| Self::Bool(array.as_boolean().value(row))),
            t if t.is_integer() => {
                let numbers = cast(&DataType::Decimal128(20, 0));
                each(&|row| number(numbers.as_primitive::<Decimal128Type>().value(row), 0))
            }
            DataType::Decimal128(_, scale) => {
                each(&|row| number(array.as_primitive::<Decimal128Type>().value(row), i32::from(*scale)))
            }
            t if t.is_floating() => {
                let floats = cast(&DataType::Float64);
                each(&|row| Self::Float(floats.as_primitive::<Float64Type>().value(row)))
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = cast(&DataType::Utf8);
                each(&|row| Self::Text(texts.as_string::<i32>().value(row).to_owned()))
            }
            DataType::Date32 => each(&|row| Self::Date(i64::from(array.as_primitive::<Date32Type>().value(row)))),
            DataType::Timestamp(_, None) => {
                let times = cast(&DataType::Timestamp(TimeUnit::Microsecond, None));
                each(&|row| Self::Timestamp(times.as_primitive::<TimestampMicrosecondType>().value(row)))
            }
            DataType::List(_) => each(&|row| Self::List(Self::column(&array.as_list::<i32>().value(row)))),
            DataType::LargeList(_) => each(&|row| Self::List(Self::column(&array.as_list::<i64>().value(row)))),
            _ => {
                let options = FormatOptions::default();
                let formatter = ArrayFormatter::try_new(array.as_ref(), &options).expect("a type with a text");
                each(&|row| {
                    let text = formatter.value(row).to_string();
                    parse_number(&text).unwrap_or(Self::Other(text))
                })
            }
        }
    }

    /// Equal, bit by bit; all values that are no number are one.
    pub fn is_exactly(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b || (a.is_nan() && b.is_nan()),
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_exactly(b)),
            (a, b) => a == b,
        }
    }

    /// Equal within the bound for statistics.
    pub fn is_about(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) if a.is_finite() && b.is_finite() => {
                (a - b).abs() <= NEAR_ZERO.max(RELATIVE * a.abs().max(b.abs()))
            }
            (a, b) => a.is_exactly(b),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Number(..) => 2,
            Self::Float(_) => 3,
            Self::Text(_) => 4,
            Self::Date(_) => 5,
            Self::Timestamp(_) => 6,
            Self::List(_) => 7,
            Self::Other(_) => 8,
        }
    }

    /// Some total order, to compare answers whose rows may come in any.
    pub fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Number(a, x), Self::Number(b, y)) => (x, a).cmp(&(y, b)),
            // The two zeros are one, as in every comparison of SQL.
            (Self::Float(a), Self::Float(b)) => (a + 0.0).total_cmp(&(b + 0.0)),
            (Self::Text(a), Self::Text(b)) | (Self::Other(a), Self::Other(b)) => a.cmp(b),
            (Self::Date(a), Self::Date(b)) | (Self::Timestamp(a), Self::Timestamp(b)) => a.cmp(b),
            (Self::List(a), Self::List(b)) => compare_rows(a, b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }
}

pub fn compare_rows(a: &[Value], b: &[Value]) -> Ordering {
    let different = a.iter().zip(b).map(|(a, b)| a.order(b)).find(|order| order.is_ne());
    different.unwrap_or(a.len().cmp(&b.len()))
}

fn parse_number(text: &str) -> Option<Value> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some(number(digits, fraction.len() as i32))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(digits, scale) if *scale > 0 => {
                let all = format!("{:0>width$}", digits.unsigned_abs(), width = *scale as usize + 1);
                let (whole, fraction) = all.split_at(all.len() - *scale as usize);
                write!(f, "{}{whole}.{fraction}", if *digits < 0 { "-" } else { "" })
            }
            Self::Number(digits, scale) => write!(f, "{digits}{}", "0".repeat(scale.unsigned_abs() as usize)),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Date(days) => write!(f, "day {days}"),
            Self::Timestamp(micros) => write!(f, "time {micros}"),
            Self::List(items) => {
                write!(f, "[{}]", items.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
            Self::Other(text) => write!(f, "?{text}"),
        }
    }
}
