//! Subqueries where DataFusion can plan them.
//!
//! It makes joins of scalar subqueries in SELECT and WHERE, and of IN and EXISTS in WHERE. Elsewhere (in the argument of an
//! aggregate or of a window function, in GROUP BY, ORDER BY or ON) a subquery is put into a projection below, as a column of
//! its own that is left out again above; and IN and EXISTS become values ([`subquery_value`](super::subquery_value)).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, plan_err};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Expr, ExprSchemable, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator, Sort, Window,
};

use super::subquery_value::{is_subquery, value_of};

/// Puts every subquery where it can be planned.
pub(super) fn hoist_subqueries(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut names = 0;
    let plan = plan.transform_up_with_subqueries(|node| {
        if !node.expressions().iter().any(has_subquery) {
            return Ok(Transformed::no(node));
        }
        Ok(Transformed::yes(match node {
            LogicalPlan::Projection(_) => with_values(node)?,
            LogicalPlan::Filter(filter) => filtered(filter)?,
            LogicalPlan::Aggregate(aggregate) => aggregated(aggregate, &mut names)?,
            LogicalPlan::Window(window) => windowed(window, &mut names)?,
            LogicalPlan::Sort(sort) => sorted(sort, &mut names)?,
            LogicalPlan::Join(join) => joined(join, &mut names)?,
            other => other,
        }))
    })?;
    Ok(plan.data)
}

fn has_subquery(expr: &Expr) -> bool {
    expr.exists(|e| Ok(is_subquery(e))).expect("the visitor never fails")
}

/// A projection in which subqueries are values.
fn with_values(node: LogicalPlan) -> Result<LogicalPlan> {
    let names = NamePreserver::new(&node);
    let schema = Arc::clone(node.inputs()[0].schema());
    node.map_expressions(|expr| {
        let name = names.save(&expr);
        let expr = expr.transform_up(|e| value_of(checked(e)?, &schema))?;
        Ok(expr.update_data(|expr| name.restore(expr)))
    })
    .data()
}

/// Comparisons with ANY and ALL are planned in WHERE only.
fn checked(expr: Expr) -> Result<Expr> {
    match expr {
        Expr::SetComparison(_) => {
            plan_err!("a comparison with ANY or ALL of a subquery can stand in WHERE only; write EXISTS (…) or max(…)")
        }
        other => Ok(other),
    }
}

/// A filter, in which IN and EXISTS that the rest of a condition looks into are values: DataFusion takes what is unknown for
/// false there, which is a difference under NOT.
fn filtered(filter: Filter) -> Result<LogicalPlan> {
    let schema = Arc::clone(filter.input.schema());
    let conditions = split_conjunction_owned(filter.predicate).into_iter().map(|condition| match condition {
        Expr::Not(inner) => match *inner {
            Expr::Exists(_) => Ok(Expr::Not(Box::new(with_one_row(*inner, &schema)?))),
            Expr::InSubquery(mut within) => {
                within.negated = !within.negated;
                condition_value(Expr::InSubquery(within), &schema)
            }
            inner => condition_value(Expr::Not(Box::new(inner)), &schema),
        },
        condition => condition_value(condition, &schema),
    });
    let predicate = conjunction(conditions.collect::<Result<Vec<_>>>()?);
    match predicate {
        Some(predicate) => Ok(LogicalPlan::Filter(Filter::try_new(predicate, filter.input)?)),
        None => Ok(Arc::unwrap_or_clone(filter.input)),
    }
}

fn condition_value(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    match condition {
        Expr::InSubquery(ref within) if within.negated && !is_anti_join(within, schema) => {
            condition.transform_up(|e| value_of(e, schema)).data()
        }
        Expr::Exists(_) | Expr::InSubquery(_) => with_one_row(condition, schema),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::And | Operator::Or), right }) => {
            let (left, right) = (positive(*left, schema)?, positive(*right, schema)?);
            Ok(Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) }))
        }
        other => other.transform_up(|e| value_of(e, schema)).data(),
    }
}

