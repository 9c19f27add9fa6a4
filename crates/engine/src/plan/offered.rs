//! Only functions that are known to give one result are offered.
//!
//! An aggregate or a window function whose result depends on the order or the grouping of its rows would make an answer
//! differ from run to run. So each says, in `functions/offered.rs`, why it does not; one that says nothing is refused.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, WindowFunctionDefinition};

use crate::functions::{is_offered, is_offered_in_windows, is_offered_scalar, is_offered_window};

/// An error that names the first function that is not offered.
pub(super) fn check_offered(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                let (name, offered) = match e {
                    Expr::AggregateFunction(call) => (call.func.name(), is_offered(&call.func)),
                    Expr::WindowFunction(call) => match &call.fun {
                        WindowFunctionDefinition::AggregateUDF(function) => {
                            (function.name(), is_offered_in_windows(function))
                        }
                        WindowFunctionDefinition::WindowUDF(function) => (function.name(), is_offered_window(function)),
                    },
                    Expr::ScalarFunction(call) => (call.func.name(), is_offered_scalar(call.func.name())),
                    Expr::HigherOrderFunction(call) => (call.func.name(), is_offered_scalar(call.func.name())),
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                if offered { Ok(TreeNodeRecursion::Continue) } else { Err(refused(name)) }
            })
        })
    })?;
    Ok(())
}

fn refused(name: &str) -> DataFusionError {
    let (reason, cure) = match name {
        "approx_percentile_cont_with_weight" => (
            "its digest depends on the order and the grouping of rows, so that the answer would differ from run to run",
            "repeat rows by their weight, or use percentile_cont",
        ),
        "version" => ("its result depends on the machine", "leave it out"),
        _ => (
            "it is not known to give the same result in whatever order rows come",
            "use one of the functions that the README lists",
        ),
    };
    DataFusionError::Plan(format!("{name}() is not offered: {reason}; {cure}"))
}
