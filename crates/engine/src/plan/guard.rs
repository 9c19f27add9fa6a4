//! Conditions guard what can fail: `WHERE b <> 0 AND a / b > 2` divides only where `b` is not zero.
//!
//! - Of a filter the conditions that cannot fail come first, in an operator of their own; those that can follow one by one, as they
//!   were written, each for the rows that the ones before let pass ([`GuardedConditions`]).
//! - Inside of a condition, and in every other expression, AND and OR look at a right side that can fail only where they must
//!   ([`Lazy`]).
//! - What a projection computes that can fail stays above the filter below it ([`ProjectionsAboveFilters`]).
//! - `sum(a / b) FILTER (WHERE b <> 0)` divides where the filter says so ([`guard_filtered_aggregates`]).
//!
//! A condition that can fail also stays above the joins of its query: see [`dear`](super::dear).

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, WindowFunctionDefinition, when};
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, conjunction, split_conjunction};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::barrier::BarrierExec;
use super::fallible::{can_fail, may_fail};
use super::lazy::{Junction, Lazy};

type Plan = Arc<dyn ExecutionPlan>;
type Condition = Arc<dyn PhysicalExpr>;

/// Evaluates what can fail only for rows that other conditions let pass.
#[derive(Debug)]
pub(super) struct GuardedConditions;

