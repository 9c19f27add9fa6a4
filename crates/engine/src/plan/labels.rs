//! The names of an answer's columns, as the files write them: `ProductType` and `Order Date`, though SQL calls them `producttype`
//! and `order_date`.
//!
//! Only a column of a table that reaches the answer under its own name is called so; what has another name in the query, or is
//! computed, is called as the query says. The same holds for decimals that are shown without zeros at their end.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan};

use crate::workload::{Table, Workload};

/// The key in a field's metadata of decimals that are shown without zeros at their end.
pub const TRIM_ZEROS: &str = "tenaz.trim_zeros";

/// How a column of an answer is shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Shown {
    /// Its name, if that is another.
    label: Option<String>,
    trim_zeros: bool,
}

/// How each column of the plan's answer is shown, where a table has something to say about that.
pub(super) fn shown(plan: &LogicalPlan, workload: &Workload) -> Vec<Shown> {
    let is_plain = |table: &Table| table.labels.iter().all(Option::is_none) && !table.trimmed.contains(&true);
    if workload.tables.iter().all(is_plain) {
        return Vec::new();
    }
    let shown = |index: usize| {
        let (table, column) = origin(plan, index)?;
        let table = workload.tables.iter().find(|known| known.name == table)?;
        let (label, trim_zeros) = table.shown(&column)?;
        Some(Shown { label: label.map(str::to_owned), trim_zeros })
    };
    (0..plan.schema().fields().len()).map(|index| shown(index).unwrap_or_default()).collect()
}

/// The schema with these names.
pub(super) fn labelled(schema: SchemaRef, shown: &[Shown]) -> SchemaRef {
    if shown.is_empty() {
        return schema;
    }
    let named = |(index, field): (usize, &Arc<Field>)| {
        let mut field = field.as_ref().clone();
        let Some(shown) = shown.get(index) else { return field };
        if let Some(label) = &shown.label {
            field = field.with_name(label.clone());
        }
        if shown.trim_zeros && matches!(field.data_type(), DataType::Decimal128(..)) {
            field.set_metadata(HashMap::from([(TRIM_ZEROS.to_owned(), String::new())]));
        }
        field
    };
    let fields: Vec<Field> = schema.fields().iter().enumerate().map(named).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The table and the column that a column of a plan is, if it is one and has kept its name.
fn origin(plan: &LogicalPlan, index: usize) -> Option<(String, String)> {
    let through = |input: &LogicalPlan, expr: &Expr| match expr {
        Expr::Column(column) => origin(input, input.schema().index_of_column(column).ok()?),
        _ => None,
    };
    match plan {
        LogicalPlan::TableScan(scan) => {
            let column = scan.projected_schema.fields().get(index)?;
            Some((scan.table_name.table().to_owned(), column.name().clone()))
        }
        LogicalPlan::SubqueryAlias(alias) => origin(&alias.input, index),
        LogicalPlan::Filter(filter) => origin(&filter.input, index),
        LogicalPlan::Sort(sort) => origin(&sort.input, index),
        LogicalPlan::Limit(limit) => origin(&limit.input, index),
        LogicalPlan::Distinct(Distinct::All(input)) => origin(input, index),
        LogicalPlan::Projection(projection) => through(&projection.input, projection.expr.get(index)?),
        LogicalPlan::Aggregate(aggregate) => through(&aggregate.input, aggregate.group_expr.get(index)?),
        LogicalPlan::Window(window) if index < window.input.schema().fields().len() => origin(&window.input, index),
        LogicalPlan::Union(union) => origin(union.inputs.first()?, index),
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::RightSemi | JoinType::RightAnti => origin(&join.right, index),
            _ => match index.checked_sub(join.left.schema().fields().len()) {
                None => origin(&join.left, index),
                Some(index) => origin(&join.right, index),
            },
        },
        _ => None,
    }
}
