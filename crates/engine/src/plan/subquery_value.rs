//! Subqueries as values, in forms that DataFusion plans as joins.
//!
//! | written | becomes |
//! |---|---|
//! | `EXISTS (q)` | `(SELECT count(*) FROM q) > 0` |
//! | `x IN (q)` | whether a row of q equals x; null if none does and x or a row of q is null |
//! | `(SELECT y FROM t WHERE t.k = outer.k)` | the only one of the rows, or an error ([`only_value`]) |
//! | `(SELECT y … ORDER BY z LIMIT 1)` | `first_value(y ORDER BY z, …)` |

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, Spans};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, FetchType, Limit, LogicalPlan, LogicalPlanBuilder, SkipType, Sort, SortExpr, Subquery, lit,
    not, when,
};

use crate::functions::{only_value, two_values};

/// A subquery as an expression whose only subqueries are scalar ones that give one row; others stay as they are. `schema` is that of
/// the rows for which it is asked.
pub(super) fn value_of(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(exists) => Ok(Transformed::yes(exists_value(exists)?)),
        Expr::InSubquery(within) => Ok(Transformed::yes(in_value(within, schema)?)),
        Expr::ScalarSubquery(subquery) => one_row(subquery),
        other => Ok(Transformed::no(other)),
    }
}

/// Whether it is one of these.
pub(super) fn is_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_))
}

fn exists_value(exists: Exists) -> Result<Expr> {
    let found = count_of(without_limit(exists.subquery.subquery)?, lit(1_i64))?.gt(lit(0_i64));
    Ok(if exists.negated { not(found) } else { found })
}

fn in_value(within: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let InSubquery { expr, subquery, negated } = within;
    let rows = subquery.subquery;
    let column = Expr::Column(rows.schema().qualified_field(0).into());
    let outside = expr
        .as_ref()
        .clone()
        .transform(|e| match e {
            Expr::Column(column) => {
                let field = Arc::clone(schema.field_from_column(&column)?);
                Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
            }
            other => Ok(Transformed::no(other)),
        })
        .data()?;
    let equal = LogicalPlanBuilder::from(Arc::clone(&rows)).filter(column.clone().eq(outside))?.build()?;
    let is_there = count_of(Arc::new(equal), lit(1_i64))?.gt(lit(0_i64));
    let rows_at_all = count_of(Arc::clone(&rows), lit(1_i64))?;
    let not_null = count_of(rows, column)?;
    let unknown = || Expr::Literal(ScalarValue::Boolean(None), None);
    let value = when(is_there, lit(true))
        .when(expr.is_null().and(rows_at_all.clone().gt(lit(0_i64))), unknown())
        .when(rows_at_all.gt(not_null), unknown())
        .otherwise(lit(false))?;
    Ok(if negated { not(value) } else { value })
}

/// `(SELECT count(of) FROM rows)`
fn count_of(rows: Arc<LogicalPlan>, of: Expr) -> Result<Expr> {
    aggregated(rows, count_udaf().call(vec![of]))
}

/// `(SELECT aggregate FROM rows)`
fn aggregated(rows: Arc<LogicalPlan>, aggregate: Expr) -> Result<Expr> {
    let plan = LogicalPlanBuilder::from(rows).aggregate(Vec::<Expr>::new(), vec![aggregate])?.build()?;
    let outer_ref_columns = plan.all_out_ref_exprs();
    Ok(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }))
}

/// Whether there are rows does not depend on a LIMIT, nor on an order.
fn without_limit(plan: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    match plan.as_ref() {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => without_limit(Arc::clone(&sort.input)),
        LogicalPlan::Limit(limit) if keeps_a_row(limit)? => without_limit(Arc::clone(&limit.input)),
        _ => Ok(plan),
    }
}

fn keeps_a_row(limit: &Limit) -> Result<bool> {
    let some = !matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0)) | FetchType::UnsupportedExpr);
    Ok(some && matches!(limit.get_skip_type()?, SkipType::Literal(0)))
}

/// A subquery that hangs on the query around it gives one row: by an aggregate of all columns, or made so here.
fn one_row(subquery: Subquery) -> Result<Transformed<Expr>> {
    if subquery.outer_ref_columns.is_empty() || is_aggregate(&subquery.subquery) {
        return Ok(Transformed::no(Expr::ScalarSubquery(subquery)));
    }
    let plan = Arc::clone(&subquery.subquery);
    if let LogicalPlan::Limit(limit) = plan.as_ref() {
        let is_first = matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1)))
            && matches!(limit.get_skip_type()?, SkipType::Literal(0));
        return match is_first {
            true => Ok(Transformed::yes(first_of(&limit.input)?)),
            false => Ok(Transformed::no(Expr::ScalarSubquery(subquery))),
        };
    }
    let column = Expr::Column(plan.schema().qualified_field(0).into());
    Ok(Transformed::yes(only_value(aggregated(plan, two_values(column))?)))
}

fn is_aggregate(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) | LogicalPlan::Filter(_) => {
            plan.inputs().into_iter().all(is_aggregate)
        }
        _ => false,
    }
}

/// The first value of the only column of rows that are in an order, or in the order of their columns.
fn first_of(rows: &Arc<LogicalPlan>) -> Result<Expr> {
    let (value, order, input) = match rows.as_ref() {
        LogicalPlan::Projection(projection) => match (&projection.expr[..], projection.input.as_ref()) {
            ([value], LogicalPlan::Sort(Sort { expr, input, fetch: None })) => {
                (value.clone().unalias(), expr.clone(), Arc::clone(input))
            }
            _ => (column(rows), Vec::new(), Arc::clone(rows)),
        },
        LogicalPlan::Sort(Sort { expr, input, fetch: None }) => (column(input), expr.clone(), Arc::clone(input)),
        _ => (column(rows), Vec::new(), Arc::clone(rows)),
    };
    let mut order: Vec<SortExpr> = order;
    for (qualifier, field) in input.schema().iter() {
        let by = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        if order.iter().all(|already| already.expr != by) {
            order.push(by.sort(true, false));
        }
    }
    aggregated(input, first_value_udaf().call(vec![value]).order_by(order).build()?)
}

fn column(plan: &Arc<LogicalPlan>) -> Expr {
    Expr::Column(plan.schema().qualified_field(0).into())
}
