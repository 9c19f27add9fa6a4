//! Times are counted in microseconds, everywhere.
//!
//! Columns of files are; DataFusion alone counts nanoseconds in `TIMESTAMP '…'`, in casts, and wherever a time meets a text or a
//! date. Nanoseconds in 64 bits end in the year 2262, so that `t < '2300-01-01'` would fail.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, Union, cast};

use super::alike::{alike, compares};
use super::exact::retyped;

/// The type of times without a zone.
const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The same plan without nanoseconds.
pub(super) fn microseconds(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
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
            LogicalPlan::Union(union) => union_of_times(union)?.recompute_schema(),
            LogicalPlan::Values(values) => retyped(values),
            node => node.recompute_schema(),
        })
    })?;
    Ok(plan.data)
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut expr = match expr {
        Expr::ScalarFunction(call) if call.func.name() == "to_timestamp" => return to_timestamp(call, schema),
        Expr::ScalarFunction(call) if call.func.name() == "date_trunc" => return date_trunc(call, schema),
        expr => expr,
    };
    match &mut expr {
        // A null of VALUES, for which there is no cast.
        Expr::Literal(ScalarValue::TimestampNanosecond(None, zone), metadata) => {
            let null = ScalarValue::TimestampMicrosecond(None, zone.take());
            return Ok(Transformed::yes(Expr::Literal(null, metadata.take())));
        }
        // A column of the query around a subquery, which has no nanoseconds either.
        Expr::OuterReferenceColumn(field, _) => {
            if let Some(micros) = instead_of_nanos(field.data_type()) {
                *field = Arc::new(field.as_ref().clone().with_data_type(micros));
                return Ok(Transformed::yes(expr));
            }
        }
        Expr::Cast(cast) => {
            if let Some(micros) = instead_of_nanos(cast.field.data_type()) {
                cast.field = Arc::new(cast.field.as_ref().clone().with_data_type(micros));
                return Ok(Transformed::yes(expr));
            }
        }
        Expr::TryCast(cast) => {
            if let Some(micros) = instead_of_nanos(cast.field.data_type()) {
                cast.field = Arc::new(cast.field.as_ref().clone().with_data_type(micros));
                return Ok(Transformed::yes(expr));
            }
        }
        Expr::BinaryExpr(binary) if !compares(binary.op) && binary.op != Operator::Minus => {
            return Ok(Transformed::no(expr));
        }
        _ => {}
    }
    let mut any = false;
    for exprs in alike(&mut expr) {
        any |= make_times(exprs, schema);
    }
    Ok(if any { Transformed::yes(expr) } else { Transformed::no(expr) })
}

fn instead_of_nanos(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        _ => None,
    }
}

fn is_date_or_text(data_type: &DataType) -> bool {
    data_type.is_string() || data_type == &DataType::Date32
}

/// Texts and dates that meet a time become times. Returns whether any did.
fn make_times(exprs: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = exprs.iter().map(|expr| expr.get_type(schema).ok()).collect();
    let time = types.iter().flatten().find_map(|t| match t {
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            Some(DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))
        }
        _ => None,
    });
    let Some(time) = time else { return false };
    let mut any = false;
    for (expr, data_type) in exprs.into_iter().zip(types) {
        if data_type.as_ref().is_some_and(is_date_or_text) {
            *expr = cast(std::mem::take(expr), time.clone());
            any = true;
        }
    }
    any
}

/// `to_timestamp(text)` in microseconds, and of a whole number, which counts seconds.
fn to_timestamp(call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let ScalarFunction { func, args } = call;
    let of = args.first().map(|arg| arg.get_type(schema)).transpose()?;
    match (of, <[Expr; 1]>::try_from(args)) {
        (Some(of), Ok([text])) if of.is_string() => Ok(Transformed::yes(cast(text, TIME))),
        (Some(of), Ok([number])) if of.is_integer() => {
            Ok(Transformed::yes(cast(cast(number, DataType::Timestamp(TimeUnit::Second, None)), TIME)))
        }
        (_, Ok([other])) => Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args: vec![other] }))),
        (_, Err(args)) => Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
    }
}

/// `date_trunc` of a date is that of its midnight.
fn date_trunc(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut any = false;
    if let [_, of] = &mut call.args[..]
        && of.get_type(schema)? == DataType::Date32
    {
        *of = cast(std::mem::take(of), TIME);
        any = true;
    }
    let call = Expr::ScalarFunction(call);
    Ok(if any { Transformed::yes(call) } else { Transformed::no(call) })
}

/// Columns of dates and texts become times where one of the others has times.
fn union_of_times(union: Union) -> Result<LogicalPlan> {
    let is_time = |column: usize| {
        let mut types = union.inputs.iter().filter_map(|input| input.schema().fields().get(column));
        types.any(|field| field.data_type() == &TIME)
    };
    let inputs = union.inputs.iter().map(|input| {
        let schema = input.schema();
        let becomes = |column: usize, field: &Field| is_date_or_text(field.data_type()) && is_time(column);
        if !schema.fields().iter().enumerate().any(|(column, field)| becomes(column, field)) {
            return Ok(Arc::clone(input));
        }
        let fields = schema.iter().enumerate().map(|(column, (qualifier, field))| {
            let mut field = Arc::clone(field);
            if becomes(column, &field) {
                field = Arc::new(field.as_ref().clone().with_data_type(TIME));
            }
            (qualifier.cloned(), field)
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
        coerce_plan_expr_for_schema(input.as_ref().clone(), &schema).map(Arc::new)
    });
    let inputs = inputs.collect::<Result<_>>()?;
    Ok(LogicalPlan::Union(Union { inputs, ..union }))
}
