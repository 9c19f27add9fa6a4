//! Questions that are not plain SQL, as plain SQL: `SHOW TABLES`, `DESCRIBE t`, `SUMMARIZE t`, and values for `$parameters`.
//!
//! All of them become queries like others, so they are answered in the same pass, in every format and with a fingerprint.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};
use tenaz_csv::{Column, Kind};
use tenaz_engine::{JobPlan, Purpose, Query, Statement, Table, Workload, describe};
use tenaz_infer::Inferred;
use tenaz_words::nearest;

/// A statement that cannot be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// It says something that makes no sense.
    #[error("{0}")]
    Wrong(String),
    /// What it explains cannot be planned.
    #[error(transparent)]
    Plan(#[from] tenaz_engine::Error),
}

type Result<T> = std::result::Result<T, StatementError>;

/// Rewrites the queries that are about tables rather than about their records.
pub fn in_plain_sql(statements: &mut [Statement], inferred: &Inferred) -> Result<()> {
    for Statement { query, purpose } in statements {
        if *purpose == Purpose::Explain {
            query.sql = explain(query, inferred)?;
            continue;
        }
        let words: Vec<String> = query.sql.split_whitespace().map(str::to_lowercase).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let sql = match words[..] {
            ["show", "tables"] => show_tables(inferred),
            ["describe" | "desc", table] | ["describe" | "desc", "table", table] => {
                describe_table(find(inferred, table)?)
            }
            ["summarize" | "summarise", table] => summarize(find(inferred, table)?),
            _ => continue,
        };
        query.sql = sql;
    }
    Ok(())
}

fn find<'a>(inferred: &'a Inferred, name: &str) -> Result<&'a Table> {
    let tables = &inferred.workload.tables;
    let name = name.trim_matches('"');
    if let Some(table) = tables.iter().find(|table| table.name == name) {
        return Ok(table);
    }
    let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
    let hint = match nearest(name, names.iter().copied()).first() {
        Some(close) => format!("did you mean {close}?"),
        None => format!("there are {}", names.join(", ")),
    };
    Err(StatementError::Wrong(format!("there is no table {name:?}; {hint}")))
}

fn text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn show_tables(inferred: &Inferred) -> String {
    let tables = inferred.workload.tables.iter().zip(&inferred.sources).enumerate();
    let rows = tables.map(|(place, (table, source))| {
        let (name, files) = (text(&table.name), text(&table.files.join(" ")));
        format!("({place}, {name}, {}, {files}, {})", table.layout.columns.len(), source.bytes)
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "SELECT name, columns, files, bytes FROM (VALUES {}) AS t(place, name, columns, files, bytes) ORDER BY place",
        rows.join(", ")
    )
}

/// The stages in which a query is answered, a line a row.
fn explain(query: &Query, inferred: &Inferred) -> Result<String> {
    let workload = Workload { queries: vec![query.clone()], ..inferred.workload.clone() };
    let plan = describe::text(&JobPlan::new(&workload)?);
    let rows: Vec<String> =
        plan.lines().enumerate().map(|(place, line)| format!("({place}, {})", text(line))).collect();
    Ok(format!("SELECT plan FROM (VALUES {}) AS t(place, plan) ORDER BY place", rows.join(", ")))
}

fn describe_table(table: &Table) -> String {
    let rows = table.layout.columns.iter().enumerate().map(|(place, column)| {
        let header = table.labels.get(place).and_then(Option::as_deref).unwrap_or(&column.name);
        let nulls = if column.nulls.is_empty() { "NULL".to_owned() } else { text(&column.nulls.join(" ")) };
        format!("({place}, {}, {}, {}, {nulls})", text(&column.name), text(&column.kind.to_string()), text(header))
    });
    let rows: Vec<String> = rows.collect();
    format!(
        "SELECT \"column\", \"type\", header, nulls FROM (VALUES {}) AS t(place, \"column\", \"type\", header, nulls) ORDER BY place",
        rows.join(", ")
    )
}

/// A row for each column; all of them are made in one pass over the table.
fn summarize(table: &Table) -> String {
    let row = |(place, column): (usize, &Column)| {
        let name = format!("\"{}\"", column.name.replace('"', "\"\""));
        let shown = |value: String| format!("CAST({value} AS VARCHAR)");
        let of_numbers = |value: String| match column.kind {
            Kind::Int { .. } | Kind::Decimal { .. } | Kind::Float => shown(value),
            _ => "CAST(NULL AS VARCHAR)".to_owned(),
        };
        let quantile = |share: &str| of_numbers(format!("percentile_cont({share}) WITHIN GROUP (ORDER BY {name})"));
        // Truth values have no order.
        let extreme = |function: &str| match column.kind {
            Kind::Bool { .. } => shown(format!("{function}(CAST({name} AS VARCHAR))")),
            _ => shown(format!("{function}({name})")),
        };
        format!(
            "SELECT {place} AS place, {} AS \"column\", {} AS \"type\", count(*) AS records, count(*) - count({name}) AS nulls, \
             count(DISTINCT {name}) AS \"distinct\", {} AS \"min\", {} AS q25, {} AS median, {} AS q75, {} AS \"max\" FROM {}",
            text(&column.name),
            text(&column.kind.to_string()),
            extreme("min"),
            quantile("0.25"),
            of_numbers(format!("median({name})")),
            quantile("0.75"),
            extreme("max"),
            table.name,
        )
    };
    let rows: Vec<String> = table.layout.columns.iter().enumerate().map(row).collect();
    format!(
        "SELECT \"column\", \"type\", records, nulls, \"distinct\", \"min\", q25, median, q75, \"max\" FROM ({}) AS s ORDER BY place",
        rows.join(" UNION ALL ")
    )
}

/// The text with the values of `--set name=value` in the places of `$name`.
pub fn with_values(sql: &str, values: &[String]) -> Result<String> {
    let mut given = Vec::new();
    for entry in values {
        let Some((name, value)) = entry.split_once('=').filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(StatementError::Wrong(format!("--set {entry}: write name=value, and $name in the query")));
        };
        given.push((format!("${}", name.trim()), literal(value.trim()), false));
    }
    // What cannot be taken apart is the planner's to complain about.
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location() else {
        return Ok(sql.to_owned());
    };
    let (mut text, mut from) = (String::new(), 0);
    for token in tokens {
        let Token::Placeholder(name) = &token.token else { continue };
        let Some((_, value, used)) = given.iter_mut().find(|(known, ..)| known == name) else {
            let plain = name.trim_start_matches('$');
            return Err(StatementError::Wrong(format!("{name} has no value; add --set {plain}=VALUE")));
        };
        *used = true;
        let (start, end) = (byte_of(sql, token.span.start), byte_of(sql, token.span.end));
        text.push_str(&sql[from..start]);
        text.push_str(value);
        from = end;
    }
    if let Some((name, ..)) = given.iter().find(|(.., used)| !used) {
        return Err(StatementError::Wrong(format!(
            "no query has {name}; leave its --set out, or write {name} where it belongs"
        )));
    }
    text.push_str(&sql[from..]);
    Ok(text)
}

