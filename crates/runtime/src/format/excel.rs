//! Workbooks of Excel (`.xlsx`), one sheet each, written row by row.
//!
//! A number of Excel has 15 digits, and a day of its calendar is right from March 1900 on. What it would round or shift is written as
//! text, counted, and told; what a sheet cannot hold at all is an error. Nothing is changed in silence.

use std::collections::BTreeMap;
use std::io::{self, Write};

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Date32Type, SchemaRef, TimeUnit, TimestampMicrosecondType};
use datafusion::arrow::record_batch::RecordBatch;

use super::RowWriter;
use super::cells::{CellKind, Cells, kind_of};
use super::zip::{Part, Zip};

/// Rows of a sheet, the header included, and its columns.
pub(super) const MAX_ROWS: u64 = 1_048_576;
const MAX_COLUMNS: usize = 16_384;
/// Characters of a cell, in UTF-16.
const MAX_CELL_CHARS: usize = 32_767;
/// Digits of a number.
const MAX_DIGITS: usize = 15;
/// Digits behind the point that a format shows.
const MAX_SCALE: usize = 30;
/// The first of March 1900 and the last day of 9999, as days since 1970. Excel takes 1900 for a leap year.
const DAYS: std::ops::RangeInclusive<i32> = -25_508..=2_932_896;
/// What Excel calls the first of January 1970.
const EPOCH: i64 = 25_569;
const MICROSECONDS_OF_A_DAY: i64 = 86_400_000_000;

/// Styles that every workbook has, in their order in `styles.xml`.
const PLAIN: usize = 0;
const BOLD: usize = 1;
const DATE: usize = 2;
const TIME: usize = 3;
const TIME_WITH_MILLISECONDS: usize = 4;
const FIRST_OF_DECIMALS: usize = 5;

const CONTENT_TYPES: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.styles+xml"/></Types>"#;
const PACKAGE: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>"#;
const WORKBOOK: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="answer" sheetId="1" r:id="rId1"/></sheets></workbook>"#;
const WORKBOOK_PARTS: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/styles" Target="styles.xml"/></Relationships>"#;
const SHEET_BEGIN: &str = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetViews><sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetData>"#;
const SHEET_END: &str = "</sheetData></worksheet>";

/// Writes one workbook.
pub(super) struct ExcelWriter<W: Write> {
    state: State<W>,
    columns: Vec<Column>,
    /// Rows written, the header included.
    rows: u64,
    text: String,
}

enum State<W: Write> {
    New(W),
    Open(Box<Part<W>>),
    Ended,
}

struct Column {
    /// `A` to `XFD`.
    letters: String,
    name: String,
    style: usize,
    /// Why values are texts, and how many.
    as_text: BTreeMap<&'static str, u64>,
}

impl<W: Write> ExcelWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { state: State::New(out), columns: Vec::new(), rows: 0, text: String::new() }
    }

    fn put(&mut self) -> io::Result<()> {
        let State::Open(part) = &mut self.state else {
            return Err(io::Error::other("rows before the columns, or after the end"));
        };
        part.write(self.text.as_bytes())?;
        self.text.clear();
        Ok(())
    }

    fn begin_row(&mut self) -> io::Result<()> {
        self.rows += 1;
        if self.rows > MAX_ROWS {
            return Err(io::Error::other(format!(
                "a sheet of Excel has at most {MAX_ROWS} rows, the header included, and the answer has more; write .csv or .arrow"
            )));
        }
        self.text.push_str(&format!("<row r=\"{}\">", self.rows));
        Ok(())
    }

    fn cell(&mut self, column: usize, style: usize, value: &Value<'_>) -> io::Result<()> {
        let letters = &self.columns[column].letters;
        let place = format!("r=\"{letters}{}\"", self.rows);
        let style = if style == PLAIN { String::new() } else { format!(" s=\"{style}\"") };
        match value {
            Value::Number(text) => self.text.push_str(&format!("<c {place}{style}><v>{text}</v></c>")),
            Value::Bool(text) => {
                let bit = u8::from(*text == "true");
                self.text.push_str(&format!("<c {place} t=\"b\"><v>{bit}</v></c>"));
            }
            Value::Text(text) => {
                if text.len() > MAX_CELL_CHARS && text.encode_utf16().count() > MAX_CELL_CHARS {
                    let name = &self.columns[column].name;
                    return Err(io::Error::other(format!(
                        "row {}, column {name}: a cell of Excel has at most {MAX_CELL_CHARS} characters, and this text has more; \
                         write .csv or .arrow",
                        self.rows
                    )));
                }
                self.text.push_str(&format!("<c {place}{style} t=\"inlineStr\"><is><t xml:space=\"preserve\">"));
                escape(text, &mut self.text);
                self.text.push_str("</t></is></c>");
            }
        }
        Ok(())
    }
}

