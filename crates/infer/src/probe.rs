//! The shape of a file, from its first bytes: encoding, dialect, header, number of fields.

use tenaz_csv::limits::MAX_RECORD_BYTES;
use tenaz_source::{Compression, Dialect, RecordKind, RecordReader, TextEncoding, read_head};

use crate::Error;
use crate::evidence::Evidence;
use crate::find::Found;
use crate::header::{HeaderGuess, find_header, first_header, is_value};
use crate::preamble::footnotes;
use crate::reading::Reading;
use crate::sniff::{most_common, sniff, without_lines};

/// What a file looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) dialect: Dialect,
    pub(crate) encoding: TextEncoding,
    /// It is read as it stands: not unpacked, not transcoded.
    pub(crate) is_plain_text: bool,
    /// The names in the first record, if it holds names.
    pub(crate) header: Option<Vec<String>>,
    /// The record that holds them, or the last of several, as it stands in the file.
    pub(crate) header_record: Option<Vec<String>>,
    /// The names stand in a comment, so no record is a header.
    pub(crate) names_in_comment: bool,
    /// Fields of a record.
    pub(crate) columns: usize,
    /// The header stands in the file again.
    pub(crate) repeats_header: bool,
    /// The first record of a second table below the first.
    pub(crate) second_table: Option<Vec<String>>,
    /// The first line of the text below the table.
    pub(crate) footnote: Option<String>,
    /// What was guessed and has to be said.
    pub(crate) said: Vec<String>,
}

impl Shape {
    /// The shape of a file without any records.
    pub(crate) fn of_nothing() -> Self {
        Self {
            dialect: Dialect::default(),
            encoding: TextEncoding::UTF_8,
            is_plain_text: true,
            header: None,
            header_record: None,
            names_in_comment: false,
            columns: 1,
            repeats_header: false,
            second_table: None,
            footnote: None,
            said: Vec::new(),
        }
    }
}

/// The result of looking at a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    Shape(Shape),
    /// There are no records.
    Empty,
    /// It cannot be used, because of this.
    Unusable(String),
}

/// Looks at the first `bytes` of a file, or more if its records are longer.
pub(crate) fn probe(found: &Found, bytes: usize, reading: &Reading) -> Result<Probe, Error> {
    let mut wanted = bytes;
    loop {
        let head = match read_head(&found.path, reading.encoding, wanted) {
            Ok(head) => head,
            Err(tenaz_source::Error::Io(source)) if is_damage(&source) => {
                return Ok(Probe::Unusable(format!("it cannot be unpacked: {source}")));
            }
            Err(tenaz_source::Error::Io(source)) => return Err(Error::Unreadable { path: found.path.clone(), source }),
            Err(other) => return Ok(Probe::Unusable(other.to_string())),
        };
        let seen = shape(&head.text, head.whole, found.speaks_of_tabs(), reading);
        let enough = head.text.len() > 2 * MAX_RECORD_BYTES;
        let finish = |probe: Probe| match probe {
            Probe::Shape(mut shape) => {
                shape.encoding = head.encoding;
                shape.is_plain_text = head.compression == Compression::None && head.encoding.is_utf8();
                if head.is_guess {
                    shape.said.insert(0, format!("read as {} (--encoding utf-8 insists)", head.encoding));
                }
                Probe::Shape(shape)
            }
            other => other,
        };
        match seen {
            Some((probe, _)) if head.whole || enough => return Ok(finish(probe)),
            // Two records: one may be the header.
            Some((probe, records)) if records >= 2 => return Ok(finish(probe)),
            None if head.whole || enough => return Ok(Probe::Unusable("no record can be read".to_owned())),
            _ => wanted *= 4,
        }
    }
}

fn is_damage(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof)
}

