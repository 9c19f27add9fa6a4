//! Windows have one outcome, whatever order the rows came in.
//!
//! `row_number() OVER (ORDER BY qty)` leaves open which of two rows with the same quantity comes first. SQL does not say, so it is
//! said here: rows that are equal for a window are taken in the order of all other columns of its input, left to right. The
//! window's own ORDER BY stays as it is, because peers (the same rank, the same RANGE frame) are defined by it; it is the
//! sort below the window that gets longer, or is put in where there was none.
//!
//! Windows whose functions give the same result for all peers in whatever order they come need none of this.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::WindowFrameUnits;
use datafusion::physical_expr::expressions::{Column, IsNullExpr};
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_expr::{AcrossPartitions, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, WindowUDFExpr};

type Plan = Arc<dyn ExecutionPlan>;

/// Window functions that give peers the same result, and look at nothing but how many rows come before.
const RANKS: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

/// Aggregates of which the order of rows makes no difference to the last bit.
const ORDER_FREE: [&str; 12] = [
    "count",
    "distinct_count",
    "sum",
    "min",
    "max",
    "avg",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "exact_percentile",
];

/// How columns are sorted that nothing is said about.
const TIES: SortOptions = SortOptions { descending: false, nulls_first: false };

/// Makes the order below every window total. Comes last: from here on no column is added or taken away.
#[derive(Debug)]
pub(super) struct TotalWindowOrders;

impl PhysicalOptimizerRule for TotalWindowOrders {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let Some(functions) = functions_of(&node) else { return Ok(Transformed::no(node)) };
            let input = Arc::clone(node.children()[0]);
            if functions.iter().all(is_the_same_for_peers) && !cuts_ties(&input) {
                return Ok(Transformed::no(node));
            }
            let input = match total(&input)? {
                Some(input) => input,
                None => sorted(input, &node),
            };
            Ok(Transformed::yes(replace_children_if_necessary(node, vec![input])?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "TotalWindowOrders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn functions_of(node: &Plan) -> Option<&[Arc<dyn WindowExpr>]> {
    let bounded = node.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    bounded.or_else(|| node.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr))
}

/// Whether the result for a row depends on nothing but which rows are before, with and behind it in the window's own ORDER BY.
fn is_the_same_for_peers(function: &Arc<dyn WindowExpr>) -> bool {
    let any = function.as_any();
    if let Some(standard) = any.downcast_ref::<StandardWindowExpr>() {
        let function = standard.get_standard_func_expr();
        return function.as_any().downcast_ref::<WindowUDFExpr>().is_some_and(|f| RANKS.contains(&f.fun().name()));
    }
    let plain = any.downcast_ref::<PlainAggregateWindowExpr>().map(PlainAggregateWindowExpr::get_aggregate_expr);
    let sliding =
        || any.downcast_ref::<SlidingAggregateWindowExpr>().map(SlidingAggregateWindowExpr::get_aggregate_expr);
    let Some(aggregate) = plain.or_else(sliding) else { return false };
    let frame = function.get_window_frame();
    let whole = frame.start_bound.is_unbounded() && frame.end_bound.is_unbounded();
    ORDER_FREE.contains(&aggregate.fun().name()) && (whole || frame.units != WindowFrameUnits::Rows)
}

/// Whether fewer rows than there are may come, cut off in the order of a sort.
fn cuts_ties(plan: &Plan) -> bool {
    if plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>() {
        return plan.fetch().is_some();
    }
    hands_on(plan) && cuts_ties(plan.children()[0])
}

/// Whether an operator works row by row, or in the order of its input, and keeps it.
fn hands_on(plan: &Plan) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || functions_of(plan).is_some()
}

/// The same plan, whose rows come in one order only; `None` if that cannot be had by longer keys of the sort below.
fn total(plan: &Plan) -> Result<Option<Plan>> {
    if let Some(sort) = plan.downcast_ref::<SortExec>() {
        let order = longer(sort.expr().iter().cloned(), sort.input());
        return Ok(order.map(|order| with_order(sort, order)));
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        return total_merge(merge);
    }
    if let Some(top) = plan.downcast_ref::<PartitionedTopKExec>() {
        let is_total = longer(top.expr().iter().cloned(), top.input()).is_some_and(|all| all.len() == top.expr().len());
        return Ok(is_total.then(|| Arc::clone(plan)));
    }
    if !hands_on(plan) {
        return Ok(None);
    }
    let Some(input) = total(plan.children()[0])? else { return Ok(None) };
    Ok(Some(replace_children_if_necessary(Arc::clone(plan), vec![input])?))
}

fn total_merge(merge: &SortPreservingMergeExec) -> Result<Option<Plan>> {
    let Some(order) = longer(merge.expr().iter().cloned(), merge.input()) else { return Ok(None) };
    if let Some(sort) = merge.input().downcast_ref::<SortExec>().filter(|sort| sort.expr() == merge.expr()) {
        let below = with_order(sort, order.clone());
        return Ok(Some(Arc::new(SortPreservingMergeExec::new(order, below).with_fetch(merge.fetch()))));
    }
    let below = total(merge.input())?.unwrap_or_else(|| Arc::clone(merge.input()));
    let together: Plan = Arc::new(CoalescePartitionsExec::new(below));
    Ok(Some(Arc::new(SortExec::new(order, together).with_fetch(merge.fetch()))))
}

fn with_order(sort: &SortExec, order: LexOrdering) -> Plan {
    let longer = SortExec::new(order, Arc::clone(sort.input())).with_fetch(sort.fetch());
    Arc::new(longer.with_preserve_partitioning(sort.preserve_partitioning()))
}

/// The input of a window in the order that it has and the one that the window asks for, and then by all columns.
fn sorted(input: Plan, window: &Plan) -> Plan {
    let mut keys: Vec<PhysicalSortExpr> = Vec::new();
    if let Some(order) = input.properties().output_ordering() {
        keys.extend(order.iter().cloned());
    }
    if let Some(asked) = window.required_input_ordering().into_iter().next().flatten() {
        keys.extend(asked.into_single().into_iter().map(PhysicalSortExpr::from));
    }
    let partitions = input.properties().output_partitioning().partition_count();
    match longer(keys.into_iter(), &input) {
        Some(order) => Arc::new(SortExec::new(order, input).with_preserve_partitioning(partitions > 1)),
        // There are no columns, or they are the same in all rows.
        None => input,
    }
}

/// An order and then all columns of the input that are not in it.
pub(super) fn longer(order: impl Iterator<Item = PhysicalSortExpr>, input: &Plan) -> Option<LexOrdering> {
    let known = input.properties().equivalence_properties();
    let schema: Arc<Schema> = input.schema();
    let columns = schema.fields().iter().enumerate().filter_map(|(place, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), place));
        let constant = known.is_expr_constant(&column);
        (!matches!(constant, Some(AcrossPartitions::Uniform(_)))).then_some((column, field.data_type().is_nested()))
    });
    let mut keys: Vec<PhysicalSortExpr> = order.collect();
    for (column, is_nested) in columns {
        if is_nested && keys.is_empty() {
            // Arrow sorts by lists and structs only beside something else.
            keys.push(PhysicalSortExpr::new(Arc::new(IsNullExpr::new(Arc::clone(&column))), TIES));
        }
        keys.push(PhysicalSortExpr::new(column, TIES));
    }
    LexOrdering::new(keys)
}
