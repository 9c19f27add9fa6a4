//! JSON: an array of objects, or an object a line.

use std::io::{self, Write};

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
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
                match batch.column(column) {
                    nested if nested.data_type().is_nested() => nested_value(nested.as_ref(), row, &mut line)?,
                    _ => plain_value(cells.get(row, column)?, *kind, &mut line)?,
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

fn plain_value(text: Option<&str>, kind: CellKind, line: &mut String) -> io::Result<()> {
    match text {
        None => line.push_str("null"),
        Some(text) if kind == CellKind::Bool => line.push_str(text),
        // Infinities and NaN have no JSON number.
        Some(text) if kind == CellKind::Number && text.ends_with(|c: char| c.is_ascii_digit()) => line.push_str(text),
        Some(text) => line.push_str(&serde_json::to_string(text).map_err(super::other)?),
    }
    Ok(())
}

/// A list as an array, a struct or a map as an object, whatever is inside of them.
fn nested_value(array: &dyn Array, row: usize, line: &mut String) -> io::Result<()> {
    if array.is_null(row) {
        line.push_str("null");
        return Ok(());
    }
    match array.data_type() {
        DataType::List(_) => items(&array.as_list::<i32>().value(row), line),
        DataType::LargeList(_) => items(&array.as_list::<i64>().value(row), line),
        DataType::FixedSizeList(..) => items(&array.as_fixed_size_list().value(row), line),
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            members(columns.map(|(field, column)| (field.name().clone(), column.as_ref(), row)), line)
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let mut keys = Cells::of([entries.column(0).as_ref()])?;
            let keys = (0..entries.len()).map(|entry| Ok(keys.get(entry, 0)?.unwrap_or_default().to_owned()));
            let keys = keys.collect::<io::Result<Vec<String>>>()?;
            let values = entries.column(1).as_ref();
            members(keys.into_iter().enumerate().map(|(entry, key)| (key, values, entry)), line)
        }
        plain => plain_value(Cells::of([array])?.get(row, 0)?, kind_of(plain), line),
    }
}

fn items(values: &ArrayRef, line: &mut String) -> io::Result<()> {
    line.push('[');
    for item in 0..values.len() {
        if item > 0 {
            line.push(',');
        }
        nested_value(values.as_ref(), item, line)?;
    }
    line.push(']');
    Ok(())
}

fn members<'a>(members: impl Iterator<Item = (String, &'a dyn Array, usize)>, line: &mut String) -> io::Result<()> {
    line.push('{');
    for (place, (key, values, row)) in members.enumerate() {
        if place > 0 {
            line.push(',');
        }
        line.push_str(&serde_json::to_string(&key).map_err(super::other)?);
        line.push(':');
        nested_value(values, row, line)?;
    }
    line.push('}');
    Ok(())
}