/// The shape of the file that starts with `head`, and how many records it was seen in. None: more bytes are needed.
fn shape(head: &[u8], whole: bool, tabs: bool, reading: &Reading) -> Option<(Probe, usize)> {
    if head.iter().all(u8::is_ascii_whitespace) && whole && !head.contains(&b'\t') {
        return Some((Probe::Empty, 0));
    }
    let sniffed = sniff(head, whole, tabs, reading);
    let (mut dialect, mut said) = (sniffed.dialect, sniffed.said);
    let skipped = dialect.skip_lines;
    let body = without_lines(head, dialect.skip_lines, dialect.cr_ends_records);
    let (mut seen_records, seen) = records(body, whole, &dialect, reading.lenient);
    if seen == 0 {
        return None;
    }
    if seen_records.is_empty() {
        let broken = "its records have broken quotes (--lenient takes them literally, --quote none knows none)";
        return Some((Probe::Unusable(broken.to_owned()), seen));
    }
    let footnote = match (whole, reading.footnotes) {
        (false, _) | (_, Some(false)) => None,
        _ => footnotes(seen_records.iter().map(|record| (record.fields.as_slice(), record.behind_blank))),
    };
    let footnote = footnote.map(|first| seen_records.split_off(first).swap_remove(0).fields.swap_remove(0));
    let second_table = second_table(&seen_records);
    let first_table = &seen_records[..second_table.unwrap_or(seen_records.len())];
    let mut all: Vec<Vec<String>> = first_table.iter().map(|record| record.fields.clone()).collect();
    let width = most_common(all.iter().map(Vec::len), all[0].len()).unwrap_or(all[0].len());
    let names_in_comment = sniffed.names.is_some();
    let mut header = sniffed.names;
    if let Some(guess) = guess_header(&all, width, reading).filter(|_| !names_in_comment) {
        said.extend(said_of(&guess, &seen_records, &dialect, reading));
        dialect.skip_lines += if guess.record > 0 { seen_records[guess.record].line } else { 0 };
        all.drain(..guess.record);
        header = Some(guess.names);
    }
    if header.is_none() && reading.header.is_none() {
        said.push(
            "no names of columns were found, so they are c1, c2, … (--header yes takes the first record)".to_owned(),
        );
    }
    let has_header = header.is_some() && !names_in_comment;
    let columns = most_common(all[usize::from(has_header)..].iter().map(Vec::len), width).unwrap_or(width);
    let repeats_header = has_header && all[0].len() > 1 && all[1..].contains(&all[0]);
    if let Some(second) = second_table {
        let line = skipped + seen_records[second].line + 1;
        let names = seen_records[second].fields.join(",");
        said.push(format!(
            "line {line} seems to begin a second table ({names}): it is read as more records of the first; put each table into a file of its own"
        ));
    }
    if let Some((line, lines)) = quoted_records(first_table, columns, &dialect) {
        let line = skipped + line + 1;
        said.push(format!(
            "line {line}: a quoted field goes on for {lines} lines that look like records; look whether its quote is closed in the right place (--quote none takes quotes literally)"
        ));
    }
    if columns == 1 {
        said.extend(said_of_one_column(first_table));
    }
    said.extend(said_of_empty_texts(first_table));
    if let Some(record) = first_table.iter().find(|record| record.odd_quote.is_some()) {
        let field = record.odd_quote.as_deref().unwrap_or_default();
        said.push(format!(
            "line {}: quotes inside a field are taken literally: {field} (look whether a delimiter is missing, or another --quote is meant)",
            skipped + record.line + 1
        ));
    }
    let shape = Shape {
        dialect,
        encoding: TextEncoding::UTF_8,
        is_plain_text: true,
        header_record: has_header.then(|| all[0].clone()),
        header,
        names_in_comment,
        columns,
        repeats_header,
        footnote,
        second_table: second_table.map(|second| seen_records[second].fields.clone()),
        said,
    };
    Some((Probe::Shape(shape), seen))
}

/// The header, as the user says or as the records show.
fn guess_header(all: &[Vec<String>], width: usize, reading: &Reading) -> Option<HeaderGuess> {
    let first = || HeaderGuess {
        record: 0,
        names: all[0].iter().map(|name| name.trim().to_owned()).collect(),
        lines: 1,
        is_doubtful: false,
    };
    match (reading.header, reading.skip_lines) {
        (Some(true), _) => Some(first()),
        (Some(false), _) => None,
        // Whoever says where the header is has said it.
        (None, Some(_)) => first_header(all, width),
        (None, None) => find_header(all, width),
    }
}

/// What has to be said about a header that is not simply the first record.
fn said_of(guess: &HeaderGuess, records: &[Seen], dialect: &Dialect, reading: &Reading) -> Vec<String> {
    let mut said = Vec::new();
    if guess.record > 0 {
        let line = dialect.skip_lines + records[guess.record].line + 1;
        let what = match (guess.lines, guess.record) {
            (3, _) => format!("lines {} to {line} are one header", line - 2),
            (2, 1) => format!("lines {} and {line} are one header", line - 1),
            (2, _) => format!("lines {} and {line} are one header, and lines above it are no records", line - 1),
            _ => format!("line {line} is the header, and lines above it are no records"),
        };
        said.push(format!("{what} (--skip {} reads from the first line on)", dialect.skip_lines));
    }
    if guess.is_doubtful && reading.header.is_none() {
        said.push(
            "all columns are text, and the first record is taken for their names (--header no reads it as data)"
                .to_owned(),
        );
    }
    said
}

