//! The shape of a file, from its first bytes: delimiter, header, number of fields.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use tenaz_csv::limits::MAX_RECORD_BYTES;
use tenaz_csv::{Kind, Records};

use crate::Error;
use crate::evidence::Evidence;
use crate::find::Found;
use crate::limits::MAX_HEADER_NAME;

const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Records that are looked at to choose the delimiter.
const LOOKED_AT: usize = 500;

/// What a file looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) delimiter: u8,
    /// The names in the first record, if it holds names.
    pub(crate) header: Option<Vec<String>>,
    /// Fields of a record.
    pub(crate) columns: usize,
}

/// The result of looking at a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Probe {
    Shape(Shape),
    /// There are no records.
    Empty,
    /// It cannot be used, because of this.
    Unusable(&'static str),
}

/// Looks at the first `bytes` of a file, or more if its records are longer.
pub(crate) fn probe(found: &Found, bytes: usize) -> Result<Probe, Error> {
    let unreadable = |source| Error::Unreadable { path: found.path.clone(), source };
    let mut file = File::open(&found.path).map_err(unreadable)?;
    let mut head = Vec::new();
    let mut wanted = bytes;
    loop {
        let more = (wanted - head.len()) as u64;
        let read = (&mut file).take(more).read_to_end(&mut head).map_err(unreadable)?;
        let whole = (read as u64) < more;
        let probe = shape(without_mark(&head), whole, found.ending().eq_ignore_ascii_case("tsv"));
        // Two records: one may be the header.
        let enough = head.len() > 2 * MAX_RECORD_BYTES;
        match probe {
            Some(probe) if whole || enough => return Ok(probe.0),
            Some((probe, records)) if records >= 2 => return Ok(probe),
            None if whole || enough => return Ok(Probe::Unusable("no record can be read")),
            _ => wanted = head.len() * 4,
        }
    }
}

/// The bytes without the mark that some programs put first.
pub(crate) fn without_mark(head: &[u8]) -> &[u8] {
    head.strip_prefix(BOM).unwrap_or(head)
}

/// The shape of the file that starts with `head`, and how many records it was seen in. None: more bytes are needed.
fn shape(head: &[u8], whole: bool, tabs: bool) -> Option<(Probe, usize)> {
    if head.iter().all(u8::is_ascii_whitespace) && whole && !head.contains(&b'\t') {
        return Some((Probe::Empty, 0));
    }
    if head.contains(&0) {
        return Some((
            Probe::Unusable("it holds NUL bytes, so it is no text in UTF-8 (if it is UTF-16, convert it)"),
            2,
        ));
    }
    let delimiter = delimiter(head, whole, tabs);
    let all: Vec<_> = Records::new(head, delimiter, whole).collect();
    if all.is_empty() {
        return None;
    }
    let seen = all.len();
    let records: Vec<Vec<&str>> =
        all.iter().flatten().map(|fields| fields.iter().map(AsRef::as_ref).collect()).collect();
    let Some(first) = records.first() else {
        return Some((Probe::Unusable("its records are not in UTF-8 or have broken quotes"), seen));
    };
    let header = all[0].is_some() && is_header(first, &records[1..]);
    let body = if header { &records[1..] } else { &records[..] };
    let columns = usual_length(body, first.len()).unwrap_or(first.len());
    let header = header.then(|| first.iter().map(|name| name.trim().to_owned()).collect());
    Some((Probe::Shape(Shape { delimiter, header, columns }), seen))
}

/// The delimiter by which most records have the same number of fields. Of several, one that the first record agrees with,
/// then the one with most fields.
fn delimiter(head: &[u8], whole: bool, tabs: bool) -> u8 {
    let score = |delimiter: u8| {
        let lengths: Vec<usize> =
            Records::new(head, delimiter, whole).take(LOOKED_AT).map(|r| r.map_or(0, |fields| fields.len())).collect();
        let (first, rest) = lengths.split_first()?;
        let rest = if rest.is_empty() { std::slice::from_ref(first) } else { rest };
        let usual = most_common(rest.iter().copied(), *first).filter(|n| *n >= 2)?;
        let same = rest.iter().filter(|n| **n == usual).count();
        // In twentieths: a few broken records do not decide.
        Some((same * 20 / rest.len(), usual == *first, tabs && delimiter == b'\t', usual))
    };
    let scored = DELIMITERS.into_iter().rev().filter_map(|delimiter| Some((score(delimiter)?, delimiter)));
    // Of equals the last one wins, which is the comma.
    scored.max_by_key(|(score, _)| *score).map_or(if tabs { b'\t' } else { b',' }, |(_, delimiter)| delimiter)
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

/// Whether the text is a number, a date, a time or a truth value.
fn is_value(text: &str) -> bool {
    let mut evidence = Evidence::default();
    evidence.add(text);
    evidence.is_typed() || Kind::Float.check(text).is_ok()
}

fn usual_length(records: &[Vec<&str>], preferred: usize) -> Option<usize> {
    most_common(records.iter().map(Vec::len), preferred)
}

/// The most common number; of equals `preferred`, or the largest.
fn most_common(numbers: impl Iterator<Item = usize>, preferred: usize) -> Option<usize> {
    let mut counts = BTreeMap::new();
    numbers.for_each(|n| *counts.entry(n).or_insert(0usize) += 1);
    counts.into_iter().max_by_key(|(n, count)| (*count, *n == preferred, *n)).map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Shape {
        match shape(without_mark(text.as_bytes()), true, false) {
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
    fn the_delimiter_is_the_one_that_fits_all_records() {
        assert_eq!(seen("a,b\n1,2\n").delimiter, b',');
        assert_eq!(seen("a;b\n1,5;2,5\n3,5;4,5\n").delimiter, b';');
        assert_eq!(seen("a\tb\tc\nx, y\t1\t2\nz\t3\t4\n").delimiter, b'\t');
        assert_eq!(seen("a|b\n1|2\n").delimiter, b'|');
        assert_eq!(seen("a\n1\n2\n").delimiter, b',');
        assert_eq!(seen("name,note\nx,\"a;b;c\"\ny,\"d;e;f\"\n").delimiter, b',');
        assert_eq!(seen("a;b\n\"x;y\";1\n\"p,q\";2\n").delimiter, b';');
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
    fn what_is_no_text_or_has_no_records_is_told_apart() {
        assert_eq!(shape(b"", true, false), Some((Probe::Empty, 0)));
        assert_eq!(shape(b"\n \r\n", true, false), Some((Probe::Empty, 0)));
        assert!(matches!(shape(b"P\0K", true, false), Some((Probe::Unusable(_), _))));
        assert!(matches!(shape(b"\xff\xfe,\xff\n", true, false), Some((Probe::Unusable(_), _))));
        assert_eq!(shape(b"an unfinished rec", false, false), None);
    }
}
