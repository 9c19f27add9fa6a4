//! One order, whatever order the rows came in.
//!
//! An answer must not depend on threads, chunks or partitions. So the outermost ORDER BY, and any that a LIMIT cuts, is
//! made total: ties are broken by all other columns, left to right. A LIMIT without an order takes the first rows of the
//! files where rows come straight from a table, and the first that a recursion makes that reads no table (which may have no
//! end); above anything else (a grouping, a join) it takes the first in the order of their columns.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, RecursiveQuery, Sort, SortExpr};

/// Makes the orders of a query total; tells whether the query has an outermost order.
pub(super) fn total_orders(plan: LogicalPlan) -> Result<(LogicalPlan, bool)> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Limit(Limit { skip, fetch, input }) = node else { return Ok(Transformed::no(node)) };
        let (input, ordered) = outermost(Arc::unwrap_or_clone(input));
        let input = if ordered || comes_in_file_order(&input) { input } else { sorted(input) };
        Ok(Transformed::yes(LogicalPlan::Limit(Limit { skip, fetch, input: Arc::new(input) })))
    })?;
    Ok(outermost(plan.data))
}

/// Makes the outermost order total, if there is one.
fn outermost(plan: LogicalPlan) -> (LogicalPlan, bool) {
    match plan {
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            let more: Vec<SortExpr> =
                columns(input.schema()).filter(|c| expr.iter().all(|e| e.expr != c.expr)).collect();
            expr.extend(more);
            (LogicalPlan::Sort(Sort { expr, input, fetch }), true)
        }
        LogicalPlan::Projection(mut projection) => {
            let (input, ordered) = outermost(Arc::unwrap_or_clone(projection.input));
            projection.input = Arc::new(input);
            (LogicalPlan::Projection(projection), ordered)
        }
        LogicalPlan::Limit(mut limit) => {
            let (input, ordered) = outermost(Arc::unwrap_or_clone(limit.input));
            limit.input = Arc::new(input);
            // Rows that a LIMIT without an order chose are shown as those of any unordered answer.
            (LogicalPlan::Limit(limit), ordered)
        }
        other => (other, false),
    }
}

fn comes_in_file_order(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) | LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::RecursiveQuery(recursion) => reads_no_table(recursion),
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Limit(_) => {
            plan.inputs().into_iter().all(comes_in_file_order)
        }
        _ => false,
    }
}

/// Whether a recursion makes its rows, one after the other, of nothing but constants and of the rows before.
fn reads_no_table(recursion: &RecursiveQuery) -> bool {
    fn is_made(plan: &LogicalPlan, of: Option<&str>) -> bool {
        match plan {
            LogicalPlan::TableScan(scan) => of == Some(scan.table_name.table()),
            _ => comes_in_file_order(plan) && plan.inputs().into_iter().all(|input| is_made(input, of)),
        }
    }
    is_made(&recursion.static_term, None) && is_made(&recursion.recursive_term, Some(&recursion.name))
}

fn sorted(plan: LogicalPlan) -> LogicalPlan {
    let expr: Vec<SortExpr> = columns(plan.schema()).collect();
    if expr.is_empty() {
        return plan;
    }
    LogicalPlan::Sort(Sort { expr, input: Arc::new(plan), fetch: None })
}

/// All columns, ascending.
fn columns(schema: &DFSchema) -> impl Iterator<Item = SortExpr> + '_ {
    schema
        .iter()
        .map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name())).sort(true, false))
}
