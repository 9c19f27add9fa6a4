//! Windows over the same rows have the same keys, by letter.
//!
//! DataFusion's optimizer takes expressions out that stand twice, and leaves an alias where one stood, but not where an alias is around
//! it already. Of two windows with `PARTITION BY a || b` one then has `x AS "a || b"` and the other one `x`. Its planner asserts that the
//! keys of all windows of a node are equal, and panics where assertions are compiled in.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Window};

/// The optimized plan, without aliases inside of PARTITION BY and ORDER BY of windows.
pub(super) fn plain_window_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up(|node| match node {
        LogicalPlan::Window(Window { input, window_expr, schema }) => {
            let window_expr = window_expr.into_iter().map(with_plain_keys).collect();
            Ok(Transformed::yes(LogicalPlan::Window(Window { input, window_expr, schema })))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The same column, under the same name.
fn with_plain_keys(expr: Expr) -> Expr {
    match expr {
        Expr::Alias(mut alias) => {
            if let Expr::WindowFunction(call) = *alias.expr {
                alias.expr = Box::new(Expr::WindowFunction(Box::new(plain(*call).0)));
            }
            Expr::Alias(alias)
        }
        Expr::WindowFunction(call) => {
            let name = Expr::WindowFunction(call.clone()).schema_name().to_string();
            match plain(*call) {
                (call, true) => Expr::WindowFunction(Box::new(call)).alias(name),
                (call, false) => Expr::WindowFunction(Box::new(call)),
            }
        }
        other => other,
    }
}

/// The call without aliases in its keys, and whether there were any.
fn plain(mut call: WindowFunction) -> (WindowFunction, bool) {
    let mut any = false;
    let sorts = call.params.order_by.iter_mut().map(|sort| &mut sort.expr);
    for key in call.params.partition_by.iter_mut().chain(sorts) {
        let unaliased = std::mem::take(key).unalias_nested();
        any |= unaliased.transformed;
        *key = unaliased.data;
    }
    (call, any)
}
