//! One record at a time, in any dialect.
//!
//! Advice for whoever changes this: a record is known only when the byte behind its end is known (a quote may be doubled, `\r`
//! may belong to `\r\n`), so every look-ahead at the end of the bytes asks `complete` first.

use memchr::{memchr, memchr2, memchr3};

use crate::rule::may_rule;
use crate::{Dialect, Escape, is_rule};

/// What stands at the front of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordSpan {
    /// Where the next record begins.
    pub next: usize,
    /// Line ends up to there.
    pub lines: u64,
    /// What it is.
    pub kind: RecordKind,
}

/// What a line, or several of them, turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// A record, whose fields the reader has.
    Record,
    /// A record with quotes where none may be; the reader has its fields as far as they can be told.
    StrayQuote,
    /// A quoted field that never ends; the span is its first line.
    OpenQuote,
    /// Nothing.
    Blank,
    /// A comment, or a line that is drawn between records.
    Comment,
}

/// Reads records, and holds the fields of the last one without quotes and escapes.
#[derive(Debug)]
pub struct RecordReader {
    dialect: Dialect,
    lenient: bool,
    text: Vec<u8>,
    fields: Vec<Field>,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    from: usize,
    to: usize,
    quoted: bool,
}

/// Where a field ends.
enum End {
    /// At a delimiter; the next field starts here.
    Delimiter(usize),
    /// At the end of the record: (where the next one starts, line ends between).
    Record(usize),
    /// Beyond the bytes.
    Beyond,
}

impl RecordReader {
    /// For records of this dialect. `lenient`: stray quotes are data.
    #[must_use]
    pub fn new(dialect: Dialect, lenient: bool) -> Self {
        Self { dialect, lenient, text: Vec::new(), fields: Vec::new() }
    }

