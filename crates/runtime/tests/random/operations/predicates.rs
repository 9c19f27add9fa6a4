//! Conditions.

use super::Arg::{Of, Plain, Same};
use super::Gives::{self};
use super::{Arg, Operation, both, pair};
use crate::random::tree::Type;

const BOOL: Arg = Of(Type::Bool);
const INT: Arg = Of(Type::Int);
const DECIMAL: Arg = Of(Type::Decimal(0));
const FLOAT: Arg = Of(Type::Float);
const TO_BOOL: Gives = Gives::Type(Type::Bool);

pub(super) const PREDICATES: &[Operation] = &[
    both("({0} IS NULL)", &[Plain], TO_BOOL),
    both("({0} IS NOT NULL)", &[Plain], TO_BOOL),
    both("({0} IS TRUE)", &[BOOL], TO_BOOL),
    both("({0} IS NOT FALSE)", &[BOOL], TO_BOOL),
    pair("({0} IS UNKNOWN)", "({0} IS NULL)", &[BOOL], TO_BOOL),
    both("isnan({0})", &[FLOAT], TO_BOOL),
    pair("iszero({0})", "({0} = 0)", &[FLOAT], TO_BOOL),
    both("({0} > {1})", &[INT, DECIMAL], TO_BOOL),
    both("({0} <= {1})", &[DECIMAL, FLOAT], TO_BOOL),
    both("({0} = {1})", &[INT, FLOAT], TO_BOOL),
    both("({0} >= {1})", &[Of(Type::Timestamp), Of(Type::Date)], TO_BOOL),
];

/// Comparisons of two values of one type, which is the caller's choice: of all arguments it is that of the first.
pub const COMPARISONS: &[Operation] = &[
    both("({0} = {1})", &[Same, Same], TO_BOOL),
    both("({0} = {1})", &[Same, Same], TO_BOOL),
    both("({0} = {1})", &[Same, Same], TO_BOOL),
    both("({0} <> {1})", &[Same, Same], TO_BOOL),
    both("({0} < {1})", &[Same, Same], TO_BOOL),
    both("({0} <= {1})", &[Same, Same], TO_BOOL),
    both("({0} > {1})", &[Same, Same], TO_BOOL),
    both("({0} >= {1})", &[Same, Same], TO_BOOL),
    both("({0} IS DISTINCT FROM {1})", &[Same, Same], TO_BOOL),
    both("({0} IS NOT DISTINCT FROM {1})", &[Same, Same], TO_BOOL),
    both("({0} BETWEEN {1} AND {2})", &[Same, Same, Same], TO_BOOL),
    both("({0} NOT BETWEEN {1} AND {2})", &[Same, Same, Same], TO_BOOL),
];
