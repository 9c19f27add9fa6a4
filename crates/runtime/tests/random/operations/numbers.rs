//! Arithmetic.

use super::Arg::{Of, OneOf, Pairs, Same};
use super::Gives::{self, Any, Argument, Product, Quotient, Widest};
use super::{Arg, Operation, both, ours, pair};
use crate::random::tree::Type;

const INT: Arg = Of(Type::Int);
const DECIMAL: Arg = Of(Type::Decimal(0));
const FLOAT: Arg = Of(Type::Float);
const TEXT: Arg = Of(Type::Text);
const TO_INT: Gives = Gives::Type(Type::Int);
const TO_FLOAT: Gives = Gives::Type(Type::Float);
const TO_APPROXIMATE: Gives = Gives::Type(Type::Approximate);
/// Whole numbers that stay small enough for every product.
const FEW: Arg = OneOf(&["0", "1", "2", "3", "5"]);

pub(super) const INTEGERS: &[Operation] = &[
    both("({0} + {1})", &[INT, INT], TO_INT),
    both("({0} - {1})", &[INT, INT], TO_INT),
    both("({0} * {1})", &[INT, FEW], TO_INT),
    both("({0} * {1})", &[INT, INT], TO_INT),
    both("(- {0})", &[INT], TO_INT),
    pair("({0} / nullif({1}, 0))", "({0} // nullif({1}, 0))", &[INT, INT], TO_INT),
    pair("({0} / {1})", "({0} // {1})", &[INT, OneOf(&["2", "3", "-7"])], TO_INT),
    both("({0} % nullif({1}, 0))", &[INT, INT], TO_INT),
    pair("CASE WHEN {1} <> 0 THEN {0} / {1} END", "CASE WHEN {1} <> 0 THEN {0} // {1} END", &[INT, INT], TO_INT),
    both("abs({0})", &[INT], TO_INT),
    pair("CAST(signum({0}) AS BIGINT)", "CAST(sign({0}) AS BIGINT)", &[INT], TO_INT),
    both("({0} & {1})", &[INT, INT], TO_INT),
    both("({0} | {1})", &[INT, INT], TO_INT),
    pair("({0} # {1})", "xor({0}, {1})", &[INT, INT], TO_INT),
    both("gcd({0}, {1})", &[INT, INT], TO_INT),
    both("lcm({0} % 50, {1} % 50)", &[INT, INT], TO_INT),
    pair("factorial(abs({0} % 7))", "CAST(factorial(CAST(abs({0} % 7) AS INTEGER)) AS BIGINT)", &[INT], TO_INT),
    both("CAST({0} AS BIGINT)", &[Of(Type::Bool)], TO_INT),
    pair("CAST({0} AS BIGINT)", "CAST(trunc({0}) AS BIGINT)", &[DECIMAL], TO_INT),
    pair("CAST({0} AS BIGINT)", "CAST(trunc({0}) AS BIGINT)", &[FLOAT], TO_INT),
    both("TRY_CAST({0} AS BIGINT)", &[TEXT], TO_INT),
    both("CAST({0} AS INT)", &[INT], TO_INT),
    pair("arrow_cast({0}, 'Int16')", "CAST({0} AS SMALLINT)", &[FEW], TO_INT),
    pair("arrow_try_cast({0}, 'Int64')", "TRY_CAST({0} AS BIGINT)", &[TEXT], TO_INT),
    pair("cast_to_type({0}, 1)", "CAST({0} AS BIGINT)", &[FEW], TO_INT),
    pair("try_cast_to_type({0}, 1)", "TRY_CAST({0} AS BIGINT)", &[TEXT], TO_INT),
    pair("CAST(floor({0}) AS BIGINT)", "CAST(floor({0}) AS BIGINT)", &[DECIMAL], TO_INT),
    pair("CAST(ceil({0}) AS BIGINT)", "CAST(ceil({0}) AS BIGINT)", &[FLOAT], TO_INT),
    both("CAST(round({0}) AS BIGINT)", &[FLOAT], TO_INT),
];

/// DuckDB divides decimals as floats: this is the quotient of whole numbers, rounded once.
const QUOTIENT: &str =
    "CAST(ratio(CAST({0} * {u0} AS HUGEINT) * {p}, CAST({1} * {u1} AS HUGEINT)) * {t} AS DECIMAL(30, {s}))";

