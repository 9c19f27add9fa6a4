//! `row_number() … <= k` as a top-k per key: a heap for each key instead of a sort of everything.
//!
//! DataFusion has a rule for this, but it is an experiment: it takes the place of a column behind a projection for its
//! place before (so that any `column <= 2` may pass for a row number), it forgets other window functions over the same
//! rows (`lead` wants the row behind the k-th), and it fails at an ORDER BY that adds nothing to PARTITION BY. This one
//! uses the same operator where none of that can happen.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::window::{StandardWindowExpr, WindowExpr};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::partitioned_topk::{PartitionedTopKExec, WindowFnKind};
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowUDFExpr};
use datafusion::scalar::ScalarValue;

use super::window_order::longer;

type Plan = Arc<dyn ExecutionPlan>;

/// Puts a top-k under a window function of which only the first k rows are wanted.
#[derive(Debug)]
pub(super) struct TopOfEach;

impl PhysicalOptimizerRule for TopOfEach {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_down(|node| match top_under(&node)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "TopOfEach"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What takes the place of a filter `row number <= k` and the window below it.
fn top_under(node: &Plan) -> Result<Option<Plan>> {
    let Some(filter) = node.downcast_ref::<FilterExec>().filter(|f| f.projection().is_none()) else { return Ok(None) };
    let Some((mut column, most)) = at_most(filter.predicate()) else { return Ok(None) };
    let mut below = filter.input();
    let mut above: Vec<&Plan> = Vec::new();
    while let Some(projection) = below.downcast_ref::<ProjectionExec>() {
        let Some(source) = projection.expr()[column].expr.downcast_ref::<Column>() else { return Ok(None) };
        column = source.index();
        above.push(below);
        below = projection.input();
    }
    let Some(window) = below.downcast_ref::<BoundedWindowAggExec>() else { return Ok(None) };
    let [function] = window.window_expr() else { return Ok(None) };
    let Some(kind) = ranking(function).filter(|_| column == window.input().schema().fields().len()) else {
        return Ok(None);
    };
    let (keys, order) = (function.partition_by(), function.order_by());
    let ascending = keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)));
    let Some(all) = LexOrdering::new(ascending.chain(order.iter().cloned())) else { return Ok(None) };
    // A column that stands twice is in the order once: then keys and order can no longer be told apart.
    if keys.is_empty() || all.len() != keys.len() + order.len() {
        return Ok(None);
    }
    let all = match kind {
        // Which of equal rows are the first is said by their other columns.
        WindowFnKind::RowNumber => longer(all.iter().cloned(), window.input()).unwrap_or(all),
        WindowFnKind::Rank => all,
    };
    if all.len() == keys.len() {
        return Ok(None);
    }
    let top = PartitionedTopKExec::try_new(Arc::clone(window.input()), all, keys.len(), most, kind)?;
    let mut plan = replace_children_if_necessary(Arc::clone(below), vec![Arc::new(top)])?;
    for projection in above.into_iter().rev() {
        plan = replace_children_if_necessary(Arc::clone(projection), vec![plan])?;
    }
    Ok(Some(plan))
}

/// (column, k) of `column <= k`, in all its spellings, for a k of one or more.
fn at_most(condition: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    let comparison = condition.downcast_ref::<BinaryExpr>()?;
    let column = |e: &Arc<dyn PhysicalExpr>| e.downcast_ref::<Column>().map(Column::index);
    let number = |e: &Arc<dyn PhysicalExpr>| match e.downcast_ref::<Literal>()?.value() {
        ScalarValue::UInt64(Some(n)) => usize::try_from(*n).ok(),
        ScalarValue::Int64(Some(n)) => usize::try_from(*n).ok(),
        _ => None,
    };
    let (left, right) = (comparison.left(), comparison.right());
    let (column, most) = match comparison.op() {
        Operator::LtEq => (column(left)?, number(right)?),
        Operator::Lt => (column(left)?, number(right)?.checked_sub(1)?),
        Operator::GtEq => (column(right)?, number(left)?),
        Operator::Gt => (column(right)?, number(left)?.checked_sub(1)?),
        _ => return None,
    };
    (most > 0).then_some((column, most))
}

fn ranking(function: &Arc<dyn WindowExpr>) -> Option<WindowFnKind> {
    let standard = function.as_any().downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr();
    match standard.as_any().downcast_ref::<WindowUDFExpr>()?.fun().name() {
        "row_number" => Some(WindowFnKind::RowNumber),
        "rank" => Some(WindowFnKind::Rank),
        _ => None,
    }
}
