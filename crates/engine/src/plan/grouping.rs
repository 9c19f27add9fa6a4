//! `grouping(x)` finds its `x`.
//!
//! DataFusion looks the argument up among the expressions that are grouped by, as they are written. What was rewritten there
//! has kept its name by an alias ([`exact`](super::exact)), so the argument gets the same one.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};

/// Writes the arguments of `grouping` as what is grouped by.
pub(super) fn grouping_arguments(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => Ok(Transformed::yes(LogicalPlan::Aggregate(with_arguments(aggregate)?))),
        other => Ok(Transformed::no(other)),
    })?;
    Ok(plan.data)
}

fn with_arguments(mut aggregate: Aggregate) -> Result<Aggregate> {
    let keys: Vec<&Expr> =
        aggregate.group_expr.iter().flat_map(parts).filter(|key| matches!(key, Expr::Alias(_))).collect();
    if keys.is_empty() {
        return Ok(aggregate);
    }
    let calls = aggregate.aggr_expr.iter().map(|call| call.clone().transform(|e| Ok(with_aliases(e, &keys))).data());
    aggregate.aggr_expr = calls.collect::<Result<_>>()?;
    Ok(aggregate)
}

/// What is grouped by.
fn parts(group: &Expr) -> Vec<&Expr> {
    match group {
        Expr::GroupingSet(GroupingSet::Rollup(parts) | GroupingSet::Cube(parts)) => parts.iter().collect(),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().flatten().collect(),
        other => vec![other],
    }
}

fn with_aliases(expr: Expr, keys: &[&Expr]) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut call) = expr else { return Transformed::no(expr) };
    if call.func.name() != "grouping" {
        return Transformed::no(Expr::AggregateFunction(call));
    }
    for argument in &mut call.params.args {
        if let Some(key) = keys.iter().find(|key| matches!(key, Expr::Alias(alias) if *alias.expr == *argument)) {
            *argument = (*key).clone();
        }
    }
    Transformed::yes(Expr::AggregateFunction(call))
}