/// Whether DataFusion's join for NOT IN minds nulls: it does where it has one key, so not where the subquery asks for columns of the
/// query around it, nor where a constant is looked for. Where there are no nulls, there is nothing to mind.
fn is_anti_join(within: &InSubquery, schema: &DFSchema) -> bool {
    let has_nulls = within.expr.nullable(schema).unwrap_or(true)
        || within.subquery.subquery.schema().fields().iter().any(|field| field.is_nullable());
    !has_nulls || (!within.expr.column_refs().is_empty() && within.subquery.outer_ref_columns.is_empty())
}

/// A part of a condition for which unknown is as good as false.
fn positive(part: Expr, schema: &DFSchema) -> Result<Expr> {
    match &part {
        Expr::InSubquery(within) if within.negated => part.transform_up(|e| value_of(e, schema)).data(),
        _ => condition_value(part, schema),
    }
}

/// IN or EXISTS as it is, in whose own expression subqueries are values.
fn with_one_row(predicate: Expr, schema: &DFSchema) -> Result<Expr> {
    predicate.map_children(|child| child.transform_up(|e| value_of(e, schema))).data()
}

/// What was taken out of the expressions of a node.
struct Taken<'n> {
    names: &'n mut usize,
    /// Each with its name.
    values: Vec<(Expr, String)>,
}

impl Taken<'_> {
    fn new(names: &mut usize) -> Taken<'_> {
        Taken { names, values: Vec::new() }
    }

    /// The expression with columns in the places of subqueries.
    fn take_from(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        expr.transform_down(|e| {
            let e = checked(e)?;
            if !is_subquery(&e) {
                return Ok(Transformed::no(e));
            }
            let known = self.values.iter().find(|(value, _)| *value == e).map(|(_, name)| name.clone());
            let name = known.unwrap_or_else(|| {
                *self.names += 1;
                let name = format!("__value_{}", self.names);
                self.values.push((e, name.clone()));
                name
            });
            Ok(Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump))
        })
    }

    /// The rows with a column for each of them.
    fn below(self, input: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
        if self.values.is_empty() {
            return Ok(input);
        }
        // An ORDER BY may ask for columns that SELECT leaves out.
        let (input, mut exprs) = match input.as_ref() {
            LogicalPlan::Projection(select)
                if !self.values.iter().all(|(value, _)| asks_only(value, input.schema())) =>
            {
                (Arc::clone(&select.input), select.expr.clone())
            }
            _ => {
                let columns = all_columns(input.schema());
                (input, columns)
            }
        };
        let schema = Arc::clone(input.schema());
        for (value, name) in self.values {
            exprs.push(value.transform_up(|e| value_of(e, &schema))?.data.alias(name));
        }
        Ok(Arc::new(LogicalPlanBuilder::from(input).project(exprs)?.build()?))
    }
}

fn all_columns(schema: &DFSchema) -> Vec<Expr> {
    schema.iter().map(|(qualifier, field)| Expr::Column(Column::new(qualifier.cloned(), field.name()))).collect()
}

fn aggregated(aggregate: Aggregate, names: &mut usize) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, aggr_expr, .. } = aggregate;
    let mut taken = Taken::new(names);
    let saved = NamePreserver::new_for_projection();
    let mut replaced = |expr: Expr| {
        let name = saved.save(&expr);
        Ok(taken.take_from(expr)?.update_data(|expr| name.restore(expr)))
    };
    let group_expr = group_expr.into_iter().map(|expr| match expr {
        Expr::GroupingSet(_) => expr.map_children(&mut replaced).data(),
        expr => replaced(expr).data(),
    });
    let group_expr = group_expr.collect::<Result<Vec<_>>>()?;
    let aggr_expr = aggr_expr.into_iter().map(|expr| replaced(expr).data()).collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(taken.below(input)?, group_expr, aggr_expr)?))
}

