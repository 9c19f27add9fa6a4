//! SQL functions of our own, beside DataFusion's or in their place.
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
//! | `sum`, `avg`, `count`, `min`, `max`, `bool_*`, `bit_*` | exact: the same in whatever order rows come, also DISTINCT, also over frames that slide; what does not fit is an error |
//! | `stddev`, `var_*`, `covar_*`, `corr`, `regr_*` | exact sums, rounded once at the end |
//! | `median`, `percentile_cont`, `approx_*` | exact; the middle of whole numbers and decimals is a decimal |
//! | `array_agg`, `string_agg`, `first_value`, `last_value`, `nth_value`, `any_value` | ties in their order are settled by the values; without an order, ascending by the values |
//! | `sin` … `tanh`, `exp`, `ln`, `log`, `power`, `cbrt`, `sqrt` | floats, the same bits on every machine |
//! | `now()`, `current_timestamp`, `localtimestamp`, `current_date`, `today()` | the time of the job, in UTC; a constant |
//! | `try_to_date(text, '%d/%m/%Y', …)`, `try_to_timestamp(text, …)` | in the first format that fits; null where none does |
//! | `nvl(a, b)` | as `coalesce(a, b)`, of any type |
//! | `md5(text)`, `sha224(text)` … `sha512(text)`, `digest(text, 'sha256')` | digests as hexadecimal text |
//! | `a / b`, `a * b` of decimals; `SIMILAR TO`; `LIKE … ESCAPE` | put in by the planner (`plan/exact.rs`) |
//! | `a + b`, `a - b`, `a * b`, `-a` where an overflow is possible | put in by the planner (`plan/overflow.rs`) |
//!
//! All are functions of their arguments alone, and null for null. Which functions are offered at all, and why their results
//! are always the same, is in `offered.rs` (aggregates and windows) and `scalars.rs`.

mod average;
mod bits;
mod bounded;
mod checked;
mod clock;
mod count;
mod decimals;
mod digest;
mod distinct;
mod distinct_rows;
mod dyadic;
mod exponential;
mod extreme;
mod far_times;
mod float_sum;
mod kept;
mod lenient;
mod lone_value;
mod math;
mod moments;
mod null_lists;
mod nvl;
mod offered;
mod one_group;
mod ordered;
mod percentile;
mod quantile;
mod scalars;
mod share;
mod similar;
mod single_value;
mod statistics;
mod sum;
mod text;
mod whole_sum;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::logical_expr::{AggregateUDF, Expr, ScalarUDF};
use datafusion::prelude::SessionContext;

use crate::JobTime;

pub(crate) use checked::{checked_binary, checked_negative, is_negative_named, operator_named};
pub(crate) use decimals::{divide, exact_scale, is_long_product, multiply};
pub(crate) use kept::kept;
pub(crate) use lone_value::{only_value, two_values};
#[cfg(test)]
pub(crate) use offered::aggregate_named;
pub(crate) use offered::{
    is_offered, is_offered_in_windows, is_offered_window, merges_in_any_order, settles_ties_by_value,
};
pub(crate) use scalars::is_offered_scalar;
pub(crate) use similar::{like_pattern, similar_to};
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
    for function in far_times::all() {
        context.register_udf(function);
    }
    for function in math::all() {
        context.register_udf(ScalarUDF::from(function));
    }
    context.register_udf(ScalarUDF::from(nvl::Nvl::new()));
    for function in lenient::all() {
        context.register_udf(ScalarUDF::from(function));
    }
    for function in digest::all() {
        context.register_udf(ScalarUDF::from(function));
    }
    for function in offered::aggregates() {
        context.register_udaf(Arc::unwrap_or_clone(function));
    }
    windows::register(context);
    null_lists::register(context);
    bounded::register(context);
}

/// Adds the functions that tell the time of the job, in place of those that ask a clock.
pub(crate) fn register_time(context: &SessionContext, time: JobTime) {
    for function in clock::all(time) {
        context.register_udf(ScalarUDF::from(function));
    }
}

/// The single instance of the scalar subquery's guard.
pub(crate) fn single_value_udaf() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(single_value::SingleValue::new()))
}