/// DataFusion's quotients have few digits, which are cut off: this is the same quotient of whole numbers, of which it has all digits.
const DIRECT_QUOTIENT: &str = "CASE WHEN {1} <> 0 THEN CAST(CASE WHEN ({0} < 0) = ({1} < 0) THEN 1 ELSE -1 END * CAST(((2 * {p} * \
     abs(CAST({0} * {u0} AS DECIMAL(38, 0))) + abs(CAST({1} * {u1} AS DECIMAL(38, 0)))) - (2 * {p} * abs(CAST({0} * {u0} AS \
     DECIMAL(38, 0))) + abs(CAST({1} * {u1} AS DECIMAL(38, 0)))) % (2 * abs(CAST({1} * {u1} AS DECIMAL(38, 0))))) / (2 * \
     abs(CAST({1} * {u1} AS DECIMAL(38, 0)))) AS DECIMAL(38, 0)) * {t} AS DECIMAL(38, {s})) END";

pub(super) const DECIMALS: &[Operation] = &[
    both("({0} + {1})", &[DECIMAL, DECIMAL], Widest),
    both("({0} - {1})", &[DECIMAL, DECIMAL], Widest),
    both("({0} + {1})", &[DECIMAL, INT], Argument(0)),
    both("({0} * {1})", &[DECIMAL, OneOf(&["2", "3", "-1"])], Argument(0)),
    both("({0} * {1})", &[DECIMAL, DECIMAL], Product),
    pair("({0} / nullif({1}, 0.0))", QUOTIENT, &[DECIMAL, DECIMAL], Quotient).told(DIRECT_QUOTIENT),
    pair("({0} / nullif({1}, 0.0))", QUOTIENT, &[INT, DECIMAL], Quotient).told(DIRECT_QUOTIENT),
    // Numbers with an exponent are decimals for tenaz, and floats for DuckDB.
    pair("({0} / 1e3)", "(CAST({0} AS DECIMAL(20, 0)) * 0.001)", &[INT], Gives::Type(Type::Decimal(10)))
        .told("(CAST({0} AS DECIMAL(20, 0)) * 0.001)"),
    pair("({0} * 1e3)", "({0} * 1000.0)", &[INT], Gives::Type(Type::Decimal(1))),
    both("(- {0})", &[DECIMAL], Argument(0)),
    both("abs({0})", &[DECIMAL], Argument(0)),
    both("CAST({0} AS DECIMAL(20, 1))", &[DECIMAL], Gives::Type(Type::Decimal(1))),
    both("CAST({0} AS DECIMAL(20, 4))", &[DECIMAL], Gives::Type(Type::Decimal(4))),
    both("CAST({0} AS DECIMAL(20, 2))", &[INT], Gives::Type(Type::Decimal(2))),
    both("CAST(round({0}, 1) AS DECIMAL(20, 1))", &[DECIMAL], Gives::Type(Type::Decimal(1))),
    both("CAST(floor({0}) AS DECIMAL(20, 2))", &[DECIMAL], Gives::Type(Type::Decimal(2))),
    both("CAST(ceil({0}) AS DECIMAL(20, 2))", &[DECIMAL], Gives::Type(Type::Decimal(2))),
    both("CAST(trunc({0}) AS DECIMAL(20, 2))", &[DECIMAL], Gives::Type(Type::Decimal(2))),
    both("CAST(({0} % nullif({1}, 0)) AS DECIMAL(20, 4))", &[DECIMAL, DECIMAL], Gives::Type(Type::Decimal(4))),
];

