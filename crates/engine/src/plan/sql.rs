//! One query's text to one physical plan, with mistakes shown at their place.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Column, DataFusionError, Diagnostic, SchemaError};
use datafusion::logical_expr::{Expr, LogicalPlan, Sort};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use futures::FutureExt;

use super::dear::dear_filters_last;
use super::subquery::guard_scalar_subqueries;
use crate::error::plain;
use crate::workload::{Query, Workload};
use crate::{Error, nearest};

pub(super) struct PlannedSql {
    pub(super) physical: Arc<dyn ExecutionPlan>,
    pub(super) schema: SchemaRef,
    pub(super) ordered: bool,
}

pub(super) fn plan(context: &SessionContext, workload: &Workload, query: &Query) -> Result<PlannedSql, Error> {
    // Planning awaits nothing outside: all tables are in memory, so one poll always finishes it.
    let planned = plan_async(context, query).now_or_never();
    let planned = planned.expect("planning over in-memory tables never waits");
    planned.map_err(|e| wrong(workload, query, &e))
}

async fn plan_async(context: &SessionContext, query: &Query) -> Result<PlannedSql, DataFusionError> {
    let state = context.state();
    let text = query.sql.trim().trim_end_matches(';');
    let logical = state.create_logical_plan(text).await?;
    if !matches!(
        logical,
        LogicalPlan::Projection(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Unnest(_)
    ) {
        return Err(DataFusionError::Plan("only queries (SELECT …, WITH …, VALUES …) can be asked".to_owned()));
    }
    let logical = guard_scalar_subqueries(dear_filters_last(logical)?)?;
    let (logical, has_order) = total_order(logical);
    let schema = Arc::new(logical.schema().as_arrow().clone());
    let optimized = state.optimize(&logical)?;
    let physical = state.query_planner().create_physical_plan(&optimized, &state).await?;
    Ok(PlannedSql { physical, schema, ordered: query.ordered.unwrap_or(has_order) && has_order })
}

/// Makes the outermost ORDER BY total: ties are broken by all other columns, left to right. So the answer has one
/// order, whatever order the rows came in.
fn total_order(plan: LogicalPlan) -> (LogicalPlan, bool) {
    match plan {
        LogicalPlan::Sort(Sort { mut expr, input, fetch }) => {
            for (qualifier, field) in input.schema().iter() {
                let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
                if field.data_type().is_nested() || expr.iter().any(|sort| sort.expr == column) {
                    continue;
                }
                expr.push(column.sort(true, false));
            }
            (LogicalPlan::Sort(Sort { expr, input, fetch }), true)
        }
        LogicalPlan::Projection(mut projection) => {
            let (input, has_order) = total_order(Arc::unwrap_or_clone(projection.input));
            projection.input = Arc::new(input);
            (LogicalPlan::Projection(projection), has_order)
        }
        LogicalPlan::Limit(mut limit) => {
            let (input, has_order) = total_order(Arc::unwrap_or_clone(limit.input));
            limit.input = Arc::new(input);
            (LogicalPlan::Limit(limit), has_order)
        }
        LogicalPlan::SubqueryAlias(alias) => (LogicalPlan::SubqueryAlias(alias), false),
        other => (other, false),
    }
}

/// A planning error in the user's words: where, what, and the nearest names.
pub(super) fn wrong(workload: &Workload, query: &Query, error: &DataFusionError) -> Error {
    let mut message = parser_message(error).unwrap_or_else(|| plain(error));
    let mut place = String::new();
    if let Some(span) = error.diagnostic().and_then(|d: &Diagnostic| d.span) {
        place = format!(":{}:{}", span.start.line, span.start.column);
    }
    if let Some((line, column)) = parser_place(&message) {
        place = format!(":{line}:{column}");
        message = message.split(" at Line:").next().unwrap_or(&message).to_owned();
    }
    if let Some(better) = missing_column(error).or_else(|| missing_table(workload, &message)) {
        message = better;
    }
    Error::Sql { query: query.origin.clone(), place, message }
}

/// What the parser says; DataFusion would show it as Rust's debug output.
fn parser_message(error: &DataFusionError) -> Option<String> {
    let DataFusionError::SQL(parser, _) = error.find_root() else { return None };
    let text = parser.to_string();
    Some(text.strip_prefix("sql parser error: ").unwrap_or(&text).to_owned())
}

/// sqlparser puts the place at the end of its text.
fn parser_place(message: &str) -> Option<(u64, u64)> {
    let rest = message.split(" at Line: ").nth(1)?;
    let (line, rest) = rest.split_once(", Column: ")?;
    let column: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((line.parse().ok()?, column.parse().ok()?))
}

fn missing_column(error: &DataFusionError) -> Option<String> {
    let DataFusionError::SchemaError(schema_error, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = schema_error.as_ref() else { return None };
    let names: Vec<&str> = valid_fields.iter().map(|c| c.name.as_str()).collect();
    let close = nearest(&field.name, names.iter().copied());
    let cure = if close.is_empty() {
        let mut all = names.clone();
        all.dedup();
        all.truncate(12);
        format!("there are {}", all.join(", "))
    } else {
        format!("did you mean {}?", close.join(" or "))
    };
    Some(format!("there is no column {:?}; {cure}", field.name))
}

fn missing_table(workload: &Workload, message: &str) -> Option<String> {
    let rest = message.split("table '").nth(1)?;
    let name = rest.split('\'').next()?.rsplit('.').next()?;
    let names: Vec<&str> = workload.tables.iter().map(|t| t.name.as_str()).collect();
    if names.contains(&name) || !message.contains("not found") {
        return None;
    }
    let close = nearest(name, names.iter().copied());
    let cure = if close.is_empty() {
        format!("there are {}", names.join(", "))
    } else {
        format!("did you mean {}?", close.join(" or "))
    };
    Some(format!("there is no table {name:?}; {cure}"))
}
