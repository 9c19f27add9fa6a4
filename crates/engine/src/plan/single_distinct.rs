//! `count(DISTINCT x)` as two groupings one after the other, except beside sums that would not stay exact.
//!
//! DataFusion's rule also adds up sums of the inner groups. Those of floats would be rounded once for each of them, and of two
//! arguments it knows only how to take one apart.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::{ApplyOrder, Optimizer};
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's logical rules, with this one in the place of its own.
pub(super) fn rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let rules = Optimizer::new().rules.into_iter();
    let rules = rules.map(|rule| -> Arc<dyn OptimizerRule + Send + Sync> {
        if rule.name() == SingleDistinctToGroupBy::new().name() {
            Arc::new(ExactSingleDistinct::default())
        } else {
            rule
        }
    });
    rules.collect()
}

#[derive(Debug, Default)]
struct ExactSingleDistinct {
    plain: SingleDistinctToGroupBy,
}

impl OptimizerRule for ExactSingleDistinct {
    fn name(&self) -> &str {
        self.plain.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.plain.apply_order()
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if !stays_exact(aggregate) => Ok(Transformed::no(plan)),
            _ => self.plain.rewrite(plan, config),
        }
    }
}

fn stays_exact(aggregate: &Aggregate) -> bool {
    let schema = aggregate.input.schema();
    aggregate.aggr_expr.iter().all(|expr| match expr {
        Expr::AggregateFunction(call) if call.params.distinct => call.params.args.len() == 1,
        Expr::AggregateFunction(call) if call.func.name() == "sum" => {
            expr.get_type(schema).is_ok_and(|data_type| !data_type.is_floating())
        }
        _ => true,
    })
}
