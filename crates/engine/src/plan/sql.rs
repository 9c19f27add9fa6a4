//! One query's text to one physical plan, with mistakes shown at their place.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use futures::FutureExt;

use super::dear::dear_filters_last;
use super::distinct_on::first_of_each;
use super::exact::exact;
use super::grouping::grouping_arguments;
use super::guard::guard_filtered_aggregates;
use super::header_names::in_names_of_columns;
use super::hoist::hoist_subqueries;
use super::labels::{labelled, shown};
use super::microseconds::microseconds;
use super::mistake::{check_statement, wrong};
use super::multisets::with_copies_counted;
use super::offered::check_offered;
use super::order::total_orders;
use super::pure::check_pure;
use super::statement::parse;
use super::subquery::guard_scalar_subqueries;
use super::subquery_names::name_subqueries_apart;
use super::window_keys::plain_window_keys;
use crate::Error;
use crate::workload::{Query, Workload};

pub(super) struct PlannedSql {
    pub(super) physical: Arc<dyn ExecutionPlan>,
    pub(super) schema: SchemaRef,
    pub(super) ordered: bool,
}

pub(super) fn plan(context: &SessionContext, workload: &Workload, query: &Query) -> Result<PlannedSql, Error> {
    check_statement(query)?;
    // Planning awaits nothing outside: all tables are in memory, so one poll always finishes it.
    let planned = plan_async(context, workload, query).now_or_never();
    let planned = planned.expect("planning over in-memory tables never waits");
    planned.map_err(|e| wrong(context, workload, query, &e))
}

async fn plan_async(
    context: &SessionContext,
    workload: &Workload,
    query: &Query,
) -> Result<PlannedSql, DataFusionError> {
    let state = context.state();
    // Blanks in front stay: places in the text count from its start.
    let sql = query.sql.trim_end().trim_end_matches(';');
    let mut statement = parse(sql, state.config().options().sql_parser.recursion_limit.get())?;
    in_names_of_columns(&mut statement, workload);
    let logical = state.statement_to_plan(statement).await?;
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
    let shown = shown(&logical, workload);
    check_pure(&logical)?;
    check_offered(&logical)?;
    let logical = name_subqueries_apart(first_of_each(with_copies_counted(logical)?)?)?;
    let logical = grouping_arguments(exact(microseconds(logical)?)?)?;
    let logical = hoist_subqueries(guard_filtered_aggregates(logical)?)?;
    let logical = guard_scalar_subqueries(dear_filters_last(logical)?)?;
    let (logical, has_order) = total_orders(logical)?;
    let optimized = plain_window_keys(state.optimize(&logical)?)?;
    // Only now are the types final: the two sides of a UNION may have had different ones.
    let schema = labelled(Arc::new(optimized.schema().as_arrow().clone()), &shown);
    let physical = state.query_planner().create_physical_plan(&optimized, &state).await?;
    Ok(PlannedSql { physical, schema, ordered: query.ordered.unwrap_or(has_order) && has_order })
}
