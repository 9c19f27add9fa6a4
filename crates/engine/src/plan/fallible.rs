//! Which expressions can fail on a value: a division by zero, a text that is no number, a sum that does not fit.
//!
//! Arithmetic that can overflow is a function of its own by then (`functions/checked.rs`), which is not among the sure ones; operators
//! that are left cannot.
//!
//! What is not known here counts as able to fail: it is then evaluated for fewer rows, never for more.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::physical_expr::expressions::{
    BinaryExpr as PhysicalBinary, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
    NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

/// Functions that have a result for all values of their types.
#[rustfmt::skip]
const SURE: [&str; 79] = [
    "acos", "acosh", "array_has", "array_length", "ascii", "asin", "asinh", "atan", "atan2", "atanh",
    "bit_length", "btrim", "cardinality", "cbrt", "ceil", "character_length", "coalesce", "concat", "concat_ws",
    "contains", "cos", "cosh", "cot", "date_part", "date_trunc", "degrees", "ends_with", "exp", "find_in_set",
    "floor", "get_field", "greatest", "initcap", "is_english", "isnan", "iszero", "kept", "language", "least",
    "left", "levenshtein", "ln", "log10", "log2", "lower", "ltrim", "make_array", "named_struct", "nanvl", "nullif",
    "nvl", "nvl2", "octet_length", "pi", "position", "python_list", "radians", "replace", "reverse", "right",
    "round", "rtrim", "sentiment", "signum", "sin", "sinh", "sqrt", "starts_with", "strpos", "struct", "tan",
    "tanh", "translate", "trim", "trunc", "try_to_date", "try_to_timestamp", "upper", "year_of",
];

/// Functions that have one for all values of the first argument, where the others are constants that were looked at when the query was
/// planned.
const SURE_OF_FIRST: [&str; 11] = [
    "lpad",
    "regexp_count",
    "regexp_like",
    "regexp_match",
    "regexp_replace",
    "repeat",
    "rpad",
    "split_part",
    "substr",
    "substring_index",
    "to_char",
];

/// Whether an expression of a plan can fail.
pub(crate) fn can_fail(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let type_of = |expr: &Arc<dyn PhysicalExpr>| expr.data_type(schema).ok();
    let literal = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().map(|l| l.value().clone());
    let fails = if let Some(binary) = expr.downcast_ref::<PhysicalBinary>() {
        fails_as_binary(*binary.op(), type_of(binary.left()), literal(binary.right()))
    } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        !type_of(cast.expr()).is_some_and(|from| always_casts(&from, cast.cast_type()))
    } else if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        let name = call.fun().name();
        !is_sure_abs(name, call.args().first().and_then(type_of))
            && !is_sure(name, call.args().iter().map(|arg| arg.is::<Literal>()))
    } else {
        !(expr.is::<Column>()
            || expr.is::<Literal>()
            || expr.is::<NotExpr>()
            || expr.is::<NegativeExpr>()
            || expr.is::<IsNullExpr>()
            || expr.is::<IsNotNullExpr>()
            || expr.is::<LikeExpr>()
            || expr.is::<InListExpr>()
            || expr.is::<CaseExpr>()
            || expr.is::<TryCastExpr>())
    };
    fails || expr.children().into_iter().any(|child| can_fail(child, schema))
}

/// The same for an expression that is not yet planned.
pub(super) fn may_fail(expr: &Expr, schema: &DFSchema) -> bool {
    let mut found = false;
    let visited = expr.apply(|e| {
        found |= fails_by_itself(e, schema);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || visited.is_err()
}

fn fails_by_itself(expr: &Expr, schema: &DFSchema) -> bool {
    let type_of = |expr: &Expr| expr.get_type(schema).ok();
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let literal = match right.as_ref() {
                Expr::Literal(value, _) => Some(value.clone()),
                _ => None,
            };
            fails_as_binary(*op, type_of(left), literal)
        }
        Expr::Cast(cast) => !type_of(&cast.expr).is_some_and(|from| always_casts(&from, cast.field.data_type())),
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            !is_sure_abs(func.name(), args.first().and_then(type_of))
                && !is_sure(func.name(), args.iter().map(|arg| matches!(arg, Expr::Literal(..))))
        }
        Expr::Alias(_)
        | Expr::Column(_)
        | Expr::OuterReferenceColumn(..)
        | Expr::Literal(..)
        | Expr::Like(_)
        | Expr::Not(_)
        | Expr::IsNotNull(_)
        | Expr::IsNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsNotUnknown(_)
        | Expr::Negative(_)
        | Expr::Between(_)
        | Expr::Case(_)
        | Expr::TryCast(_)
        | Expr::InList(_) => false,
        _ => true,
    }
}

/// The least whole number has no absolute value; all floats and decimals do.
fn is_sure_abs(function: &str, of: Option<DataType>) -> bool {
    function == "abs" && of.is_some_and(|of| of.is_floating() || of.is_decimal())
}

/// Whether a function cannot fail. Of its arguments it is told which ones are constants.
fn is_sure(function: &str, mut constants: impl Iterator<Item = bool>) -> bool {
    SURE.contains(&function) || (SURE_OF_FIRST.contains(&function) && constants.by_ref().skip(1).all(|is| is))
}

fn fails_as_binary(op: Operator, left: Option<DataType>, right: Option<ScalarValue>) -> bool {
    use Operator::{Divide, Modulo, RegexIMatch, RegexMatch, RegexNotIMatch, RegexNotMatch};
    match op {
        Divide | Modulo => {
            // An overflow, too, is one: the least number by minus one.
            let is_good = |divisor: &ScalarValue| match divisor.cast_to(&DataType::Float64) {
                Ok(ScalarValue::Float64(Some(divisor))) => divisor != 0.0 && divisor != -1.0,
                _ => false,
            };
            !left.is_some_and(|left| left.is_floating()) && !right.as_ref().is_some_and(is_good)
        }
        RegexMatch | RegexIMatch | RegexNotMatch | RegexNotIMatch => right.is_none(),
        _ => false,
    }
}

/// Whether every value of a type has one of the other type.
fn always_casts(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Boolean, Date32, Decimal128, Float32, Float64, Int8, Int16, Int32, Int64, Null, Time64, Timestamp, UInt8,
        UInt16, UInt32,
    };
    match (from, to) {
        (from, to) if from == to || from.is_null() => true,
        (Null, _) => true,
        (_, to) if to.is_string() => true,
        (from, Float64) => from.is_numeric() || from == &Boolean,
        (from, Float32) => from.is_integer(),
        (Boolean, to) => to.is_numeric(),
        (Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32, Int64) => true,
        (Int8 | Int16 | UInt8 | UInt16, Int32) => true,
        (from, Decimal128(precision, scale)) if from.is_integer() => i16::from(*precision) - i16::from(*scale) >= 20,
        (Decimal128(p, s), Decimal128(precision, scale)) => {
            scale >= s && i16::from(*precision) - i16::from(*scale) >= i16::from(*p) - i16::from(*s)
        }
        (Timestamp(..), Date32 | Time64(_)) => true,
        (Date32, Timestamp(unit, _)) => *unit != datafusion::arrow::datatypes::TimeUnit::Nanosecond,
        _ => false,
    }
}
