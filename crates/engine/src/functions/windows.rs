//! Aggregates over windows that follow the window's order.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::WindowFunctionDefinition;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawWindowExpr};
use datafusion::prelude::SessionContext;

/// `array_agg` and `string_agg` over a window are DataFusion's, which take rows as they come; ours, which put them in the
/// order of their values, are for groups, and for DISTINCT.
#[derive(Debug)]
struct WindowOrder;

impl ExprPlanner for WindowOrder {
    fn plan_window(&self, mut expr: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        if let WindowFunctionDefinition::AggregateUDF(function) = &mut expr.func_def
            && !expr.distinct
        {
            match function.name() {
                "array_agg" => *function = array_agg_udaf(),
                "string_agg" => *function = string_agg_udaf(),
                _ => {}
            }
        }
        Ok(PlannerResult::Original(expr))
    }
}

pub(super) fn register(context: &SessionContext) {
    let planner = Arc::new(WindowOrder);
    context.state_ref().write().register_expr_planner(planner).expect("a session takes any planner");
}
