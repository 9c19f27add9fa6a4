//! Lines above the header that are no records, and lines of text below the table.

use tenaz_source::{Dialect, RecordKind, RecordReader};

use crate::evidence::Evidence;
use crate::header::is_value;
use crate::sniff::{LOOKED_AT, fit};

/// Lines before a header, at most.
const MAX_PREAMBLE: usize = 40;

/// Columns of a table that is told from shorter lines above it.
const MIN_COLUMNS: usize = 3;

/// Lines before the first record.
pub(crate) fn preamble(body: &[u8], whole: bool, dialect: &Dialect) -> u64 {
    let above = if whole { lines_above_a_wider_table(body, dialect) } else { None };
    above.unwrap_or_else(|| titles(body, whole, dialect))
}

/// Lines before the first record that has as many fields as most, and is no title.
fn titles(body: &[u8], whole: bool, dialect: &Dialect) -> u64 {
    let Some(usual) = fit(body, whole, dialect).filter(|fit| fit.usual >= 2 && fit.same >= 10).map(|fit| fit.usual)
    else {
        return 0;
    };
    let mut reader = RecordReader::new(dialect.clone(), true);
    let (mut rest, mut lines, mut records) = (body, 0, 0);
    while let Some(span) = reader.read(rest, whole) {
        let is_record = !matches!(span.kind, RecordKind::Blank | RecordKind::Comment);
        if is_record {
            let filled = reader.fields().filter(|field| !field.trim_ascii().is_empty()).count();
            // A header with a name too few is a header; a title fills at most half of the columns.
            let is_title = filled * 2 <= usual && (reader.len() < usual || filled <= 1);
            if !is_title {
                return if records > 0 { lines } else { 0 };
            }
            records += 1;
        }
        if records > MAX_PREAMBLE {
            return 0;
        }
        lines += span.lines;
        rest = &rest[span.next..];
    }
    0
}

/// A record of a small file.
struct Line {
    fields: Vec<String>,
    /// Lines before it.
    line: u64,
    behind_blank: bool,
}

/// Lines above the table of a small file, in which they may be more than its records: banks write a dozen of them over the three
/// transactions of a month. The table is what stands below, is wider than everything above it, and begins with names over values.
fn lines_above_a_wider_table(body: &[u8], dialect: &Dialect) -> Option<u64> {
    let mut lines = records(body, dialect)?;
    while lines.last().is_some_and(|last| last.fields.len() == 1) {
        lines.pop();
    }
    let width = lines.last()?.fields.len();
    let start = lines.iter().rposition(|line| line.fields.len() != width).map_or(0, |above| above + 1);
    let (above, table) = lines.split_at(start);
    let header = table.first()?;
    let stands_apart = header.behind_blank || above.iter().all(|line| line.fields.len() <= 2);
    let is_narrower = above.iter().all(|line| line.fields.len() < width);
    if above.is_empty() || above.len() > MAX_PREAMBLE || table.len() < 2 || width < MIN_COLUMNS {
        return None;
    }
    if !stands_apart || !is_narrower || !is_header(&header.fields) || is_table(above) {
        return None;
    }
    let is_typed = |column: usize| {
        let mut evidence = Evidence::default();
        table[1..].iter().for_each(|line| evidence.add(&line.fields[column]));
        evidence.is_typed()
    };
    (0..width).any(is_typed).then_some(header.line)
}

/// Whether lines are a table of their own: names over values.
fn is_table(lines: &[Line]) -> bool {
    let Some((first, others)) = lines.split_first() else { return false };
    let width = first.fields.len();
    let is_typed = |column: usize| {
        let mut evidence = Evidence::default();
        others.iter().filter(|line| line.fields.len() == width).for_each(|line| evidence.add(&line.fields[column]));
        evidence.is_typed()
    };
    width > 1 && is_header(&first.fields) && (0..width).any(is_typed)
}

/// All records of a text, if they are few.
fn records(body: &[u8], dialect: &Dialect) -> Option<Vec<Line>> {
    let mut reader = RecordReader::new(dialect.clone(), true);
    let (mut rest, mut lines, mut behind_blank, mut all) = (body, 0, false, Vec::new());
    while let Some(span) = reader.read(rest, true) {
        match span.kind {
            RecordKind::Blank => behind_blank = true,
            RecordKind::Comment => {}
            _ => {
                let fields = reader.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
                all.push(Line { fields, line: lines, behind_blank });
                behind_blank = false;
            }
        }
        if all.len() > LOOKED_AT {
            return None;
        }
        lines += span.lines;
        rest = &rest[span.next..];
    }
    Some(all)
}

/// Whether nearly all fields are names.
fn is_header(fields: &[String]) -> bool {
    let names = fields.iter().filter(|name| !name.trim().is_empty()).count();
    names * 5 >= fields.len() * 4 && !fields.iter().any(|name| is_value(name.trim()))
}

/// The first of the lines of text that end a file: they stand behind a blank line, and the first has one field where records have several.
pub(crate) fn footnotes<'a>(
    records: impl DoubleEndedIterator<Item = (&'a [String], bool)> + ExactSizeIterator,
) -> Option<usize> {
    let mut first = None;
    let mut width = 1;
    let count = records.len();
    for (back, (fields, behind_blank)) in records.rev().enumerate() {
        if fields.len() != 1 {
            width = fields.len();
            break;
        }
        if behind_blank {
            first = Some(count - 1 - back);
        }
    }
    first.filter(|first| width > 1 && *first > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bank_may_write_more_lines_above_its_table_than_records() {
        let lines = |text: &str| preamble(text.as_bytes(), true, &Dialect::with_delimiter(b';'));
        let text = "Umsatzanzeige;Datei erstellt am: 01.04.2025\n\nIBAN;DE11\nKunde;Ann\nZeitraum;M\u{e4}rz\nSaldo;1,50;EUR\n\n\
            Buchung;Text;Saldo;W\u{e4}hrung;Betrag;W\u{e4}hrung\n31.03.2025;REWE;1,50;EUR;-2,50;EUR\n";
        assert_eq!(lines(text), 7);
        assert_eq!(lines(&(text.to_owned() + "\nDisclaimer:\nText\n")), 7, "lines below it do not matter");
        assert_eq!(lines("a;b\n1;2\n3;4\nx;y;z\n"), 0, "no values below");
        assert_eq!(lines("a;b\n1;2\n\nx;y;z\n7;8;9\n"), 0, "two tables");
        assert_eq!(lines("a;b\n1;2\n3;4;5\n4;5;6\n"), 0, "no names above");
    }

    #[test]
    fn text_below_a_table_stands_behind_a_blank_line() {
        let of = |records: &[(&[&str], bool)]| {
            let owned: Vec<(Vec<String>, bool)> = records
                .iter()
                .map(|(fields, blank)| (fields.iter().map(|f| (*f).to_owned()).collect(), *blank))
                .collect();
            footnotes(owned.iter().map(|(fields, blank)| (fields.as_slice(), *blank)))
        };
        let table: [(&[&str], bool); 3] = [(&["a", "b"], false), (&["1", "2"], false), (&["3", "4"], false)];
        let with = |more: &[(&[&str], bool)]| of(&[&table[..], more].concat());
        assert_eq!(with(&[(&["Disclaimer:"], true), (&["text"], false)]), Some(3));
        assert_eq!(with(&[(&["Disclaimer:"], true), (&["text"], true)]), Some(3));
        assert_eq!(with(&[(&["short"], false)]), None);
        assert_eq!(with(&[]), None);
        assert_eq!(of(&[(&["a"], false), (&["1"], false), (&["2"], true)]), None, "a table of one column");
    }
}
