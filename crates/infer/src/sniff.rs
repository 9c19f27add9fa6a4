//! The dialect of a text, found by trying: the marks by which most records have the same number of fields.

use tenaz_source::{Dialect, Escape, RecordKind, RecordReader, ends_with_cr, is_rule};

use crate::preamble::preamble;
use crate::reading::Reading;

/// Delimiters that are tried, the likeliest last: of equals the last one wins.
const DELIMITERS: [u8; 8] = [b'~', b'^', b' ', b':', b'|', b'\t', b';', b','];

/// Records that are looked at for each dialect that is tried.
pub(crate) const LOOKED_AT: usize = 300;

/// Lines within which a drawn one shows that tables are drawn.
const RULE_WITHIN: usize = 6;

/// A dialect, and what has to be said about how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) dialect: Dialect,
    /// The names of the columns, if a comment has them.
    pub(crate) names: Option<Vec<String>>,
    /// What was guessed beyond the usual, each with the option that overrules it.
    pub(crate) said: Vec<String>,
}

/// How well a dialect explains a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The number of fields that most records have.
    pub(crate) usual: usize,
    /// Records with that number, in twentieths: a few broken records do not decide.
    pub(crate) same: usize,
    /// Records with quotes where none may be.
    faults: usize,
    /// Whether the first record has it, too.
    first_agrees: bool,
    records: usize,
    /// Fields that stood in quotes.
    quoted: usize,
}

/// The dialect of the text that begins with `text`; `whole`: it ends with it, too. `tabs`: the file's name speaks of tabs.
pub(crate) fn sniff(text: &[u8], whole: bool, tabs: bool, reading: &Reading) -> Sniffed {
    let mut said = Vec::new();
    let mut base = Dialect { cr_ends_records: ends_with_cr(text), ..Dialect::default() };
    base.comment = reading.comment.flatten();
    base.skip_lines = reading.skip_lines.unwrap_or(0);
    let mut told = reading.delimiter;
    if let Some(delimiter) = excel_separator(text).filter(|_| reading.skip_lines.is_none()) {
        base.skip_lines = 1;
        told = told.or(Some(delimiter));
    }
    if reading.skip_lines.is_none() && is_datev(text) {
        base.skip_lines = 1;
        said.push("the first line says what DATEV has exported, and is no record (--skip 0 reads it)".to_owned());
    }
    let body = without_lines(text, base.skip_lines, base.cr_ends_records);
    let fields = if reading.comment.is_none() && reading.header.is_none() { w3c_fields(body) } else { None };
    if let Some(fields) = &fields {
        base.comment = Some(b'#');
        told = told.or(Some(fields.delimiter));
        said.push(
            "the line #Fields: names the columns, and lines that begin with # are comments (--comment none reads them)"
                .to_owned(),
        );
    } else if reading.comment.is_none() && has_comments(body) {
        base.comment = Some(b'#');
        said.push("lines that begin with # are comments (--comment none reads them)".to_owned());
    }
    base.ruled = is_ruled(body);
    let mut dialect = best(body, whole, tabs, &base, told, reading);
    adorn(&mut dialect, body, whole, reading, &mut said);
    if reading.skip_lines.is_none() {
        let preamble = preamble(body, whole, &dialect);
        if preamble > 0 {
            let what =
                if preamble == 1 { "line is no record".to_owned() } else { format!("{preamble} lines are no records") };
            said.push(format!("the first {what} (--skip 0 reads from the start)"));
        }
        dialect.skip_lines = base.skip_lines + preamble;
    }
    Sniffed { dialect, names: fields.map(|fields| fields.names), said }
}

