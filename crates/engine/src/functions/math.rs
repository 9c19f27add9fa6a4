//! `sin`, `ln`, `power` and their like: one implementation, the same bits on every machine.
//!
//! Rust's own ask the C library of the machine, whose last bit differs from one to the next. These take the crate `libm`,
//! which computes with additions, multiplications and square roots only, all of which processors round alike. Every
//! argument becomes a float, and so is every result: of whole numbers and decimals, too, so that nothing wraps around.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Float64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::{Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use super::exponential;

/// A function of floats.
#[derive(Debug)]
pub(super) struct FloatFunction {
    name: &'static str,
    aliases: Vec<String>,
    formula: Formula,
    signature: Signature,
}

#[derive(Debug, Clone, Copy)]
enum Formula {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> Result<f64>),
    /// log(x) or log(base, x).
    Log,
}

impl PartialEq for FloatFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for FloatFunction {}

impl Hash for FloatFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// All of them.
pub(super) fn all() -> Vec<FloatFunction> {
    let function = |name, aliases: &[&str], formula| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        FloatFunction { name, aliases, formula, signature: Signature::user_defined(Volatility::Immutable) }
    };
    type OfOne = fn(f64) -> f64;
    let one: [(&'static str, OfOne); 19] = [
        ("acos", libm::acos),
        ("acosh", libm::acosh),
        ("asin", libm::asin),
        ("asinh", libm::asinh),
        ("atan", libm::atan),
        ("atanh", libm::atanh),
        ("cbrt", libm::cbrt),
        ("cos", libm::cos),
        ("cosh", exponential::cosh),
        ("cot", |x| 1.0 / libm::tan(x)),
        ("exp", exponential::exp),
        ("ln", libm::log),
        ("log2", libm::log2),
        ("log10", libm::log10),
        ("sin", libm::sin),
        ("sinh", exponential::sinh),
        // Rounded once by every processor; DataFusion's own refuses to be sorted by.
        ("sqrt", f64::sqrt),
        ("tan", libm::tan),
        ("tanh", libm::tanh),
    ];
    let mut all: Vec<FloatFunction> =
        one.into_iter().map(|(name, formula)| function(name, &[], Formula::One(formula))).collect();
    all.push(function("atan2", &[], Formula::Two(|y, x| Ok(libm::atan2(y, x)))));
    all.push(function("power", &["pow"], Formula::Two(power)));
    all.push(function("log", &[], Formula::Log));
    all
}

fn power(base: f64, exponent: f64) -> Result<f64> {
    if base == 0.0 && exponent < 0.0 {
        return exec_err!("zero raised to a negative power is undefined");
    }
    Ok(libm::pow(base, exponent))
}

/// The logarithm of x; powers of two and ten are exact.
fn log(base: f64, x: f64) -> f64 {
    if base == 10.0 {
        libm::log10(x)
    } else if base == 2.0 {
        libm::log2(x)
    } else {
        libm::log(x) / libm::log(base)
    }
}

impl FloatFunction {
    fn takes(&self, arguments: usize) -> bool {
        match self.formula {
            Formula::One(_) => arguments == 1,
            Formula::Two(_) => arguments == 2,
            Formula::Log => arguments == 1 || arguments == 2,
        }
    }

    fn of(&self, args: &[Float64Array], row: usize) -> Result<Option<f64>> {
        if args.iter().any(|column| column.is_null(row)) {
            return Ok(None);
        }
        let arg = |index: usize| args[index].value(row);
        let result = match self.formula {
            Formula::One(f) => f(arg(0)),
            Formula::Two(f) => f(arg(0), arg(1))?,
            Formula::Log if args.len() == 1 => libm::log10(arg(0)),
            Formula::Log => log(arg(0), arg(1)),
        };
        // The sign of NaN is the processor's whim.
        Ok(Some(if result.is_nan() { f64::NAN } else { result }))
    }
}

impl ScalarUDFImpl for FloatFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, args: &[DataType]) -> Result<Vec<DataType>> {
        if !self.takes(args.len()) || !args.iter().all(|t| t.is_numeric() || t.is_null()) {
            let what = match self.formula {
                Formula::One(_) => "a number",
                Formula::Two(_) => "two numbers",
                Formula::Log => "a number, or a base and a number",
            };
            return plan_err!("{} takes {what}", self.name);
        }
        Ok(vec![DataType::Float64; args.len()])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns = args.args.iter().map(|arg| {
            let column = cast(&arg.to_array(rows)?, &DataType::Float64)?;
            Ok(column.as_primitive::<Float64Type>().clone())
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let results = (0..rows).map(|row| self.of(&columns, row)).collect::<Result<Float64Array>>()?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&results, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(results)))
    }
}
