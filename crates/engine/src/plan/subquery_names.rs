//! Columns of subqueries have names of their own.
//!
//! A subquery becomes a join. For one that asks for columns of the query around it DataFusion adds the columns of its conditions to its
//! SELECT: `(SELECT max(v) AS k FROM t WHERE t.k = o.k)` then has two columns called `k`, and is refused. So is a join of rows that have a
//! column `k` of no table with a subquery that gives a `k`.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Subquery};

use super::subquery_value::is_subquery;

/// Renames what such subqueries give.
pub(super) fn name_subqueries_apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut names = 0;
    plan.transform_up_with_subqueries(|node| {
        let asks = |expr: &Expr| expr.exists(|e| Ok(is_subquery(e))).expect("the visitor never fails");
        if !node.expressions().iter().any(asks) {
            return Ok(Transformed::no(node));
        }
        let saved = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = saved.save(&expr);
            let expr = expr.transform_up(|e| apart(e, &mut names))?;
            Ok(expr.update_data(|expr| name.restore(expr)))
        })
    })
    .data()
}

fn apart(mut expr: Expr, names: &mut usize) -> Result<Transformed<Expr>> {
    let (subquery, is_value) = match &mut expr {
        Expr::ScalarSubquery(subquery) => (subquery, true),
        Expr::InSubquery(within) => (&mut within.subquery, false),
        Expr::Exists(exists) => (&mut exists.subquery, false),
        _ => return Ok(Transformed::no(expr)),
    };
    if subquery.outer_ref_columns.is_empty() && !is_value {
        return Ok(Transformed::no(expr));
    }
    let is_alone = subquery.outer_ref_columns.is_empty();
    let mut plan = renamed(Arc::clone(&subquery.subquery), is_value, names)?;
    let is_one = plan.schema().fields().len() == 1;
    if is_alone && is_one && Arc::ptr_eq(&plan, &subquery.subquery) {
        // A LIMIT, a union and the like. What stands for itself may get a SELECT more.
        *names += 1;
        let column = Expr::Column(plan.schema().qualified_field(0).into()).alias(format!("__of_subquery_{names}"));
        plan = Arc::new(LogicalPlanBuilder::from(plan).project([column])?.build()?);
    }
    let outer_ref_columns = std::mem::take(&mut subquery.outer_ref_columns);
    *subquery = Subquery { subquery: plan, outer_ref_columns, spans: subquery.spans.clone() };
    Ok(Transformed::yes(expr))
}

/// The plan, in whose SELECT everything has a new name, but for plain columns, unless it is a value.
fn renamed(plan: Arc<LogicalPlan>, is_value: bool, names: &mut usize) -> Result<Arc<LogicalPlan>> {
    match plan.as_ref() {
        LogicalPlan::Projection(projection) => {
            let exprs = projection.expr.iter().cloned().map(|expr| match expr {
                Expr::Column(_) if !is_value => expr,
                other => {
                    *names += 1;
                    other.unalias().alias(format!("__of_subquery_{names}"))
                }
            });
            let projection = Projection::try_new(exprs.collect(), Arc::clone(&projection.input))?;
            Ok(Arc::new(LogicalPlan::Projection(projection)))
        }
        LogicalPlan::Distinct(Distinct::All(input)) => {
            Ok(Arc::new(LogicalPlan::Distinct(Distinct::All(renamed(Arc::clone(input), is_value, names)?))))
        }
        _ => Ok(plan),
    }
}
