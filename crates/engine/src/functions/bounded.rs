//! Functions whose result can be far larger than their arguments, with a bound on it that is checked before any of it is made.
//!
//! `repeat('a', 100000000)` is 100 MB in the optimizer already, which computes what is constant. Each of these functions says
//! how large its result would be; a value over [`MAX_VALUE_BYTES`], or values of one batch over [`MAX_BATCH_BYTES`], are refused.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::prelude::SessionContext;

use crate::limits::{MAX_BATCH_BYTES, MAX_VALUE_BYTES};
use crate::stop;

/// A pattern is taken to be found at one of so many places.
const MATCHED_SHARE: usize = 64;
/// So many comparisons count as much as a byte that is made.
const COMPARED_SHARE: usize = 64;

/// How large a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Growth {
    /// The bytes of the first argument times the second.
    Times,
    /// As many characters as the second argument says.
    Padded,
    /// As many numbers as lie between the first two arguments.
    Series,
    /// As many elements as the second argument says.
    Elements,
    /// The bytes of the first, with the third for each of the second.
    Replaced,
    /// The same, where nobody knows how often the second is found: it counts as less.
    Matched,
    /// The bytes of all of them.
    Joined,
    /// The elements of the first, with the second between them.
    Separated,
    /// Nothing large, but each character or element of one is compared with each of the other.
    Compared,
}

const BOUNDED: [(&str, Growth); 15] = [
    ("repeat", Growth::Times),
    ("lpad", Growth::Padded),
    ("rpad", Growth::Padded),
    ("range", Growth::Series),
    ("generate_series", Growth::Series),
    ("array_repeat", Growth::Times),
    ("array_resize", Growth::Elements),
    ("replace", Growth::Replaced),
    ("regexp_replace", Growth::Matched),
    ("array_to_string", Growth::Separated),
    ("levenshtein", Growth::Compared),
    ("array_has_all", Growth::Compared),
    ("array_has_any", Growth::Compared),
    ("concat", Growth::Joined),
    ("concat_ws", Growth::Joined),
];

/// Puts bounded functions into the place of those that DataFusion has.
pub(super) fn register(context: &SessionContext) {
    for (name, growth) in BOUNDED {
        let known = context.state().scalar_functions().get(name).map(Arc::clone);
        if let Some(function) = known {
            context.register_udf(ScalarUDF::from(Bounded { function, growth }));
        }
    }
}

/// A function with a bound on its result.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    function: Arc<ScalarUDF>,
    growth: Growth,
}

impl Bounded {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let is_constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { args.number_rows };
        let values = args.args.iter().map(Argument::of).collect::<Result<Vec<_>>>()?;
        let sizes = self.sizes(&values, rows, Growth::at_most);
        let Sizes { largest, total } = if sizes.fit() { sizes } else { self.sizes(&values, rows, Growth::exactly) };
        if largest > MAX_VALUE_BYTES {
            return Err(self.too_large(largest, "a value", MAX_VALUE_BYTES));
        }
        if total > MAX_BATCH_BYTES {
            return Err(self.too_large(total, &format!("the values of {rows} rows"), MAX_BATCH_BYTES));
        }
        stop::count_constant(total)
    }

    fn sizes(&self, values: &[Argument<'_>], rows: usize, of: fn(Growth, &[Argument<'_>], usize) -> usize) -> Sizes {
        let sizes = (0..rows).map(|row| of(self.growth, values, row));
        sizes.fold(Sizes::default(), |sizes, bytes| Sizes {
            largest: sizes.largest.max(bytes),
            total: sizes.total.saturating_add(bytes),
        })
    }

    fn too_large(&self, bytes: usize, what: &str, limit: usize) -> DataFusionError {
        let (name, limit) = (self.function.name(), limit >> 20);
        DataFusionError::Execution(format!(
            "{name} would make about {bytes} bytes, and the limit for {what} is {limit} MiB; make shorter values, or fewer of them"
        ))
    }
}

/// The sizes of the values of one batch.
#[derive(Debug, Clone, Copy, Default)]
struct Sizes {
    largest: usize,
    total: usize,
}

impl Sizes {
    fn fit(self) -> bool {
        self.largest <= MAX_VALUE_BYTES && self.total <= MAX_BATCH_BYTES
    }
}

/// An argument, as far as its size counts.
enum Argument<'a> {
    Scalar(&'a ScalarValue),
    Array(Arc<dyn Array>),
}

