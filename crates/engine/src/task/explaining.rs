//! Errors of operators whose expressions are not named while they run: sorts, windows, the keys of groups.
//!
//! Orders are compared by their expressions, so these cannot be wrapped beforehand (`failing.rs`). When a task has failed with nothing
//! but "division by zero", the rows below each operator are made once more, and its expressions are evaluated for them.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::execution_plan::reset_plan_states;

use super::failing::Named;
use super::run::run_plan;
use crate::error::{about_value, named_value_error};
use crate::plan::can_fail;

/// The error of a plan that was run in this context, with the expression where it lacks that.
pub(super) fn explained(
    error: DataFusionError,
    plan: &Arc<dyn ExecutionPlan>,
    context: &Arc<TaskContext>,
) -> DataFusionError {
    let lacks_expression = matches!(error.find_root(), DataFusionError::ArrowError(..));
    if !lacks_expression || about_value(&error, String::new).is_none() {
        return error;
    }
    first_failure(plan, context).unwrap_or(error)
}

/// The error of the lowest operator whose expressions cannot take its rows.
fn first_failure(plan: &Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>) -> Option<DataFusionError> {
    let children = plan.children();
    if let Some(below) = children.iter().find_map(|child| first_failure(child, context)) {
        return Some(below);
    }
    let [input] = children[..] else { return None };
    let exprs = failing_expressions(plan, input)?;
    if exprs.is_empty() {
        return None;
    }
    let input = reset_plan_states(Arc::clone(input)).ok()?;
    let evaluated = run_plan(&input, context, |batch| exprs.iter().try_for_each(|e| e.evaluate(&batch).map(drop)));
    evaluated.err().filter(|error| named_value_error(error).is_some())
}

/// The expressions of an operator over its input that can fail, with names. `None`: it has none over the rows of its input.
fn failing_expressions(plan: &Arc<dyn ExecutionPlan>, input: &Arc<dyn ExecutionPlan>) -> Option<Vec<Named>> {
    let merges_states = |aggregate: &AggregateExec| aggregate.mode().input_mode() != AggregateInputMode::Raw;
    if plan.downcast_ref::<AggregateExec>().is_some_and(merges_states) {
        return None;
    }
    let schema = input.schema();
    let mut exprs = Vec::new();
    let mut take = |expr: &Arc<dyn PhysicalExpr>| {
        if !expr.is::<Named>() && expr.data_type(&schema).is_ok() && can_fail(expr, &schema) {
            exprs.push(Named(Arc::clone(expr)));
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply_expressions(&mut take).ok()?;
    Some(exprs)
}