fn windowed(window: Window, names: &mut usize) -> Result<LogicalPlan> {
    let Window { input, window_expr, schema } = window;
    let mut taken = Taken::new(names);
    let saved = NamePreserver::new_for_projection();
    let replaced = window_expr.into_iter().map(|expr| {
        let name = saved.save(&expr);
        Ok(name.restore(taken.take_from(expr)?.data))
    });
    let window_expr = replaced.collect::<Result<Vec<_>>>()?;
    let plan = LogicalPlan::Window(Window::try_new(window_expr, taken.below(input)?)?);
    LogicalPlanBuilder::from(plan).project(all_columns(&schema))?.build()
}

fn sorted(sort: Sort, names: &mut usize) -> Result<LogicalPlan> {
    let Sort { expr, input, fetch } = sort;
    let schema = Arc::clone(input.schema());
    let mut taken = Taken::new(names);
    let replaced = expr.into_iter().map(|mut by| {
        by.expr = taken.take_from(by.expr)?.data;
        Ok(by)
    });
    let expr = replaced.collect::<Result<Vec<_>>>()?;
    let plan = LogicalPlan::Sort(Sort { expr, input: taken.below(input)?, fetch });
    LogicalPlanBuilder::from(plan).project(all_columns(&schema))?.build()
}

/// A join whose conditions ask subqueries: of an inner one they stand above, of an outer one the values stand below.
fn joined(join: Join, names: &mut usize) -> Result<LogicalPlan> {
    if join.join_type == JoinType::Inner {
        let conditions = join.filter.map(split_conjunction_owned).unwrap_or_default();
        let (asking, plain): (Vec<Expr>, Vec<Expr>) = conditions.into_iter().partition(has_subquery);
        let inner = LogicalPlan::Join(Join { filter: conjunction(plain), ..join });
        return match conjunction(asking) {
            Some(predicate) => filtered(Filter::try_new(predicate, Arc::new(inner))?),
            None => Ok(inner),
        };
    }
    let mut taken = Taken::new(names);
    let filter = join.filter.map(|filter| taken.take_from(filter).data()).transpose()?;
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (value, name) in taken.values {
        match (asks_only(&value, join.left.schema()), asks_only(&value, join.right.schema())) {
            (true, _) => left.push((value, name)),
            (false, true) => right.push((value, name)),
            (false, false) => {
                return plan_err!(
                    "a subquery in the ON of an outer join may refer to one side of the join only; \
                     join with a subquery that has done so instead"
                );
            }
        }
    }
    let left = Taken { names: &mut 0, values: left }.below(join.left)?;
    let right = Taken { names: &mut 0, values: right }.below(join.right)?;
    let (kind, constraint, nulls) = (join.join_type, join.join_constraint, join.null_equality);
    let plan = Join::try_new(left, right, join.on, filter, kind, constraint, nulls, join.null_aware)?;
    LogicalPlanBuilder::from(LogicalPlan::Join(plan)).project(all_columns(&join.schema))?.build()
}

/// Whether a subquery asks for no columns around it but these.
fn asks_only(expr: &Expr, schema: &DFSchema) -> bool {
    outside_columns(expr).iter().all(|column| schema.has_column(column))
}

/// The columns around it that a subquery asks for.
fn outside_columns(expr: &Expr) -> Vec<Column> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    let _ = expr.apply(|e| {
        let outside = match e {
            Expr::ScalarSubquery(subquery) => &subquery.outer_ref_columns,
            Expr::Exists(exists) => &exists.subquery.outer_ref_columns,
            Expr::InSubquery(within) => &within.subquery.outer_ref_columns,
            _ => return Ok(TreeNodeRecursion::Continue),
        };
        columns.extend(outside.iter().filter_map(|e| match e {
            Expr::OuterReferenceColumn(_, column) => Some(column.clone()),
            _ => None,
        }));
        Ok(TreeNodeRecursion::Continue)
    });
    columns
}
