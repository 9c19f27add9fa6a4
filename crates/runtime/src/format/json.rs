//! JSON: an array of objects, or an object a line.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::RowWriter;
use super::cells::{CellKind, Cells, kind_of};

/// Writes objects with the columns as keys, in their order. Decimals are number tokens with all their digits.
#[derive(Debug)]
pub(super) struct JsonWriter<W> {
    out: W,
    lines: bool,
    keys: Vec<(String, CellKind)>,
    any: bool,
}

impl<W: Write> JsonWriter<W> {
    pub(super) fn array(out: W) -> Self {
        Self { out, lines: false, keys: Vec::new(), any: false }
    }

    pub(super) fn lines(out: W) -> Self {
        Self { out, lines: true, keys: Vec::new(), any: false }
    }
}

impl<W: Write> RowWriter for JsonWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        for field in schema.fields() {
            let key = serde_json::to_string(field.name()).map_err(super::other)?;
            self.keys.push((key, kind_of(field.data_type())));
        }
        if self.lines { Ok(()) } else { self.out.write_all(b"[") }
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?;
        let mut line = String::new();
        for row in 0..batch.num_rows() {
            line.clear();
            if !self.lines {
                line.push_str(if self.any { ",\n " } else { "\n " });
            }
            self.any = true;
            line.push('{');
            for (column, (key, kind)) in self.keys.iter().enumerate() {
                if column > 0 {
                    line.push(',');
                }
                line.push_str(key);
                line.push(':');
                match cells.get(row, column)? {
                    None => line.push_str("null"),
                    Some(text) if *kind == CellKind::Bool => line.push_str(text),
                    // Infinities and NaN have no JSON number.
                    Some(text) if *kind == CellKind::Number && text.ends_with(|c: char| c.is_ascii_digit()) => {
                        line.push_str(text);
                    }
                    Some(text) => line.push_str(&serde_json::to_string(text).map_err(super::other)?),
                }
            }
            line.push('}');
            if self.lines {
                line.push('\n');
            }
            self.out.write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        if !self.lines {
            self.out.write_all(if self.any { b"\n]\n" } else { b"]\n" })?;
        }
        self.out.flush()
    }
}