    /// The fields of the last record.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        self.fields.iter().map(|field| &self.text[field.from..field.to])
    }

    /// The number of fields of the last record.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether the last record had no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// A field of the last record, and whether it stood in quotes.
    #[must_use]
    pub fn field(&self, index: usize) -> Option<(&[u8], bool)> {
        self.fields.get(index).map(|field| (&self.text[field.from..field.to], field.quoted))
    }

    /// Reads what stands at the front of `bytes`. `complete`: nothing comes behind them. None: more bytes are needed.
    pub fn read(&mut self, bytes: &[u8], complete: bool) -> Option<RecordSpan> {
        self.text.clear();
        self.fields.clear();
        let first = *bytes.first()?;
        if self.ends_record(first) {
            let next = self.record_end(bytes, 0, complete)?;
            return Some(RecordSpan { next, lines: 1, kind: RecordKind::Blank });
        }
        // A blank line of a file whose lines end with both.
        if first == b'\r' && self.dialect.delimiter != b'\r' {
            match bytes.get(1) {
                Some(b'\n') => return Some(RecordSpan { next: 2, lines: 1, kind: RecordKind::Blank }),
                None if !complete => return None,
                None => return Some(RecordSpan { next: 1, lines: 0, kind: RecordKind::Blank }),
                Some(_) => {}
            }
        }
        if self.dialect.comment == Some(first) {
            let (_, next) = self.line(bytes, 0, complete)?;
            return Some(RecordSpan { next, lines: u64::from(next > 0), kind: RecordKind::Comment });
        }
        if self.dialect.ruled && may_rule(first) {
            let (end, next) = self.line(bytes, 0, complete)?;
            if is_rule(&bytes[..end]) {
                return Some(RecordSpan { next, lines: 1, kind: RecordKind::Comment });
            }
        }
        let mut at = 0;
        if self.dialect.framed {
            let before = bytes.iter().take_while(|byte| **byte == b' ').count();
            match bytes.get(before) {
                None if !complete => return None,
                Some(byte) if *byte == self.dialect.delimiter => at = before + 1,
                _ => {}
            }
        }
        let mut kind = RecordKind::Record;
        loop {
            let start = at + self.spaces(&bytes[at..]);
            let end = match (self.dialect.quote, bytes.get(start)) {
                (_, None) if !complete => return None,
                (Some(quote), Some(&byte)) if byte == quote => match self.quoted(bytes, start, quote, complete) {
                    Quoted::Closed(end) => end,
                    Quoted::Stray(end) => {
                        kind = RecordKind::StrayQuote;
                        end
                    }
                    Quoted::NeverClosed => return self.open_quote(bytes, complete),
                    Quoted::Beyond => return None,
                },
                _ => self.unquoted(bytes, at, start, complete),
            };
            match end {
                End::Delimiter(next) => at = next,
                End::Record(next) => {
                    let lines = count_lines(&bytes[..next], self.dialect.cr_ends_records);
                    self.drop_frame();
                    self.join_doubled();
                    return Some(RecordSpan { next, lines, kind });
                }
                End::Beyond => return None,
            }
        }
    }

    /// Behind the last delimiter of a framed record is no field.
    fn drop_frame(&mut self) {
        if self.dialect.framed && self.fields.len() > 1 {
            let is_empty = |field: &Field| self.text[field.from..field.to].trim_ascii().is_empty();
            if self.fields.last().is_some_and(|field| !field.quoted && is_empty(field)) {
                self.fields.pop();
            }
        }
    }

    /// Between two delimiters that belong together is no field. A record in which something stands there keeps all its fields, and
    /// has too many.
    fn join_doubled(&mut self) {
        if !self.dialect.doubled || self.fields.len().is_multiple_of(2) {
            return;
        }
        let is_between = |(index, field): (usize, &Field)| index % 2 == 0 || (field.from == field.to && !field.quoted);
        if self.fields.iter().enumerate().all(is_between) {
            let mut index = 0;
            self.fields.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
    }

    fn ends_record(&self, byte: u8) -> bool {
        byte == b'\n' || (byte == b'\r' && self.dialect.cr_ends_records)
    }

    /// Where the record behind the line end at `at` starts. None: that depends on a byte that is not there yet.
    fn record_end(&self, bytes: &[u8], at: usize, complete: bool) -> Option<usize> {
        if bytes[at] != b'\r' {
            return Some(at + 1);
        }
        match bytes.get(at + 1) {
            Some(b'\n') => Some(at + 2),
            None if !complete => None,
            _ => Some(at + 1),
        }
    }

    /// The end of the line at `from`, and the start of the next one. None: more bytes are needed.
    fn line(&self, bytes: &[u8], from: usize, complete: bool) -> Option<(usize, usize)> {
        let rest = &bytes[from..];
        let end = if self.dialect.cr_ends_records { memchr2(b'\n', b'\r', rest) } else { memchr(b'\n', rest) };
        match end {
            Some(end) => self.record_end(bytes, from + end, complete).map(|next| (from + end, next)),
            None if complete => Some((bytes.len(), bytes.len())),
            None => None,
        }
    }

    fn spaces(&self, bytes: &[u8]) -> usize {
        let is_space = |byte: &u8| *byte == b' ' && self.dialect.delimiter != b' ';
        if self.dialect.skip_spaces { bytes.iter().take_while(|byte| is_space(byte)).count() } else { 0 }
    }

    /// An unquoted field. Spaces that were skipped belong to it only if nothing says that they do not.
    fn unquoted(&mut self, bytes: &[u8], _at: usize, start: usize, complete: bool) -> End {
        let from = self.text.len();
        let mut at = start;
        let end = loop {
            let Some(found) = self.next_mark(&bytes[at..]) else {
                if !complete {
                    return End::Beyond;
                }
                self.text.extend_from_slice(&bytes[at..]);
                break End::Record(bytes.len());
            };
            let mark = at + found;
            self.text.extend_from_slice(&bytes[at..mark]);
            let byte = bytes[mark];
            if byte == self.dialect.delimiter {
                break End::Delimiter(mark + 1);
            }
            if byte == b'\\' && self.dialect.escape == Escape::Backslash {
                match bytes.get(mark + 1) {
                    Some(&escaped) => self.text.extend(unescaped(escaped)),
                    None if !complete => return End::Beyond,
                    None => self.text.push(b'\\'),
                }
                at = (mark + 2).min(bytes.len());
                continue;
            }
            if byte == b'\r' && !self.dialect.cr_ends_records {
                match bytes.get(mark + 1) {
                    Some(b'\n') => break End::Record(mark + 2),
                    None if !complete => return End::Beyond,
                    // A lone one is data, but not at the end of the file.
                    None => break End::Record(mark + 1),
                    Some(_) => {
                        self.text.push(b'\r');
                        at = mark + 1;
                        continue;
                    }
                }
            }
            match self.record_end(bytes, mark, complete) {
                Some(next) => break End::Record(next),
                None => return End::Beyond,
            }
        };
        let is_null = self.dialect.escape == Escape::Backslash
            && bytes[start..].starts_with(b"\\N")
            && self.text[from..] == *b"N";
        if is_null {
            self.text.truncate(from);
        }
        if self.dialect.skip_spaces && self.dialect.delimiter != b' ' {
            let spaces = self.text[from..].iter().rev().take_while(|byte| **byte == b' ').count();
            self.text.truncate(self.text.len() - spaces);
        }
        let to = self.text.len();
        self.fields.push(Field { from, to, quoted: false });
        end
    }

    /// The next byte that may end an unquoted field or escape another.
    fn next_mark(&self, bytes: &[u8]) -> Option<usize> {
        let mark = memchr3(self.dialect.delimiter, b'\n', b'\r', bytes);
        if self.dialect.escape == Escape::Doubled {
            return mark;
        }
        let before = mark.unwrap_or(bytes.len());
        memchr(b'\\', &bytes[..before]).or(mark)
    }

    /// A field whose first byte, at `start`, is a quote.
    fn quoted(&mut self, bytes: &[u8], start: usize, quote: u8, complete: bool) -> Quoted {
        let from = self.text.len();
        let mut at = start + 1;
        loop {
            let rest = &bytes[at..];
            let found = match self.dialect.escape {
                Escape::Doubled => memchr(quote, rest),
                Escape::Backslash => memchr2(quote, b'\\', rest),
            };
            let Some(found) = found else {
                return if complete { Quoted::NeverClosed } else { Quoted::Beyond };
            };
            self.text.extend_from_slice(&rest[..found]);
            let mark = at + found;
            let next = bytes.get(mark + 1).copied();
            match (bytes[mark] == quote, next) {
                (_, None) if !complete => return Quoted::Beyond,
                (true, Some(byte)) if byte == quote => {
                    self.text.push(quote);
                    at = mark + 2;
                }
                (true, _) => return self.closed(bytes, (start, from), mark + 1, complete),
                (false, Some(escaped)) => {
                    self.text.extend(unescaped(escaped));
                    at = mark + 2;
                }
                (false, None) => return Quoted::NeverClosed,
            }
        }
    }

    /// Behind the closing quote of a field that began at `start` and whose text begins at `from`.
    fn closed(&mut self, bytes: &[u8], (start, from): (usize, usize), at: usize, complete: bool) -> Quoted {
        let behind = at + self.spaces(&bytes[at..]);
        let to = self.text.len();
        let end = match bytes.get(behind) {
            None if !complete => return Quoted::Beyond,
            None => End::Record(bytes.len()),
            Some(&byte) if byte == self.dialect.delimiter => End::Delimiter(behind + 1),
            Some(&byte) if self.ends_record(byte) => match self.record_end(bytes, behind, complete) {
                Some(next) => End::Record(next),
                None => return Quoted::Beyond,
            },
            Some(b'\r') => match bytes.get(behind + 1) {
                Some(b'\n') => End::Record(behind + 2),
                None if !complete => return Quoted::Beyond,
                None => End::Record(behind + 1),
                Some(_) => return self.stray(bytes, (start, from), behind, complete),
            },
            Some(_) => return self.stray(bytes, (start, from), behind, complete),
        };
        self.fields.push(Field { from, to, quoted: true });
        Quoted::Closed(end)
    }

    /// Something else than a delimiter stands behind a closing quote: the field is taken as it stands, up to the next delimiter.
    fn stray(&mut self, bytes: &[u8], (start, from): (usize, usize), behind: usize, complete: bool) -> Quoted {
        // A quote that closes on another line was not meant for this field: where quotes may be data, its first line is a record.
        if self.lenient && bytes[start..behind].iter().any(|byte| self.ends_record(*byte)) {
            return Quoted::NeverClosed;
        }
        self.text.truncate(from);
        self.text.extend_from_slice(&bytes[start..behind]);
        let before = self.fields.len();
        let end = self.unquoted(bytes, behind, behind, complete);
        if let Some(field) = self.fields.get_mut(before) {
            field.from = from;
        }
        match end {
            End::Beyond => Quoted::Beyond,
            end => Quoted::Stray(end),
        }
    }

    /// The first line of a record whose quoted field never ends: its fields with quotes as data.
    fn open_quote(&mut self, bytes: &[u8], complete: bool) -> Option<RecordSpan> {
        let (end, next) = self.line(bytes, 0, complete)?;
        self.text.clear();
        self.fields.clear();
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        for field in line.split(|byte| *byte == self.dialect.delimiter) {
            let from = self.text.len();
            self.text.extend_from_slice(field);
            self.fields.push(Field { from, to: self.text.len(), quoted: false });
        }
        Some(RecordSpan { next, lines: u64::from(next > end), kind: RecordKind::OpenQuote })
    }

    /// The same for a record that is too long to wait for its end.
    pub(crate) fn give_up(&mut self, bytes: &[u8]) -> Option<RecordSpan> {
        self.open_quote(bytes, false)
    }

    /// Whether stray quotes are data.
    pub(crate) fn is_lenient(&self) -> bool {
        self.lenient
    }

    pub(crate) fn dialect(&self) -> &Dialect {
        &self.dialect
    }
}