/// A value as a cell holds it.
enum Value<'t> {
    Number(&'t str),
    Bool(&'t str),
    Text(&'t str),
}

impl<W: Write> RowWriter for ExcelWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        let State::New(out) = std::mem::replace(&mut self.state, State::Ended) else { return Ok(()) };
        if schema.fields().len() > MAX_COLUMNS {
            return Err(io::Error::other(format!(
                "a sheet of Excel has at most {MAX_COLUMNS} columns, and the answer has {}; write .csv or .arrow",
                schema.fields().len()
            )));
        }
        let mut scales = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let style = style_of(field.data_type(), &mut scales);
            let (letters, name) = (letters(index), field.name().clone());
            self.columns.push(Column { letters, name, style, as_text: BTreeMap::new() });
        }
        let zip = Zip::new(out).put("[Content_Types].xml", CONTENT_TYPES)?.put("_rels/.rels", PACKAGE)?;
        let zip = zip.put("xl/workbook.xml", WORKBOOK)?.put("xl/_rels/workbook.xml.rels", WORKBOOK_PARTS)?;
        let zip = zip.put("xl/styles.xml", &styles(&scales))?;
        self.state = State::Open(Box::new(zip.begin("xl/worksheets/sheet1.xml")?));
        self.text.push_str(SHEET_BEGIN);
        self.begin_row()?;
        for column in 0..self.columns.len() {
            let name = self.columns[column].name.clone();
            self.cell(column, BOLD, &Value::Text(&name))?;
        }
        self.text.push_str("</row>");
        self.put()
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?;
        for row in 0..batch.num_rows() {
            self.begin_row()?;
            for column in 0..cells.width() {
                let array = batch.column(column);
                let Some(text) = cells.get(row, column)? else { continue };
                match moment(array, row) {
                    Some(Ok((number, style))) => self.cell(column, style, &Value::Number(&number))?,
                    Some(Err(why)) => self.reason(column, why, text)?,
                    None => match kind_of(array.data_type()) {
                        CellKind::Text => self.cell(column, PLAIN, &Value::Text(text))?,
                        CellKind::Bool => self.cell(column, PLAIN, &Value::Bool(text))?,
                        CellKind::Number => match refused(array.data_type(), text) {
                            Some(why) => self.reason(column, why, text)?,
                            None => self.cell(column, self.columns[column].style, &Value::Number(text))?,
                        },
                    },
                }
            }
            self.text.push_str("</row>");
            if self.text.len() > 1 << 16 {
                self.put()?;
            }
        }
        self.put()
    }

    fn end(&mut self) -> io::Result<()> {
        self.text.push_str(SHEET_END);
        self.put()?;
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Open(part) => part.end()?.end(),
            _ => Ok(()),
        }
    }

    fn notes(&self) -> Vec<String> {
        let of = |column: &Column| {
            let note = |(why, count): (&&str, &u64)| {
                let values = if *count == 1 { "value is text" } else { "values are texts" };
                format!("column {}: {count} {values}, because {why}", column.name)
            };
            column.as_text.iter().map(note).collect::<Vec<_>>()
        };
        self.columns.iter().flat_map(of).collect()
    }
}

