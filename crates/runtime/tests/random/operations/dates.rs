//! Functions of dates and timestamps.

use super::Arg::{Of, OneOf, Pairs};
use super::Gives::{self};
use super::{Arg, Operation, both, ours, pair};
use crate::random::tree::Type;

const INT: Arg = Of(Type::Int);
const DATE: Arg = Of(Type::Date);
const TIMESTAMP: Arg = Of(Type::Timestamp);
const TO_INT: Gives = Gives::Type(Type::Int);
const TO_TEXT: Gives = Gives::Type(Type::Text);
const TO_DATE: Gives = Gives::Type(Type::Date);
const TO_TIMESTAMP: Gives = Gives::Type(Type::Timestamp);
const PARTS_OF_DAYS: Arg = OneOf(&["'year'", "'quarter'", "'month'", "'week'", "'day'", "'dow'", "'doy'", "'isodow'"]);
const PARTS_OF_TIMES: Arg = OneOf(&["'hour'", "'minute'", "'year'", "'month'", "'dow'", "'day'"]);
const UNITS_OF_DAYS: Arg = OneOf(&["'year'", "'quarter'", "'month'", "'week'", "'day'"]);
const UNITS_OF_TIMES: Arg = OneOf(&["'hour'", "'minute'", "'second'", "'month'", "'week'", "'year'"]);
const DAYS: Arg = OneOf(&["INTERVAL '1' DAY", "INTERVAL '7' DAY", "INTERVAL '31' DAY"]);
const FORMATS: Arg = OneOf(&["'%Y-%m-%d'", "'%d/%m/%Y'", "'%j'", "'%b %Y'"]);

pub(super) const DATES: &[Operation] = &[
    both("CAST(date_part({1}, {0}) AS BIGINT)", &[DATE, PARTS_OF_DAYS], TO_INT),
    both("CAST(date_part({1}, {0}) AS BIGINT)", &[TIMESTAMP, PARTS_OF_TIMES], TO_INT),
    both("CAST(EXTRACT(YEAR FROM {0}) AS BIGINT)", &[DATE], TO_INT),
    both("CAST(EXTRACT(MONTH FROM {0}) AS BIGINT)", &[DATE], TO_INT),
    both("CAST(EXTRACT(HOUR FROM {0}) AS BIGINT)", &[TIMESTAMP], TO_INT),
    both("CAST(EXTRACT(SECOND FROM {0}) AS BIGINT)", &[TIMESTAMP], TO_INT),
    pair("to_unixtime({0})", "CAST(floor(epoch({0})) AS BIGINT)", &[TIMESTAMP], TO_INT),
    pair("CAST(date_trunc({1}, {0}) AS DATE)", "CAST(date_trunc({1}, {0}) AS DATE)", &[DATE, UNITS_OF_DAYS], TO_DATE),
    both("CAST({0} AS DATE)", &[TIMESTAMP], TO_DATE),
    both("CAST({0} + {1} AS DATE)", &[DATE, DAYS], TO_DATE),
    both("CAST({0} + INTERVAL '1' MONTH AS DATE)", &[DATE], TO_DATE),
    both("CAST({0} - INTERVAL '1' YEAR AS DATE)", &[DATE], TO_DATE),
    both("make_date(2024, CAST(1 + abs({0} % 12) AS INT), CAST(1 + abs({1} % 28) AS INT))", &[INT, INT], TO_DATE),
    pair("to_date({0})", "CAST({0} AS DATE)", &[OneOf(&["'2024-02-29'", "'1999-12-31'"])], TO_DATE),
    pair(
        "try_to_date({0}, {1})",
        "CAST(try_strptime({0}, {1}) AS DATE)",
        &[
            OneOf(&["'2024-02-29'", "'31/12/1999'", "'2023-02-29'", "'soon'", "NULL"]),
            OneOf(&["'%Y-%m-%d'", "'%d/%m/%Y'"]),
        ],
        TO_DATE,
    ),
    ours(
        "try_to_timestamp({0}, '%Y-%m-%d %H:%M:%S')",
        &[OneOf(&["'2024-02-29 12:00:00'", "'2024-02-29'"])],
        TO_TIMESTAMP,
    ),
    both("CAST(date_trunc({1}, {0}) AS TIMESTAMP)", &[TIMESTAMP, UNITS_OF_TIMES], TO_TIMESTAMP),
    both("CAST({0} AS TIMESTAMP)", &[DATE], TO_TIMESTAMP),
    both("({0} + INTERVAL '90' MINUTE)", &[TIMESTAMP], TO_TIMESTAMP),
    both("({0} - INTERVAL '2' MONTH)", &[TIMESTAMP], TO_TIMESTAMP),
    pair(
        "date_bin({1}, {0}, TIMESTAMP '2001-01-01 00:00:00')",
        "time_bucket({1}, {0}, TIMESTAMP '2001-01-01 00:00:00')",
        &[
            TIMESTAMP,
            Pairs(&[("INTERVAL '7' DAY", "INTERVAL '7' DAY"), ("INTERVAL '15' MINUTE", "INTERVAL '15' MINUTE")]),
        ],
        TO_TIMESTAMP,
    ),
    pair("to_timestamp({0} * 3600)", "make_timestamp({0} * 3600000000)", &[INT], TO_TIMESTAMP),
    pair("from_unixtime({0} * 60)", "make_timestamp({0} * 60000000)", &[INT], TO_TIMESTAMP),
    pair("to_timestamp_seconds({0})", "make_timestamp({0} * 1000000)", &[INT], TO_TIMESTAMP),
    pair("to_timestamp_millis({0})", "make_timestamp({0} * 1000)", &[INT], TO_TIMESTAMP),
    pair("to_timestamp_micros({0})", "make_timestamp({0})", &[INT], TO_TIMESTAMP),
    ours("to_timestamp_nanos({0} * 1000)", &[INT], TO_TIMESTAMP),
    ours("to_local_time({0})", &[TIMESTAMP], TO_TIMESTAMP),
    pair("to_char({0}, {1})", "strftime({0}, {1})", &[DATE, FORMATS], TO_TEXT),
    pair("to_char({0}, '%H:%M:%S')", "strftime({0}, '%H:%M:%S')", &[TIMESTAMP], TO_TEXT),
    ours("CAST(make_time(CAST(abs({0} % 24) AS INT), 30, 0) AS VARCHAR)", &[INT], TO_TEXT),
    ours("CAST(to_time('12:30:00') AS VARCHAR)", &[], TO_TEXT),
    // tenaz counts microseconds everywhere, DataFusion nanoseconds: here is no difference but zeros at the end.
    ours(
        "regexp_replace(CAST({0} - {1} AS VARCHAR), '([.]......)0* secs', '\\1 secs')",
        &[TIMESTAMP, TIMESTAMP],
        TO_TEXT,
    ),
    pair("date_part('epoch', {0})", "CAST(epoch({0}) AS DOUBLE)", &[TIMESTAMP], Gives::Type(Type::Float)),
];
