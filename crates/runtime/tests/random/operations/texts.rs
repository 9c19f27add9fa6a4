//! Functions of texts.

use super::Arg::{Of, OneOf, Pairs};
use super::Gives::{self};
use super::{Arg, Operation, both, ours, pair};
use crate::random::tree::Type;

const INT: Arg = Of(Type::Int);
const TEXT: Arg = Of(Type::Text);
const TO_TEXT: Gives = Gives::Type(Type::Text);
const TO_INT: Gives = Gives::Type(Type::Int);
const TO_BOOL: Gives = Gives::Type(Type::Bool);
const PIECE: Arg = OneOf(&["'x'", "'y'", "'é'", "'zz'", "'ab'", "' '"]);
const PLACE: Arg = OneOf(&["1", "2", "3", "9"]);
const LENGTH: Arg = OneOf(&["0", "1", "2", "7"]);
const CHARACTERS: Arg = OneOf(&["'xy'", "'ab'", "'z'"]);
/// Regular expressions that mean the same in Rust's `regex` and in RE2.
const REGEX: Arg = OneOf(&["'x'", "'[a-m]'", "'y+'", "'^x'", "'z$'", "'(x|y).'", "'[0-9]+'", "'é'"]);

pub(super) const TEXTS: &[Operation] = &[
    both("upper({0})", &[TEXT], TO_TEXT),
    both("lower({0})", &[TEXT], TO_TEXT),
    both("trim({0})", &[TEXT], TO_TEXT),
    pair("btrim({0}, {1})", "trim({0}, {1})", &[TEXT, CHARACTERS], TO_TEXT),
    both("ltrim({0}, {1})", &[TEXT, CHARACTERS], TO_TEXT),
    both("rtrim({0}, {1})", &[TEXT, CHARACTERS], TO_TEXT),
    both("trim(LEADING 'x' FROM {0})", &[TEXT], TO_TEXT),
    both("reverse({0})", &[TEXT], TO_TEXT),
    both("left({0}, {1})", &[TEXT, OneOf(&["0", "1", "2", "-1", "9"])], TO_TEXT),
    both("right({0}, {1})", &[TEXT, OneOf(&["0", "1", "2", "-1", "9"])], TO_TEXT),
    both("substr({0}, {1})", &[TEXT, PLACE], TO_TEXT),
    both("substr({0}, {1}, {2})", &[TEXT, PLACE, LENGTH], TO_TEXT),
    both("substring({0} FROM 2 FOR 2)", &[TEXT], TO_TEXT),
    both("replace({0}, {1}, {2})", &[TEXT, PIECE, TEXT], TO_TEXT),
    both("translate({0}, 'xyab', 'qé')", &[TEXT], TO_TEXT),
    both("lpad({0}, {1}, {2})", &[TEXT, LENGTH, OneOf(&["'*'", "'-+'", "'é'"])], TO_TEXT),
    both("rpad({0}, {1}, {2})", &[TEXT, LENGTH, OneOf(&["'*'", "'-+'", "'é'"])], TO_TEXT),
    both("repeat({0}, {1})", &[TEXT, LENGTH], TO_TEXT),
    both("({0} || {1})", &[TEXT, TEXT], TO_TEXT),
    both("({0} || '-' || {1})", &[TEXT, INT], TO_TEXT),
    both("concat({0}, {1}, {2})", &[TEXT, INT, TEXT], TO_TEXT),
    both("concat_ws('-', {0}, {1}, {2})", &[TEXT, TEXT, INT], TO_TEXT),
    both("split_part({0}, {1}, {2})", &[TEXT, PIECE, OneOf(&["1", "2", "-1"])], TO_TEXT),
    both("chr(97 + CAST(abs({0} % 20) AS INT))", &[INT], TO_TEXT),
    pair("to_hex(abs({0}))", "lower(to_hex(abs({0})))", &[INT], TO_TEXT),
    both("md5({0})", &[TEXT], TO_TEXT),
    both("sha256({0})", &[TEXT], TO_TEXT),
    ours("sha224({0})", &[TEXT], TO_TEXT),
    ours("sha384({0})", &[TEXT], TO_TEXT),
    ours("sha512({0})", &[TEXT], TO_TEXT),
    pair("digest({0}, 'sha256')", "sha256({0})", &[TEXT], TO_TEXT),
    pair("encode({0}, 'hex')", "lower(hex({0}))", &[TEXT], TO_TEXT),
    ours("CAST(decode(encode({0}, 'base64'), 'base64') AS VARCHAR)", &[TEXT], TO_TEXT),
    both("CAST({0} AS VARCHAR)", &[INT], TO_TEXT),
    both("CAST({0} AS VARCHAR)", &[Of(Type::Date)], TO_TEXT),
    both("CAST({0} AS VARCHAR)", &[Of(Type::Bool)], TO_TEXT),
    ours("CAST({0} AS VARCHAR)", &[Of(Type::Decimal(0))], TO_TEXT),
    ours("CAST({0} AS VARCHAR)", &[Of(Type::Float)], TO_TEXT),
    ours("CAST({0} AS VARCHAR)", &[Of(Type::Timestamp)], TO_TEXT),
    both("regexp_replace({0}, {1}, 'Q')", &[TEXT, REGEX], TO_TEXT),
    both("regexp_replace({0}, {1}, 'Q', 'g')", &[TEXT, REGEX], TO_TEXT),
    pair("initcap({0})", "upper(left({0}, 1)) || lower(substr({0}, 2))", &[OneOf(&["'xY'", "'éa'", "'zZz'"])], TO_TEXT),
    ours("initcap({0})", &[TEXT], TO_TEXT),
    ours("overlay({0} PLACING {1} FROM 2 FOR 1)", &[TEXT, PIECE], TO_TEXT),
    ours("substr_index({0}, {1}, 1)", &[TEXT, PIECE], TO_TEXT),
    ours("arrow_typeof({0})", &[TEXT], TO_TEXT),
    both("length({0})", &[TEXT], TO_INT),
    pair("character_length({0})", "length({0})", &[TEXT], TO_INT),
    pair("octet_length({0})", "strlen({0})", &[TEXT], TO_INT),
    both("bit_length({0})", &[TEXT], TO_INT),
    both("ascii({0})", &[TEXT], TO_INT),
    both("strpos({0}, {1})", &[TEXT, PIECE], TO_INT),
    both("position({1} IN {0})", &[TEXT, TEXT], TO_INT),
    both("levenshtein({0}, {1})", &[OneOf(&["'xy'", "'abc'", "''"]), TEXT], TO_INT),
    ours("find_in_set({0}, 'x,y,xy')", &[TEXT], TO_INT),
    pair("regexp_count({0}, {1})", "len(regexp_extract_all({0}, {1}))", &[TEXT, REGEX], TO_INT),
    ours("regexp_instr({0}, {1})", &[TEXT, REGEX], TO_INT),
    both("starts_with({0}, {1})", &[TEXT, PIECE], TO_BOOL),
    both("ends_with({0}, {1})", &[TEXT, PIECE], TO_BOOL),
    both("contains({0}, {1})", &[TEXT, TEXT], TO_BOOL),
    pair("regexp_like({0}, {1})", "regexp_matches({0}, {1})", &[TEXT, REGEX], TO_BOOL),
    pair("({0} ~ {1})", "regexp_matches({0}, {1})", &[TEXT, REGEX], TO_BOOL),
    pair("({0} !~* {1})", "(NOT regexp_matches({0}, {1}, 'i'))", &[TEXT, REGEX], TO_BOOL),
    both(
        "({0} LIKE {1})",
        &[TEXT, OneOf(&["'x%'", "'%y'", "'_'", "'%'", "'%x%'", "'é_'", "''", "'xy'", "'_%_'"])],
        TO_BOOL,
    ),
    both("({0} NOT LIKE {1})", &[TEXT, OneOf(&["'x%'", "'%y'", "'%é%'"])], TO_BOOL),
    both("({0} ILIKE {1})", &[TEXT, OneOf(&["'X%'", "'%Y'", "'%É%'", "'%Ab%'", "'zZ'"])], TO_BOOL),
    both("({0} LIKE '!%%' ESCAPE '!')", &[TEXT], TO_BOOL),
    pair("({0} LIKE '%\\%')", "({0} LIKE '%\\%' ESCAPE '\\')", &[TEXT], TO_BOOL),
    both("({0} LIKE {1})", &[TEXT, TEXT], TO_BOOL),
    both("({0} SIMILAR TO {1})", &[TEXT, SIMILAR], TO_BOOL).told("regexp_like({0}, '^(' || {regex1} || ')$')"),
    both("({0} NOT SIMILAR TO {1})", &[TEXT, SIMILAR], TO_BOOL)
        .told("(NOT regexp_like({0}, '^(' || {regex1} || ')$'))"),
];

/// Patterns of SQL, and the regular expressions that they mean, which DuckDB takes for them.
const SIMILAR: Arg = Pairs(&[
    ("'x%'", "'x.*'"),
    ("'%y'", "'.*y'"),
    ("'_'", "'.'"),
    ("'(x|y)%'", "'(x|y).*'"),
    ("'x'", "'x'"),
    ("'[a-x]+'", "'[a-x]+'"),
    ("'%(y|z)'", "'.*(y|z)'"),
    ("'x{1,2}y?'", "'x{1,2}y?'"),
]);

/// Functions that only tenaz has.
pub(super) const OURS: &[Operation] = &[
    ours("is_english({0})", &[TEXT], TO_BOOL),
    ours("language({0})", &[TEXT], TO_TEXT),
    ours("sentiment({0})", &[TEXT], Gives::Type(Type::Decimal(9))),
    pair("year_of({0})", "TRY_CAST(nullif(regexp_extract({0}, '[0-9]{4}'), '') AS BIGINT)", &[TEXT], TO_INT),
    ours("python_list({0})", &[TEXT], Gives::Type(Type::Texts)),
];
