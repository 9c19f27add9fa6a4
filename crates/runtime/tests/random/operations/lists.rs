//! Functions of lists, structs and maps.

use super::Arg::{Of, OneOf};
use super::Gives::{self};
use super::{Arg, Operation, both, ours, pair};
use crate::random::tree::Type;

const INT: Arg = Of(Type::Int);
const TEXT: Arg = Of(Type::Text);
const INTS: Arg = Of(Type::Ints);
const TEXTS: Arg = Of(Type::Texts);
const TO_INT: Gives = Gives::Type(Type::Int);
const TO_TEXT: Gives = Gives::Type(Type::Text);
const TO_BOOL: Gives = Gives::Type(Type::Bool);
const TO_INTS: Gives = Gives::Type(Type::Ints);
const TO_TEXTS: Gives = Gives::Type(Type::Texts);
const PLACE: Arg = OneOf(&["1", "2", "3"]);

pub(super) const LISTS: &[Operation] = &[
    pair("make_array({0}, {1})", "list_value({0}, {1})", &[INT, INT], TO_INTS),
    pair("make_array({0}, {1}, {2})", "list_value({0}, {1}, {2})", &[INT, INT, INT], TO_INTS),
    pair("make_array({0}, {1})", "list_value({0}, {1})", &[TEXT, TEXT], TO_TEXTS),
    pair("array_append({0}, {1})", "list_append({0}, {1})", &[INTS, INT], TO_INTS),
    pair("array_prepend({1}, {0})", "list_prepend({1}, {0})", &[INTS, INT], TO_INTS),
    pair("array_concat({0}, {1})", "list_concat({0}, {1})", &[INTS, INTS], TO_INTS),
    pair("array_sort({0}, 'ASC', 'NULLS FIRST')", "list_sort({0}, 'ASC', 'NULLS FIRST')", &[INTS], TO_INTS),
    pair("array_sort({0}, 'DESC', 'NULLS LAST')", "list_sort({0}, 'DESC', 'NULLS LAST')", &[TEXTS], TO_TEXTS),
    pair("array_reverse({0})", "list_reverse({0})", &[INTS], TO_INTS),
    pair("array_slice({0}, {1}, 2)", "list_slice({0}, {1}, 2)", &[INTS, OneOf(&["1", "2"])], TO_INTS),
    pair("flatten(make_array({0}, {1}))", "flatten([{0}, {1}])", &[INTS, INTS], TO_INTS),
    pair("generate_series(1, {0} % 4)", "generate_series(1, {0} % 4)", &[INT], TO_INTS),
    pair("range(0, {0} % 4)", "range(0, {0} % 4)", &[INT], TO_INTS),
    pair(
        "string_to_array({0}, 'x')",
        "CASE WHEN {0} = '' THEN CAST([] AS VARCHAR[]) ELSE string_split({0}, 'x') END",
        &[TEXT],
        TO_TEXTS,
    ),
    ours("array_distinct({0})", &[INTS], TO_INTS),
    ours("array_compact({0})", &[INTS], TO_INTS),
    ours("array_union({0}, {1})", &[INTS, INTS], TO_INTS),
    ours("array_intersect({0}, {1})", &[INTS, INTS], TO_INTS),
    ours("array_except({0}, {1})", &[INTS, INTS], TO_INTS),
    ours("array_pop_back({0})", &[INTS], TO_INTS),
    ours("array_pop_front({0})", &[INTS], TO_INTS),
    ours("array_remove({0}, {1})", &[INTS, INT], TO_INTS),
    ours("array_remove_n({0}, {1}, 2)", &[INTS, INT], TO_INTS),
    ours("array_remove_all({0}, {1})", &[INTS, INT], TO_INTS),
    ours("array_replace({0}, {1}, {2})", &[INTS, INT, INT], TO_INTS),
    ours("array_replace_n({0}, {1}, {2}, 2)", &[INTS, INT, INT], TO_INTS),
    ours("array_replace_all({0}, {1}, {2})", &[INTS, INT, INT], TO_INTS),
    ours("array_repeat({0}, 2)", &[INT], TO_INTS),
    ours("array_resize({0}, 3, 0)", &[INTS], TO_INTS),
    ours("array_positions({0}, {1})", &[INTS, INT], TO_INTS),
    ours("map_keys(map(make_array('x'), make_array({0})))", &[INT], TO_TEXTS),
    ours("map_values(map(make_array('x'), make_array({0})))", &[INT], TO_INTS),
    ours("map_extract(map(make_array('x'), make_array({0})), 'x')", &[INT], TO_INTS),
    ours("array_length(map_entries(map(make_array('x'), make_array({0}))))", &[INT], TO_INT),
    ours("array_length(arrays_zip({0}, {1}))", &[INTS, INTS], TO_INT),
    pair("array_element({0}, {1})", "list_extract({0}, {1})", &[INTS, PLACE], TO_INT),
    both("({0})[{1}]", &[INTS, PLACE], TO_INT),
    pair("array_max({0})", "list_max({0})", &[INTS], TO_INT),
    pair("array_min({0})", "list_min({0})", &[INTS], TO_INT),
    pair("array_length({0})", "len({0})", &[INTS], TO_INT),
    pair("cardinality({0})", "len({0})", &[TEXTS], TO_INT),
    ours("array_ndims({0})", &[INTS], TO_INT),
    ours("array_length(array_dims({0}))", &[INTS], TO_INT),
    pair("array_position({0}, {1})", "list_position({0}, {1})", &[INTS, INT], TO_INT),
    ours("array_any_value({0})", &[INTS], TO_INT),
    ours("CAST(array_sum({0}) AS BIGINT)", &[INTS], TO_INT),
    ours("CAST(array_product({0}) AS BIGINT)", &[INTS], TO_INT),
    ours("array_avg({0})", &[INTS], Gives::Type(Type::Approximate)),
    ours("array_distance({0}, {0})", &[INTS], Gives::Type(Type::Approximate)),
    ours("cosine_distance({0}, {0})", &[INTS], Gives::Type(Type::Approximate)),
    ours("inner_product({0}, {0})", &[INTS], Gives::Type(Type::Approximate)),
    ours("array_to_string(array_normalize({0}), ',')", &[INTS], TO_TEXT),
    ours("array_to_string(array_add({0}, {0}), ',')", &[INTS], TO_TEXT),
    ours("array_to_string(array_subtract({0}, {0}), ',')", &[INTS], TO_TEXT),
    ours("array_to_string(array_scale({0}, 2), ',')", &[INTS], TO_TEXT),
    pair("array_to_string({0}, '-')", "array_to_string({0}, '-')", &[INTS], TO_TEXT),
    pair("({0})[{1}]", "list_extract({0}, {1})", &[TEXTS, PLACE], TO_TEXT),
    pair("array_has({0}, {1})", "list_contains({0}, {1})", &[INTS, INT], TO_BOOL),
    pair("array_has({0}, {1})", "list_contains({0}, {1})", &[TEXTS, TEXT], TO_BOOL),
    pair("array_has_all({0}, {1})", "list_has_all({0}, {1})", &[INTS, INTS], TO_BOOL),
    pair("array_has_any({0}, {1})", "list_has_any({0}, {1})", &[INTS, INTS], TO_BOOL),
    ours("empty({0})", &[INTS], TO_BOOL),
    ours("regexp_match({0}, '([a-z])(.)')", &[TEXT], TO_TEXTS),
];
