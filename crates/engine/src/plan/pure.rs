//! Answers depend on the data alone: functions that ask a clock or throw dice are refused.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};

/// An error that names the first function whose result may differ from run to run.
pub(super) fn check_pure(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| match e {
                Expr::ScalarFunction(call) if call.func.signature().volatility != Volatility::Immutable => {
                    Err(refused(call.func.name()))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    })?;
    Ok(())
}

fn refused(name: &str) -> DataFusionError {
    let cure = match name {
        "current_time" => "use now(), which is fixed for a job (--now)",
        "now" | "current_date" | "current_timestamp" | "today" => {
            "write a date such as DATE '2024-06-30', or say what it is (\"now\" beside the workload's text)"
        }
        _ => "leave it out",
    };
    DataFusionError::Plan(format!("{name}() would make the answer differ from run to run; {cure}"))
}