/// What is seen only when the delimiter is known, and what has to be said of the marks.
fn adorn(dialect: &mut Dialect, body: &[u8], whole: bool, reading: &Reading, said: &mut Vec<String>) {
    if dialect.quote == Some(b'\'') && reading.quote.is_none() {
        said.push("fields are quoted with ' (--quote '\"' overrules)".to_owned());
    }
    if dialect.escape == Escape::Backslash && reading.escape.is_none() {
        said.push("a backslash escapes the next character, and \\N is null (--escape double overrules)".to_owned());
        if memchr::memmem::find(body, b"\\n").is_some() {
            said.push("line ends in values, written \\n, count as lines where a rejected record is named".to_owned());
        }
    }
    if dialect.quote.is_none() && reading.quote.is_none() && memchr::memchr(b'"', body).is_some() {
        said.push("quotes are data (--quote '\"' overrules)".to_owned());
    }
    dialect.framed = dialect.delimiter == b'|' && is_framed(body);
    if dialect.ruled || dialect.framed {
        said.push("the table is drawn with lines and frames, which are no data".to_owned());
    }
    if reading.skip_spaces.is_none() && !dialect.skip_spaces && (dialect.framed || is_padded(body, whole, dialect)) {
        dialect.skip_spaces = true;
        said.push("fields are padded with spaces, which are no data (--spaces keep reads them)".to_owned());
    }
    if is_doubled(body, whole, dialect) {
        dialect.doubled = true;
        said.push(format!("two {} stand between fields", char::from(dialect.delimiter)));
    }
    let ends = Dialect { cr_ends_records: true, ..dialect.clone() };
    if !dialect.cr_ends_records
        && has_lone_cr(body)
        && let (Some(with), Some(without)) = (fit(body, whole, &ends), fit(body, whole, dialect))
        && with.usual == without.usual
        && (with.same, with.first_agrees) > (without.same, without.first_agrees)
    {
        *dialect = ends;
        said.push("some records end with a lone carriage return".to_owned());
    }
}

/// Whether every second field of all records is empty: two delimiters stand between fields.
fn is_doubled(body: &[u8], whole: bool, dialect: &Dialect) -> bool {
    let mut reader = RecordReader::new(dialect.clone(), false);
    let (mut rest, mut records) = (body, 0);
    while records < LOOKED_AT {
        let Some(span) = reader.read(rest, whole) else { break };
        rest = &rest[span.next..];
        if matches!(span.kind, RecordKind::Blank | RecordKind::Comment) {
            continue;
        }
        let between = |index: usize| reader.field(index).is_some_and(|(field, quoted)| field.is_empty() && !quoted);
        if reader.len() < 3 || reader.len().is_multiple_of(2) || !(1..reader.len()).step_by(2).all(between) {
            return false;
        }
        records += 1;
    }
    records > 1
}

fn has_lone_cr(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\r', text).any(|at| text.get(at + 1).is_some_and(|next| *next != b'\n'))
}

fn first_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r')).filter(|line| !line.is_empty()).take(LOOKED_AT)
}

/// Whether a line is drawn near the top, between a header and its records.
fn is_ruled(text: &[u8]) -> bool {
    first_lines(text).take(RULE_WITHIN).any(is_rule)
}

/// Whether records begin and end with a bar.
fn is_framed(text: &[u8]) -> bool {
    let (mut lines, mut framed) = (0, 0);
    for line in first_lines(text).filter(|line| !is_rule(line)).map(<[u8]>::trim_ascii) {
        lines += 1;
        framed += usize::from(line.len() > 2 && line.starts_with(b"|") && line.ends_with(b"|"));
    }
    framed >= 2 && framed * 10 >= lines * 8
}

/// Whether columns have a width, which spaces fill up: all but the last, in all records, and one of them with spaces.
fn is_padded(body: &[u8], whole: bool, dialect: &Dialect) -> bool {
    let mut reader = RecordReader::new(dialect.clone(), false);
    let (mut rest, mut widths, mut records, mut padded) = (body, Vec::new(), 0, false);
    while records < LOOKED_AT {
        let Some(span) = reader.read(rest, whole) else { break };
        rest = &rest[span.next..];
        match span.kind {
            RecordKind::Blank | RecordKind::Comment => continue,
            RecordKind::Record => {}
            RecordKind::StrayQuote | RecordKind::OpenQuote => return false,
        }
        let lengths: Vec<usize> = reader.fields().map(|field| String::from_utf8_lossy(field).chars().count()).collect();
        let known = lengths.len().saturating_sub(1);
        if records > 0 && widths != lengths[..known] {
            return false;
        }
        padded |= (0..known).any(|index| {
            reader.field(index).is_some_and(|(field, quoted)| !quoted && field.ends_with(b" ") && field != b" ")
        });
        widths = lengths[..known].to_vec();
        records += 1;
    }
    records > 2 && padded && !widths.is_empty()
}

/// The delimiter of `sep=;`, which Excel reads in the first line.
fn excel_separator(text: &[u8]) -> Option<u8> {
    let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next()?;
    match line {
        [s, e, p, b'=', delimiter] if [*s, *e, *p].eq_ignore_ascii_case(b"sep") => Some(*delimiter),
        _ => None,
    }
}