impl<W: Write> ExcelWriter<W> {
    /// A value that would be another one if it were no text.
    fn reason(&mut self, column: usize, why: &'static str, text: &str) -> io::Result<()> {
        *self.columns[column].as_text.entry(why).or_default() += 1;
        self.cell(column, PLAIN, &Value::Text(text))
    }
}

const ROUNDED: &str = "Excel keeps only 15 digits of a number";
const NO_NUMBER: &str = "Excel knows no such number";
const NO_DAY: &str = "Excel's calendar begins in March 1900 and ends in 9999";
const TOO_FINE: &str = "Excel keeps no more than milliseconds";

/// Why Excel would not keep this number; none: it keeps it.
fn refused(data_type: &DataType, text: &str) -> Option<&'static str> {
    if matches!(data_type, DataType::Float64 | DataType::Float32 | DataType::Float16) {
        // A float is one in Excel, too.
        return (!text.ends_with(|last: char| last.is_ascii_digit())).then_some(NO_NUMBER);
    }
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').collect();
    let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    (digits.len() - zeros > MAX_DIGITS).then_some(ROUNDED)
}

/// A date or a time as Excel counts days, with its style, or why that is impossible; none: the value is neither.
fn moment(array: &dyn Array, row: usize) -> Option<Result<(String, usize), &'static str>> {
    match array.data_type() {
        DataType::Date32 => {
            let day = array.as_primitive::<Date32Type>().value(row);
            let in_calendar = DAYS.contains(&day).then_some(day);
            Some(in_calendar.map(|day| ((i64::from(day) + EPOCH).to_string(), DATE)).ok_or(NO_DAY))
        }
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            let time = array.as_primitive::<TimestampMicrosecondType>().value(row);
            let (day, of_day) = (time.div_euclid(MICROSECONDS_OF_A_DAY), time.rem_euclid(MICROSECONDS_OF_A_DAY));
            if i32::try_from(day).map_or(true, |day| !DAYS.contains(&day)) {
                return Some(Err(NO_DAY));
            }
            if of_day % 1_000 != 0 {
                return Some(Err(TOO_FINE));
            }
            let style = if of_day % 1_000_000 == 0 { TIME } else { TIME_WITH_MILLISECONDS };
            let number = (day + EPOCH) as f64 + of_day as f64 / MICROSECONDS_OF_A_DAY as f64;
            Some(Ok((number.to_string(), style)))
        }
        _ => None,
    }
}

/// The style of a column of this type. `scales`: the decimals that have one so far.
fn style_of(data_type: &DataType, scales: &mut Vec<usize>) -> usize {
    let scale = match data_type {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => usize::try_from(*scale).unwrap_or(0),
        _ => return PLAIN,
    };
    let scale = scale.min(MAX_SCALE);
    let place = scales.iter().position(|known| *known == scale).unwrap_or_else(|| {
        scales.push(scale);
        scales.len() - 1
    });
    FIRST_OF_DECIMALS + place
}

