//! When two plans do the same work.
//!
//! Equal stages run once, so the comparison must be sound: what an operator shows of itself, plus what it does not show
//! but works by. It must also be the same in every process, so no debug text of a hash map may be part of it. Operators
//! that are not known here are never shared.

use std::fmt::Write;
use std::sync::Arc;

use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::partitioned_topk::PartitionedTopKExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, WindowExpr, displayable};

use super::source::{EdgeExec, ScanExec};

/// A text that two plans share only if they do the same work; `None` if that cannot be told.
pub(super) fn structure(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let mut key = displayable(plan.as_ref()).one_line().to_string();
    for field in plan.schema().fields() {
        let _ = write!(key, "|{}:{}:{}", field.name(), field.data_type(), field.is_nullable());
    }
    key.push_str(&hidden_part(plan)?);
    key.push('(');
    for child in plan.children() {
        key.push_str(&structure(child)?);
        key.push(',');
    }
    key.push(')');
    Some(key)
}

/// What a known operator works by and does not show.
fn hidden_part(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let mut hidden = String::new();
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        let _ = write!(hidden, "|{:?} {:?}", scan.table, scan.columns);
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        for (call, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
            let arguments: Vec<String> = call.expressions().iter().map(ToString::to_string).collect();
            let orders: Vec<String> = call.order_bys().iter().map(ToString::to_string).collect();
            let filter = filter.as_ref().map(ToString::to_string);
            let flags = (call.is_distinct(), call.ignore_nulls(), call.is_reversed());
            let _ = write!(hidden, "|{}{arguments:?}{orders:?}{filter:?}{flags:?}", call.fun().name());
        }
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        let _ = write!(hidden, "|{:?}{:?}", join.filter().map(|f| f.column_indices()), join.null_equality());
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        let _ = write!(hidden, "|{:?}", join.filter().map(|f| f.column_indices()));
    } else if let Some(window) = plan.downcast_ref::<WindowAggExec>() {
        hidden = windows(window.window_expr());
    } else if let Some(window) = plan.downcast_ref::<BoundedWindowAggExec>() {
        hidden = windows(window.window_expr());
    } else if let Some(unnest) = plan.downcast_ref::<UnnestExec>() {
        let _ = write!(hidden, "|{:?}{:?}", unnest.list_column_indices(), unnest.struct_column_indices());
        let _ = write!(hidden, "{}", unnest.options().preserve_nulls());
    } else if !shows_all(plan) {
        return None;
    }
    Some(hidden)
}

fn shows_all(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<EdgeExec>()
        || plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<SortExec>()
        || plan.is::<PartitionedTopKExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || plan.is::<UnionExec>()
        || plan.is::<InterleaveExec>()
        || plan.is::<CrossJoinExec>()
        || plan.is::<CoalescePartitionsExec>()
}

fn windows(expressions: &[Arc<dyn WindowExpr>]) -> String {
    let mut text = String::new();
    for expression in expressions {
        let arguments: Vec<String> = expression.expressions().iter().map(ToString::to_string).collect();
        let keys: Vec<String> = expression.partition_by().iter().map(ToString::to_string).collect();
        let orders: Vec<String> = expression.order_by().iter().map(ToString::to_string).collect();
        let frame = expression.get_window_frame();
        let _ = write!(text, "|{}{arguments:?}{keys:?}{orders:?}{frame}", expression.name());
    }
    text
}
