//! The shape of a file, from its first bytes: encoding, dialect, header, number of fields.

use tenaz_csv::Kind;
use tenaz_csv::limits::MAX_RECORD_BYTES;
use tenaz_source::{Compression, Dialect, RecordKind, RecordReader, TextEncoding, read_head};

use crate::Error;
use crate::evidence::Evidence;
use crate::find::Found;
use crate::limits::MAX_HEADER_NAME;
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
    /// Fields of a record.
    pub(crate) columns: usize,
    /// The header stands in the file again.
    pub(crate) repeats_header: bool,
    /// What was guessed and has to be said.
    pub(crate) said: Vec<String>,
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
    let dialect = sniffed.dialect;
    let body = without_lines(head, dialect.skip_lines, dialect.cr_ends_records);
    let (all, seen) = records(body, whole, &dialect, reading.lenient);
    if seen == 0 {
        return None;
    }
    let Some(first) = all.first() else {
        let broken = "its records have broken quotes (--lenient takes them literally, --quote none knows none)";
        return Some((Probe::Unusable(broken.to_owned()), seen));
    };
    let others: Vec<Vec<&str>> = all[1..].iter().map(|record| record.iter().map(String::as_str).collect()).collect();
    let names: Vec<&str> = first.iter().map(String::as_str).collect();
    let header = reading.header.unwrap_or_else(|| is_header(&names, &others));
    let lengths = all[usize::from(header)..].iter().map(Vec::len);
    let columns = most_common(lengths, first.len()).unwrap_or(first.len());
    let repeats_header = header && repeats(first, &all[1..]);
    let header = header.then(|| first.iter().map(|name| name.trim().to_owned()).collect());
    let shape = Shape {
        dialect,
        encoding: TextEncoding::UTF_8,
        is_plain_text: true,
        header,
        columns,
        repeats_header,
        said: sniffed.said,
    };
    Some((Probe::Shape(shape), seen))
}

/// Whether the header stands in the file again. Where all columns are texts it may as well be a record like others.
fn repeats(header: &[String], others: &[Vec<String>]) -> bool {
    let (again, records): (Vec<&Vec<String>>, Vec<&Vec<String>>) = others.iter().partition(|record| **record == header);
    let is_typed = |column: usize| {
        let mut evidence = Evidence::default();
        records.iter().filter_map(|record| record.get(column)).for_each(|field| evidence.add(field));
        evidence.is_typed()
    };
    !again.is_empty() && header.len() > 1 && (0..header.len()).any(is_typed)
}

/// The records of a text, without those that have stray quotes, and how many there are in all.
fn records(body: &[u8], whole: bool, dialect: &Dialect, lenient: bool) -> (Vec<Vec<String>>, usize) {
    let mut reader = RecordReader::new(dialect.clone(), lenient);
    let (mut rest, mut all, mut seen) = (body, Vec::new(), 0);
    while let Some(span) = reader.read(rest, whole) {
        rest = &rest[span.next..];
        let is_good = match span.kind {
            RecordKind::Blank | RecordKind::Comment => continue,
            RecordKind::Record => true,
            RecordKind::StrayQuote | RecordKind::OpenQuote => lenient,
        };
        seen += 1;
        if is_good {
            all.push(reader.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect());
        }
    }
    (all, seen)
}

/// Names are texts, there is one for every column, and they differ. If some are missing or repeated (pandas leaves the name of an
/// index out), the records below must tell: a column with a name over values that are no texts.
fn is_header(first: &[&str], body: &[Vec<&str>]) -> bool {
    let names: Vec<&str> = first.iter().map(|name| name.trim()).collect();
    if names.iter().any(|name| is_value(name) || name.chars().count() > MAX_HEADER_NAME) {
        return false;
    }
    let mut sorted: Vec<&str> = names.iter().copied().filter(|name| !name.is_empty()).collect();
    sorted.sort_unstable();
    sorted.dedup();
    if sorted.len() == names.len() {
        return true;
    }
    let has_type = |column: usize| {
        let mut evidence = Evidence::default();
        body.iter().filter_map(|record| record.get(column)).for_each(|field| evidence.add(field));
        evidence.is_typed()
    };
    (0..names.len()).any(|column| !names[column].is_empty() && has_type(column))
}

/// Whether the text is a number, a date, a time or a truth value, in any spelling.
fn is_value(text: &str) -> bool {
    let mut evidence = Evidence::default();
    evidence.add(text);
    evidence.is_typed() || Kind::Float.check(text).is_ok()
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