/// Whether the first line is the one that DATEV writes over its tables.
fn is_datev(text: &[u8]) -> bool {
    [&b"\"EXTF\";"[..], b"EXTF;", b"\"DTVF\";", b"DTVF;"].iter().any(|begin| text.starts_with(begin))
}

/// The text behind so many lines.
pub(crate) fn without_lines(text: &[u8], lines: u64, cr: bool) -> &[u8] {
    let mut rest = text;
    for _ in 0..lines {
        let end = if cr { memchr::memchr2(b'\n', b'\r', rest) } else { memchr::memchr(b'\n', rest) };
        let Some(end) = end else { return &[] };
        let both = rest[end] == b'\r' && rest.get(end + 1) == Some(&b'\n');
        rest = &rest[end + 1 + usize::from(both)..];
    }
    rest
}

/// The columns of a log in the extended format of the W3C.
struct LogFields {
    names: Vec<String>,
    delimiter: u8,
}

/// The columns of a log of IIS, CloudFront and others: a comment has them, and spaces or tabs stand between values.
fn w3c_fields(body: &[u8]) -> Option<LogFields> {
    const MARK: &[u8] = b"#Fields:";
    let line = first_lines(body).find(|line| line.starts_with(MARK))?;
    let names: Vec<String> =
        String::from_utf8_lossy(&line[MARK.len()..]).split_whitespace().map(str::to_owned).collect();
    let record = first_lines(body).find(|line| !line.starts_with(b"#"))?;
    let delimiter = if record.contains(&b'\t') { b'\t' } else { b' ' };
    (names.len() > 1).then_some(LogFields { names, delimiter })
}

/// Whether some, but not most, of the first lines begin with `#` and something that is no name of a first column.
fn has_comments(text: &[u8]) -> bool {
    let lines: Vec<&[u8]> = text.split(|byte| matches!(byte, b'\n' | b'\r')).take(LOOKED_AT).collect();
    let comments = lines.iter().filter(|line| line.starts_with(b"# ") || ***line == *b"#").count();
    comments > 0 && comments * 2 < lines.len()
}

/// How good a dialect is, the weightiest first: how many records agree, whether the first does, whether the file's name speaks
/// for it, fields, and whether the marks are the usual ones.
type Score = (i64, bool, bool, i64, i64);

fn best(body: &[u8], whole: bool, tabs: bool, base: &Dialect, told: Option<u8>, reading: &Reading) -> Dialect {
    let delimiters: Vec<u8> = told.map_or_else(|| DELIMITERS.to_vec(), |delimiter| vec![delimiter]);
    let quotes: Vec<Option<u8>> = match reading.quote {
        Some(quote) => vec![quote],
        None => vec![Some(b'\''), Some(b'"')],
    };
    let escapes: Vec<Escape> = match reading.escape {
        Some(escape) => vec![escape],
        None if memchr::memchr(b'\\', body).is_some() => vec![Escape::Backslash, Escape::Doubled],
        None => vec![Escape::Doubled],
    };
    let has_nulls = reading.escape.is_none() && memchr::memmem::find(body, b"\\N").is_some();
    let mut found: Option<(Score, Dialect)> = None;
    for &delimiter in &delimiters {
        // MySQL's and PostgreSQL's own form: who writes \N for null escapes with backslashes, and quotes only if told to.
        let is_dump = has_nulls && has_null_marks(body, delimiter);
        let no_quotes = is_dump && reading.quote.is_none() && !has_quoted_fields(body, delimiter);
        let quotes = if no_quotes { vec![None] } else { quotes.clone() };
        let escapes = if is_dump { vec![Escape::Backslash] } else { escapes.clone() };
        for &quote in &quotes {
            for &escape in &escapes {
                let spaces = reading.skip_spaces.unwrap_or_else(|| spaces_follow(body, delimiter));
                let dialect = Dialect { delimiter, quote, escape, skip_spaces: spaces, ..base.clone() };
                if dialect.check().is_err() {
                    continue;
                }
                let Some(fit) = fit(body, whole, &dialect) else { continue };
                // Single quotes are apostrophes unless fields really stand in them.
                if quote == Some(b'\'') && reading.quote.is_none() && fit.quoted * 2 < fit.records {
                    continue;
                }
                if fit.usual < 2 && told.is_none() && delimiter != b',' {
                    continue;
                }
                // A space or a colon between words is no delimiter unless everything agrees with it.
                let is_odd = matches!(delimiter, b' ' | b':' | b'~' | b'^');
                if is_odd && told.is_none() && (fit.same < 20 || fit.usual < 3 || fit.records < 3) {
                    continue;
                }
                // One field a record fits every text, so it says little.
                let same = if fit.usual < 2 { fit.same as i64 / 4 } else { fit.same as i64 };
                let score = (
                    same - if is_odd { 10 } else { 0 } - (fit.faults.min(20) as i64) * 2,
                    fit.first_agrees,
                    tabs && delimiter == b'\t',
                    fit.usual as i64,
                    i64::from(quote == Some(b'"')) + i64::from(escape == Escape::Doubled),
                );
                if found.as_ref().is_none_or(|(best, _)| score >= *best) {
                    found = Some((score, dialect));
                }
            }
        }
    }
    let otherwise = || Dialect {
        delimiter: told.unwrap_or(if tabs { b'\t' } else { b',' }),
        quote: reading.quote.unwrap_or(Some(b'"')),
        escape: reading.escape.unwrap_or_default(),
        ..base.clone()
    };
    found.map_or_else(otherwise, |(_, dialect)| dialect)
}

