//! SQL functions of our own, beside DataFusion's.
//!
//! | function | result |
//! |---|---|
//! | `is_english(text)` | whether a text is written in English |
//! | `language(text)` | its language as an ISO 639-1 code, null where there is nothing to go by |
//! | `sentiment(text)` | its polarity from -1 to 1, as an exact decimal |
//! | `python_list(text)` | the elements of a Python list of texts such as `['A', "B's"]` |
//! | `year_of(text)` | the year of an odd date: its first run of four digits |
//! | `exact_percentile(value, p)` | of n values in ascending order, the one at floor(p·n), counted from 0 |
//! | `distinct_count(value)` | as `count(DISTINCT value)`, in one step, so that rows can be sent early |
//! | `avg(value)`, `sum(value)` | exact: the same result in whatever order the rows come |
//!
//! All are functions of their arguments alone, and null for null.

mod average;
mod distinct;
mod float_sum;
mod kept;
mod percentile;
mod single_value;
mod sum;
mod text;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};
use datafusion::prelude::SessionContext;

pub(crate) use kept::kept;
pub(crate) use single_value::single_value;

/// Functions that cost microseconds per row: they run after every cheap filter and after joins.
pub(crate) const DEAR: [&str; 3] = ["is_english", "language", "sentiment"];

static DEAR_CALLS: [AtomicU64; 3] = [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];

/// How many texts a dear function has looked at in this process.
pub fn dear_calls(name: &str) -> u64 {
    let index = DEAR.iter().position(|dear| *dear == name);
    index.map_or(0, |index| DEAR_CALLS[index].load(Ordering::Relaxed))
}

fn count_dear_calls(name: &str, texts: u64) {
    if let Some(index) = DEAR.iter().position(|dear| *dear == name) {
        DEAR_CALLS[index].fetch_add(texts, Ordering::Relaxed);
    }
}

/// Whether an expression calls a dear function.
pub(crate) fn is_dear(expr: &Expr) -> bool {
    use datafusion::common::tree_node::TreeNode;
    expr.exists(|e| Ok(matches!(e, Expr::ScalarFunction(call) if DEAR.contains(&call.func.name()))))
        .expect("the visitor never fails")
}

/// Adds all of them to a session: that of the planner, or one that runs the same SQL without stages to compare with.
pub fn register(context: &SessionContext) {
    for function in text::all() {
        context.register_udf(ScalarUDF::new_from_shared_impl(function));
    }
    context.register_udaf(AggregateUDF::from(percentile::ExactPercentile::new()));
    context.register_udaf(AggregateUDF::from(distinct::DistinctCount::new()));
    context.register_udaf(AggregateUDF::from(average::ExactAverage::new()));
    context.register_udaf(AggregateUDF::from(sum::ExactSum::new()));
}

/// The single instance of the scalar subquery's guard.
pub(crate) fn single_value_udaf() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(single_value::SingleValue::new()))
}
