//! `a / b` and `a * b` of decimals and whole numbers: enough digits, rounded once, half away from zero.
//!
//! A quotient has nine digits more behind the point than the longer of the two, up to 18; that is what an average has:
//! `sum(x) / count(x)` is `avg(x)`. A product has all its digits; where they might be more than 38, it has up to 24 behind the
//! point, so that there is room left before it. Results of more than 38 digits are errors.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, Decimal128Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use num_bigint::{BigInt, Sign};

const MAX_PRECISION: u8 = 38;
/// Digits that a quotient has more than its operands, and the most that it gets so.
const MORE_DIGITS: i8 = 9;
const QUOTIENT_DIGITS: i8 = 18;
/// The most digits behind the point that a product gets by multiplying.
const PRODUCT_DIGITS: i8 = 24;

static DIVIDE: LazyLock<ScalarUDF> = LazyLock::new(|| DecimalFunction::function(Operation::Divide));
static MULTIPLY: LazyLock<ScalarUDF> = LazyLock::new(|| DecimalFunction::function(Operation::Multiply));

/// `divide(over, under)`
pub(crate) fn divide(over: Expr, under: Expr) -> Expr {
    DIVIDE.call(vec![over, under])
}

/// `multiply(a, b)`
pub(crate) fn multiply(a: Expr, b: Expr) -> Expr {
    MULTIPLY.call(vec![a, b])
}

/// Whether a product may need more than 38 digits and has more behind the point than it may have.
pub(crate) fn is_long_product(a: &DataType, b: &DataType) -> bool {
    let digits = |data_type: &DataType| match data_type {
        DataType::Decimal128(precision, _) => *precision,
        DataType::Decimal32(precision, _) | DataType::Decimal64(precision, _) => *precision,
        _ => 20,
    };
    let scale = |data_type: &DataType| exact_scale(data_type).unwrap_or(0);
    digits(a) + digits(b) > MAX_PRECISION && scale(a) + scale(b) > PRODUCT_DIGITS
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Divide,
    Multiply,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalFunction {
    operation: Operation,
    signature: Signature,
}

impl DecimalFunction {
    fn function(operation: Operation) -> ScalarUDF {
        ScalarUDF::from(Self { operation, signature: Signature::user_defined(Volatility::Immutable) })
    }

    fn result_scale(&self, a: i8, b: i8) -> i8 {
        let longer = a.max(b).max(0);
        match self.operation {
            Operation::Divide => (longer + MORE_DIGITS).min(QUOTIENT_DIGITS).max(longer),
            Operation::Multiply => (a + b).min(PRODUCT_DIGITS).max(longer),
        }
    }
}

/// Digits behind the point, of a number that is not a float.
pub(crate) fn exact_scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        whole if whole.is_integer() => Some(0),
        _ => None,
    }
}

impl ScalarUDFImpl for DecimalFunction {
    fn name(&self) -> &str {
        match self.operation {
            Operation::Divide => "divide",
            Operation::Multiply => "multiply",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        let as_decimal = |data_type: &DataType| match data_type {
            DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) if *s >= 0 => {
                Ok(DataType::Decimal128(*p, *s))
            }
            decimal if decimal.is_decimal() => {
                Ok(DataType::Decimal128(MAX_PRECISION, exact_scale(decimal).unwrap_or(0).max(0)))
            }
            whole if whole.is_integer() => Ok(DataType::Decimal128(20, 0)),
            DataType::Null => Ok(DataType::Decimal128(1, 0)),
            other => plan_err!("a decimal cannot be divided or multiplied by {other}"),
        };
        args.iter().map(as_decimal).collect()
    }

    fn return_type(&self, args: &[DataType]) -> Result<DataType> {
        match (args.first().and_then(exact_scale), args.get(1).and_then(exact_scale)) {
            (Some(over), Some(under)) => Ok(DataType::Decimal128(MAX_PRECISION, self.result_scale(over, under))),
            _ => plan_err!("only decimals and whole numbers are divided and multiplied so"),
        }
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let column = |index: usize| -> Result<Decimal128Array> {
            let column = args.args[index].to_array(rows)?;
            let column = match column.data_type() {
                DataType::Decimal128(..) => column,
                _ => cast(&column, &DataType::Decimal128(20, 0))?,
            };
            Ok(column.as_primitive::<Decimal128Type>().clone())
        };
        let (a, b) = (column(0)?, column(1)?);
        let scale = self.result_scale(a.scale(), b.scale());
        // What makes units of the result: a quotient is multiplied by a power of ten, a product divided by one.
        let shift = match self.operation {
            Operation::Divide => scale - a.scale() + b.scale(),
            Operation::Multiply => a.scale() + b.scale() - scale,
        };
        let shift = u32::from(shift.unsigned_abs());
        let results = a.iter().zip(&b).map(|pair| match (pair, self.operation) {
            ((Some(over), Some(under)), Operation::Divide) => quotient(over, under, shift).map(Some),
            ((Some(a), Some(b)), Operation::Multiply) => product(a, b, shift).map(Some),
            _ => Ok(None),
        });
        let results = results.collect::<Result<Decimal128Array>>()?;
        let results = results.with_data_type(DataType::Decimal128(MAX_PRECISION, scale));
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(results)))
    }
}

