//! Arithmetic of whole numbers and decimals that says so when a result does not fit.
//!
//! `a + b`, `a - b`, `a * b` and `-a` become functions that check (`functions/checked.rs`), unless what is known of both sides
//! rules an overflow out: `CAST(x AS INT) * 1000` fits 64 bits for every x, and decimals of few digits have room. What cannot
//! overflow stays as it is: it is no slower, and needs no guard ([`fallible`](super::fallible)).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::{checked_binary, checked_negative};

/// The most digits of a decimal.
const MAX_DIGITS: i16 = 38;
/// Digits of the decimal that a whole number becomes where it meets one.
const WHOLE_DIGITS: i16 = 20;

/// Checks what has got its types only by coercion, such as columns of a UNION.
#[derive(Debug)]
pub(super) struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = plan.transform_up_with_subqueries(|node| {
            let schema = merge_schema(&node.inputs());
            let names = NamePreserver::new(&node);
            let check = |expr: Expr| {
                let name = names.save(&expr);
                let checked = expr.transform_up(|e| Ok(checked(e, &schema)))?;
                Ok(if checked.transformed { checked.update_data(|expr| name.restore(expr)) } else { checked })
            };
            node.map_expressions(|expr| match expr {
                Expr::GroupingSet(_) => expr.map_children(check),
                expr => check(expr),
            })
        })?;
        Ok(plan.data)
    }

    fn name(&self) -> &str {
        "CheckedArithmetic"
    }
}

/// The expression, checked if its result may not fit. Its operands have been looked at before.
pub(super) fn checked(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if fits(&expr, schema) {
        return Transformed::no(expr);
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match checked_binary(left.as_ref().clone(), op, right.as_ref().clone()) {
                Some(checked) => Transformed::yes(checked),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
            }
        }
        Expr::Negative(value) => Transformed::yes(checked_negative(*value)),
        other => Transformed::no(other),
    }
}

/// Whether an expression is no arithmetic of whole numbers or decimals, or has a result for all values.
fn fits(expr: &Expr, schema: &DFSchema) -> bool {
    let Ok(result) = expr.get_type(schema) else { return true };
    let type_of = |expr: &Expr| expr.get_type(schema).unwrap_or(DataType::Null);
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Plus | Operator::Minus | Operator::Multiply),
            right,
        }) => {
            if result.is_decimal() {
                return digits(*op, &type_of(left), &type_of(right)) <= MAX_DIGITS;
            }
            !result.is_integer() || is_within(bounds(expr, schema), &result)
        }
        // Decimals have as many numbers below zero as above.
        Expr::Negative(_) => !result.is_integer() || is_within(bounds(expr, schema), &result),
        _ => true,
    }
}

/// How many digits the longest result of two decimals has.
fn digits(op: Operator, left: &DataType, right: &DataType) -> i16 {
    let parts = |data_type: &DataType| match data_type {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => (i16::from(*p), i16::from(*s)),
        DataType::Null => (1, 0),
        _ => (WHOLE_DIGITS, 0),
    };
    let ((p, s), (q, t)) = (parts(left), parts(right));
    match op {
        Operator::Multiply => p + q,
        _ => (p - s).max(q - t) + s.max(t) + 1,
    }
}

/// The least and the greatest whole number that an expression can be.
type Bounds = Option<(i128, i128)>;

fn is_within(bounds: Bounds, data_type: &DataType) -> bool {
    match (bounds, range(data_type)) {
        (Some((least, most)), Some((low, high))) => low <= least && most <= high,
        _ => false,
    }
}

/// All numbers of a type.
fn range(data_type: &DataType) -> Bounds {
    Some(match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        DataType::UInt64 => (0, u64::MAX.into()),
        DataType::Null => (0, 0),
        _ => return None,
    })
}

fn bounds(expr: &Expr, schema: &DFSchema) -> Bounds {
    let known = match expr {
        Expr::Literal(value, _) => literal(value),
        Expr::Alias(alias) => bounds(&alias.expr, schema),
        Expr::Cast(cast) => bounds(&cast.expr, schema).filter(|found| is_within(Some(*found), cast.field.data_type())),
        Expr::Negative(value) => bounds(value, schema).map(|(least, most)| (-most, -least)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let pair = bounds(left, schema).zip(bounds(right, schema));
            pair.and_then(|(left, right)| bounds_of(*op, left, right))
        }
        _ => None,
    };
    known.or_else(|| expr.get_type(schema).ok().as_ref().and_then(range))
}

fn literal(value: &ScalarValue) -> Bounds {
    if value.is_null() {
        return Some((0, 0));
    }
    let number = match value.data_type() {
        DataType::UInt64 => match value {
            ScalarValue::UInt64(Some(number)) => i128::from(*number),
            _ => return None,
        },
        whole if whole.is_integer() => match value.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(number))) => i128::from(number),
            _ => return None,
        },
        _ => return None,
    };
    Some((number, number))
}

fn bounds_of(op: Operator, (a, b): (i128, i128), (c, d): (i128, i128)) -> Bounds {
    match op {
        Operator::Plus => Some((a.checked_add(c)?, b.checked_add(d)?)),
        Operator::Minus => Some((a.checked_sub(d)?, b.checked_sub(c)?)),
        Operator::Multiply => {
            let corners = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            Some((corners.into_iter().min()?, corners.into_iter().max()?))
        }
        // A rest is smaller than what it was divided by.
        Operator::Modulo if c == d && c != 0 => Some((-(c.abs() - 1), c.abs() - 1)),
        _ => None,
    }
}