enum Quoted {
    Closed(End),
    Stray(End),
    NeverClosed,
    Beyond,
}

/// What a byte behind a backslash stands for.
fn unescaped(byte: u8) -> Option<u8> {
    Some(match byte {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'0' => 0,
        other => other,
    })
}

fn count_lines(bytes: &[u8], cr_ends_records: bool) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', bytes).count();
    if !cr_ends_records {
        return newlines as u64;
    }
    let lone = memchr::memchr_iter(b'\r', bytes).filter(|at| bytes.get(at + 1) != Some(&b'\n')).count();
    (newlines + lone) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(dialect: &Dialect, lenient: bool, text: &str) -> Vec<(RecordKind, Vec<String>)> {
        let mut reader = RecordReader::new(dialect.clone(), lenient);
        let (mut at, mut records) = (0, Vec::new());
        while let Some(span) = reader.read(&text.as_bytes()[at..], true) {
            let fields = reader.fields().map(|field| String::from_utf8_lossy(field).into_owned()).collect();
            records.push((span.kind, fields));
            at += span.next;
        }
        assert_eq!(at, text.len());
        records
    }

    fn fields(dialect: &Dialect, text: &str) -> Vec<Vec<String>> {
        all(dialect, false, text)
            .into_iter()
            .filter(|(kind, _)| *kind == RecordKind::Record)
            .map(|(_, fields)| fields)
            .collect()
    }

    #[test]
    fn quotes_are_doubled_or_escaped() {
        let doubled = Dialect::default();
        assert_eq!(fields(&doubled, "a,\"b \"\"x\"\", c\"\r\n1,\"\"\n"), [["a", "b \"x\", c"], ["1", ""]]);
        let escaped = Dialect { escape: Escape::Backslash, ..Dialect::default() };
        assert_eq!(fields(&escaped, r#"a,"b \"x\", c",d\,e"#), [["a", "b \"x\", c", "d,e"]]);
        assert_eq!(fields(&escaped, "\\N,x\\ty\n"), [["", "x\ty"]], "MySQL and PostgreSQL write null so");
    }

    #[test]
    fn another_quote_or_none_is_taken_at_its_word() {
        let single = Dialect { quote: Some(b'\''), ..Dialect::with_delimiter(b';') };
        assert_eq!(fields(&single, "'a;b';\"c\"\n"), [["a;b", "\"c\""]]);
        let none = Dialect { quote: None, ..Dialect::with_delimiter(b'\t') };
        assert_eq!(fields(&none, "5\" nail\t\"x\n"), [["5\" nail", "\"x"]]);
    }

    #[test]
    fn records_end_with_every_kind_of_line_end() {
        let cr = Dialect { cr_ends_records: true, ..Dialect::default() };
        assert_eq!(fields(&cr, "a,b\r1,2\r\r3,4"), [["a", "b"], ["1", "2"], ["3", "4"]]);
        assert_eq!(fields(&Dialect::default(), "a,b\r\n1,x\ry\n"), [["a", "b"], ["1", "x\ry"]]);
    }

    #[test]
    fn blank_lines_that_end_with_both_are_blank() {
        let records = all(&Dialect::default(), false, "a,b\r\n\r\n1,2\r\n\r");
        let kinds: Vec<RecordKind> = records.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [RecordKind::Record, RecordKind::Blank, RecordKind::Record, RecordKind::Blank]);
    }

    #[test]
    fn comments_blank_lines_and_spaces_are_no_data() {
        let dialect = Dialect { comment: Some(b'#'), skip_spaces: true, ..Dialect::default() };
        let records = all(&dialect, false, "# made by x\n\na, \"b, c\" , d\n");
        assert_eq!(records[0].0, RecordKind::Comment);
        assert_eq!(records[1].0, RecordKind::Blank);
        assert_eq!(records[2].1, ["a", "b, c", "d"]);
    }

    #[test]
    fn two_delimiters_may_stand_between_fields() {
        let dialect = Dialect { doubled: true, ..Dialect::with_delimiter(b':') };
        assert_eq!(fields(&dialect, "a::\"b::c\"::d\n1::::3\n"), [["a", "b::c", "d"], ["1", "", "3"]]);
        assert_eq!(fields(&dialect, "a:b::c\n"), [["a", "b", "", "c"]], "left as it is");
    }

    #[test]
    fn tables_that_are_drawn_with_characters_have_records_between_their_lines() {
        // SAP's list, psql's aligned output, the mysql client's boxes.
        let dialect = Dialect { ruled: true, framed: true, skip_spaces: true, ..Dialect::with_delimiter(b'|') };
        let sap = "-------------\n|Material |Menge  |\n-------------\n|MAT-001  | 1,00- |\n-------------\n";
        assert_eq!(fields(&dialect, sap), [["Material", "Menge"], ["MAT-001", "1,00-"]]);
        let boxed = "+----+------+\n| id | name |\n+----+------+\n|  1 |      |\n+----+------+\n";
        assert_eq!(fields(&dialect, boxed), [["id", "name"], ["1", ""]]);
        let aligned = Dialect { framed: false, ..dialect };
        assert_eq!(
            fields(&aligned, " id | name \n----+------\n  1 | a\n -5 | b\n"),
            [["id", "name"], ["1", "a"], ["-5", "b"]]
        );
    }

    #[test]
    fn quotes_where_none_may_be_are_told() {
        let records = all(&Dialect::default(), false, "\"a\"b,c\n1,2\n\"never closed,3\n4,5\n");
        assert_eq!(records[0], (RecordKind::StrayQuote, vec!["\"a\"b".to_owned(), "c".to_owned()]));
        assert_eq!(records[2], (RecordKind::OpenQuote, vec!["\"never closed".to_owned(), "3".to_owned()]));
        assert_eq!(records[3].1, ["4", "5"]);
    }

    #[test]
    fn a_quote_that_is_closed_by_a_later_one_costs_its_own_line_only_where_quotes_may_be_data() {
        let text = "1,\"open\n2,b\n3,\"c\"\n";
        let records = all(&Dialect::default(), true, text);
        let found: Vec<Vec<String>> = records.into_iter().map(|(_, fields)| fields).collect();
        assert_eq!(found, [["1", "\"open"], ["2", "b"], ["3", "c"]]);
    }

    #[test]
    fn a_record_is_the_same_however_many_of_its_bytes_are_there_first() {
        let text = "a,\"b\"\"\r\nc\"\r\n";
        let dialect = Dialect::default();
        for cut in 0..text.len() {
            let mut reader = RecordReader::new(dialect.clone(), false);
            assert_eq!(reader.read(&text.as_bytes()[..cut], false), None, "{cut}");
        }
        assert_eq!(fields(&dialect, text), [["a", "b\"\r\nc"]]);
    }
}
