//! Which functions are offered, and why their results do not depend on the order or the grouping of rows.
//!
//! Whoever adds an aggregate or a window function enters it here; what is not here is refused when a query is planned. The
//! same table says whose partial results may be merged as they come.

use std::sync::{Arc, LazyLock};

use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::grouping::grouping_udaf;
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::functions_window::all_default_window_functions;
use datafusion::logical_expr::{AggregateUDF, AggregateUDFImpl, WindowUDF};

use super::{average, bits, count, distinct, extreme, ordered, percentile, quantile, single_value, statistics, sum};

/// Why an aggregate gives the same result in whatever order its rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The order makes no difference to it, and partial results become fewer by merging.
    FreeAndSmall,
    /// The order makes no difference to it, but it holds all values until the end.
    Free,
    /// Ties in its ORDER BY are settled by its values; one row, or a few, are kept.
    SettledAndSmall,
    /// The same, and it holds all rows until the end.
    Settled,
    /// It follows the order of a window, which is total; it is no aggregate of groups.
    Window,
}

struct Offered {
    function: Arc<AggregateUDF>,
    order: Order,
}

static AGGREGATES: LazyLock<Vec<Offered>> = LazyLock::new(|| {
    let free = [
        ours(count::Count::new()),
        ours(sum::ExactSum::new()),
        ours(average::ExactAverage::new()),
        ours(extreme::Extreme::min()),
        ours(extreme::Extreme::max()),
        ours(distinct::DistinctCount::new()),
    ];
    let free = free.into_iter().chain(bits::all().map(ours)).chain(statistics::all().into_iter().map(ours));
    let collecting =
        [grouping_udaf(), ours(percentile::ExactPercentile::new()), ours(single_value::SingleValue::new())];
    let collecting = collecting.into_iter().chain(quantile::all().into_iter().map(ours));
    let settled = ordered::all().into_iter().map(|function| {
        let order = if function.is_small() { Order::SettledAndSmall } else { Order::Settled };
        Offered { function: ours(function), order }
    });
    let with = |order| move |function| Offered { function, order };
    free.map(with(Order::FreeAndSmall))
        .chain(collecting.map(with(Order::Free)))
        .chain(settled)
        .chain([array_agg_udaf(), string_agg_udaf()].map(with(Order::Window)))
        .collect()
});

/// Functions of a row's place in its window, whose order is total.
static WINDOWS: LazyLock<Vec<Arc<WindowUDF>>> = LazyLock::new(|| {
    const PLACES: [&str; 11] = [
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "first_value",
        "last_value",
        "nth_value",
    ];
    all_default_window_functions().into_iter().filter(|function| PLACES.contains(&function.name())).collect()
});

fn ours(function: impl AggregateUDFImpl + 'static) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(function))
}

fn order_of(function: &AggregateUDF) -> Option<Order> {
    // Not by name alone: another implementation makes no such promise.
    let known = AGGREGATES.iter().find(|offered| *offered.function == *function).map(|offered| offered.order);
    // DataFusion's optimizer puts in its own.
    known.or_else(|| (*count_udaf() == *function).then_some(Order::FreeAndSmall))
}

/// The aggregates that are registered in a session, in place of DataFusion's of the same name.
pub(super) fn aggregates() -> impl Iterator<Item = Arc<AggregateUDF>> {
    let wanted = AGGREGATES.iter().filter(|offered| offered.order != Order::Window);
    wanted.map(|offered| Arc::clone(&offered.function)).filter(|function| function.name() != "single_value")
}

/// The aggregate of this name.
#[cfg(test)]
pub(crate) fn aggregate_named(name: &str) -> Arc<AggregateUDF> {
    aggregates().find(|function| function.name() == name).expect("it is offered")
}

/// Whether an aggregate of groups may be asked for.
pub(crate) fn is_offered(function: &AggregateUDF) -> bool {
    order_of(function).is_some_and(|order| order != Order::Window)
}

/// Whether an aggregate may be asked for over a window.
pub(crate) fn is_offered_in_windows(function: &AggregateUDF) -> bool {
    order_of(function).is_some()
}

/// Whether a window function may be asked for.
pub(crate) fn is_offered_window(function: &WindowUDF) -> bool {
    WINDOWS.iter().any(|offered| **offered == *function)
}

/// Whether ties in the order of an aggregate are settled by its argument.
pub(crate) fn settles_ties_by_value(function: &AggregateUDF) -> bool {
    matches!(order_of(function), Some(Order::Settled | Order::SettledAndSmall))
}

/// Whether partial results may be merged in any order, and become fewer by it.
pub(crate) fn merges_in_any_order(function: &AggregateUDF) -> bool {
    matches!(order_of(function), Some(Order::FreeAndSmall | Order::SettledAndSmall))
}
