//! Every operator gets its rows in the order that it asks for.
//!
//! DataFusion leaves a column out of a sort that is the same in all rows, as `c` is above `WHERE c = ''`. Rules that come later move
//! projections, and then the plan no longer says why the column was left out: the last rule of all would refuse it. Here such a sort gets
//! all keys again.
//!
//! Where a column equals an expression of another, as `s` above `WHERE s = chr(n)`, DataFusion does not even find the order that a sort by
//! the very keys gives. Then the sort is told nothing of what is equal below it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::{LexOrdering, LexRequirement, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::replace_children_if_necessary;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::forget::ForgetExec;

type Plan = Arc<dyn ExecutionPlan>;

/// Sorts what is not known to be in the order that is asked for. Comes last.
#[derive(Debug)]
pub(super) struct RequiredOrders;

impl PhysicalOptimizerRule for RequiredOrders {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let mut any = false;
            let children = node.children().into_iter().zip(node.required_input_ordering());
            let children = children.map(|(child, required)| {
                let Some(required) = required.map(|required| required.into_single()) else {
                    return Ok(Arc::clone(child));
                };
                if child.equivalence_properties().ordering_satisfy_requirement(required.clone())? {
                    return Ok(Arc::clone(child));
                }
                any = true;
                let plan = sorted(child, &required, |below| below);
                if plan.equivalence_properties().ordering_satisfy_requirement(required.clone())? {
                    return Ok(plan);
                }
                Ok(sorted(child, &required, |below| Arc::new(ForgetExec::equalities(below))))
            });
            let children = children.collect::<Result<Vec<_>>>()?;
            match any {
                true => Ok(Transformed::yes(replace_children_if_necessary(node, children)?)),
                false => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "RequiredOrders"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of each partition in this order; a sort that is there already and cuts nothing off is replaced.
fn sorted(plan: &Plan, required: &LexRequirement, under: impl FnOnce(Plan) -> Plan) -> Plan {
    let below = match plan.downcast_ref::<SortExec>().filter(|sort| sort.fetch().is_none()) {
        Some(sort) => sort.input(),
        None => plan,
    };
    let Some(order) = LexOrdering::new(required.iter().cloned().map(PhysicalSortExpr::from)) else {
        return Arc::clone(plan);
    };
    let partitions = plan.output_partitioning().partition_count();
    // What a sort of all partitions into one has below it must not become several.
    let below = if below.output_partitioning().partition_count() == partitions { below } else { plan };
    Arc::new(SortExec::new(order, under(Arc::clone(below))).with_preserve_partitioning(partitions > 1))
}