fn styles(scales: &[usize]) -> String {
    /// The first number of a format of one's own.
    const OWN: usize = 164;
    let decimals =
        scales.iter().map(|scale| if *scale == 0 { "0".to_owned() } else { format!("0.{}", "0".repeat(*scale)) });
    let own = ["yyyy\\-mm\\-dd", "yyyy\\-mm\\-dd hh:mm:ss", "yyyy\\-mm\\-dd hh:mm:ss.000"].map(str::to_owned);
    let formats: Vec<String> = own.into_iter().chain(decimals).collect();
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\">",
    );
    text.push_str(&format!("<numFmts count=\"{}\">", formats.len()));
    for (index, format) in formats.iter().enumerate() {
        text.push_str(&format!("<numFmt numFmtId=\"{}\" formatCode=\"{format}\"/>", OWN + index));
    }
    text.push_str("</numFmts><fonts count=\"2\"><font><sz val=\"11\"/><name val=\"Calibri\"/></font><font><b/><sz val=\"11\"/><name val=\"Calibri\"/></font></fonts>");
    text.push_str("<fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill></fills>");
    text.push_str("<borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>");
    text.push_str(
        "<cellStyleXfs count=\"1\"><xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"/></cellStyleXfs>",
    );
    text.push_str(&format!("<cellXfs count=\"{}\">", 2 + formats.len()));
    text.push_str("<xf numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\"/>");
    text.push_str("<xf numFmtId=\"0\" fontId=\"1\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyFont=\"1\"/>");
    for index in 0..formats.len() {
        let format = OWN + index;
        text.push_str(&format!(
            "<xf numFmtId=\"{format}\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/>"
        ));
    }
    text.push_str("</cellXfs><cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>");
    text
}

/// `A`, …, `Z`, `AA`, …
fn letters(index: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = index + 1;
    while rest > 0 {
        letters.push(b'A' + ((rest - 1) % 26) as u8);
        rest = (rest - 1) / 26;
    }
    letters.reverse();
    String::from_utf8_lossy(&letters).into_owned()
}

/// Text as XML, in which control characters are `_x0007_`, and texts that look so are written so, too.
fn escape(text: &str, out: &mut String) {
    for (at, c) in text.char_indices() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '_' if looks_escaped(&text[at..]) => out.push_str("_x005F_"),
            '\t' | '\n' => out.push(c),
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                out.push_str(&format!("_x{:04X}_", c as u32))
            }
            c => out.push(c),
        }
    }
}

