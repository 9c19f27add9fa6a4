//! `INTERSECT ALL` and `EXCEPT ALL` count copies: of three and one equal rows the first gives one, and the second two.
//!
//! DataFusion plans them as a semi or anti join of the rows, which gives three and none. Here the copies of a row are numbered on both
//! sides, and the numbers are compared as well.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder};

/// The same plan, in which these two mean what they say.
pub(super) fn with_copies_counted(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Join(join) if is_of_all_rows(&join) => Ok(Transformed::yes(counted(join)?)),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

/// Whether SQL's planner made the join of an INTERSECT ALL or EXCEPT ALL. Nothing else makes one in which nulls are equal, and without
/// ALL the rows on the left are made distinct first.
fn is_of_all_rows(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && !matches!(*join.left, LogicalPlan::Distinct(_))
}

fn counted(join: Join) -> Result<LogicalPlan> {
    let columns = columns(&join.left);
    let (left, left_copy) = with_copy_numbers(join.left, "__copy_on_the_left")?;
    let (right, right_copy) = with_copy_numbers(join.right, "__copy_on_the_right")?;
    let mut on = join.on;
    on.push((left_copy, right_copy));
    let (kind, constraint, nulls) = (join.join_type, join.join_constraint, join.null_equality);
    let join = Join::try_new(left, right, on, join.filter, kind, constraint, nulls, join.null_aware)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

/// The plan with one column more, which numbers the copies of each row.
fn with_copy_numbers(plan: Arc<LogicalPlan>, name: &str) -> Result<(Arc<LogicalPlan>, Expr)> {
    let mut columns = columns(&plan);
    let number = row_number().partition_by(columns.clone()).build()?;
    let numbered = LogicalPlanBuilder::from(plan).window([number])?.build()?;
    let last = numbered.schema().fields().len() - 1;
    let number = Expr::Column(numbered.schema().qualified_field(last).into());
    columns.push(number.alias(name));
    let named = LogicalPlanBuilder::from(numbered).project(columns)?.build()?;
    Ok((Arc::new(named), Expr::Column(Column::from_name(name))))
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}
