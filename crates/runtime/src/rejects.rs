//! Bad records as rows, so that they are kept, spilled and written as all other rows are.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Builder, RecordBatch, StringArray, StringBuilder, StringDictionaryBuilder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type, Schema, SchemaRef};
use tenaz_csv::{Layout, RejectRef, Rejects};

use crate::Error;
use crate::limits::REJECT_PIECE_BYTES;

/// One bad record, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectLine {
    /// The table.
    pub table: String,
    /// The file, relative to the data directory.
    pub file: String,
    /// 1-based line.
    pub line: u64,
    /// Offset of the record in the file.
    pub byte: u64,
    /// The column at fault, where one is.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// The record's text.
    pub text: String,
}

impl RejectLine {
    pub(crate) fn new(table: &str, file: &str, layout: &Layout, reject: RejectRef<'_>) -> Self {
        Self {
            table: table.to_owned(),
            file: file.to_owned(),
            line: reject.line,
            byte: reject.byte,
            column: reject.column.map(|c| layout.columns[c].name.clone()),
            reason: reject.reason.to_string(),
            text: reject.text.to_owned(),
        }
    }

    /// The bad records in these rows, whose columns are those of [`reject_schema`].
    pub fn from_rows(rows: &RecordBatch) -> impl Iterator<Item = Self> + '_ {
        let text = |column: usize, row: usize| {
            let texts = rows.column(column).as_string::<i32>();
            texts.is_valid(row).then(|| texts.value(row).to_owned())
        };
        let number = |column: usize, row: usize| {
            u64::try_from(rows.column(column).as_primitive::<Int64Type>().value(row)).unwrap_or_default()
        };
        (0..rows.num_rows()).map(move |row| Self {
            table: text(0, row).unwrap_or_default(),
            file: text(1, row).unwrap_or_default(),
            line: number(2, row),
            byte: number(3, row),
            column: text(4, row),
            reason: text(5, row).unwrap_or_default(),
            text: text(6, row).unwrap_or_default(),
        })
    }

    /// `file, line n`
    pub fn place(&self) -> String {
        format!("{}, line {}", self.file, self.line)
    }

    /// The reason, with the column where there is one.
    pub fn reason_with_column(&self) -> String {
        match &self.column {
            Some(column) => format!("column {column}: {}", self.reason),
            None => self.reason.clone(),
        }
    }
}

/// The columns of `rejects.csv`.
pub fn reject_schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let number = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![
        text("table"),
        text("file"),
        number("line"),
        number("byte"),
        text("column"),
        text("reason"),
        text("text"),
    ]))
}

/// The columns of a piece of a chunk's bad records: those of [`reject_schema`] without table and file, which are the same for
/// all of them, and with every reason once.
pub fn reject_piece_schema() -> SchemaRef {
    let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let number = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![
        number("line"),
        number("byte"),
        Field::new("column", text(), true),
        Field::new("reason", text(), true),
        Field::new("text", DataType::Utf8, true),
    ]))
}

/// The bad records of a chunk in pieces of about [`REJECT_PIECE_BYTES`], each made when it is asked for: all of them at once
/// can be a hundred times as large as the chunk.
pub(crate) fn reject_pieces<'a>(layout: &'a Layout, rejects: &'a Rejects) -> impl Iterator<Item = RecordBatch> + 'a {
    let mut rest = rejects.iter().peekable();
    std::iter::from_fn(move || {
        rest.peek()?;
        let mut piece = PieceBuilder::default();
        while let Some(reject) = rest.next_if(|_| piece.bytes < REJECT_PIECE_BYTES) {
            piece.push(layout, reject);
        }
        Some(piece.finish())
    })
}

/// A piece as rows of `rejects.csv`.
pub(crate) fn with_names(table: &str, file: &str, piece: &RecordBatch) -> Result<RecordBatch, Error> {
    let rows = piece.num_rows();
    let same = |text: &str| Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows))) as ArrayRef;
    let mut columns = vec![same(table), same(file)];
    for (column, field) in piece.columns().iter().zip(&reject_schema().fields()[2..]) {
        columns.push(cast(column, field.data_type())?);
    }
    Ok(RecordBatch::try_new(reject_schema(), columns)?)
}

#[derive(Default)]
struct PieceBuilder {
    lines: Int64Builder,
    offsets: Int64Builder,
    columns: StringDictionaryBuilder<Int32Type>,
    reasons: StringDictionaryBuilder<Int32Type>,
    texts: StringBuilder,
    bytes: usize,
}

impl PieceBuilder {
    fn push(&mut self, layout: &Layout, reject: RejectRef<'_>) {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let reason = reject.reason.to_string();
        self.lines.append_value(number(reject.line));
        self.offsets.append_value(number(reject.byte));
        self.columns.append_option(reject.column.map(|column| &layout.columns[column].name));
        self.reasons.append_value(&reason);
        self.texts.append_value(reject.text);
        // As if every reason were another: what is estimated is never less than what there is.
        self.bytes += 48 + reason.len() + reject.text.len();
    }

    fn finish(mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.lines.finish()),
            Arc::new(self.offsets.finish()),
            Arc::new(self.columns.finish()),
            Arc::new(self.reasons.finish()),
            Arc::new(self.texts.finish()),
        ];
        RecordBatch::try_new(reject_piece_schema(), columns).expect("the columns are those of the schema")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::buffer::Buffer;
    use tenaz_csv::{Column, Decoder, Kind};

    use super::*;

    #[test]
    fn bad_records_come_back_from_their_pieces() {
        let layout = Arc::new(Layout::new(vec![Column::new("n", Kind::Int { float_text: false })]));
        let data = (0..50_000).map(|n| if n % 3 == 0 { "1,2\n".to_owned() } else { format!("x{n}\n") });
        let data = Buffer::from_vec(data.collect::<String>().into_bytes());
        let mut decoder = Decoder::new(Arc::clone(&layout), vec![0]).unwrap();
        let rejects = decoder.decode(&data, 100, 7).unwrap().rejects;
        assert_eq!(rejects.len(), 50_000);
        let pieces: Vec<RecordBatch> = reject_pieces(&layout, &rejects).collect();
        assert!(pieces.len() > 3, "{}", pieces.len());
        assert!(pieces.iter().all(|piece| piece.get_array_memory_size() < 4 * REJECT_PIECE_BYTES));
        let rows = pieces.iter().map(|piece| with_names("t", "t.csv", piece).unwrap());
        let lines: Vec<RejectLine> = rows.flat_map(|rows| RejectLine::from_rows(&rows).collect::<Vec<_>>()).collect();
        let expected: Vec<RejectLine> =
            rejects.iter().map(|reject| RejectLine::new("t", "t.csv", &layout, reject)).collect();
        assert_eq!(lines, expected);
        assert_eq!((lines[0].byte, lines[0].line, lines[0].column.as_deref()), (100, 7, None));
        assert_eq!(lines[1].column.as_deref(), Some("n"));
        let none = decoder.decode(&Buffer::from_vec(b"1\n".to_vec()), 0, 1).unwrap().rejects;
        assert_eq!(reject_pieces(&layout, &none).count(), 0);
    }
}