fn looks_escaped(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 6 && bytes[1] == b'x' && bytes[2..6].iter().all(u8::is_ascii_hexdigit) && bytes[6] == b'_'
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
        TimestampMicrosecondArray,
    };

    use super::*;

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    fn written(batch: &RecordBatch) -> (Vec<u8>, Vec<String>) {
        let mut out = Vec::new();
        let mut writer = ExcelWriter::new(&mut out);
        writer.begin(&batch.schema()).unwrap();
        writer.rows(batch).unwrap();
        writer.end().unwrap();
        let notes = writer.notes();
        drop(writer);
        (out, notes)
    }

    /// A part of an archive, read by what its directory says.
    fn part(zip: &[u8], name: &str) -> String {
        let u32_at = |at: usize| u32::from_le_bytes(zip[at..at + 4].try_into().unwrap()) as usize;
        let u16_at = |at: usize| usize::from(u16::from_le_bytes(zip[at..at + 2].try_into().unwrap()));
        let end = zip.len() - 22;
        let mut at = u32_at(end + 16);
        for _ in 0..u16_at(end + 10) {
            let length = u16_at(at + 28);
            if &zip[at + 46..at + 46 + length] == name.as_bytes() {
                let (crc, packed, local) = (u32_at(at + 16), u32_at(at + 20), u32_at(at + 42));
                let begin = local + 30 + u16_at(local + 26);
                let mut text = Vec::new();
                let mut decoder = flate2::read::DeflateDecoder::new(&zip[begin..begin + packed]);
                io::Read::read_to_end(&mut decoder, &mut text).unwrap();
                let mut sum = flate2::Crc::new();
                sum.update(&text);
                assert_eq!((sum.sum() as usize, text.len()), (crc, u32_at(at + 24)));
                return String::from_utf8(text).unwrap();
            }
            at += 46 + length;
        }
        panic!("there is no {name}");
    }

    #[test]
    fn values_are_numbers_days_and_truths_and_what_excel_would_change_is_text() {
        let money = Decimal128Array::from(vec![Some(123_450), Some(123_456_789_012_345_678), None])
            .with_precision_and_scale(20, 2)
            .unwrap();
        let times = TimestampMicrosecondArray::from(vec![Some(43_200_000_000), Some(500_000), Some(1)]);
        let batch = batch(vec![
            ("n", Arc::new(Int64Array::from(vec![Some(7), Some(9_007_199_254_740_993), None])) as ArrayRef),
            ("m", Arc::new(money) as ArrayRef),
            ("d", Arc::new(Date32Array::from(vec![Some(20_454), Some(-40_000), None])) as ArrayRef),
            ("t", Arc::new(times) as ArrayRef),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])) as ArrayRef),
            ("f", Arc::new(Float64Array::from(vec![Some(0.1), Some(f64::NAN), Some(1e300)])) as ArrayRef),
            ("s", Arc::new(StringArray::from(vec![Some("a <b> & \u{1}"), Some("_x0041_"), Some("007")])) as ArrayRef),
        ]);
        let (zip, notes) = written(&batch);
        let sheet = part(&zip, "xl/worksheets/sheet1.xml");
        for cell in [
            "<c r=\"A1\" s=\"1\" t=\"inlineStr\"><is><t xml:space=\"preserve\">n</t></is></c>",
            "<c r=\"A2\"><v>7</v></c>",
            "<c r=\"A3\" t=\"inlineStr\"><is><t xml:space=\"preserve\">9007199254740993</t></is></c>",
            "<c r=\"B2\" s=\"5\"><v>1234.50</v></c>",
            ">1234567890123456.78</t>",
            "<c r=\"C2\" s=\"2\"><v>46023</v></c>",
            ">1860-06-26</t>",
            "<c r=\"D2\" s=\"3\"><v>25569.5</v></c>",
            "<c r=\"D3\" s=\"4\"><v>25569.0000057870",
            ">1970-01-01 00:00:00.000001</t>",
            "<c r=\"E2\" t=\"b\"><v>1</v></c><c r=\"F2\"><v>0.1</v></c>",
            ">NaN</t>",
            ">a &lt;b&gt; &amp; _x0001_</t>",
            ">_x005F_x0041_</t>",
            ">007</t>",
        ] {
            assert!(sheet.contains(cell), "{cell} is not in {sheet}");
        }
        assert!(!sheet.contains("r=\"A4\""), "a null is no cell");
        let whys: Vec<&str> = notes.iter().map(|note| note.split(", because ").next().unwrap()).collect();
        let one = |name: &str| format!("column {name}: 1 value is text");
        assert_eq!(whys, ["n", "m", "d", "t", "f"].map(one));
        assert!(part(&zip, "xl/styles.xml").contains("formatCode=\"0.00\""));
        assert!(part(&zip, "[Content_Types].xml").contains("sheet.main+xml"));
        assert_eq!(written(&batch).0, zip, "the same answer has the same bytes");
    }

    #[test]
    fn what_a_sheet_cannot_hold_is_an_error_that_says_what_can() {
        let long = batch(vec![("s", Arc::new(StringArray::from(vec!["x".repeat(40_000)])) as ArrayRef)]);
        let mut writer = ExcelWriter::new(Vec::new());
        writer.begin(&long.schema()).unwrap();
        let error = writer.rows(&long).unwrap_err().to_string();
        assert!(error.starts_with("row 2, column s: a cell of Excel has at most 32767 characters"), "{error}");
        let many = batch(vec![("n", Arc::new(Int64Array::from(vec![None; 1 << 20])) as ArrayRef)]);
        let mut writer = ExcelWriter::new(io::sink());
        writer.begin(&many.schema()).unwrap();
        writer.rows(&many.slice(0, (1 << 20) - 1)).unwrap();
        let error = writer.rows(&many.slice(0, 1)).unwrap_err().to_string();
        assert!(error.contains("at most 1048576 rows") && error.contains("write .csv or .arrow"), "{error}");
    }

    #[test]
    fn columns_have_letters() {
        assert_eq!([0, 25, 26, 701, 702, 16_383].map(letters), ["A", "Z", "AA", "ZZ", "AAA", "XFD"]);
    }
}