impl<'a> Argument<'a> {
    fn of(value: &'a ColumnarValue) -> Result<Self> {
        Ok(match value {
            ColumnarValue::Scalar(value) => Self::Scalar(value),
            ColumnarValue::Array(array) if array.data_type().is_integer() => {
                Self::Array(cast(array, &DataType::Int64)?)
            }
            ColumnarValue::Array(array) => Self::Array(Arc::clone(array)),
        })
    }

    /// The bytes of a text; of something else about what it takes in memory.
    fn bytes(&self, row: usize) -> usize {
        match self {
            Self::Scalar(value) => match value.try_as_str() {
                Some(text) => text.map_or(0, str::len),
                None => value.size(),
            },
            Self::Array(array) if array.is_null(row) => 0,
            Self::Array(array) => match array.data_type() {
                DataType::Utf8 => array.as_string::<i32>().value_length(row) as usize,
                DataType::LargeUtf8 => array.as_string::<i64>().value_length(row) as usize,
                DataType::Utf8View => array.as_string_view().views()[row] as u32 as usize,
                _ => array.get_array_memory_size() / array.len().max(1),
            },
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Scalar(value) => value.try_as_str().flatten(),
            Self::Array(array) if array.is_null(row) => None,
            Self::Array(array) => match array.data_type() {
                DataType::Utf8 => Some(array.as_string::<i32>().value(row)),
                DataType::LargeUtf8 => Some(array.as_string::<i64>().value(row)),
                DataType::Utf8View => Some(array.as_string_view().value(row)),
                _ => None,
            },
        }
    }

    fn whole(&self, row: usize) -> Option<i64> {
        match self {
            Self::Scalar(value) => match value.cast_to(&DataType::Int64) {
                Ok(ScalarValue::Int64(value)) => value,
                _ => None,
            },
            Self::Array(array) if array.data_type() == &DataType::Int64 && !array.is_null(row) => {
                Some(array.as_primitive::<Int64Type>().value(row))
            }
            Self::Array(array) => {
                let value = ScalarValue::try_from_array(array, row).ok()?;
                Argument::Scalar(&value).whole(0)
            }
        }
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Scalar(value) => value.data_type(),
            Self::Array(array) => array.data_type().clone(),
        }
    }

    /// The step of a series, in the unit of its ends.
    fn step(&self, row: usize, of: &DataType) -> f64 {
        let value = match self {
            Self::Scalar(value) => (*value).clone(),
            Self::Array(array) => ScalarValue::try_from_array(array, row).unwrap_or(ScalarValue::Null),
        };
        let ScalarValue::IntervalMonthDayNano(Some(step)) = value else {
            return self.whole(row).map_or(1.0, |step| step as f64);
        };
        let days = f64::from(step.months) * 28.0 + f64::from(step.days);
        let nanoseconds = days * 86_400e9 + step.nanoseconds as f64;
        match of {
            DataType::Date32 => nanoseconds / 86_400e9,
            DataType::Timestamp(TimeUnit::Second, _) => nanoseconds / 1e9,
            DataType::Timestamp(TimeUnit::Millisecond, _) => nanoseconds / 1e6,
            DataType::Timestamp(TimeUnit::Microsecond, _) => nanoseconds / 1e3,
            _ => nanoseconds,
        }
    }
}

