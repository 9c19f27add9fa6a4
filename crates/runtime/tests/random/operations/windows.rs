//! Functions of windows.

use super::Arg::{OneOf, Same};
use super::Gives::{self, Any};
use super::{Arg, Operation, both, pair};
use crate::random::tree::Type;

const TO_INT: Gives = Gives::Type(Type::Int);
const BUCKETS: Arg = OneOf(&["1", "2", "3", "5"]);
const STEPS: Arg = OneOf(&["0", "1", "2", "3"]);

/// The place of a row among others. The first two do not depend on the order of equal rows.
pub const RANKING: &[Operation] = &[
    both("CAST(rank(){f} AS BIGINT)", &[], TO_INT),
    both("CAST(dense_rank(){f} AS BIGINT)", &[], TO_INT),
    both("CAST(row_number(){f} AS BIGINT)", &[], TO_INT),
    both("CAST(ntile({0}){f} AS BIGINT)", &[BUCKETS], TO_INT),
    both("percent_rank(){f}", &[], Gives::Type(Type::Approximate)),
    both("cume_dist(){f}", &[], Gives::Type(Type::Approximate)),
];

/// Values of other rows.
pub const NAVIGATION: &[Operation] = &[
    pair("lag({0}){n}{f}", "lag({0}{n}){f}", &[Same], Any),
    pair("lead({0}){n}{f}", "lead({0}{n}){f}", &[Same], Any),
    pair("lag({0}, {1}){n}{f}", "lag({0}, {1}{n}){f}", &[Same, STEPS], Any),
    pair("lead({0}, {1}){n}{f}", "lead({0}, {1}{n}){f}", &[Same, STEPS], Any),
    pair("first_value({0}){n}{f}", "first_value({0}{n}){f}", &[Same], Any),
    pair("last_value({0}){n}{f}", "last_value({0}{n}){f}", &[Same], Any),
    pair("nth_value({0}, 2){n}{f}", "nth_value({0}, 2{n}){f}", &[Same], Any),
];
