//! Dear functions last: a filter that DataFusion's optimizer leaves where it is.
//!
//! DataFusion pushes every filter as far down as it can, so that `is_english(text)` would look at every review before
//! the join throws most of them away. A condition that calls a dear function therefore becomes a node of its own, above
//! the cheap conditions of the same WHERE, and stays above the joins that the WHERE stands above.
//!
//! The same goes for a condition that can fail: `WHERE b.kind = 'ratio' AND a.y / a.z > 1` is not to divide what the join
//! leaves out.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Expr, Extension, Filter, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use super::fallible::may_fail;
use super::subquery_value::is_subquery;
use crate::functions::is_dear;

/// A condition that calls a dear function.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd)]
struct DearFilter {
    condition: Expr,
    input: LogicalPlan,
}

impl UserDefinedLogicalNodeCore for DearFilter {
    fn name(&self) -> &str {
        "DearFilter"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.input.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![self.condition.clone()]
    }

    fn prevent_predicate_push_down_columns(&self) -> std::collections::HashSet<String> {
        // Cheap conditions from above may pass: the fewer rows, the better.
        std::collections::HashSet::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DearFilter: {}", self.condition)
    }

    fn with_exprs_and_inputs(&self, mut exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        match (exprs.pop(), inputs.pop()) {
            (Some(condition), Some(input)) => Ok(Self { condition, input }),
            _ => internal_err!("a dear filter has one condition and one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let schema = self.input.schema();
        let mut needed: Vec<usize> = output_columns.to_vec();
        for column in self.condition.column_refs() {
            needed.push(schema.index_of_column(column).ok()?);
        }
        needed.sort_unstable();
        needed.dedup();
        Some(vec![needed])
    }
}

/// Splits every filter that calls a dear function: cheap conditions stay, the others go above them.
pub(super) fn dear_filters_last(plan: LogicalPlan) -> Result<LogicalPlan> {
    let split = plan.transform_up_with_subqueries(|node| {
        // A subquery that refers to the query around it becomes a join, for which its filters must be plain.
        let correlated = !node.all_out_ref_exprs().is_empty();
        let LogicalPlan::Filter(filter) = node else { return Ok(Transformed::no(node)) };
        let (schema, joins) = (Arc::clone(filter.input.schema()), is_above_join(&filter.input));
        let comes_last = |condition: &Expr| is_dear(condition) || (joins && fails_alone(condition, &schema));
        if correlated || !split_conjunction(&filter.predicate).into_iter().any(comes_last) {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let (dear, cheap): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(filter.predicate).into_iter().partition(comes_last);
        let mut input = Arc::unwrap_or_clone(filter.input);
        if let Some(cheap) = conjunction(cheap) {
            input = LogicalPlan::Filter(Filter::try_new(cheap, Arc::new(input))?);
        }
        let Some(condition) = conjunction(dear) else { return Ok(Transformed::no(input)) };
        let node = Arc::new(DearFilter { condition, input });
        Ok(Transformed::yes(LogicalPlan::Extension(Extension { node })))
    })?;
    Ok(split.data)
}

/// Whether the rows of a plan come from a join, as they are.
fn is_above_join(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(_) => true,
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Extension(_) => plan.inputs().into_iter().any(is_above_join),
        _ => false,
    }
}

/// Whether a condition can fail and asks for columns of one table only, so that it could be pushed below a join. (Others are part of
/// the join, or make it one.)
fn fails_alone(condition: &Expr, schema: &DFSchema) -> bool {
    let tables: BTreeSet<Option<String>> =
        condition.column_refs().iter().map(|column| column.relation.as_ref().map(ToString::to_string)).collect();
    let asks = condition.exists(|e| Ok(is_subquery(e))).expect("the visitor never fails");
    tables.len() == 1 && !asks && may_fail(condition, schema)
}

/// DataFusion's planner, which also knows dear filters.
#[derive(Debug)]
pub(super) struct Planner;

#[async_trait]
impl QueryPlanner for Planner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(DearFilterPlanner)]);
        planner.create_physical_plan(plan, session).await
    }
}

struct DearFilterPlanner;

#[async_trait]
impl ExtensionPlanner for DearFilterPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(dear) = node.as_any().downcast_ref::<DearFilter>() else { return Ok(None) };
        let condition = planner.create_physical_expr(&dear.condition, dear.input.schema(), session, context)?;
        Ok(Some(Arc::new(FilterExec::try_new(condition, Arc::clone(&inputs[0]))?)))
    }
}
