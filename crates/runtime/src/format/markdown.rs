//! A Markdown table.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::cells::{CellKind, Cells, kind_of};
use super::{DecimalMark, RowWriter};

/// Writes a pipe table; numbers are aligned to the right.
#[derive(Debug)]
pub(super) struct MarkdownWriter<W> {
    out: W,
    mark: DecimalMark,
}

impl<W: Write> MarkdownWriter<W> {
    pub(super) fn new(out: W, mark: DecimalMark) -> Self {
        Self { out, mark }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|").replace("\r\n", "<br>").replace(['\n', '\r'], "<br>")
}

impl<W: Write> RowWriter for MarkdownWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        let names: Vec<String> = schema.fields().iter().map(|f| escaped(f.name())).collect();
        let rules: Vec<&str> = schema
            .fields()
            .iter()
            .map(|f| if kind_of(f.data_type()) == CellKind::Number { "---:" } else { "---" })
            .collect();
        writeln!(self.out, "| {} |\n| {} |", names.join(" | "), rules.join(" | "))
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?.with_mark(self.mark);
        for row in 0..batch.num_rows() {
            let mut line = String::from("|");
            for column in 0..cells.width() {
                let text = cells.get(row, column)?.map(escaped).unwrap_or_default();
                line.push(' ');
                line.push_str(&text);
                line.push_str(" |");
            }
            line.push('\n');
            self.out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
