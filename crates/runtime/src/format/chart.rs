//! Bars for people: the first column names them, the second is as long as its number.

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use super::RowWriter;
use super::cells::{CellKind, Cells, kind_of};
use super::table::printable;

/// Characters of the longest bar.
const BAR: usize = 60;
/// The longest name of a bar; the rest is cut, with a mark.
const MAX_NAME: usize = 40;

/// Writes a bar for each row of an answer with two columns. Bars below zero are drawn in another shade.
#[derive(Debug)]
pub struct ChartWriter<W> {
    out: W,
    head: (String, String),
    limit: Option<u64>,
    /// The name, the number as it is shown, and its value.
    bars: Vec<(String, String, Option<f64>)>,
    more: u64,
}

impl<W: Write> ChartWriter<W> {
    /// A writer that shows at most `limit` rows.
    pub fn new(out: W, limit: Option<u64>) -> Self {
        Self { out, head: (String::new(), String::new()), limit, bars: Vec::new(), more: 0 }
    }
}

fn name(text: Option<&str>) -> String {
    let text = text.map(printable).unwrap_or_default();
    match text.char_indices().nth(MAX_NAME) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

impl<W: Write> RowWriter for ChartWriter<W> {
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()> {
        let [first, second] = &schema.fields()[..] else {
            return Err(wrong(schema.fields().len()));
        };
        if kind_of(second.data_type()) != CellKind::Number {
            return Err(wrong(2));
        }
        self.head = (name(Some(first.name())), printable(second.name()));
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()> {
        let mut cells = Cells::new(batch)?;
        for row in 0..batch.num_rows() {
            if self.limit.is_some_and(|limit| self.bars.len() as u64 >= limit) {
                self.more += (batch.num_rows() - row) as u64;
                break;
            }
            let name = name(cells.get(row, 0)?);
            let number = cells.get(row, 1)?.unwrap_or_default().to_owned();
            let value = number.parse().ok().filter(|value: &f64| value.is_finite());
            self.bars.push((name, number, value));
        }
        Ok(())
    }

    fn end(&mut self) -> io::Result<()> {
        let widest =
            |texts: &mut dyn Iterator<Item = &String>| texts.map(|text| text.chars().count()).max().unwrap_or(0);
        let names = widest(&mut self.bars.iter().map(|bar| &bar.0).chain([&self.head.0]));
        let numbers = widest(&mut self.bars.iter().map(|bar| &bar.1).chain([&self.head.1]));
        let longest =
            self.bars.iter().filter_map(|bar| bar.2).fold(0.0, |longest: f64, value| longest.max(value.abs()));
        writeln!(self.out, "{:names$}  {:>numbers$}", self.head.0, self.head.1)?;
        for (name, number, value) in &self.bars {
            let value = value.unwrap_or(0.0);

            let length = if longest > 0.0 { (value.abs() / longest * BAR as f64).round() as usize } else { 0 };
            let bar = if value < 0.0 { "▒" } else { "█" }.repeat(length);
            writeln!(self.out, "{}", format!("{name:names$}  {number:>numbers$}  {bar}").trim_end())?;
        }
        if self.more > 0 {
            writeln!(self.out, "… and {} more rows; --rows 0 shows all", self.more)?;
        }
        self.out.flush()
    }
}

fn wrong(columns: usize) -> io::Error {
    let found = if columns == 2 { "its second column is none".to_owned() } else { format!("it has {columns}") };
    let text = format!("a chart needs an answer of two columns, the second one a number; {found}");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