/// Whether a field is `\N`.
fn has_null_marks(body: &[u8], delimiter: u8) -> bool {
    first_lines(body).any(|line| line.split(|byte| *byte == delimiter).any(|field| field == b"\\N"))
}

/// Whether a field stands in quotes.
fn has_quoted_fields(body: &[u8], delimiter: u8) -> bool {
    let is_quoted = |field: &[u8]| field.len() > 1 && field.starts_with(b"\"") && field.ends_with(b"\"");
    first_lines(body).any(|line| line.split(|byte| *byte == delimiter).any(is_quoted))
}

/// Whether nearly every delimiter is followed by a space.
fn spaces_follow(body: &[u8], delimiter: u8) -> bool {
    if delimiter == b' ' {
        return false;
    }
    let (mut all, mut spaced) = (0, 0);
    for at in memchr::memchr_iter(delimiter, body).take(5_000) {
        match body.get(at + 1) {
            Some(b' ') => (all, spaced) = (all + 1, spaced + 1),
            // An empty field has nothing to put a space before.
            Some(byte) if *byte == delimiter || matches!(byte, b'\n' | b'\r') => {}
            _ => all += 1,
        }
    }
    all > 0 && spaced * 20 >= all * 19
}

/// The lengths of the records of a text, and what is wrong with them.
pub(crate) fn fit(body: &[u8], whole: bool, dialect: &Dialect) -> Option<Fit> {
    let mut reader = RecordReader::new(dialect.clone(), false);
    let mut lengths = Vec::new();
    let (mut rest, mut faults, mut quoted) = (body, 0, 0);
    while lengths.len() < LOOKED_AT {
        let Some(span) = reader.read(rest, whole) else { break };
        match span.kind {
            RecordKind::Record => {
                quoted += usize::from((0..reader.len()).any(|i| reader.field(i).is_some_and(|(_, quoted)| quoted)));
                lengths.push(reader.len());
            }
            RecordKind::StrayQuote | RecordKind::OpenQuote => {
                faults += 1;
                lengths.push(reader.len());
            }
            RecordKind::Blank | RecordKind::Comment => {}
        }
        rest = &rest[span.next..];
    }
    let (first, others) = lengths.split_first()?;
    let others = if others.is_empty() { std::slice::from_ref(first) } else { others };
    let usual = most_common(others.iter().copied(), *first)?;
    let same = others.iter().filter(|length| **length == usual).count() * 20 / others.len();
    Some(Fit { usual, same, faults, first_agrees: usual == *first, records: lengths.len(), quoted })
}

