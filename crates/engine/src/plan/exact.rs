//! Comparisons that mean what they say, where DataFusion's would not.
//!
//! - `CAST(price AS INT) = 2`: its optimizer compares the price itself with 2, although the cast drops digits. Such a cast is put
//!   behind a function that the optimizer does not look into.
//! - `ratio > 0.5`: numbers written with a point are decimals, because money is; a float that meets one would become a decimal
//!   of few digits, or fail to. As elsewhere in SQL, it is the decimal that becomes a float.
//! - `a / b` of decimals: its quotient has four digits more and is cut off. Ours has enough of them and is rounded. Products
//!   get no more digits than leave room for the number.
//! - `a + b`, `a * b` that may not fit their type: see [`super::overflow`].
//! - `a SIMILAR TO b`: see [`super::similar`]. Orders of aggregates: see [`super::row_order`].

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator, Union, Values, cast, lit,
};

use super::alike::alike;
use super::overflow::checked;
use super::row_order::same_rows;
use super::similar::standard_pattern;
use crate::functions::{divide, exact_scale, is_long_product, kept, multiply};

/// The same plan, in which casts stay, floats are compared as floats, and so on.
pub(super) fn exact(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let node = same_rows(node)?.data;
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let rewrite = |expr: Expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| rewritten(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        };
        let node = node.map_expressions(|expr| match expr {
            // Each of its expressions is a column by itself, and has the name.
            Expr::GroupingSet(_) => expr.map_children(rewrite),
            expr => rewrite(expr),
        })?;
        // What is below may have other types now.
        node.map_data(|node| match node {
            LogicalPlan::Union(union) => union_of_floats(union)?.recompute_schema(),
            LogicalPlan::Values(values) => retyped(values),
            node => node.recompute_schema(),
        })
    })?;
    Ok(plan.data)
}

/// VALUES whose columns have the types of what stands in them now.
pub(super) fn retyped(values: Values) -> Result<LogicalPlan> {
    LogicalPlanBuilder::values(values.values)?.build()
}

/// Columns of decimals become floats where one of the others has floats.
fn union_of_floats(union: Union) -> Result<LogicalPlan> {
    let is_float = |column: usize| {
        let mut types = union.inputs.iter().filter_map(|input| input.schema().fields().get(column));
        types.any(|field| field.data_type().is_floating())
    };
    let inputs = union.inputs.iter().map(|input| {
        let schema = input.schema();
        let becomes = |column: usize, field: &Field| scale(field.data_type()).is_some() && is_float(column);
        if !schema.fields().iter().enumerate().any(|(column, field)| becomes(column, field)) {
            return Ok(Arc::clone(input));
        }
        let fields = schema.iter().enumerate().map(|(column, (qualifier, field))| {
            let mut field = Arc::clone(field);
            if becomes(column, &field) {
                field = Arc::new(field.as_ref().clone().with_data_type(DataType::Float64));
            }
            (qualifier.cloned(), field)
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
        coerce_plan_expr_for_schema(input.as_ref().clone(), &schema).map(Arc::new)
    });
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(LogicalPlan::Union(Union { inputs, ..union }))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut expr = match standard_pattern(expr) {
        Ok(standard) => return Ok(Transformed::yes(standard)),
        Err(expr) => expr,
    };
    // DataFusion plans these in a way that may be null, and then finds that they may not.
    let is_bool = |of: &Expr| matches!(of.get_type(schema), Ok(DataType::Boolean));
    let compared = |of: Box<Expr>, op, with: bool| {
        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: of, op, right: Box::new(lit(with)) })))
    };
    expr = match expr {
        Expr::IsUnknown(of) => return Ok(Transformed::yes(Expr::IsNull(of))),
        Expr::IsNotUnknown(of) => return Ok(Transformed::yes(Expr::IsNotNull(of))),
        Expr::IsTrue(of) if is_bool(&of) => return compared(of, Operator::IsNotDistinctFrom, true),
        Expr::IsNotTrue(of) if is_bool(&of) => return compared(of, Operator::IsDistinctFrom, true),
        Expr::IsFalse(of) if is_bool(&of) => return compared(of, Operator::IsNotDistinctFrom, false),
        Expr::IsNotFalse(of) if is_bool(&of) => return compared(of, Operator::IsDistinctFrom, false),
        other => other,
    };
    let loses = |expr: &Expr, to: &DataType| expr.get_type(schema).is_ok_and(|from| drops_digits(&from, to));
    match &mut expr {
        Expr::Cast(cast) if loses(&cast.expr, cast.field.data_type()) => return Ok(Transformed::yes(kept(expr))),
        Expr::TryCast(cast) if loses(&cast.expr, cast.field.data_type()) => return Ok(Transformed::yes(kept(expr))),
        _ => {}
    }
    let mut any = round_as_planned(&mut expr, schema);
    for exprs in alike(&mut expr) {
        any |= make_floats(exprs, schema)?;
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Divide, right })
            if decimal_types(&left, &right, schema).is_some() =>
        {
            Ok(Transformed::yes(divide(*left, *right)))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right })
            if decimal_types(&left, &right, schema).is_some_and(|(left, right)| is_long_product(&left, &right)) =>
        {
            Ok(Transformed::yes(multiply(*left, *right)))
        }
        expr => {
            let checked = checked(expr, schema);
            Ok(Transformed { transformed: checked.transformed || any, ..checked })
        }
    }
}

