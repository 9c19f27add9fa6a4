//! DataFusion, set up for plans that will be cut.

use std::sync::Arc;

use datafusion::common::config::Dialect;
use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::{Analyzer, AnalyzerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::{SessionConfig, SessionContext};
use tenaz_core::TableId;

use super::dear::Planner;
use super::forget::{ForgetAboveGroupingSets, ForgetBranchConstants, UnionsAsTheyAre};
use super::guard::{GuardedConditions, ProjectionsAboveFilters, WithoutBarriers};
use super::overflow::CheckedArithmetic;
use super::provider::WorkloadTable;
use super::required_orders::RequiredOrders;
use super::single_distinct;
use super::timed_rules::{timed, timed_analysis, timed_physical};
use super::top::TopOfEach;
use super::window_order::TotalWindowOrders;
use crate::functions;
use crate::workload::Workload;
use crate::{Error, limits};

/// The number of partitions the planner is told. Any number above one makes it say where rows must move; how many
/// partitions a job really has is decided when it runs.
const PLANNED_PARTITIONS: usize = 8;

/// Physical rules that do not fit: cooperative yielding is for plans that share an executor, while a task has its thread
/// for itself; physical filter pushdown would move dear filters below joins (cheap ones are moved by the logical rule).
const UNWANTED_RULES: [&str; 3] = ["EnsureCooperative", "FilterPushdown", "FilterPushdown(Post)"];

/// The settings for planning and for running tasks.
pub(crate) fn config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(PLANNED_PARTITIONS)
        .with_batch_size(limits::BATCH_ROWS)
        .with_round_robin_repartition(false)
        .with_collect_statistics(false)
        .with_information_schema(false);
    let options = config.options_mut();
    options.sql_parser.dialect = Dialect::PostgreSQL;
    options.sql_parser.collect_spans = true;
    options.sql_parser.parse_float_as_decimal = true;
    // A dynamic filter is shared between operators on both sides of a cut.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    // So is the value of a scalar subquery; as a join it crosses a cut as rows do.
    options.optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    // Give up on partial aggregation early: a chunk is small, and rows that do not combine are better sent as they are.
    options.execution.skip_partial_aggregation_probe_rows_threshold = limits::BATCH_ROWS;
    config
}

/// A session that knows the workload's tables.
pub(crate) fn context(workload: &Workload) -> Result<SessionContext, Error> {
    let rules = PhysicalOptimizer::new().rules.into_iter().filter(|rule| !UNWANTED_RULES.contains(&rule.name()));
    let rules = rules.flat_map(|rule| -> Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>> {
        match rule.name() {
            // This one comes right before rows are moved and sorted where they must be.
            "WindowTopN" => {
                vec![Arc::new(TopOfEach), Arc::new(ForgetAboveGroupingSets), Arc::new(ForgetBranchConstants)]
            }
            "EnsureRequirements" => vec![rule, Arc::new(UnionsAsTheyAre)],
            "ProjectionPushdown" => vec![Arc::new(ProjectionsAboveFilters), rule, Arc::new(WithoutBarriers)],
            // The last one, which checks the plan.
            "SanityCheckPlan" => {
                vec![Arc::new(GuardedConditions), Arc::new(TotalWindowOrders), Arc::new(RequiredOrders), rule]
            }
            _ => vec![rule],
        }
    });
    let state = SessionStateBuilder::new()
        .with_config(config())
        .with_default_features()
        .with_analyzer_rules(timed_analysis(analysis()))
        .with_optimizer_rules(timed(single_distinct::rules()))
        .with_physical_optimizer_rules(rules.map(timed_physical).collect())
        .with_query_planner(Arc::new(Planner))
        .build();
    let context = SessionContext::new_with_state(state);
    functions::register(&context);
    if let Some(time) = workload.time {
        functions::register_time(&context, time);
    }
    for (index, table) in workload.tables.iter().enumerate() {
        let id = TableId(index as u16);
        let reference = datafusion::common::TableReference::bare(table.name.as_str());
        context.register_table(reference, Arc::new(WorkloadTable::new(id, table)))?;
    }
    Ok(context)
}

/// The names of all functions that a query about these tables may call, in order.
///
/// # Errors
/// The tables cannot be made known to DataFusion.
pub fn function_names(workload: &Workload) -> Result<Vec<String>, Error> {
    let state = context(workload)?.state();
    let scalars = state.scalar_functions().keys();
    let names = scalars.chain(state.aggregate_functions().keys()).chain(state.window_functions().keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    Ok(names.into_iter().cloned().collect())
}

/// DataFusion's analysis, then arithmetic that errs where its result does not fit.
fn analysis() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    rules.push(Arc::new(CheckedArithmetic));
    rules
}
