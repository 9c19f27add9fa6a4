//! Comparisons that mean what they say, where DataFusion's would not.
//!
//! - `CAST(price AS INT) = 2`: its optimizer compares the price itself with 2, although the cast drops digits. Such a cast is put
//!   behind a function that the optimizer does not look into.
//! - `ratio > 0.5`: numbers written with a point are decimals, because money is; a float that meets one would become a decimal
//!   of few digits, or fail to. As elsewhere in SQL, it is the decimal that becomes a float.
//! - `a IS DISTINCT FROM b AND c`: the parser takes `b AND c` for the right side. That is refused.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Decimal128Type, DecimalType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Union, cast, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as SqlExpr, visit_expressions};

use crate::functions::kept;

/// Functions whose result is one of their arguments, all of one type.
const CHOOSING: [&str; 6] = ["coalesce", "greatest", "least", "nullif", "nvl", "nvl2"];

/// Refuses what would be understood otherwise than it is meant.
pub(super) fn check_distinct_from(statement: &Statement) -> Result<()> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let found = visit_expressions(statement.as_ref(), |expr| match expr {
        SqlExpr::IsDistinctFrom(_, right) | SqlExpr::IsNotDistinctFrom(_, right) if is_logical(right) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    if found.is_continue() {
        return Ok(());
    }
    let message = "IS [NOT] DISTINCT FROM would take the AND or OR that follows for its right side; \
                   put it into parentheses: (a IS DISTINCT FROM b) AND …";
    Err(DataFusionError::Plan(message.to_owned()))
}

/// Whether it is a conjunction or disjunction that stands without parentheses.
fn is_logical(expr: &SqlExpr) -> bool {
    use BinaryOperator::{And, Or, Xor};
    matches!(expr, SqlExpr::BinaryOp { op: And | Or | Xor, .. })
}

/// The same plan, in which casts stay and floats are compared as floats.
pub(super) fn exact(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let rewritten = expr.transform_up(|expr| rewritten(expr, &schema))?;
            Ok(rewritten.update_data(|expr| name.restore(expr)))
        })?;
        // What is below may have other types now.
        node.map_data(|node| match node {
            LogicalPlan::Union(union) => union_of_floats(union)?.recompute_schema(),
            node => node.recompute_schema(),
        })
    })?;
    Ok(plan.data)
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

fn rewritten(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let loses = |expr: &Expr, to: &DataType| expr.get_type(schema).is_ok_and(|from| drops_digits(&from, to));
    match &mut expr {
        Expr::Cast(cast) if loses(&cast.expr, cast.field.data_type()) => return Ok(Transformed::yes(kept(expr))),
        Expr::TryCast(cast) if loses(&cast.expr, cast.field.data_type()) => return Ok(Transformed::yes(kept(expr))),
        _ => {}
    }
    let mut alike: Vec<Vec<&mut Expr>> = Vec::new();
    match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => alike.push(vec![left, right]),
        Expr::Between(between) => alike.push(vec![&mut between.expr, &mut between.low, &mut between.high]),
        Expr::InList(list) => alike.push(std::iter::once(&mut *list.expr).chain(&mut list.list).collect()),
        Expr::Case(case) => {
            let (whens, mut thens): (Vec<_>, Vec<_>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (&mut **when, &mut **then)).unzip();
            thens.extend(case.else_expr.as_deref_mut());
            alike.push(thens);
            if let Some(compared) = case.expr.as_deref_mut() {
                alike.push(std::iter::once(compared).chain(whens).collect());
            }
        }
        Expr::ScalarFunction(call) if CHOOSING.contains(&call.func.name()) => {
            alike.push(call.args.iter_mut().collect());
        }
        _ => {}
    }
    let mut any = false;
    for exprs in alike {
        any |= make_floats(exprs, schema)?;
    }
    Ok(if any { Transformed::yes(expr) } else { Transformed::no(expr) })
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