/// The most common number; of equals `preferred`, or the largest.
pub(crate) fn most_common(numbers: impl Iterator<Item = usize>, preferred: usize) -> Option<usize> {
    let mut counts = std::collections::BTreeMap::new();
    numbers.for_each(|n| *counts.entry(n).or_insert(0usize) += 1);
    counts.into_iter().max_by_key(|(n, count)| (*count, *n == preferred, *n)).map(|(n, _)| n)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sniffed(text: &str) -> Dialect {
        sniff(text.as_bytes(), true, false, &Reading::default()).dialect
    }

    #[test]
    fn the_delimiter_is_the_one_that_fits_all_records() {
        for (text, delimiter) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n3,5;4,5\n", b';'),
            ("a\tb\tc\nx, y\t1\t2\nz\t3\t4\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            ("a\n1\n2\n", b','),
            ("name,note\nx,\"a;b;c\"\ny,\"d;e;f\"\n", b','),
            ("a;b\n\"x;y\";1\n\"p,q\";2\n", b';'),
            ("a^b^c\n1^2^3\n4^5^6\n", b'^'),
            ("name\nJohn Smith\nJane Doe\nBob Ray\n", b','),
            ("time\n12:30\n13:45\n14:00\n", b','),
        ] {
            assert_eq!(char::from(sniffed(text).delimiter), char::from(delimiter), "{text:?}");
        }
    }

    #[test]
    fn excel_says_its_delimiter_and_programs_write_titles_and_comments() {
        assert_eq!((sniffed("sep=;\na;b\n1;2\n").delimiter, sniffed("sep=;\na;b\n1;2\n").skip_lines), (b';', 1));
        let titled =
            "Umsatz Januar 2025\nerstellt am 1.2.2025\n\nDatum;Betrag;Konto\n1.1.2025;5,50;77\n2.1.2025;6,50;78\n";
        assert_eq!(sniffed(titled).skip_lines, 3);
        assert_eq!(sniffed("Report,,\nid,name,x\n1,a,2\n2,b,3\n").skip_lines, 1);
        assert_eq!(sniffed("# made by x\nid,name\n1,a\n2,b\n3,c\n").comment, Some(b'#'));
        assert_eq!(sniffed("#id,name\n1,a\n2,b\n").comment, None);
        // A header with a name too few is no title.
        assert_eq!(sniffed("a,b,c\n1,2,3,4\n5,6,7,8\n").skip_lines, 0);
    }

    #[test]
    fn other_quotes_and_escapes_are_seen_where_they_are_used() {
        assert_eq!(sniffed("a;b\n'x;y';'1'\n'p';'2'\n").quote, Some(b'\''));
        assert_eq!(sniffed("a,b\nO'Brien,1\nit's,2\n").quote, Some(b'"'));
        assert_eq!(sniffed("a,b\n\"x \\\"y\\\", z\",1\n\"p\",2\n").escape, Escape::Backslash);
        assert_eq!(sniffed("a,b\n\"C:\\dir\",1\n\"p\",2\n").escape, Escape::Doubled);
        assert!(sniffed("a, b\n1, \"x, y\"\n2, \"z\"\n").skip_spaces);
        assert!(sniffed("a,b\r1,2\r3,4\r").cr_ends_records);
        assert!(sniffed("a,b\r\n1,2\r3,4\r\n5,6\r\n").cr_ends_records, "some end so");
        assert!(!sniffed("a,b\n1,x\ry\n3,4\n").cr_ends_records, "a lone one is data");
    }

    #[test]
    fn dumps_of_databases_escape_with_backslashes_and_have_no_quotes() {
        let dump = sniffed("1\tAnn\t\\N\n2\t\"Bob\\tx\t5\n");
        assert_eq!((dump.delimiter, dump.quote, dump.escape), (b'\t', None, Escape::Backslash));
        let enclosed = sniffed("1,\"Ann\",\\N\n2,\"B \\\" x\",5\n");
        assert_eq!((enclosed.delimiter, enclosed.quote, enclosed.escape), (b',', Some(b'"'), Escape::Backslash));
    }

    #[test]
    fn tables_that_are_drawn_and_fields_that_are_padded_are_seen() {
        let sap = sniffed("-----------\n|Mat  |Menge|\n-----------\n|A-1  | 1,0-|\n|A-2  | 2,0 |\n-----------\n");
        assert!(sap.ruled && sap.framed && sap.skip_spaces && sap.delimiter == b'|');
        let psql = sniffed(" id | name \n----+------\n  1 | a\n  2 | b\n(2 rows)\n");
        assert!(psql.ruled && !psql.framed && psql.skip_spaces && psql.delimiter == b'|');
        assert!(sniffed("id ,name  ,n\n1  ,Ann   ,5\n22 ,Bob   ,6\n").skip_spaces);
        assert!(!sniffed("id,name,n\n1,Ann ,5\n2,Bob ,6\n").skip_spaces, "names have no spaces");
        assert!(!sniffed("a,b\n---,1\nx,2\n").ruled, "a field may be dashes");
    }
}
