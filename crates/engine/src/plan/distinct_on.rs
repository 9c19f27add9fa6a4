//! `SELECT DISTINCT ON (…)`: of the rows with the same keys, the first.
//!
//! DataFusion takes the first value of every column by itself, so that among ties each column may come from another row, and
//! it sorts the rows by the keys where an order from outside is not seen. Here it becomes what it says: rows are numbered
//! within their keys, and those with the number one are kept, which is a top-k per key ([`top`](super::top)). Ties have one
//! outcome, as those of every row number ([`window_order`](super::window_order)).

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, SortExpr, lit,
};

/// Replaces every DISTINCT ON. What has an ORDER BY is in that order, as a sort above it says.
pub(super) fn first_of_each(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Distinct(Distinct::On(distinct)) => Ok(Transformed::yes(first_rows(distinct)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

fn first_rows(distinct: DistinctOn) -> Result<LogicalPlan> {
    let DistinctOn { on_expr, select_expr, sort_expr, input, .. } = distinct;
    // The first of the ORDER BY are the keys: within them all rows are alike.
    let mut sorts = sort_expr.unwrap_or_default();
    let within: Vec<SortExpr> = sorts.split_off(on_expr.len().min(sorts.len()));
    let mut number = row_number().partition_by(on_expr);
    if !within.is_empty() {
        number = number.order_by(within);
    }
    let number = number.build()?;
    let numbered = LogicalPlanBuilder::from(input).window([number])?.build()?;
    let last = numbered.schema().fields().len() - 1;
    let number = Expr::Column(numbered.schema().qualified_field(last).into());
    let mut first = LogicalPlanBuilder::from(numbered).filter(number.lt_eq(lit(1_u64)))?;
    if !sorts.is_empty() {
        first = first.sort(sorts)?;
    }
    first.project(select_expr)?.build()
}
