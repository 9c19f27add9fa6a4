//! `a + b`, `a - b`, `a * b` and `-a` of whole numbers and decimals, whose overflow is an error.
//!
//! DataFusion's own operators wrap around at the end of their type, also where its optimizer computes constants, and let decimals have
//! more than 38 digits. The planner puts these functions in their place wherever the types do not rule an overflow out
//! (`plan/overflow.rs`), so that every operator that evaluates expressions, and the optimizer, gets an error instead.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Scalar};
use datafusion::arrow::compute::kernels::numeric;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType, Field, FieldRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static ADD: LazyLock<ScalarUDF> = LazyLock::new(|| Checked::function(Arithmetic::Add));
static SUBTRACT: LazyLock<ScalarUDF> = LazyLock::new(|| Checked::function(Arithmetic::Subtract));
static MULTIPLY: LazyLock<ScalarUDF> = LazyLock::new(|| Checked::function(Arithmetic::Multiply));
static NEGATE: LazyLock<ScalarUDF> = LazyLock::new(|| Checked::function(Arithmetic::Negate));

/// The most that a decimal of 38 digits can be, without its point.
const MOST: u128 = 10_u128.pow(38) - 1;

/// The checked form of `left op right`; `None` for an operator that has none.
pub(crate) fn checked_binary(left: Expr, op: Operator, right: Expr) -> Option<Expr> {
    let function = match op {
        Operator::Plus => &ADD,
        Operator::Minus => &SUBTRACT,
        Operator::Multiply => &MULTIPLY,
        _ => return None,
    };
    Some(function.call(vec![left, right]))
}

/// The checked form of `-value`.
pub(crate) fn checked_negative(value: Expr) -> Expr {
    NEGATE.call(vec![value])
}

/// The operator that a function stands for, by its name.
pub(crate) fn operator_named(function: &str) -> Option<Operator> {
    let known = [Arithmetic::Add, Arithmetic::Subtract, Arithmetic::Multiply];
    known.into_iter().find(|arithmetic| arithmetic.name() == function).map(Arithmetic::operator)
}

/// Whether a function of this name stands for the sign in front of a number.
pub(crate) fn is_negative_named(function: &str) -> bool {
    function == Arithmetic::Negate.name()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Negate,
}

impl Arithmetic {
    fn name(self) -> &'static str {
        match self {
            Self::Add => "checked_add",
            Self::Subtract => "checked_subtract",
            Self::Multiply => "checked_multiply",
            Self::Negate => "checked_negate",
        }
    }

    fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Subtract | Self::Negate => Operator::Minus,
            Self::Multiply => Operator::Multiply,
        }
    }

    fn compute(self, args: &[&dyn Datum]) -> Result<ArrayRef, ArrowError> {
        match (self, args) {
            (Self::Add, [left, right]) => numeric::add(*left, *right),
            (Self::Subtract, [left, right]) => numeric::sub(*left, *right),
            (Self::Multiply, [left, right]) => numeric::mul(*left, *right),
            (Self::Negate, [value]) => numeric::neg(value.get().0),
            _ => Err(ArrowError::InvalidArgumentError(format!("{} got {} values", self.name(), args.len()))),
        }
    }

    /// The result of one row.
    fn compute_row(self, args: &[&dyn Datum], row: usize) -> Result<ArrayRef, ArrowError> {
        let values = args.iter().map(|arg| {
            let (array, is_scalar) = arg.get();
            array.slice(if is_scalar { 0 } else { row }, 1)
        });
        let values: Vec<ArrayRef> = values.collect();
        let values: Vec<&dyn Datum> = values.iter().map(|value| value as &dyn Datum).collect();
        self.compute(&values)
    }
}

/// How many rows an operation has: a constant has one.
fn rows(args: &[&dyn Datum]) -> usize {
    let of_columns = args.iter().map(|arg| arg.get()).filter(|(_, is_scalar)| !is_scalar).map(|(array, _)| array.len());
    of_columns.max().unwrap_or(1)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    arithmetic: Arithmetic,
    signature: Signature,
}

impl Checked {
    fn function(arithmetic: Arithmetic) -> ScalarUDF {
        ScalarUDF::from(Self { arithmetic, signature: Signature::user_defined(Volatility::Immutable) })
    }