/// over · 10^shift / under, rounded half away from zero.
fn quotient(over: i128, under: i128, shift: u32) -> Result<i128> {
    if under == 0 {
        return Err(ArrowError::DivideByZero.into());
    }
    let small = 10_i128.checked_pow(shift).and_then(|times| over.checked_mul(times)).and_then(|over| {
        let (quotient, rest) = (over.checked_div(under)?, over.checked_rem(under)?);
        let up = rest.unsigned_abs() >= under.unsigned_abs() - rest.unsigned_abs();
        quotient.checked_add(if up { over.signum() * under.signum() } else { 0 })
    });
    fitting(small.or_else(|| large_quotient(over, under, shift)), "quotient")
}

/// a · b / 10^shift, rounded half away from zero.
fn product(a: i128, b: i128, shift: u32) -> Result<i128> {
    let whole = BigInt::from(a) * b;
    fitting(rounded(whole, &BigInt::from(10).pow(shift)), "product")
}

fn fitting(result: Option<i128>, what: &str) -> Result<i128> {
    match result.filter(|result| result.unsigned_abs() < 10_u128.pow(MAX_PRECISION.into())) {
        Some(result) => Ok(result),
        None => exec_err!("a {what} does not fit 38 digits; CAST(… AS DOUBLE) one of the numbers"),
    }
}

/// A ratio, rounded half away from zero; `under` is positive.
fn rounded(over: BigInt, under: &BigInt) -> Option<i128> {
    // (2a + b) / 2b, cut off, is a / b rounded half up.
    let magnitude = BigInt::from(over.magnitude().clone());
    let quotient = i128::try_from((magnitude * 2_u8 + under) / (under * 2_u8)).ok()?;
    Some(if over.sign() == Sign::Minus { -quotient } else { quotient })
}

/// The same where the numerator is too large on the way.
fn large_quotient(over: i128, under: i128, shift: u32) -> Option<i128> {
    let over = BigInt::from(over) * BigInt::from(10).pow(shift);
    rounded(if under < 0 { -over } else { over }, &BigInt::from(under.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_quotient_is_rounded_half_away_from_zero() {
        assert_eq!(quotient(10, 3, 9).expect("fits"), 3_333_333_333);
        assert_eq!(quotient(20, -3, 0).expect("fits"), -7);
        assert_eq!(quotient(5, 2, 0).expect("fits"), 3);
        assert_eq!(quotient(-5, 2, 0).expect("fits"), -3);
        assert_eq!(quotient(1, 3, 0).expect("fits"), 0);
        assert_eq!(quotient(0, -7, 9).expect("fits"), 0);
    }

    #[test]
    fn what_is_too_large_on_the_way_is_right_at_the_end() {
        let large = 10_i128.pow(37);
        assert_eq!(quotient(large, large, 18).expect("fits"), 10_i128.pow(18));
        assert_eq!(quotient(-large, 3 * large, 18).expect("fits"), -333_333_333_333_333_333);
        assert!(quotient(large, 1, 18).is_err());
        assert!(quotient(1, 0, 9).expect_err("zero").to_string().contains("ivide by zero"));
    }

    #[test]
    fn a_product_is_rounded_half_away_from_zero() {
        assert_eq!(product(25, 1, 1).expect("fits"), 3);
        assert_eq!(product(-25, 1, 1).expect("fits"), -3);
        assert_eq!(product(10_i128.pow(30), 10_i128.pow(30), 24).expect("fits"), 10_i128.pow(36));
        assert!(product(10_i128.pow(30), 10_i128.pow(30), 2).is_err());
    }

    proptest! {
        #[test]
        fn both_ways_agree(over in any::<i64>(), under in any::<i64>(), shift in 0_u32..18) {
            prop_assume!(under != 0);
            let (over, under) = (i128::from(over), i128::from(under));
            prop_assert_eq!(quotient(over, under, shift).expect("fits"), large_quotient(over, under, shift).expect("fits"));
        }
    }
}