/// How many words every record has, if they are lined up with spaces.
fn lined_up(records: &[Seen]) -> Option<usize> {
    let words = |record: &Seen| record.fields.first().map_or(0, |field| field.split_whitespace().count());
    let is_spaced = |record: &Seen| record.fields.first().is_some_and(|field| field.trim().contains("  "));
    let count = words(records.first()?);
    let is_so = count > 1 && records.len() > 2 && records.iter().all(|record| words(record) == count);
    (is_so && records.iter().any(is_spaced)).then_some(count)
}

/// That `""` is no text: where a column has empty fields, too, a database may have meant two different things.
fn said_of_empty_texts(records: &[Seen]) -> Option<String> {
    let columns = records.iter().map(|record| record.quoted.len()).max()?;
    let has = |column: usize, quoted: bool| {
        records.iter().any(|record| {
            record.quoted.get(column) == Some(&quoted) && record.fields.get(column).is_some_and(String::is_empty)
        })
    };
    (0..columns)
        .find(|&column| has(column, true) && has(column, false))
        .map(|column| format!("column {}: \"\" is read as null, like a field with nothing in it", column + 1))
}

/// What may be wrong with a file of one column.
fn said_of_one_column(records: &[Seen]) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(words) = lined_up(records) {
        said.push(format!(
            "every line is {words} words, lined up with spaces, and is read as one column: tr -s ' ' ',' makes commas of the spaces"
        ));
    }
    if records.iter().skip(1).any(|record| record.behind_blank) {
        said.push("blank lines between the values are no records, and no nulls".to_owned());
    }
    let fields = |record: &Seen| record.fields.first().map_or(0, |field| field.matches([',', ';', '\t']).count());
    let first = records.first().map_or(0, fields);
    if first > 0 && records.len() > 1 && records.iter().all(|record| fields(record) == first) {
        said.push(
            "every record is one field in quotes that holds delimiters, so the file was quoted twice: take the outer quotes away with sed 's/^\"//;s/\"$//;s/\"\"/\"/g'"
                .to_owned(),
        );
    }
    said
}

/// The line of a record with a quoted field of which lines have as many delimiters as records, and how many lines the field has: a
/// quote that was never closed ends at the next one.
fn quoted_records(records: &[Seen], columns: usize, dialect: &Dialect) -> Option<(u64, usize)> {
    let is_record = |line: &str| line.bytes().filter(|byte| *byte == dialect.delimiter).count() + 1 >= columns.max(2);
    let is_suspect = |field: &&String| field.lines().skip(1).any(is_record);
    records.iter().find_map(|record| {
        let field = record.fields.iter().find(is_suspect)?;
        Some((record.line, field.lines().count()))
    })
}

/// Where a second table begins: behind a blank line, with names for columns that hold no names above it, or with another number
/// of fields.
fn second_table(records: &[Seen]) -> Option<usize> {
    let looks_like_a_header = |fields: &[String]| {
        fields.len() > 1 && fields.iter().all(|name| !name.trim().is_empty() && !is_value(name.trim()))
    };
    (2..records.len().saturating_sub(1)).find(|&at| {
        let (above, fields) = (&records[..at], &records[at].fields);
        let width = above[0].fields.len();
        let goes_on = records[at + 1].fields.len() == fields.len() && !records[at + 1].behind_blank;
        if !records[at].behind_blank || !goes_on || !looks_like_a_header(fields) || *fields == above[0].fields {
            return false;
        }
        let is_typed = |column: usize| {
            let mut evidence = Evidence::default();
            above[1..].iter().filter_map(|record| record.fields.get(column)).for_each(|field| evidence.add(field));
            evidence.is_typed()
        };
        above.iter().all(|record| record.fields.len() == width)
            && width > 1
            && (fields.len() != width || (0..width).any(is_typed))
    })
}

/// A record that was seen, and where.
#[derive(Debug)]
struct Seen {
    fields: Vec<String>,
    /// Lines before it.
    line: u64,
    /// A blank line stands right before it.
    behind_blank: bool,
    /// Of each field, whether it stood in quotes.
    quoted: Vec<bool>,
    /// A field without quotes around it that holds quotes as if it had some.
    odd_quote: Option<String>,
}

/// The first field of a record that stands in other quotes, or has a quote inside that none closes.
fn odd_quote(reader: &RecordReader, quote: Option<u8>) -> Option<String> {
    let quote = quote?;
    let other = if quote == b'"' { b'\'' } else { b'"' };
    let is_odd = |field: &[u8]| {
        let in_others = field.len() > 1 && field.first() == Some(&other) && field.last() == Some(&other);
        in_others || field.iter().filter(|byte| **byte == quote).count() % 2 == 1
    };
    let field =
        (0..reader.len()).filter_map(|index| reader.field(index)).find(|(field, quoted)| !quoted && is_odd(field))?;
    Some(String::from_utf8_lossy(field.0).into_owned())
}