    /// The types that DataFusion gives the two sides of the operator.
    fn with_types<T>(&self, args: &[DataType], then: impl FnOnce(BinaryTypeCoercer<'_>) -> Result<T>) -> Result<T> {
        match args {
            [left, right] => then(BinaryTypeCoercer::new(left, &self.arithmetic.operator(), right)),
            _ => plan_err!("{} takes two values", self.name()),
        }
    }

    /// The results of all rows.
    ///
    /// # Errors
    /// One of them does not fit. Arrow shows decimals without their points, so that they are shown anew.
    fn results(&self, args: &[&dyn Datum]) -> Result<ArrayRef> {
        let results = match self.arithmetic.compute(args) {
            Err(ArrowError::ArithmeticOverflow(text)) => {
                let are_decimals = args.iter().all(|arg| arg.get().0.data_type().is_decimal());
                let fails = |row: &usize| self.arithmetic.compute_row(args, *row).is_err();
                let row = (0..rows(args)).find(|row| are_decimals && fails(row));
                let text = row.map_or(text, |row| self.shown(args, row));
                return Err(ArrowError::ArithmeticOverflow(text).into());
            }
            computed => computed?,
        };
        self.fitting(results, args)
    }

    /// An error where a decimal has more than 38 digits.
    fn fitting(&self, results: ArrayRef, args: &[&dyn Datum]) -> Result<ArrayRef> {
        let Some(decimals) = results.as_primitive_opt::<Decimal128Type>() else { return Ok(results) };
        if decimals.values().iter().all(|value| value.unsigned_abs() <= MOST) {
            return Ok(results);
        }
        // What stands behind a null counts for nothing.
        let long =
            (0..decimals.len()).find(|row| decimals.is_valid(*row) && decimals.value(*row).unsigned_abs() > MOST);
        match long {
            None => Ok(results),
            Some(row) => Err(ArrowError::ArithmeticOverflow(self.shown(args, row)).into()),
        }
    }

    /// The operation on the values of one row, for people.
    fn shown(&self, args: &[&dyn Datum], row: usize) -> String {
        let shown = args.iter().map(|arg| {
            let (array, is_scalar) = arg.get();
            let row = if is_scalar { 0 } else { row };
            match array.as_primitive_opt::<Decimal128Type>() {
                Some(decimals) => {
                    Decimal128Type::format_decimal(decimals.value(row), decimals.precision(), decimals.scale())
                }
                None => String::new(),
            }
        });
        let shown: Vec<String> = shown.collect();
        match shown.as_slice() {
            [value] => format!("-{value}"),
            _ => shown.join(&format!(" {} ", self.arithmetic.operator())),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.arithmetic.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        match self.arithmetic {
            Arithmetic::Negate => Ok(args.to_vec()),
            _ => self.with_types(args, |types| types.get_input_types().map(|(left, right)| vec![left, right])),
        }
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        match (self.arithmetic, args) {
            (Arithmetic::Negate, [of]) => Ok(of.clone()),
            _ => self.with_types(args, |types| types.get_result_type()),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let values = args.args.iter().map(|arg| -> Result<Box<dyn Datum>> {
            Ok(match arg {
                ColumnarValue::Array(array) => Box::new(Arc::clone(array)),
                ColumnarValue::Scalar(scalar) => Box::new(Scalar::new(scalar.to_array()?)),
            })
        });
        let values = values.collect::<Result<Vec<_>>>()?;
        let values: Vec<&dyn Datum> = values.iter().map(AsRef::as_ref).collect();
        let results = self.results(&values)?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(results))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Decimal128Array, Int64Array};

    use super::*;

    fn decimals(values: &[Option<i128>], scale: i8) -> ArrayRef {
        Arc::new(Decimal128Array::from(values.to_vec()).with_precision_and_scale(38, scale).unwrap())
    }

    fn run(arithmetic: Arithmetic, args: &[&dyn Datum]) -> Result<ArrayRef> {
        let checked = Checked { arithmetic, signature: Signature::user_defined(Volatility::Immutable) };
        checked.results(args)
    }

    #[test]
    fn whole_numbers_do_not_leave_64_bits() {
        let most: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(i64::MAX)]));
        let least: ArrayRef = Arc::new(Int64Array::from(vec![i64::MIN]));
        let one = Scalar::new(Arc::new(Int64Array::from(vec![1])) as ArrayRef);
        let two = Scalar::new(Arc::new(Int64Array::from(vec![2])) as ArrayRef);
        for (arithmetic, args) in [
            (Arithmetic::Add, vec![&most as &dyn Datum, &one]),
            (Arithmetic::Multiply, vec![&most, &two]),
            (Arithmetic::Subtract, vec![&least, &one]),
            (Arithmetic::Negate, vec![&least]),
        ] {
            let text = run(arithmetic, &args).unwrap_err().to_string();
            assert!(text.contains("9223372036854775807") || text.contains("9223372036854775808"), "{text}");
        }
        assert_eq!(run(Arithmetic::Subtract, &[&most, &one]).unwrap().null_count(), 1);
    }

    #[test]
    fn decimals_do_not_get_more_than_38_digits() {
        let most = MOST as i128;
        let tenth = Scalar::new(decimals(&[Some(1)], 1));
        for (arithmetic, args) in [
            (Arithmetic::Add, [&decimals(&[None, Some(most)], 1) as &dyn Datum, &tenth]),
            (Arithmetic::Subtract, [&decimals(&[Some(-most), Some(0)], 1), &tenth]),
            (Arithmetic::Multiply, [&decimals(&[Some(5)], 1), &Scalar::new(decimals(&[Some(most / 2)], 0))]),
        ] {
            let text = run(arithmetic, &args).unwrap_err().to_string();
            assert!(text.contains("99999") && text.contains("0."), "{text}");
            assert!(!text.contains("Overflow happened"), "{text}");
        }
        let sum = run(Arithmetic::Add, &[&decimals(&[Some(most - 1)], 1), &tenth]).unwrap();
        assert_eq!(sum.as_primitive::<Decimal128Type>().value(0), most);
    }
}