impl Growth {
    /// How many bytes the result has for this row at most. Arguments that are missing or null make nothing large.
    fn at_most(self, args: &[Argument<'_>], row: usize) -> usize {
        let bytes = |place: usize| args.get(place).map_or(0, |arg| arg.bytes(row));
        let count = |place: usize| args.get(place).and_then(|arg| arg.whole(row)).map_or(0, |n| n.max(0) as usize);
        match self {
            Self::Times => bytes(0).saturating_mul(count(1)),
            Self::Padded => count(1),
            Self::Elements => count(1).saturating_mul(size_of::<i64>()),
            Self::Series => series_elements(args, row).saturating_mul(size_of::<i64>()),
            Self::Replaced => {
                let found = if bytes(1) == 0 { 0 } else { bytes(0) / bytes(1) };
                bytes(0).saturating_add(found.saturating_mul(bytes(2)))
            }
            Self::Matched => bytes(0).saturating_mul(bytes(2)) / MATCHED_SHARE,
            Self::Joined => (0..args.len()).map(bytes).fold(0, usize::saturating_add),
            Self::Separated => bytes(0).saturating_add((bytes(0) / size_of::<i64>()).saturating_mul(bytes(1))),
            Self::Compared => bytes(0).saturating_mul(bytes(1)) / COMPARED_SHARE,
        }
    }

    /// The same, counted where that makes a difference.
    fn exactly(self, args: &[Argument<'_>], row: usize) -> usize {
        match (self, args) {
            (Self::Replaced, [text, from, to]) => match (text.text(row), from.text(row)) {
                (Some(text), Some(from)) if !from.is_empty() => {
                    text.len().saturating_add(text.matches(from).count().saturating_mul(to.bytes(row)))
                }
                _ => text.bytes(row),
            },
            _ => self.at_most(args, row),
        }
    }
}

fn series_elements(args: &[Argument<'_>], row: usize) -> usize {
    let (start, end) = match args {
        [end] => (Some(0), end.whole(row)),
        [start, end, ..] => (start.whole(row), end.whole(row)),
        [] => (None, None),
    };
    let (Some(start), Some(end)) = (start, end) else { return 0 };
    let of = args.first().map_or(DataType::Null, Argument::data_type);
    let step = args.get(2).map_or(1.0, |step| step.step(row, &of));
    let elements = (end as f64 - start as f64) / step;
    // A step of zero is refused by the function itself, one in the other direction makes nothing.
    if elements.is_finite() && elements > 0.0 { elements as usize } else { 0 }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.function.is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.function.invoke_with_args(args)
    }

    /// What DataFusion would put in its place has no bound.
    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Original(args))
    }

    fn short_circuits(&self) -> bool {
        self.function.short_circuits()
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.function.preserves_lex_ordering(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn asked(sql: &str) -> Result<(), String> {
        use futures::FutureExt;
        let context = SessionContext::new();
        crate::functions::register(&context);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answered = runtime.block_on(async { context.sql(sql).await?.collect().await }.map(|done| done.map(drop)));
        answered.map_err(|error| error.to_string())
    }

    #[test]
    fn what_would_be_too_large_is_refused_before_it_is_made() {
        for call in [
            "repeat('a', 100000000)",
            "lpad('a', 2000000000)",
            "rpad('a', 2000000000, 'xy')",
            "range(1, 100000000000)",
            "generate_series(1, 100000000000)",
            "range(TIMESTAMP '2000-01-01', TIMESTAMP '2020-01-01', INTERVAL '1 microsecond')",
            "array_repeat(1, 2000000000)",
            "array_resize(make_array(1), 2000000000)",
            "replace(repeat('a', 10000), 'a', repeat('b', 10000))",
            "regexp_replace(repeat('a', 1000000), 'a', repeat('b', 10000), 'g')",
            "array_to_string(range(1, 1000000), repeat('b', 1000000))",
            "concat(repeat('a', 10000000), repeat('b', 10000000))",
            "levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
        ] {
            let error = asked(&format!("SELECT {call}")).expect_err(call);
            let name = call.split('(').next().unwrap();
            assert!(error.contains(&format!("{name} would make about")) && error.contains("16 MiB"), "{error}");
        }
    }

    #[test]
    fn many_large_values_of_one_batch_are_refused() {
        let error = asked("SELECT length(repeat('a', v::BIGINT * 0 + 1000000)) FROM unnest(range(0, 1000)) AS t(v)");
        let error = error.unwrap_err();
        assert!(error.contains("the values of 1000 rows is 256 MiB"), "{error}");
    }

    #[test]
    fn usual_calls_give_what_they_gave() {
        for call in [
            "repeat('ab', 3)",
            "repeat('a', -1)",
            "lpad('a', 5)",
            "range(5)",
            "range(5, 1, -1)",
            "generate_series(DATE '2024-01-01', DATE '2024-03-01', INTERVAL '1 month')",
            "array_repeat('x', 3)",
            "replace(repeat('a b', 1000000), ' ', '')",
            "replace(repeat('a', 10000000), 'x', 'yyyy')",
            "concat('a', NULL, 'b')",
            "concat_ws('-', 'a', 'b')",
            "levenshtein('kitten', 'sitting')",
        ] {
            assert_eq!(asked(&format!("SELECT {call}")), Ok(()), "{call}");
        }
    }
}