/// The records of a text, without those that have stray quotes, and how many there are in all.
fn records(body: &[u8], whole: bool, dialect: &Dialect, lenient: bool) -> (Vec<Seen>, usize) {
    let mut reader = RecordReader::new(dialect.clone(), lenient);
    let (mut rest, mut all, mut seen) = (body, Vec::new(), 0);
    let (mut line, mut behind_blank) = (0, false);
    while let Some(span) = reader.read(rest, whole) {
        rest = &rest[span.next..];
        let here = line;
        line += span.lines;
        let is_good = match span.kind {
            RecordKind::Blank => {
                behind_blank = true;
                continue;
            }
            RecordKind::Comment => continue,
            RecordKind::Record => true,
            RecordKind::StrayQuote | RecordKind::OpenQuote => lenient,
        };
        seen += 1;
        // A line of delimiters alone is what spreadsheets write for a blank one.
        let is_blank = reader.fields().all(|field| field.trim_ascii().is_empty());
        if is_good {
            let text = |field| String::from_utf8_lossy(field).into_owned();
            let mut fields: Vec<String> = reader.fields().map(text).collect();
            // Files that were put one behind the other may each begin with a byte order mark.
            if let Some(first) = fields.first_mut().filter(|first| first.starts_with('\u{feff}')) {
                first.remove(0);
            }
            let quoted = (0..reader.len()).map(|index| reader.field(index).is_some_and(|(_, quoted)| quoted)).collect();
            let odd_quote = odd_quote(&reader, dialect.quote).filter(|_| span.kind == RecordKind::Record);
            all.push(Seen { fields, line: here, behind_blank, quoted, odd_quote });
        }
        behind_blank = is_blank;
    }
    (all, seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Shape {
        match shape(text.trim_start_matches('\u{feff}').as_bytes(), true, false, &Reading::default()) {
            Some((Probe::Shape(shape), _)) => shape,
            other => panic!("{text:?}: {other:?}"),
        }
    }

    fn header(text: &str) -> Option<Vec<String>> {
        seen(text).header
    }

    fn names(names: &[&str]) -> Option<Vec<String>> {
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_first_record_of_unlike_names_is_a_header() {
        assert_eq!(header("id,name\n1,a\n"), names(&["id", "name"]));
        assert_eq!(header("\u{feff}\"id\", name \n1,a\n"), names(&["id", "name"]));
        assert_eq!(header("id,name\n"), names(&["id", "name"]));
        for without in ["1,a\n2,b\n", "x,2.5\ny,3\n", "a,a\nb,b\n", "a,\nb,\n", "2024-01-01,x\n", "True,x\n", "1e5,x\n"]
        {
            assert_eq!(header(without), None, "{without:?}");
        }
        assert_eq!(header(&format!("{},x\n1,2\n", "long".repeat(100))), None);
    }

    #[test]
    fn names_may_be_missing_or_repeated_where_the_records_tell() {
        assert_eq!(header(",a,b\n0,1,2\n1,3,4\n"), names(&["", "a", "b"]));
        assert_eq!(header("id,name,\n1,x,y\n"), names(&["id", "name", ""]));
        assert_eq!(header("id,name,name\n1,x,y\n"), names(&["id", "name", "name"]));
    }

    #[test]
    fn the_records_decide_how_many_columns_there_are() {
        assert_eq!(seen("a,b\n1,2,3\n4,5,6\n").columns, 3);
        assert_eq!(seen("a,b,c\n1,2\n4,5\n").columns, 2);
        assert_eq!(seen("a,b,c\n1,2,3\n4,5\n7,8,9\n").columns, 3);
        assert_eq!(seen("a,b,c\n").columns, 3);
    }

    #[test]
    fn what_has_no_records_is_told_apart() {
        let shape = |head: &[u8], whole| shape(head, whole, false, &Reading::default());
        assert_eq!(shape(b"", true), Some((Probe::Empty, 0)));
        assert_eq!(shape(b"\n \r\n", true), Some((Probe::Empty, 0)));
        assert_eq!(shape(b"an unfinished rec", false), None);
    }

    #[test]
    fn a_header_that_stands_in_the_file_again_is_seen() {
        assert!(seen("id,name\n1,a\nid,name\n2,b\n").repeats_header);
        assert!(!seen("id,name\n1,a\n2,b\n").repeats_header);
    }
}