impl PhysicalOptimizerRule for GuardedConditions {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| match guarded(&node)? {
            Some(guarded) => Ok(Transformed::yes(guarded)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "GuardedConditions"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn guarded(node: &Plan) -> Result<Option<Plan>> {
    if let Some(filter) = node.downcast_ref::<FilterExec>() {
        return guarded_filter(filter);
    }
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        let schema = projection.input().schema();
        if !projection.expr().iter().any(|column| can_fail(&column.expr, &schema)) {
            return Ok(None);
        }
        let exprs = projection.expr().iter().map(|column| {
            let expr = lazy(Arc::clone(&column.expr), &schema)?;
            Ok(ProjectionExpr { expr, alias: column.alias.clone() })
        });
        let exprs = exprs.collect::<Result<Vec<_>>>()?;
        return Ok(Some(Arc::new(ProjectionExec::try_new(exprs, Arc::clone(projection.input()))?)));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter().map(guarded_join_filter).transpose()?.flatten()
    {
        return Ok(Some(Arc::new(join.builder().with_filter(Some(filter)).build()?)));
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter().map(guarded_join_filter).transpose()?.flatten()
    {
        let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?;
        return Ok(Some(Arc::new(join)));
    }
    Ok(None)
}

/// The conditions of a filter one above the other.
fn guarded_filter(filter: &FilterExec) -> Result<Option<Plan>> {
    let schema = filter.input().schema();
    let (sure, mut unsure) = parted(filter.predicate(), &schema);
    let Some(last) = unsure.pop() else { return Ok(None) };
    let mut plan = Arc::clone(filter.input());
    if !sure.is_empty() {
        plan = Arc::new(FilterExec::try_new(conjunction(sure), plan)?);
    }
    for condition in unsure {
        plan = Arc::new(FilterExec::try_new(lazy(condition, &schema)?, plan)?);
    }
    let top = FilterExecBuilder::from(filter).with_input(plan).with_predicate(lazy(last, &schema)?);
    Ok(Some(Arc::new(top.build()?)))
}

fn guarded_join_filter(filter: &JoinFilter) -> Result<Option<JoinFilter>> {
    let schema = filter.schema();
    let (sure, unsure) = parted(filter.expression(), schema);
    if unsure.is_empty() {
        return Ok(None);
    }
    let mut conditions = (!sure.is_empty()).then(|| conjunction(sure)).into_iter().chain(unsure);
    let Some(first) = conditions.next() else { return Ok(None) };
    let mut all = lazy(first, schema)?;
    for condition in conditions {
        all = Arc::new(Lazy::new(Junction::And, all, lazy(condition, schema)?));
    }
    Ok(Some(JoinFilter::new(all, filter.column_indices().to_vec(), Arc::clone(schema))))
}

/// The conditions that cannot fail, and those that can.
fn parted(predicate: &Condition, schema: &Schema) -> (Vec<Condition>, Vec<Condition>) {
    let conditions = split_conjunction(predicate).into_iter().cloned();
    conditions.partition(|condition| !can_fail(condition, schema))
}

/// The same expression with AND and OR that do not look at what can fail where they need not.
fn lazy(expr: Condition, schema: &Schema) -> Result<Condition> {
    expr.transform_up(|e| {
        let Some(binary) = e.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(e)) };
        let junction = match binary.op() {
            Operator::And => Junction::And,
            Operator::Or => Junction::Or,
            _ => return Ok(Transformed::no(e)),
        };
        let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
        // Sides that cannot fail come first, whichever way they were written.
        let (left, right) = match (can_fail(&left, schema), can_fail(&right, schema)) {
            (false, false) => return Ok(Transformed::no(e)),
            (true, false) => (right, left),
            _ => (left, right),
        };
        Ok(Transformed::yes(Arc::new(Lazy::new(junction, left, right)) as Condition))
    })
    .data()
}

/// Keeps projections that can fail from being moved below the filter under them. Comes before the rule that moves projections.
#[derive(Debug)]
pub(super) struct ProjectionsAboveFilters;

impl PhysicalOptimizerRule for ProjectionsAboveFilters {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| {
            let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(Transformed::no(node)) };
            let input = projection.input();
            let computes = |column: &ProjectionExpr| can_fail(&column.expr, &input.schema());
            if !input.is::<FilterExec>() || !projection.expr().iter().any(computes) {
                return Ok(Transformed::no(node));
            }
            let barrier: Plan = Arc::new(BarrierExec::new(Arc::clone(input)));
            let exprs = projection.expr().to_vec();
            Ok(Transformed::yes(Arc::new(ProjectionExec::try_new(exprs, barrier)?) as Plan))
        })
        .data()
    }

    fn name(&self) -> &str {
        "ProjectionsAboveFilters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Takes the barriers away again.
#[derive(Debug)]
pub(super) struct WithoutBarriers;

impl PhysicalOptimizerRule for WithoutBarriers {
    fn optimize(&self, plan: Plan, _: &ConfigOptions) -> Result<Plan> {
        plan.transform_up(|node| match node.downcast_ref::<BarrierExec>() {
            Some(barrier) => Ok(Transformed::yes(Arc::clone(barrier.input()))),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "WithoutBarriers"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Arguments of aggregates that can fail are asked for only where the aggregate's FILTER lets rows pass.
pub(super) fn guard_filtered_aggregates(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Aggregate(_) | LogicalPlan::Window(_)) {
            return Ok(Transformed::no(node));
        }
        let schema = merge_schema(&node.inputs());
        let names = NamePreserver::new(&node);
        node.map_expressions(|expr| {
            let name = names.save(&expr);
            let guarded = expr.transform_up(|e| with_guarded_arguments(e, &schema))?;
            Ok(guarded.update_data(|expr| name.restore(expr)))
        })
    })?;
    Ok(plan.data)
}

fn with_guarded_arguments(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (filter, arguments) = match &mut expr {
        Expr::AggregateFunction(call) => (&call.params.filter, &mut call.params.args),
        Expr::WindowFunction(call) if matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_)) => {
            (&call.params.filter, &mut call.params.args)
        }
        _ => return Ok(Transformed::no(expr)),
    };
    let Some(filter) = filter.as_deref() else { return Ok(Transformed::no(expr)) };
    let mut any = false;
    for argument in arguments {
        if may_fail(argument, schema) {
            *argument = when(filter.clone(), std::mem::take(argument)).end()?;
            any = true;
        }
    }
    Ok(if any { Transformed::yes(expr) } else { Transformed::no(expr) })
}
