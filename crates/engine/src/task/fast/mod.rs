//! Plans, made faster: the same plan with operators of ours where they do the same in less time.
//!
//! Every row of every table passes through leaf stages, so what they cost per row is what a job costs; of inner stages those that
//! merge many groups cost as much. Plans are made, shown and cut with DataFusion's operators; only when a stage is about to
//! run are some of them replaced. A replacement gives the same rows, and whatever it does not know stays with DataFusion.

mod aggregate;
mod ahead;
mod calendar;
mod contains;
mod first_rows;
mod held;
mod instead;
mod ranges;
mod sieve;
mod wide;

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;

use aggregate::WordGroups;
use ahead::group_ahead;
use contains::Contains;
use first_rows::sorted_instead_of;
use held::group_by_held;
use instead::Instead;
use ranges::Ranges;
pub(crate) use ranges::column_ranges;
use sieve::Sieve;

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

/// The same plan, for rows of which the groups fit into memory.
pub(super) fn faster(plan: Plan) -> Result<Plan> {
    let plan = plan.transform_up(|node| {
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            let mut predicate = faster_expr(Arc::clone(filter.predicate()))?;
            if let Some(ranges) = Ranges::instead_of(&predicate.data, &filter.input().schema())? {
                predicate = Transformed::yes(ranges);
            }
            if predicate.transformed {
                let filter = FilterExecBuilder::from(filter).with_predicate(predicate.data).build()?;
                return Ok(Transformed::yes(Arc::new(filter)));
            }
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let exprs = projection.expr().iter().map(|column| {
                let expr = faster_expr(Arc::clone(&column.expr))?.data;
                Ok(ProjectionExpr { expr, alias: column.alias.clone() })
            });
            let exprs = exprs.collect::<Result<Vec<_>>>()?;
            return Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(projection.input()))?)));
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
            && let Some(grouped) = group_ahead(aggregate)?.map_or_else(|| group_by_held(aggregate), |g| Ok(Some(g)))?
        {
            return Ok(Transformed::yes(grouped));
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>()
            && let Some(groups) = WordGroups::instead_of(aggregate)?
        {
            return Ok(Transformed::yes(Arc::new(groups)));
        } else if let Some(top) = node.downcast_ref::<PartitionedTopKExec>() {
            let Some(sieve) = Sieve::before(top)? else { return Ok(Transformed::yes(sorted_instead_of(top))) };
            let sieved = replace_children_if_necessary(Arc::clone(&node), vec![Arc::new(sieve)])?;
            let sorted = sieved.downcast_ref::<PartitionedTopKExec>().map(sorted_instead_of);
            return Ok(Transformed::yes(sorted.unwrap_or(sieved)));
        }
        Ok(Transformed::no(node))
    })?;
    Ok(plan.data)
}

/// The same plan, for rows of which the groups may not fit into memory: what cannot spill is replaced.
pub(super) fn spilling(plan: Plan) -> Result<Plan> {
    let plan = plan.transform_up(|node| match node.downcast_ref::<PartitionedTopKExec>() {
        Some(top) => Ok(Transformed::yes(sorted_instead_of(top))),
        None => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

/// The same expression, with parts of it that have a faster form replaced.
fn faster_expr(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        if let Some(calendar) = Instead::<calendar::Part>::of(&expr) {
            return Ok(Transformed::yes(Arc::new(calendar) as Expr));
        }
        if let Some(contains) = Instead::<Contains>::of(&expr) {
            return Ok(Transformed::yes(Arc::new(contains) as Expr));
        }
        Ok(Transformed::no(expr))
    })
}
