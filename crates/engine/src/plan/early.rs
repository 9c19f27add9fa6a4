//! Which stages can answer before their input is complete.
//!
//! A group that has passed `count(*) > 5000` stays past it, whatever comes. So where a stage ends an aggregation,
//! keeps groups by such conditions only, and shows nothing but the groups' keys, every row it makes of part of its input
//! is a row of the final answer.

use std::sync::Arc;

use datafusion::logical_expr::{Operator, SetMonotonicity};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::utils::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use tenaz_core::TaskSet;

use super::source::EdgeExec;
use super::{Edge, PlannedQuery, Stage};

/// Marks the stages that may answer early.
pub(super) fn mark(stages: &mut [Stage], queries: &[PlannedQuery]) {
    for index in 0..stages.len() {
        let stage = &stages[index];
        let Edge::Results(query) = stage.edge else { continue };
        let unordered = !queries[usize::from(query.0)].ordered;
        let [edge] = stage.reads[..] else { continue };
        let merged = stages[usize::from(edge.0)].compaction.is_some();
        let inner = stage.tasks == TaskSet::PerPartition && stage.broadcasts.is_empty();
        let certain = unordered && merged && inner && only_grows(&stage.plan);
        stages[index].early = certain;
    }
}

fn only_grows(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut shown: Vec<usize> = (0..plan.schema().fields().len()).collect();
    let mut conditions: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    let mut node = plan;
    loop {
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            // A condition above a projection would have to be rewritten: the planner puts conditions below.
            let Some(below) = renumber(&shown, projection).filter(|_| conditions.is_empty()) else { return false };
            shown = below;
            node = projection.input();
        } else if let Some(filter) = node.downcast_ref::<FilterExec>() {
            if let Some(projection) = filter.projection() {
                shown = shown.iter().map(|&i| projection[i]).collect();
            }
            conditions.extend(split_conjunction(filter.predicate()).into_iter().cloned());
            node = filter.input();
        } else {
            break;
        }
    }
    let Some(aggregate) = node.downcast_ref::<AggregateExec>() else { return false };
    let keys = aggregate.group_expr().expr().len();
    let is_final = matches!(aggregate.mode(), AggregateMode::Final | AggregateMode::FinalPartitioned);
    is_final
        && aggregate.input().is::<EdgeExec>()
        && !conditions.is_empty()
        && shown.iter().all(|&column| column < keys)
        && conditions.iter().all(|condition| stays_true(condition, aggregate, keys))
}

/// The columns below a projection that these columns above it stand for.
fn renumber(columns: &[usize], projection: &ProjectionExec) -> Option<Vec<usize>> {
    let below = |&i: &usize| projection.expr().get(i)?.expr.downcast_ref::<Column>().map(Column::index);
    columns.iter().map(below).collect()
}

/// Whether a condition on a group, once true, stays true as rows are added.
fn stays_true(part: &Arc<dyn PhysicalExpr>, aggregate: &AggregateExec, keys: usize) -> bool {
    let mut columns = datafusion::physical_expr::utils::collect_columns(part).into_iter();
    if columns.by_ref().all(|c| c.index() < keys) {
        return true;
    }
    let Some(comparison) = part.downcast_ref::<BinaryExpr>() else { return false };
    let column = |e: &Arc<dyn PhysicalExpr>| e.downcast_ref::<Column>().map(Column::index);
    let literal = |e: &Arc<dyn PhysicalExpr>| e.is::<Literal>();
    let (index, grows) = match (column(comparison.left()), column(comparison.right())) {
        (Some(index), None) if literal(comparison.right()) => {
            (index, matches!(comparison.op(), Operator::Gt | Operator::GtEq))
        }
        (None, Some(index)) if literal(comparison.left()) => {
            (index, matches!(comparison.op(), Operator::Lt | Operator::LtEq))
        }
        _ => return false,
    };
    let Some(function) = index.checked_sub(keys).and_then(|i| aggregate.aggr_expr().get(i)) else { return false };
    let monotonic = function.fun().inner().set_monotonicity(function.field().data_type());
    grows && monotonic == SetMonotonicity::Increasing
}
