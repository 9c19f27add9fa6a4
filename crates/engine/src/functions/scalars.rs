//! Which scalar functions are offered: those whose result depends on their arguments alone, to the last bit.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use datafusion::logical_expr::ScalarUDFImpl;

use super::{clock, digest, lenient, math, text};

/// DataFusion's functions that are so by nature: of texts, times, lists, whole numbers and decimals, and of floats as far as
/// they only add, multiply, divide, round and take square roots, which every processor does alike. A test fails when
/// DataFusion has a function that stands in no list. `version` is in none: it names the machine.
#[rustfmt::skip]
const BY_NATURE: [&str; 150] = [
    "abs", "array_add", "array_any_match", "array_any_value", "array_append", "array_avg", "array_compact",
    "array_concat", "array_dims", "array_distance", "array_distinct", "array_element", "array_except", "array_filter",
    "array_first", "array_has", "array_has_all", "array_has_any", "array_intersect", "array_length", "array_max",
    "array_min", "array_ndims", "array_normalize", "array_pop_back", "array_pop_front", "array_position",
    "array_positions", "array_prepend", "array_product", "array_remove", "array_remove_all", "array_remove_n",
    "array_repeat", "array_replace", "array_replace_all", "array_replace_n", "array_resize", "array_reverse",
    "array_scale", "array_slice", "array_sort", "array_subtract", "array_sum", "array_to_string", "array_transform",
    "array_union", "arrays_zip", "arrow_cast", "arrow_field", "arrow_metadata", "arrow_try_cast", "arrow_typeof",
    "ascii", "bit_length", "btrim", "cardinality", "cast_to_type", "ceil", "character_length", "chr", "coalesce",
    "concat", "concat_ws", "contains", "cosine_distance", "date_bin", "date_part", "date_trunc", "decode", "degrees",
    "empty", "encode", "ends_with", "factorial", "find_in_set", "flatten", "floor", "from_unixtime", "gcd",
    "generate_series", "get_field", "greatest", "initcap", "inner_product", "isnan", "iszero", "lcm", "least", "left",
    "levenshtein", "lower", "lpad", "ltrim", "make_array", "make_date", "make_time", "map", "map_entries",
    "map_extract", "map_keys", "map_values", "named_struct", "nanvl", "nullif", "nvl", "nvl2", "octet_length",
    "overlay", "pi", "radians", "range", "regexp_count", "regexp_instr", "regexp_like", "regexp_match",
    "regexp_replace", "repeat", "replace", "reverse", "right", "round", "rpad", "rtrim", "signum", "split_part",
    "starts_with", "string_to_array", "strpos", "struct", "substr", "substr_index", "to_char", "to_date", "to_hex",
    "to_local_time", "to_time", "to_timestamp", "to_timestamp_micros", "to_timestamp_millis", "to_timestamp_nanos",
    "to_timestamp_seconds", "to_unixtime", "translate", "trunc", "try_cast_to_type", "union_extract", "union_tag",
    "upper", "with_metadata",
];

static OURS: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let math = math::all().into_iter().map(|function| function.name().to_owned());
    let digests = digest::all().into_iter().map(|function| function.name().to_owned());
    let lenient = lenient::all().into_iter().map(|function| function.name().to_owned());
    text::all().iter().map(|function| function.name().to_owned()).chain(math).chain(digests).chain(lenient).collect()
});

/// Whether a scalar function of this name may be asked for.
pub(crate) fn is_offered_scalar(name: &str) -> bool {
    BY_NATURE.contains(&name) || OURS.contains(name) || clock::is_clock(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use datafusion::logical_expr::Volatility;
    use datafusion::prelude::SessionContext;

    use super::*;
    use crate::functions::{is_offered, is_offered_window, register};

    /// What DataFusion brings along and nobody may ask for.
    const REFUSED: [&str; 2] = ["version", "approx_percentile_cont_with_weight"];

    fn unknown(names: impl Iterator<Item = (String, bool)>) -> BTreeSet<String> {
        names.filter(|(name, offered)| !offered && !REFUSED.contains(&name.as_str())).map(|(name, _)| name).collect()
    }

    /// An upgrade of DataFusion brings no function in of which nobody has asked whether its result is always the same.
    #[test]
    fn every_function_of_datafusion_is_known() {
        let context = SessionContext::new();
        register(&context);
        let state = context.state();
        let scalars = state.scalar_functions().values().map(|function| {
            // Those that ask a clock or throw dice are refused elsewhere.
            let pure = function.signature().volatility == Volatility::Immutable;
            (function.name().to_owned(), !pure || is_offered_scalar(function.name()))
        });
        let lambdas = state.higher_order_functions().values();
        let lambdas = lambdas.map(|function| (function.name().to_owned(), is_offered_scalar(function.name())));
        assert_eq!(unknown(scalars.chain(lambdas)), BTreeSet::new(), "scalar functions");
        let aggregates = state.aggregate_functions().values().map(|f| (f.name().to_owned(), is_offered(f)));
        assert_eq!(unknown(aggregates), BTreeSet::new(), "aggregates");
        let windows = state.window_functions().values().map(|f| (f.name().to_owned(), is_offered_window(f)));
        assert_eq!(unknown(windows), BTreeSet::new(), "window functions");
        let tables: BTreeSet<&str> = state.table_functions().keys().map(String::as_str).collect();
        assert_eq!(tables, BTreeSet::from(["generate_series", "range"]), "table functions");
    }

    #[test]
    fn every_listed_function_exists() {
        let context = SessionContext::new();
        register(&context);
        let state = context.state();
        let scalars = state.scalar_functions().values().map(|f| f.name().to_owned());
        let known: BTreeSet<String> =
            scalars.chain(state.higher_order_functions().values().map(|f| f.name().to_owned())).collect();
        let listed: BTreeSet<String> = BY_NATURE.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(listed.difference(&known).collect::<Vec<_>>(), Vec::<&String>::new());
    }
}
