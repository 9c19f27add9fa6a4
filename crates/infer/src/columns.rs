//! From what the values of a table show to its columns: types, spellings, and what has to be said about them.

use tenaz_csv::{Column, Kind};
use tenaz_source::{NumberForm, ValueForm, currency_writes_day_first};

use crate::evidence::Evidence;
use crate::misfits::Misfits;
use crate::nulls::said_of_nulls;
use crate::reading::Reading;
use crate::spelling::{Hints, Spellings};

/// The columns of a table.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    pub(crate) columns: Vec<Column>,
    /// How the values of each are written.
    pub(crate) values: Vec<Option<ValueForm>>,
    /// Whether each is shown without zeros at the end of decimals.
    pub(crate) trimmed: Vec<bool>,
}

/// The columns with these names, and notes about them. `header`: the names as the file writes them.
pub(crate) fn columns(
    table: &str,
    names: Vec<String>,
    header: &[String],
    evidence: &[Evidence],
    (delimiter, reading): (u8, &Reading),
    notes: &mut Vec<String>,
) -> Columns {
    let spellings: Vec<Option<Spellings>> =
        evidence.iter().map(|e| if e.is_plainly_typed() { None } else { Spellings::of(e) }).collect();
    let hints = hints(&spellings, evidence, header, delimiter, reading);
    let mut all = Columns::default();
    let mut nulls = Vec::new();
    for ((evidence, spelling), name) in evidence.iter().zip(&spellings).zip(names) {
        let mut column = evidence.column(name);
        let place = format!("{table}.{}", column.name);
        let (mut form, mut unlike_scales) = (None, evidence.has_unlike_scales());
        if let Some(spelling) = spelling {
            let chosen = spelling.choose(&place, evidence, hints);
            (column.kind, form, unlike_scales) = (chosen.kind, chosen.form, chosen.unlike_scales);
            column.nulls = evidence.spellings().map(str::to_owned).collect();
            notes.extend(chosen.said);
        }
        if let Some(example) = evidence.points_between_groups() {
            let chosen = choose_point(&place, example, &column.kind, hints);
            (column.kind, unlike_scales) = (chosen.0, unlike_scales && chosen.1.is_none());
            form = chosen.1;
            notes.extend(chosen.2);
        }
        notes.extend(said_of_number(&place, &column.kind, evidence));
        if column.kind == Kind::Text {
            form = evidence.formula().map(|_| ValueForm::Formula);
            notes.extend(said_of_text(table, &column.name, evidence));
        } else {
            nulls.push((column.name.clone(), evidence.spellings().collect()));
        }
        column.nulls.extend(reading.nulls.iter().cloned());
        all.trimmed.push(unlike_scales && matches!(column.kind, Kind::Decimal { .. }));
        all.values.push(form);
        all.columns.push(column);
    }
    notes.extend(said_of_nulls(table, &nulls));
    all
}

/// How numbers such as `1.234` are read: the type, the spelling, and what has to be said.
fn choose_point(place: &str, example: &str, kind: &Kind, hints: Hints) -> (Kind, Option<ValueForm>, Option<String>) {
    let grouped = NumberForm { decimal: b',', group: Some(b'.') };
    if hints.decimal_comma == Some(true) {
        let kind = match kind {
            Kind::Decimal { precision, scale } if *precision > 18 + *scale as u8 => {
                Kind::Decimal { precision: *precision, scale: 0 }
            }
            _ => Kind::Int { float_text: false },
        };
        return (kind, Some(ValueForm::Number(grouped)), None);
    }
    let is_open = hints.semicolons && hints.decimal_comma.is_none();
    let said = is_open.then(|| {
        let whole = grouped.plain(example).unwrap_or_default();
        format!("{place}: the point in {example} is read as a decimal point (--decimal-comma yes reads {whole})")
    });
    (kind.clone(), None, said)
}

/// What numbers may mean besides themselves.
fn said_of_number(place: &str, kind: &Kind, evidence: &Evidence) -> Option<String> {
    match kind {
        Kind::Int { .. } if evidence.compact_date().is_some() => {
            let date = evidence.compact_date().unwrap_or_default();
            Some(format!(
                "{place}: {date} may be a date, and is read as a number (--types {place}=date:%Y%m%d reads dates)"
            ))
        }
        Kind::Int { .. } | Kind::Decimal { .. } | Kind::Float => evidence.sentinel().map(|number| {
            format!(
                "{place}: {number} may stand for missing values, and is read as a number (--null={number} reads null)"
            )
        }),
        _ => None,
    }
}

/// Why a column is text that might have been something else.
fn said_of_text(table: &str, column: &str, evidence: &Evidence) -> Option<String> {
    if let Some(example) = evidence.formula() {
        let inside = tenaz_source::formula_text(example).unwrap_or_default();
        return Some(format!("{table}.{column}: {example} is read as the text {inside}"));
    }
    if let Some(code) = evidence.exponent_code() {
        return Some(format!(
            "{table}.{column} is text because {code} may be a code (--types \"{table}.{column}=float\" reads numbers)"
        ));
    }
    Misfits::of(evidence).map(|misfits| misfits.said(table, column))
}

/// What the columns that leave no choice, and the user, say about those that leave one.
fn hints(
    spellings: &[Option<Spellings>],
    evidence: &[Evidence],
    header: &[String],
    delimiter: u8,
    reading: &Reading,
) -> Hints {
    let mut sure = spellings.iter().flatten().filter_map(Spellings::decimal_comma);
    let mut points = evidence.iter().filter(|evidence| evidence.proves_decimal_point()).map(|_| false);
    let mut orders = spellings.iter().flatten().filter_map(Spellings::date_order);
    let in_names = header.iter().find_map(|name| currency_writes_day_first(name));
    Hints {
        decimal_comma: reading.decimal_comma.or_else(|| sure.next()).or_else(|| points.next()),
        date_order: reading.date_order.or_else(|| orders.next()),
        semicolons: delimiter == b';',
        day_first: evidence.iter().find_map(Evidence::day_first).or(in_names) == Some(true),
    }
}
