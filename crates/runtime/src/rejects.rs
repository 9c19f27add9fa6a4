//! Bad records as rows, so that they are kept, spilled and written as all other rows are.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use tenaz_csv::{Layout, Reject};

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
    pub(crate) fn new(table: &str, file: &str, layout: &Layout, reject: &Reject) -> Self {
        Self {
            table: table.to_owned(),
            file: file.to_owned(),
            line: reject.line,
            byte: reject.byte,
            column: reject.column.map(|c| layout.columns[c].name.clone()),
            reason: reject.reason.to_string(),
            text: reject.text.clone(),
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

/// The bad records of a chunk as rows.
pub(crate) fn reject_batch(lines: &[RejectLine]) -> RecordBatch {
    let text = |get: fn(&RejectLine) -> Option<&str>| Arc::new(lines.iter().map(get).collect::<StringArray>());
    let number = |get: fn(&RejectLine) -> u64| {
        Arc::new(lines.iter().map(|line| i64::try_from(get(line)).ok()).collect::<Int64Array>())
    };
    RecordBatch::try_new(
        reject_schema(),
        vec![
            text(|l| Some(&l.table)),
            text(|l| Some(&l.file)),
            number(|l| l.line),
            number(|l| l.byte),
            text(|l| l.column.as_deref()),
            text(|l| Some(&l.reason)),
            text(|l| Some(&l.text)),
        ],
    )
    .expect("the columns are those of the schema")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_records_come_back_from_their_rows() {
        let line = |column: Option<&str>| RejectLine {
            table: "t".to_owned(),
            file: "t.csv".to_owned(),
            line: 7,
            byte: 123,
            column: column.map(str::to_owned),
            reason: "expected 9 fields, found 8".to_owned(),
            text: String::new(),
        };
        let lines = [line(None), line(Some("price"))];
        assert_eq!(RejectLine::from_rows(&reject_batch(&lines)).collect::<Vec<_>>(), lines);
    }
}
