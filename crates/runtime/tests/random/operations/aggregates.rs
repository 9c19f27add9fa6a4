//! Aggregates.

use super::Arg::{Of, OneOf, Plain, Same};
use super::Gives::{self, Any, Argument, Average};
use super::{Arg, Operation, both, ours, pair};
use crate::random::tree::Type;

const INT: Arg = Of(Type::Int);
const DECIMAL: Arg = Of(Type::Decimal(0));
const FLOAT: Arg = Of(Type::Float);
const TEXT: Arg = Of(Type::Text);
const BOOL: Arg = Of(Type::Bool);
const TO_INT: Gives = Gives::Type(Type::Int);
const TO_BOOL: Gives = Gives::Type(Type::Bool);
const TO_APPROXIMATE: Gives = Gives::Type(Type::Approximate);
/// Shares whose digits are binary fractions.
const SHARE: Arg = OneOf(&["0.0", "0.25", "0.5", "0.75", "1.0"]);

/// Aggregates that do not depend on the order of rows.
pub const AGGREGATES: &[Operation] = &[
    both("count(*){f}", &[], TO_INT),
    both("count({d}{0}){f}", &[Plain], TO_INT),
    pair("distinct_count({0}){f}", "count(DISTINCT {0}){f}", &[Plain], TO_INT),
    pair("sum({d}{0}){f}", "CAST(sum({d}{0}){f} AS BIGINT)", &[INT], TO_INT),
    // DuckDB's sum has 38 digits, and whatever it meets is rounded to the digits that are left.
    pair("sum({d}{0}){f}", "CAST(sum({d}{0}){f} AS DECIMAL(30, {s}))", &[DECIMAL], Argument(0)),
    both("sum({d}{0}){f}", &[FLOAT], TO_APPROXIMATE),
    both("min({0}){f}", &[Same], Any),
    both("max({0}){f}", &[Same], Any),
    both("max({0}){f}", &[Same], Any),
    pair(
        "avg({d}{0}){f}",
        "CAST(ratio(CAST(sum({d}{0}){f} AS HUGEINT) * 1000000000, count({d}{0}){f}) * {t} AS DECIMAL(30, {s}))",
        &[INT],
        Average,
    ),
    pair(
        "avg({d}{0}){f}",
        "CAST(ratio(CAST(sum({d}{0}){f} * {u0} AS HUGEINT) * 1000000000, count({d}{0}){f}) * {t} AS DECIMAL(30, {s}))",
        &[DECIMAL],
        Average,
    ),
    both("avg({d}{0}){f}", &[FLOAT], TO_APPROXIMATE),
    both("bool_and({0}){f}", &[BOOL], TO_BOOL),
    both("bool_or({0}){f}", &[BOOL], TO_BOOL),
    both("bit_and({0}){f}", &[INT], TO_INT),
    both("bit_or({0}){f}", &[INT], TO_INT),
    both("bit_xor({0}){f}", &[INT], TO_INT),
    pair("exact_percentile({0}, 0.5){f}", "at_share(present(list({0}){f}), 5, 10)", &[Same], Any),
    pair("exact_percentile({0}, 0.9){f}", "at_share(present(list({0}){f}), 9, 10)", &[Same], Any),
    both("median({0}){f}", &[FLOAT], TO_APPROXIMATE),
    ours("median({0}){f}", &[INT], TO_INT),
    ours("median({0}){f}", &[DECIMAL], Argument(0)),
    pair("percentile_cont({0}, {1}){f}", "quantile_cont({0}, {1}){f}", &[FLOAT, SHARE], TO_APPROXIMATE),
    pair("percentile_cont(0.5) WITHIN GROUP (ORDER BY {0}){f}", "quantile_cont({0}, 0.5){f}", &[FLOAT], TO_APPROXIMATE),
    both("var_samp({0}){f}", &[FLOAT], TO_APPROXIMATE),
    both("var_pop({0}){f}", &[FLOAT], TO_APPROXIMATE),
    pair("var({0}){f}", "var_samp({0}){f}", &[INT], TO_APPROXIMATE),
    both("stddev({0}){f}", &[FLOAT], TO_APPROXIMATE),
    both("stddev({0}){f}", &[DECIMAL], TO_APPROXIMATE),
    both("stddev_samp({0}){f}", &[INT], TO_APPROXIMATE),
    both("stddev_pop({0}){f}", &[FLOAT], TO_APPROXIMATE),
    pair("corr({0}, {1}){f}", "not_nan(corr({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("corr({0}, {1}){f}", "not_nan(corr({0}, {1}){f})", &[INT, DECIMAL], TO_APPROXIMATE),
    pair("covar_pop({0}, {1}){f}", "not_nan(covar_pop({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("covar_samp({0}, {1}){f}", "not_nan(covar_samp({0}, {1}){f})", &[FLOAT, INT], TO_APPROXIMATE),
    pair("regr_slope({0}, {1}){f}", "not_nan(regr_slope({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_intercept({0}, {1}){f}", "not_nan(regr_intercept({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    both("regr_count({0}, {1}){f}", &[FLOAT, FLOAT], TO_INT),
    pair("regr_r2({0}, {1}){f}", "not_nan(regr_r2({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_avgx({0}, {1}){f}", "not_nan(regr_avgx({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_avgy({0}, {1}){f}", "not_nan(regr_avgy({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_sxx({0}, {1}){f}", "not_nan(regr_sxx({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_syy({0}, {1}){f}", "not_nan(regr_syy({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    pair("regr_sxy({0}, {1}){f}", "not_nan(regr_sxy({0}, {1}){f})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    ours("approx_distinct({0}){f}", &[Plain], TO_INT),
    ours("approx_median({0}){f}", &[FLOAT], TO_APPROXIMATE),
    ours("approx_percentile_cont({0}, {1}){f}", &[FLOAT, SHARE], TO_APPROXIMATE),
    ours("approx_percentile_cont_with_weight({0}, abs({1}) + 1, 0.5){f}", &[FLOAT, INT], TO_APPROXIMATE),
];

/// Aggregates of rows in an order.
pub const ORDERED_AGGREGATES: &[Operation] = &[
    both("string_agg({d}{0}, ','{o}){f}", &[TEXT], Gives::Type(Type::Text)),
    both("array_agg({d}{0}{o}){f}", &[INT], Gives::Type(Type::Ints)),
    both("array_agg({d}{0}{o}){f}", &[TEXT], Gives::Type(Type::Texts)),
    pair("first_value({0}{o}){f}", "first({0}{o}){f}", &[Same], Any),
    pair("last_value({0}{o}){f}", "last({0}{o}){f}", &[Same], Any),
    pair("nth_value({0}, 2{o}){f}", "list({0}{o}){f}[2]", &[Same], Any),
    ours("any_value({0}){f}", &[Same], Any),
];