pub(super) const FLOATS: &[Operation] = &[
    both("({0} + {1})", &[FLOAT, FLOAT], TO_FLOAT),
    both("({0} - {1})", &[FLOAT, FLOAT], TO_FLOAT),
    both("({0} * {1})", &[FLOAT, FLOAT], TO_FLOAT),
    both("({0} / nullif({1}, 0))", &[FLOAT, FLOAT], TO_FLOAT),
    both("({0} + {1})", &[FLOAT, INT], TO_FLOAT),
    both("({0} + {1})", &[DECIMAL, FLOAT], TO_FLOAT),
    both("(- {0})", &[FLOAT], TO_FLOAT),
    both("abs({0})", &[FLOAT], TO_FLOAT),
    both("ceil({0})", &[FLOAT], TO_FLOAT),
    both("floor({0})", &[FLOAT], TO_FLOAT),
    both("round({0})", &[FLOAT], TO_FLOAT),
    both("round({0}, {1})", &[FLOAT, OneOf(&["1", "2", "0"])], TO_FLOAT),
    both("trunc({0})", &[FLOAT], TO_FLOAT),
    both("sqrt(abs({0}))", &[FLOAT], TO_FLOAT),
    pair("signum({0})", "CAST(sign({0}) AS DOUBLE)", &[FLOAT], TO_FLOAT),
    pair("nanvl({0}, {1})", "CASE WHEN isnan({0}) THEN {1} ELSE {0} END", &[FLOAT, FLOAT], TO_FLOAT),
    both("CAST({0} AS DOUBLE)", &[INT], TO_FLOAT),
    both("CAST({0} AS DOUBLE)", &[DECIMAL], TO_FLOAT),
];

/// Functions whose last digits are those of somebody's library. Their arguments are kept where the result is finite.
pub(super) const APPROXIMATE: &[Operation] = &[
    both("exp({0} / 8)", &[FLOAT], TO_APPROXIMATE),
    both("ln(abs({0}) + 1)", &[FLOAT], TO_APPROXIMATE),
    both("log10(abs({0}) + 1)", &[FLOAT], TO_APPROXIMATE),
    both("log2(abs({0}) + 1)", &[FLOAT], TO_APPROXIMATE),
    pair("log(2.0, abs({0}) + 1)", "log2(abs({0}) + 1)", &[FLOAT], TO_APPROXIMATE),
    both("sin({0})", &[FLOAT], TO_APPROXIMATE),
    both("cos({0})", &[FLOAT], TO_APPROXIMATE),
    both("tan({0} / 16)", &[FLOAT], TO_APPROXIMATE),
    both("cot(abs({0}) / 16 + 1)", &[FLOAT], TO_APPROXIMATE),
    both("asin(1 / (abs({0}) + 1))", &[FLOAT], TO_APPROXIMATE),
    both("acos(1 / (abs({0}) + 1))", &[FLOAT], TO_APPROXIMATE),
    both("atan({0})", &[FLOAT], TO_APPROXIMATE),
    both("atan2({0}, {1})", &[FLOAT, FLOAT], TO_APPROXIMATE),
    both("sinh({0} / 8)", &[FLOAT], TO_APPROXIMATE),
    both("cosh({0} / 8)", &[FLOAT], TO_APPROXIMATE),
    both("tanh({0})", &[FLOAT], TO_APPROXIMATE),
    both("asinh({0})", &[FLOAT], TO_APPROXIMATE),
    both("acosh(abs({0}) + 1)", &[FLOAT], TO_APPROXIMATE),
    both("atanh(1 / (abs({0}) + 2))", &[FLOAT], TO_APPROXIMATE),
    both("cbrt({0})", &[FLOAT], TO_APPROXIMATE),
    both("power(abs({0}) + 1, {1})", &[FLOAT, OneOf(&["0.5", "2", "-1", "1.5"])], TO_APPROXIMATE),
    both("degrees({0})", &[FLOAT], TO_APPROXIMATE),
    both("radians({0})", &[FLOAT], TO_APPROXIMATE),
    both("({0} * pi())", &[FLOAT], TO_APPROXIMATE),
];

/// One of the arguments, whatever their type.
pub(super) const CHOICES: &[Operation] = &[
    both("coalesce({0}, {1})", &[Same, Same], Any),
    both("coalesce({0}, {1}, {2})", &[Same, Same, Same], Any),
    both("nullif({0}, {1})", &[Same, Same], Any),
    both("greatest({0}, {1})", &[Same, Same], Any),
    both("least({0}, {1}, {2})", &[Same, Same, Same], Any),
    pair("nvl({0}, {1})", "ifnull({0}, {1})", &[Same, Same], Any),
    pair("nvl2({0}, {1}, {2})", "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END", &[Same, Same, Same], Any),
    pair(
        "get_field(named_struct('a', {0}, 'b', {1}), {2})",
        "struct_extract(struct_pack(a := {0}, b := {1}), {2})",
        &[Same, Same, Pairs(&[("'a'", "'a'"), ("'b'", "'b'")])],
        Any,
    ),
    ours("get_field(struct({0}, {1}), 'c1')", &[Same, Same], Any),
];