/// Rounding of decimals, with a type that stays. DataFusion takes the digits of `round(x, 1)` from a literal of 32 bits, which it has only
/// after it has decided what the result is compared with. `ceil(0.3)` has one digit more before the point than 0.3.
fn round_as_planned(expr: &mut Expr, schema: &DFSchema) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    let digits = call.args.first().and_then(|of| match of.get_type(schema) {
        Ok(DataType::Decimal128(precision, scale)) => Some((precision, scale)),
        _ => None,
    });
    let Some((precision, scale)) = digits else { return false };
    match (call.func.name(), &mut call.args[..]) {
        ("round", [_, Expr::Literal(places, _)]) => match places {
            ScalarValue::Int64(Some(n)) if i32::try_from(*n).is_ok() => {
                *places = ScalarValue::Int32(i32::try_from(*n).ok());
                true
            }
            _ => false,
        },
        ("ceil" | "floor", [of]) if precision < 38 && scale > 0 => {
            *of = cast(std::mem::take(of), DataType::Decimal128(precision + 1, scale));
            true
        }
        _ => false,
    }
}

/// The types of both sides, if one is a decimal and the other a decimal or a whole number.
fn decimal_types(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<(DataType, DataType)> {
    let (left, right) = (left.get_type(schema).ok()?, right.get_type(schema).ok()?);
    let is_exact = |data_type: &DataType| exact_scale(data_type).is_some() || data_type.is_null();
    let are_decimals = is_exact(&left) && is_exact(&right) && (scale(&left).is_some() || scale(&right).is_some());
    are_decimals.then_some((left, right))
}

fn drops_digits(from: &DataType, to: &DataType) -> bool {
    match (scale(from), scale(to)) {
        (Some(from), Some(to)) => to < from,
        (Some(from), None) => to.is_integer() && from > 0,
        (None, _) => false,
    }
}

/// Digits behind the point, of decimals.
fn scale(data_type: &DataType) -> Option<i8> {
    match data_type {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Some(*scale),
        _ => None,
    }
}

/// If one of them is a float, decimals become floats. Returns whether any did.
fn make_floats(exprs: Vec<&mut Expr>, schema: &DFSchema) -> Result<bool> {
    let types: Vec<Option<DataType>> = exprs.iter().map(|expr| expr.get_type(schema).ok()).collect();
    if !types.iter().flatten().any(DataType::is_floating) {
        return Ok(false);
    }
    let mut any = false;
    for (expr, data_type) in exprs.into_iter().zip(types) {
        if data_type.as_ref().and_then(scale).is_some() {
            *expr = float(std::mem::take(expr));
            any = true;
        }
    }
    Ok(any)
}

fn float(expr: Expr) -> Expr {
    if let Expr::Literal(ScalarValue::Decimal128(Some(value), precision, scale), _) = &expr
        && let Ok(float) = Decimal128Type::format_decimal(*value, *precision, *scale).parse::<f64>()
    {
        return lit(float);
    }
    cast(expr, DataType::Float64)
}
