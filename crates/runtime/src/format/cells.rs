//! Values as text.

use std::fmt::Write;
use std::io;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use tenaz_engine::TRIM_ZEROS;

use super::DecimalMark;

/// What the text of a value means to a format that tells numbers from words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellKind {
    /// Digits, sign, point: a number token in JSON.
    Number,
    /// `true` or `false`.
    Bool,
    /// Anything else.
    Text,
}

pub(super) fn kind_of(data_type: &DataType) -> CellKind {
    match data_type {
        DataType::Boolean => CellKind::Bool,
        t if t.is_numeric() => CellKind::Number,
        _ => CellKind::Text,
    }
}

fn options() -> FormatOptions<'static> {
    FormatOptions::new()
        .with_display_error(false)
        .with_null("")
        .with_date_format(Some("%Y-%m-%d"))
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
        .with_time_format(Some("%H:%M:%S%.f"))
}

/// The rows of a batch as text.
pub(super) struct Cells<'b> {
    columns: Vec<Column<'b>>,
    text: String,
    mark: DecimalMark,
}

struct Column<'b> {
    array: &'b dyn Array,
    formatter: ArrayFormatter<'b>,
    /// Decimals are shown without zeros at their end.
    trim_zeros: bool,
}

impl<'b> Cells<'b> {
    pub(super) fn new(batch: &'b RecordBatch) -> io::Result<Self> {
        let trims = |index: usize| batch.schema_ref().field(index).metadata().contains_key(TRIM_ZEROS);
        Self::of(batch.columns().iter().enumerate().map(|(index, array)| (array.as_ref(), trims(index))))
    }

    /// The values of these columns, each with whether its decimals are shown without zeros at their end.
    pub(super) fn of(columns: impl IntoIterator<Item = (&'b dyn Array, bool)>) -> io::Result<Self> {
        // The options live as long as the program, because the formatter borrows them.
        static OPTIONS: std::sync::OnceLock<FormatOptions<'static>> = std::sync::OnceLock::new();
        let options = OPTIONS.get_or_init(options);
        let columns = columns.into_iter().map(|(array, trim_zeros)| {
            let formatter = ArrayFormatter::try_new(array, options).map_err(super::other)?;
            Ok(Column { array, formatter, trim_zeros })
        });
        Ok(Self { columns: columns.collect::<io::Result<_>>()?, text: String::new(), mark: DecimalMark::Point })
    }

    /// Numbers have this mark before their decimals.
    pub(super) fn with_mark(mut self, mark: DecimalMark) -> Self {
        self.mark = mark;
        self
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    /// The text of a value; `None` for null.
    pub(super) fn get(&mut self, row: usize, column: usize) -> io::Result<Option<&str>> {
        let Column { array, formatter, trim_zeros } = &self.columns[column];
        // A column of nothing but nulls has no mask that says so.
        if array.is_null(row) || array.data_type().is_null() {
            return Ok(None);
        }
        if let Some(text) = array.as_string_view_opt() {
            return Ok(Some(text.value(row)));
        }
        self.text.clear();
        write!(self.text, "{}", formatter.value(row)).map_err(super::other)?;
        if *trim_zeros && self.text.contains('.') {
            let kept = self.text.trim_end_matches('0').trim_end_matches('.').len();
            self.text.truncate(kept);
        }
        if self.mark == DecimalMark::Comma && array.data_type().is_numeric() && self.text.contains('.') {
            self.text = self.text.replace('.', ",");
        }
        Ok(Some(&self.text))
    }
}
