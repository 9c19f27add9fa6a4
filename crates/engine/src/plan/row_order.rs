//! Aggregates beside each other see their rows in the same order.
//!
//! `first_value(a ORDER BY k)` and `first_value(b ORDER BY k)` are meant to come from one row, and the elements of
//! `array_agg(a)` and `array_agg(b)` to belong together. Each such aggregate settles ties by its own argument; where there are
//! several with the same ORDER BY, each gets the arguments of all of them as further keys, left to right, nulls last.

use datafusion::common::{Result, tree_node::Transformed};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, SortExpr};

use crate::functions::settles_ties_by_value;

/// Extends the orders of aggregates that share one.
pub(super) fn same_rows(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(aggregate) = &plan else { return Ok(Transformed::no(plan)) };
    let shared = shared_orders(aggregate);
    if shared.is_empty() {
        return Ok(Transformed::no(plan));
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let Some(key) = ordered(&expr).map(|call| call.params.order_by.clone()) else {
            return Ok(Transformed::no(expr));
        };
        let Some((_, more)) = shared.iter().find(|(order, _)| *order == key) else { return Ok(Transformed::no(expr)) };
        let name = names.save(&expr);
        Ok(Transformed::yes(name.restore(extended(expr, more))))
    })
}

/// Orders that several aggregates with different arguments have, with those arguments.
fn shared_orders(aggregate: &Aggregate) -> Vec<(Vec<SortExpr>, Vec<Expr>)> {
    let mut orders: Vec<(Vec<SortExpr>, Vec<Expr>)> = Vec::new();
    for call in aggregate.aggr_expr.iter().filter_map(ordered) {
        let Some(argument) = call.params.args.first() else { continue };
        let position = orders.iter().position(|(order, _)| *order == call.params.order_by);
        let position = position.unwrap_or_else(|| {
            orders.push((call.params.order_by.clone(), Vec::new()));
            orders.len() - 1
        });
        let arguments = &mut orders[position].1;
        if !arguments.contains(argument) {
            arguments.push(argument.clone());
        }
    }
    orders.retain(|(_, arguments)| arguments.len() > 1);
    orders
}

/// The aggregate, if ties in its order must be settled. With DISTINCT its argument is the only order there is.
fn ordered(expr: &Expr) -> Option<&AggregateFunction> {
    match expr {
        Expr::Alias(alias) => ordered(&alias.expr),
        Expr::AggregateFunction(call) if settles_ties_by_value(&call.func) && !call.params.distinct => Some(call),
        _ => None,
    }
}

fn extended(expr: Expr, more: &[Expr]) -> Expr {
    match expr {
        Expr::Alias(mut alias) => {
            alias.expr = Box::new(extended(*alias.expr, more));
            Expr::Alias(alias)
        }
        Expr::AggregateFunction(mut call) => {
            let order = &mut call.params.order_by;
            let more = more.iter().filter(|key| order.iter().all(|known| known.expr != **key));
            let more: Vec<SortExpr> = more.map(|key| key.clone().sort(true, false)).collect();
            order.extend(more);
            Expr::AggregateFunction(call)
        }
        other => other,
    }
}
