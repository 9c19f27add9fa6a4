//! Aligned columns for people.

use std::io::{self, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{Cell, CellAlignment, ContentArrangement, Table};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::cells::{CellKind, Cells, kind_of};
use super::{DecimalMark, RowWriter};

/// The longest text shown in a cell; the rest is cut, with a mark.
const MAX_CELL_CHARS: usize = 120;

/// Writes a framed table. With a limit it shows the first rows and tells how many more there are.
#[derive(Debug)]
pub struct TableWriter<W> {
    out: W,
    table: Table,
    kinds: Vec<CellKind>,
    limit: Option<u64>,
    mark: DecimalMark,
    shown: u64,
    more: u64,
}

impl<W: Write> TableWriter<W> {
    /// A writer that shows at most `limit` rows.
    pub fn new(out: W, limit: Option<u64>) -> Self {
        let mut table = Table::new();
        table.load_style(UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Disabled);
        Self { out, table, kinds: Vec::new(), limit, mark: DecimalMark::Point, shown: 0, more: 0 }
    }

    /// Numbers have this mark before their decimals.
    pub fn with_mark(mut self, mark: DecimalMark) -> Self {
        self.mark = mark;
        self
    }

    /// Breaks cells so that the table is at most this wide.
    pub fn within(mut self, width: Option<u16>) -> Self {
        if let Some(width) = width {
            self.table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        self
    }
}

/// One line of printable text: what a terminal would act upon is shown instead.
pub(super) fn printable(text: &str) -> String {
    let mut shown = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MAX_CELL_CHARS {
            shown.push('…');
            break;
        }
        match c {
            '\n' => shown.push('⏎'),
            '\t' => shown.push(' '),
            c if c.is_control() => shown.push('\u{fffd}'),
            c => shown.push(c),
        }
    }
    shown
}

impl<W: Write> RowWriter for TableWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        self.kinds = schema.fields().iter().map(|f| kind_of(f.data_type())).collect();
        self.table.set_header(schema.fields().iter().map(|f| Cell::new(printable(f.name()))));
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?.with_mark(self.mark);
        for row in 0..batch.num_rows() {
            if self.limit.is_some_and(|limit| self.shown >= limit) {
                self.more += (batch.num_rows() - row) as u64;
                break;
            }
            let mut line = Vec::with_capacity(cells.width());
            for column in 0..cells.width() {
                let text = cells.get(row, column)?.map(printable).unwrap_or_default();
                let right = self.kinds[column] == CellKind::Number;
                line.push(Cell::new(text).set_alignment(if right {
                    CellAlignment::Right
                } else {
                    CellAlignment::Left
                }));
            }
            self.table.add_row(line);
            self.shown += 1;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        writeln!(self.out, "{}", self.table)?;
        if self.more > 0 {
            writeln!(self.out, "… and {} more rows; --out DIR or another --format gives them all", self.more)?;
        }
        self.out.flush()
    }
}