fn byte_of(sql: &str, place: Location) -> usize {
    let lines = (place.line as usize).saturating_sub(1);
    let start = if lines == 0 { 0 } else { sql.match_indices('\n').nth(lines - 1).map_or(sql.len(), |(at, _)| at + 1) };
    let column = (place.column as usize).saturating_sub(1);
    sql[start..].char_indices().nth(column).map_or(sql.len(), |(at, _)| start + at)
}

/// A value as SQL writes it: numbers, dates and times, truth values and null as they look, all else as text. What stands in single
/// quotes is text, whatever it looks like.
fn literal(value: &str) -> String {
    if let Some(inside) = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) {
        return text(inside);
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
        && digits.matches('.').count() <= 1;
    if is_number {
        return if digits == value { value.to_owned() } else { format!("({value})") };
    }
    if Kind::Date.check(value).is_ok() {
        return format!("DATE {}", text(value));
    }
    if Kind::Timestamp.check(value).is_ok() {
        return format!("TIMESTAMP {}", text(value));
    }
    match value.to_lowercase().as_str() {
        word @ ("true" | "false" | "null") => word.to_uppercase(),
        _ => text(value),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_names_stood_and_are_what_they_look_like() {
        let set = |sql: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            with_values(sql, &values).map_err(|error| error.to_string())
        };
        let sql = "SELECT ü, '$since' -- $since\nFROM t WHERE d >= $since AND n > $n";
        let expected = "SELECT ü, '$since' -- $since\nFROM t WHERE d >= DATE '2025-01-01' AND n > (-5)";
        assert_eq!(set(sql, &["since=2025-01-01", "n=-5"]).unwrap(), expected);
        for (value, literal) in [
            ("1.50", "1.50"),
            ("1.5.0", "'1.5.0'"),
            ("O'Brien", "'O''Brien'"),
            ("'007'", "'007'"),
            ("2025-01-01 10:00:00", "TIMESTAMP '2025-01-01 10:00:00'"),
            ("True", "TRUE"),
            ("", "''"),
        ] {
            assert_eq!(set("$x", &[&format!("x={value}")]).unwrap(), literal);
        }
        assert_eq!(set("SELECT $a", &[]).unwrap_err(), "$a has no value; add --set a=VALUE");
        assert!(set("SELECT 1", &["a=1"]).unwrap_err().starts_with("no query has $a"));
        assert!(set("SELECT 1", &["a"]).unwrap_err().contains("write name=value"));
    }
}
