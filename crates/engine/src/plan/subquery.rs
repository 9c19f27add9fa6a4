//! Scalar subqueries as joins, without losing the rule that they give one row.
//!
//! A plan that will be cut cannot hold the value of a subquery in memory that both sides of a cut share, so DataFusion
//! is told to plan such a subquery as a join. That alone would repeat rows where the subquery gives several; here every
//! subquery that might is wrapped into an aggregate that refuses more than one.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, LogicalPlanBuilder, Subquery};

use crate::functions::single_value;

/// Wraps uncorrelated scalar subqueries that are not known to give at most one row.
pub(super) fn guard_scalar_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let guarded = plan.transform_up_with_subqueries(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|e| match e {
                Expr::ScalarSubquery(subquery) if may_repeat(&subquery) => {
                    Ok(Transformed::yes(Expr::ScalarSubquery(guarded(subquery)?)))
                }
                other => Ok(Transformed::no(other)),
            })
        })
    })?;
    Ok(guarded.data)
}

fn may_repeat(subquery: &Subquery) -> bool {
    subquery.outer_ref_columns.is_empty() && !gives_one_row(&subquery.subquery)
}

/// Whether a plan gives one row at most by its shape alone. DataFusion's own `max_rows` is an estimate: it takes
/// `SELECT 1` for no row, so that a union of two such would pass for one.
fn gives_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Values(values) => values.values.len() <= 1,
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Limit(limit) => {
            matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1)))) || gives_one_row(&limit.input)
        }
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(_) => plan.inputs().into_iter().all(gives_one_row),
        _ => false,
    }
}

fn guarded(subquery: Subquery) -> Result<Subquery> {
    let plan = Arc::unwrap_or_clone(subquery.subquery);
    let (qualifier, field) = plan.schema().qualified_field(0);
    let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
    let name = field.name().clone();
    let plan = LogicalPlanBuilder::from(plan)
        .aggregate(Vec::<Expr>::new(), vec![single_value(column).alias(name)])?
        .build()?;
    Ok(Subquery { subquery: Arc::new(plan), ..subquery })
}
