//! Expressions that say which value they failed at.
//!
//! `Divide by zero error` is all that Arrow says. A stage that is about to run gets each of its expressions that can fail behind a
//! [`Named`]: when it fails, rows are tried one by one, and the error names the expression and the values of the first row that it
//! cannot take.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::{BinaryExpr, NegativeExpr};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use crate::error::{ValueError, about_value, named_value_error};
use crate::functions::{is_negative_named, operator_named};
use crate::limits;
use crate::plan::can_fail;

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

/// The same plan, whose aggregations name what they fail at. Comes before operators of ours take their place.
pub(super) fn named_arguments(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        match node.downcast_ref::<AggregateExec>().map(with_named_arguments).transpose()?.flatten() {
            Some(named) => Ok(Transformed::yes(named)),
            None => Ok(Transformed::no(node)),
        }
    })
    .data()
}

/// `None` if nothing that it computes can fail. Later steps of an aggregation compute nothing but states.
fn with_named_arguments(aggregate: &AggregateExec) -> Result<Option<Plan>> {
    let reads_rows = aggregate.mode().input_mode() == AggregateInputMode::Raw;
    let schema = aggregate.input().schema();
    let fails = |expr: &Expr| can_fail(expr, &schema);
    let functions = aggregate.aggr_expr();
    let any = functions.iter().any(|function| function.expressions().iter().any(fails));
    if !reads_rows || !any {
        return Ok(None);
    }
    let functions = functions.iter().map(|function| {
        let arguments = function.expressions();
        if function.is_reversed() || !arguments.iter().any(fails) {
            return Arc::clone(function);
        }
        let named = |expr: Expr| -> Expr { if fails(&expr) { Arc::new(Named(expr)) } else { expr } };
        let orders = function.order_bys().iter().map(|order| Arc::clone(&order.expr)).collect();
        let named = function.with_new_expressions(arguments.into_iter().map(named).collect(), orders);
        named.map_or_else(|| Arc::clone(function), Arc::new)
    });
    let functions: Vec<_> = functions.collect();
    Ok(Some(Arc::new(aggregate.with_new_aggr_exprs(functions))))
}

/// The same plan, whose filters and projections name what they fail at.
pub(super) fn named_failures(plan: Plan) -> Result<Plan> {
    plan.transform_up(|node| {
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            if !can_fail(filter.predicate(), &filter.input().schema()) {
                return Ok(Transformed::no(node));
            }
            let predicate: Expr = Arc::new(Named(Arc::clone(filter.predicate())));
            let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
            return Ok(Transformed::yes(Arc::new(filter) as Plan));
        }
        let Some(projection) = node.downcast_ref::<ProjectionExec>() else { return Ok(Transformed::no(node)) };
        let schema = projection.input().schema();
        if !projection.expr().iter().any(|column| can_fail(&column.expr, &schema)) {
            return Ok(Transformed::no(node));
        }
        let exprs = projection.expr().iter().map(|column| {
            let expr: Expr = match can_fail(&column.expr, &schema) {
                true => Arc::new(Named(Arc::clone(&column.expr))),
                false => Arc::clone(&column.expr),
            };
            ProjectionExpr { expr, alias: column.alias.clone() }
        });
        let projection = ProjectionExec::try_new(exprs.collect::<Vec<_>>(), Arc::clone(projection.input()))?;
        Ok(Transformed::yes(Arc::new(projection) as Plan))
    })
    .data()
}

/// An expression as it is, but for the text of its errors.
#[derive(Debug)]
pub(super) struct Named(pub(super) Expr);

impl Named {
    /// The error, with the expression and the first row that it fails at, if it is about a value.
    fn explained(&self, error: DataFusionError, batch: &RecordBatch) -> DataFusionError {
        if named_value_error(&error).is_some() {
            return error;
        }
        let place = || {
            let fails = |row: &usize| self.0.evaluate(&batch.slice(*row, 1)).is_err();
            let values = (0..batch.num_rows()).find(fails).map(|row| self.values(batch, row)).unwrap_or_default();
            format!(", in {}{values}", shortened(&as_written(&self.0)))
        };
        match about_value(&error, place) {
            Some(text) => {
                let is_of_row = !collect_columns(&self.0).is_empty();
                DataFusionError::External(Box::new(ValueError { text, is_of_row }))
            }
            None => error,
        }
    }

    /// `, where a is 1 and b is 0`
    fn values(&self, batch: &RecordBatch, row: usize) -> String {
        let mut columns: Vec<_> = collect_columns(&self.0).into_iter().collect();
        columns.sort_by_key(|column| column.index());
        let values = columns.iter().take(limits::SHOWN_VALUES).map(|column| {
            let array = batch.column(column.index());
            let text = match array.is_null(row) {
                true => "null".to_owned(),
                false => array_value_to_string(array, row).unwrap_or_default(),
            };
            let text = if array.data_type().is_string() { format!("'{text}'") } else { text };
            format!("{} is {}", in_words(column.name()), shortened(&text))
        });
        let values = values.collect::<Vec<_>>();
        if values.is_empty() { String::new() } else { format!(", where {}", values.join(" and ")) }
    }
}

/// The expression with operators in the places of the functions that stand for them.
fn as_written(expr: &Expr) -> String {
    let written = Arc::clone(expr).transform_up(|expr| {
        let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() else { return Ok(Transformed::no(expr)) };
        let name = call.fun().name();
        Ok(match (operator_named(name), call.args()) {
            (Some(operator), [left, right]) => {
                Transformed::yes(Arc::new(BinaryExpr::new(Arc::clone(left), operator, Arc::clone(right))) as Expr)
            }
            (None, [value]) if is_negative_named(name) => {
                Transformed::yes(Arc::new(NegativeExpr::new(Arc::clone(value))) as Expr)
            }
            _ => Transformed::no(expr),
        })
    });
    let written = written.map_or_else(|_| Arc::clone(expr), |written| written.data);
    in_words(&fmt_sql(written.as_ref()).to_string())
}

/// The name of an expression as its user wrote it.
fn in_words(name: &str) -> String {
    name.replace("count(Int64(1))", "count(*)")
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(limits::SHOWN_CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

impl PhysicalExpr for Named {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.0.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.0.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.0.evaluate(batch).map_err(|error| self.explained(error, batch))
    }

    fn children(&self) -> Vec<&Expr> {
        vec![&self.0]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Expr>) -> Result<Expr> {
        Ok(Arc::new(Self(children.pop().unwrap_or_else(|| Arc::clone(&self.0)))))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Eq for Named {}

impl Hash for Named {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
