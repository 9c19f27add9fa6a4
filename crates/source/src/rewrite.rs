//! From records in any dialect, with columns in any order, to canonical CSV with the columns of the table.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use memchr::memchr_iter;

use crate::encoding::read_some;
use crate::limits::{MAX_RECORD_BYTES, STEP_BYTES};
use crate::record::{RecordKind, RecordReader, RecordSpan};
use crate::{ColumnSource, FileFormat, Repairs, ValueForm, formula_text, has_no_label, is_total};

/// What becomes of a file's records.
pub(crate) struct Rewriting {
    /// Where each column of the table comes from; none: fields stay as they are.
    pub(crate) columns: Option<Vec<ColumnSource>>,
    /// The names of the table's columns, for the header.
    pub(crate) names: Vec<String>,
    /// Fields that a record of this file has, where that is known.
    pub(crate) width: Option<usize>,
}

/// Canonical CSV of what `input` reads.
pub(crate) struct Rewriter<R> {
    input: R,
    reader: RecordReader,
    rewriting: Rewriting,
    repairs: Arc<Repairs>,
    bytes: Vec<u8>,
    from: usize,
    ended: bool,
    /// Nothing was looked at yet: a byte order mark may come.
    at_start: bool,
    skip_lines: u64,
    /// The header is still to come.
    before_header: bool,
    /// The header's fields, if a record like it is to be dropped.
    header: Option<Vec<Vec<u8>>>,
    drop_repeated: bool,
    drop_totals: bool,
    drop_unlabelled: bool,
    drop_blank: bool,
    drop_footnotes: bool,
    /// A blank line stands right before the next record.
    behind_blank: bool,
    /// Lines of text below the table have begun.
    in_footnotes: bool,
    /// Fields of the first record.
    first_width: Option<usize>,
    values: Vec<Option<ValueForm>>,
    delimiter: u8,
    out: Vec<u8>,
    out_from: usize,
}

impl<R: Read> Rewriter<R> {
    pub(crate) fn new(input: R, format: &FileFormat, rewriting: Rewriting) -> Self {
        Self {
            input,
            reader: RecordReader::new(format.dialect.clone(), format.lenient),
            rewriting,
            repairs: Arc::clone(&format.repairs),
            bytes: Vec::new(),
            from: 0,
            ended: false,
            at_start: true,
            skip_lines: format.dialect.skip_lines,
            before_header: format.has_header,
            header: None,
            drop_repeated: format.drop_repeated_headers,
            drop_totals: format.drop_totals,
            drop_unlabelled: format.drop_unlabelled,
            drop_blank: format.drop_blank,
            drop_footnotes: format.drop_footnotes,
            behind_blank: false,
            in_footnotes: false,
            first_width: None,
            values: format.values.clone(),
            delimiter: format.dialect.canonical_delimiter(),
            out: Vec::new(),
            out_from: 0,
        }
    }

    /// Reads more of the input behind what is left.
    fn fill(&mut self) -> std::io::Result<()> {
        self.bytes.drain(..self.from);
        self.from = 0;
        let have = self.bytes.len();
        self.bytes.resize(have + STEP_BYTES, 0);
        let read = read_some(&mut self.input, &mut self.bytes[have..])?;
        self.bytes.truncate(have + read);
        self.ended = read == 0;
        Ok(())
    }

    /// Writes records until there are enough to hand out, or no more.
    fn work(&mut self) -> std::io::Result<()> {
        self.out.clear();
        self.out_from = 0;
        self.drop_mark()?;
        while self.out.len() < STEP_BYTES {
            let rest = &self.bytes[self.from..];
            if self.skip_lines > 0 {
                match self.skipped_line() {
                    Some(next) => {
                        self.from += next;
                        self.skip_lines -= 1;
                        self.out.push(b'\n');
                    }
                    None if self.ended => return Ok(()),
                    None => self.fill()?,
                }
                continue;
            }
            match self.reader.read(rest, self.ended) {
                Some(span) => self.put(span),
                None if self.ended => return Ok(()),
                None if rest.len() > MAX_RECORD_BYTES => match self.reader.give_up(rest) {
                    Some(span) => self.put(span),
                    None => self.hand_on(),
                },
                None => self.fill()?,
            }
        }
        Ok(())
    }

    /// A byte order mark is no part of the first field.
    fn drop_mark(&mut self) -> std::io::Result<()> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        while self.at_start && self.bytes.len() < MARK.len() && !self.ended {
            self.fill()?;
        }
        if std::mem::take(&mut self.at_start) && self.bytes.starts_with(MARK) {
            self.from = MARK.len();
        }
        Ok(())
    }

    /// The length of the line at the front, with its end.
    fn skipped_line(&self) -> Option<usize> {
        let rest = &self.bytes[self.from..];
        let cr = self.reader.dialect().cr_ends_records;
        let end = if cr { memchr::memchr2(b'\n', b'\r', rest) } else { memchr::memchr(b'\n', rest) }?;
        match (rest[end], rest.get(end + 1)) {
            (b'\r', None) if !self.ended => None,
            (b'\r', Some(b'\n')) => Some(end + 2),
            _ => Some(end + 1),
        }
    }

    /// A line that is longer than any record: the chunker rejects it, whatever it looks like.
    fn hand_on(&mut self) {
        self.out.extend_from_slice(&self.bytes[self.from..]);
        self.from = self.bytes.len();
    }

    fn put(&mut self, span: RecordSpan) {
        let raw = self.from..self.from + span.next;
        self.from = raw.end;
        let before = self.out.len();
        match span.kind {
            RecordKind::Blank => self.behind_blank = true,
            RecordKind::Comment => {}
            RecordKind::StrayQuote | RecordKind::OpenQuote if !self.reader.is_lenient() => self.put_faulty(raw),
            kind => {
                if matches!(kind, RecordKind::StrayQuote | RecordKind::OpenQuote) {
                    self.repairs.stray_quotes.fetch_add(1, Ordering::Relaxed);
                }
                self.put_record();
                self.behind_blank = false;
            }
        }
        // As many line ends as the file has here, so that lines keep their numbers. A record always gets one of its own: the last
        // line of a file may have none, and one that stands as `\n` in a value is none of the file's (later lines then count more).
        let lines = memchr_iter(b'\n', &self.out[before..]).count() as u64;
        let ends = span.lines.saturating_sub(lines).max(u64::from(self.out.len() > before));
        (0..ends).for_each(|_| self.out.push(b'\n'));
    }

    fn put_record(&mut self) {
        if self.before_header {
            self.before_header = false;
            if self.drop_repeated {
                self.header = Some(self.reader.fields().map(<[u8]>::to_vec).collect());
            }
            self.put_header();
            return;
        }
        if self.is_header_again() {
            self.repairs.repeated_headers.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let found = self.reader.len();
        if self.drop_blank && found > 1 && self.reader.fields().all(|field| field.trim_ascii().is_empty()) {
            self.repairs.blank.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.drop_footnotes && self.is_footnote() {
            self.repairs.footnotes.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let is_sum = (self.drop_totals && is_total(self.reader.fields()))
            || (self.drop_unlabelled && has_no_label(self.reader.fields()));
        if is_sum {
            self.repairs.totals.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let width = self.rewriting.width.unwrap_or(found);
        if self.reader.is_lenient() && found != width {
            let repaired = if found < width { &self.repairs.padded } else { &self.repairs.cut };
            repaired.fetch_add(1, Ordering::Relaxed);
        }
        match self.rewriting.columns.take() {
            None => self.put_values(found, width),
            Some(columns) => {
                self.put_columns(&columns, found, width);
                self.rewriting.columns = Some(columns);
            }
        }
    }

    /// Whether this record is text below the table: one field behind a blank line, and whatever follows that is no record, either.
    fn is_footnote(&mut self) -> bool {
        let found = self.reader.len();
        let width = self.rewriting.width.or(self.first_width).unwrap_or(found);
        self.first_width.get_or_insert(found);
        self.in_footnotes = width > 1 && found != width && (self.in_footnotes || (self.behind_blank && found == 1));
        self.in_footnotes
    }

    fn put_header(&mut self) {
        if self.rewriting.columns.is_none() {
            let found = self.reader.len();
            return self.put_fields(found, found);
        }
        for index in 0..self.rewriting.names.len() {
            self.put_delimiter(index);
            put_field(&mut self.out, self.rewriting.names[index].as_bytes(), false, self.delimiter);
        }
    }

    fn is_header_again(&self) -> bool {
        self.header.as_ref().is_some_and(|header| {
            header.len() == self.reader.len()
                && self.reader.fields().map(without_mark).zip(header).all(|(field, name)| field == name)
        })
    }

    fn put_fields(&mut self, found: usize, width: usize) {
        let values = std::mem::take(&mut self.values);
        self.put_values(found, width);
        self.values = values;
    }

    fn put_values(&mut self, found: usize, width: usize) {
        let fields = if self.reader.is_lenient() { width } else { found };
        for index in 0..fields {
            self.put_delimiter(index);
            self.put_value(index, index);
        }
        // A record of one empty field must not look like a blank line.
        if fields == 1 && self.reader.field(0).is_none_or(|(field, quoted)| field.is_empty() && !quoted) {
            self.out.extend_from_slice(b"\"\"");
        }
    }

    fn put_columns(&mut self, columns: &[ColumnSource], found: usize, width: usize) {
        for (index, column) in columns.iter().enumerate() {
            self.put_delimiter(index);
            match column {
                ColumnSource::Field(field) => self.put_value(*field, index),
                ColumnSource::Missing => {}
                ColumnSource::Constant(text) => put_field(&mut self.out, text.as_bytes(), false, self.delimiter),
            }
        }
        // Strictly, a record of another width is for the decoder to reject: it gets a field more than the table has columns.
        if !self.reader.is_lenient() && found != width {
            self.out.push(self.delimiter);
            self.out.extend_from_slice(if found < width { b"too few fields" } else { b"too many fields" });
        }
    }

    /// A field of the record, as the value of a column.
    fn put_value(&mut self, field: usize, column: usize) {
        let Some((field, quoted)) = self.reader.field(field) else { return };
        let form = self.values.get(column).copied().flatten().filter(|_| !field.is_empty());
        if form == Some(ValueForm::Formula) {
            let inside = std::str::from_utf8(field).ok().and_then(formula_text);
            return put_field(&mut self.out, inside.map_or(field, str::as_bytes), quoted, self.delimiter);
        }
        if form.is_none_or(|form| !form.write(field, &mut self.out)) {
            put_field(&mut self.out, field, quoted, self.delimiter);
        }
    }

    fn put_delimiter(&mut self, index: usize) {
        if index > 0 {
            self.out.push(self.delimiter);
        }
    }

    /// A record that no reader can take apart: written so that the decoder rejects it and shows its text.
    fn put_faulty(&mut self, raw: std::ops::Range<usize>) {
        self.before_header = false;
        let raw = self.bytes[raw].trim_ascii_end();
        self.out.push(b'"');
        for &byte in raw {
            match byte {
                b'"' => self.out.extend_from_slice(b"\"\""),
                b'\n' | b'\r' => self.out.push(b' '),
                byte => self.out.push(byte),
            }
        }
        self.out.extend_from_slice(b"\"?");
    }
}

/// The field without a byte order mark before it: files that were put one behind the other may each begin with one.
fn without_mark(field: &[u8]) -> &[u8] {
    field.strip_prefix(b"\xef\xbb\xbf").unwrap_or(field)
}

fn put_field(out: &mut Vec<u8>, field: &[u8], quoted: bool, delimiter: u8) {
    let special = |byte: &u8| matches!(*byte, b'"' | b'\n' | b'\r') || *byte == delimiter;
    if !quoted && !field.iter().any(special) {
        out.extend_from_slice(field);
        return;
    }
    out.push(b'"');
    let mut from = 0;
    for quote in memchr_iter(b'"', field) {
        out.extend_from_slice(&field[from..=quote]);
        out.push(b'"');
        from = quote + 1;
    }
    out.extend_from_slice(&field[from..]);
    out.push(b'"');
}

impl<R: Read> Read for Rewriter<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.out_from == self.out.len() {
            self.work()?;
        }
        let some = (self.out.len() - self.out_from).min(buf.len());
        buf[..some].copy_from_slice(&self.out[self.out_from..self.out_from + some]);
        self.out_from += some;
        Ok(some)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Dialect, Escape};

    fn rewritten(format: &FileFormat, rewriting: Rewriting, text: &[u8]) -> String {
        let mut out = String::new();
        Rewriter::new(text, format, rewriting).read_to_string(&mut out).unwrap();
        out
    }

    fn as_it_is() -> Rewriting {
        Rewriting { columns: None, names: Vec::new(), width: None }
    }

    fn format(dialect: Dialect) -> FileFormat {
        FileFormat { dialect, has_header: true, ..FileFormat::default() }
    }

    #[test]
    fn every_dialect_becomes_the_one_and_lines_stay_where_they_are() {
        let dialect = Dialect {
            quote: Some(b'\''),
            escape: Escape::Backslash,
            comment: Some(b'#'),
            skip_lines: 2,
            skip_spaces: true,
            ..Dialect::with_delimiter(b';')
        };
        let text = b"Report of March\n\n# a comment\nid; note\n1; 'x;\n\\'y\\''\n2; a \"b\"\n";
        assert_eq!(rewritten(&format(dialect), as_it_is(), text), "\n\n\nid;note\n1;\"x;\n'y'\"\n2;\"a \"\"b\"\"\"\n");
    }

    #[test]
    fn a_line_end_that_is_written_as_an_escape_does_not_end_or_join_records() {
        let dialect = Dialect { quote: None, escape: Escape::Backslash, ..Dialect::with_delimiter(b'\t') };
        let text = b"id\tn\n1\tA\\nB\n2\tC\\nD\\nE\n3\tF\n";
        assert_eq!(rewritten(&format(dialect), as_it_is(), text), "id\tn\n1\t\"A\nB\"\n2\t\"C\nD\nE\"\n3\tF\n");
    }

    #[test]
    fn columns_are_put_into_the_tables_order_and_what_is_missing_is_null() {
        let columns = vec![
            ColumnSource::Field(1),
            ColumnSource::Missing,
            ColumnSource::Field(0),
            ColumnSource::Constant("03".into()),
        ];
        let names = ["id", "new", "name", "month"].map(str::to_owned).to_vec();
        let rewriting = || Rewriting { columns: Some(columns.clone()), names: names.clone(), width: Some(2) };
        let strict = format(Dialect::default());
        assert_eq!(
            rewritten(&strict, rewriting(), b"name,id\na,1\n\"b,c\",2\nd\ne,3,4\n"),
            "id,new,name,month\n1,,a,03\n2,,\"b,c\",03\n,,d,03,too few fields\n3,,e,03,too many fields\n"
        );
        let lenient = FileFormat { lenient: true, ..strict };
        assert_eq!(rewritten(&lenient, rewriting(), b"name,id\nd\ne,3,4\n"), "id,new,name,month\n,,d,03\n3,,e,03\n");
        assert_eq!(lenient.repairs.told().len(), 2);
    }

    #[test]
    fn a_repeated_header_is_no_record_and_is_counted() {
        let format = FileFormat { drop_repeated_headers: true, ..format(Dialect::default()) };
        assert_eq!(rewritten(&format, as_it_is(), b"a,b\n1,2\na,b\n3,4"), "a,b\n1,2\n\n3,4\n");
        assert_eq!(format.repairs.told(), [("repeated headers, left out", 1)]);
    }

    #[test]
    fn formulas_of_excel_are_the_texts_inside_them() {
        let format = FileFormat { values: vec![Some(ValueForm::Formula), None], ..format(Dialect::default()) };
        let text = b"zip,n\n=\"00123\",1\n\"=\"\"0,5\"\"\",2\nx,3\n";
        assert_eq!(rewritten(&format, as_it_is(), text), "zip,n\n00123,1\n\"0,5\",2\nx,3\n");
    }

    #[test]
    fn totals_are_no_records_and_are_counted() {
        let format = FileFormat { drop_totals: true, ..format(Dialect::default()) };
        assert_eq!(rewritten(&format, as_it_is(), b"a,b\nx,2\nTotal,2\n(1 rows)\n"), "a,b\nx,2\n\n\n");
        assert_eq!(format.repairs.told(), [("lines of totals, left out", 2)]);
    }

    #[test]
    fn blank_rows_of_spreadsheets_and_text_below_the_table_are_no_records_and_are_counted() {
        let format = FileFormat { drop_blank: true, drop_footnotes: true, ..format(Dialect::default()) };
        let width = Rewriting { width: Some(2), ..as_it_is() };
        let text = b"a,b\n1,2\n,\nx\n\n3,4\n\nMade by x\nConfidential, do not show, please\n5,6\n";
        assert_eq!(
            rewritten(&format, width, text),
            "a,b\n1,2\n\nx\n\n3,4\n\n\n\n5,6\n",
            "a short record is rejected as ever"
        );
        assert_eq!(
            format.repairs.told(),
            [("records without any value, left out", 1), ("lines of text below the table, left out", 2)]
        );
    }

    #[test]
    fn a_repeated_header_may_begin_with_a_byte_order_mark() {
        let format = FileFormat { drop_repeated_headers: true, ..format(Dialect::default()) };
        assert_eq!(rewritten(&format, as_it_is(), "a,b\n1,2\n\u{feff}a,b\n3,4\n".as_bytes()), "a,b\n1,2\n\n3,4\n");
    }

    #[test]
    fn stray_quotes_are_rejected_or_taken_literally() {
        let strict = format(Dialect::default());
        let text = b"a,b\n\"x\"y,1\n\"open,2\n3,4\n";
        assert_eq!(rewritten(&strict, as_it_is(), text), "a,b\n\"\"\"x\"\"y,1\"?\n\"\"\"open,2\"?\n3,4\n");
        let lenient = FileFormat { lenient: true, ..format(Dialect::default()) };
        let width = Rewriting { width: Some(2), ..as_it_is() };
        assert_eq!(rewritten(&lenient, width, text), "a,b\n\"\"\"x\"\"y\",1\n\"\"\"open\",2\n3,4\n");
    }

    #[test]
    fn a_byte_order_mark_belongs_to_no_field() {
        let format = format(Dialect { skip_spaces: true, ..Dialect::default() });
        assert_eq!(rewritten(&format, as_it_is(), b"\xef\xbb\xbf\"a\", b\r\n1, 2\r\n"), "\"a\",b\n1,2\n");
        assert_eq!(rewritten(&format, as_it_is(), b"a"), "a\n");
    }

    #[test]
    fn carriage_returns_become_line_ends() {
        let format = format(Dialect { cr_ends_records: true, ..Dialect::default() });
        assert_eq!(rewritten(&format, as_it_is(), b"a,b\r1,2\r\r3,4\r"), "a,b\n1,2\n\n3,4\n");
    }
}
