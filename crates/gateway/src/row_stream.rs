//! Rows as a stream of bytes that ends with a record of its end, or of what went wrong.

use std::collections::BTreeMap;
use std::io;

use axum::http::{HeaderMap, header};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use serde_json::{Value, json};
use tenaz_runtime::format::csv::CsvWriter;
use tenaz_runtime::format::{Format, RowWriter};

use crate::plans::columns;
use crate::problem::{Code, Problem};
use tenaz_api::ErrorRecord;

/// The formats of streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFormat {
    Ndjson,
    Csv,
    Json,
    Arrow,
}

impl StreamFormat {
    const ALL: [(StreamFormat, &'static str, &'static str); 4] = [
        (StreamFormat::Ndjson, "ndjson", "application/x-ndjson"),
        (StreamFormat::Csv, "csv", "text/csv"),
        (StreamFormat::Json, "json", "application/json"),
        (StreamFormat::Arrow, "arrow", "application/vnd.apache.arrow.stream"),
    ];

    /// What the client asks for: `?format=`, else the first type in `Accept` that there is, else one object a line.
    pub(crate) fn of(parameters: &BTreeMap<String, String>, headers: &HeaderMap) -> Result<Self, Problem> {
        if let Some(asked) = parameters.get("format") {
            let found = Self::ALL.iter().find(|(_, name, _)| name == asked);
            let unknown = || {
                Problem::new(Code::BadRequest, format!("there is no format {asked:?}: use ndjson, csv, json or arrow"))
            };
            return found.map(|(format, _, _)| *format).ok_or_else(unknown);
        }
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = accepted.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next());
        let found = kinds.find_map(|kind| Self::ALL.iter().find(|(_, _, name)| kind.trim().eq_ignore_ascii_case(name)));
        Ok(found.map_or(StreamFormat::Ndjson, |(format, _, _)| *format))
    }

    /// Its media type.
    pub(crate) fn content_type(self) -> &'static str {
        Self::ALL.iter().find(|(format, _, _)| *format == self).map_or("application/octet-stream", |(_, _, kind)| kind)
    }
}

/// Turns rows into bytes.
pub(crate) struct RowStream {
    format: StreamFormat,
    schema: SchemaRef,
    arrow: Option<StreamWriter<Vec<u8>>>,
    rows: u64,
}

impl RowStream {
    /// A stream of rows with these columns, and its first bytes.
    pub(crate) fn begin(format: StreamFormat, schema: &SchemaRef) -> io::Result<(Self, Vec<u8>)> {
        let mut stream = Self { format, schema: SchemaRef::clone(schema), arrow: None, rows: 0 };
        let first = match format {
            StreamFormat::Ndjson => Vec::new(),
            StreamFormat::Json => format!("{{\"columns\":{},\"rows\":[", json!(columns(schema))).into_bytes(),
            StreamFormat::Csv => {
                let mut writer = CsvWriter::new(Vec::new(), b',');
                writer.begin(schema)?;
                writer.into_inner()
            }
            StreamFormat::Arrow => {
                let writer = StreamWriter::try_new(Vec::new(), schema).map_err(io::Error::other)?;
                std::mem::take(stream.arrow.insert(writer).get_mut())
            }
        };
        Ok((stream, first))
    }

    /// How many rows there were.
    pub(crate) fn count(&self) -> u64 {
        self.rows
    }

    /// Some rows. Columns go by their place, whatever the batch calls them.
    pub(crate) fn rows(&mut self, batch: &RecordBatch) -> io::Result<Vec<u8>> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = SchemaRef::clone(&self.schema);
        let batch =
            RecordBatch::try_new_with_options(schema, batch.columns().to_vec(), &options).map_err(io::Error::other)?;
        let is_first = self.rows == 0;
        self.rows += batch.num_rows() as u64;
        match self.format {
            StreamFormat::Csv => {
                let mut writer = CsvWriter::new(Vec::new(), b',');
                writer.rows(&batch)?;
                Ok(writer.into_inner())
            }
            StreamFormat::Ndjson => objects(&batch, |_| b"{\"row\":", b"}\n"),
            StreamFormat::Json => objects(&batch, |index| if is_first && index == 0 { b"\n" } else { b",\n" }, b""),
            StreamFormat::Arrow => {
                let writer = self.arrow.as_mut().ok_or_else(|| io::Error::other("rows before the columns"))?;
                writer.write(&batch).map_err(io::Error::other)?;
                Ok(std::mem::take(writer.get_mut()))
            }
        }
    }

    /// The last bytes of a complete answer.
    pub(crate) fn end(&mut self, fingerprint: &str, ordered: bool) -> io::Result<Vec<u8>> {
        let rows = self.rows;
        let line = format!("# end rows={rows} fingerprint={fingerprint} ordered={ordered}\n");
        self.close("end", &json!({"rows": rows, "fingerprint": fingerprint, "ordered": ordered}), line)
    }

    /// The last bytes of an answer that is not complete.
    pub(crate) fn error(&mut self, told: &ErrorRecord) -> io::Result<Vec<u8>> {
        let text = told.text.replace(['\n', '\r'], " ");
        self.close("error", &told.value(), format!("# error code={} {text}\n", told.code))
    }

    fn close(&mut self, name: &str, record: &Value, csv: String) -> io::Result<Vec<u8>> {
        let line = format!("{{\"{name}\":{record}}}\n");
        Ok(match self.format {
            StreamFormat::Csv => csv.into_bytes(),
            StreamFormat::Ndjson => line.into_bytes(),
            StreamFormat::Json => format!("\n],\"{name}\":{record}}}\n").into_bytes(),
            StreamFormat::Arrow => {
                let mut bytes = Vec::new();
                if let Some(mut writer) = self.arrow.take() {
                    writer.finish().map_err(io::Error::other)?;
                    bytes = std::mem::take(writer.get_mut());
                }
                bytes.extend_from_slice(line.as_bytes());
                bytes
            }
        })
    }
}

/// Each row as an object, with something before and after.
fn objects<'b>(batch: &RecordBatch, before: impl Fn(usize) -> &'b [u8], after: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let mut writer = Format::Ndjson.writer(&mut text);
    writer.begin(&batch.schema())?;
    writer.rows(batch)?;
    writer.end()?;
    drop(writer);
    let mut bytes = Vec::with_capacity(text.len() + batch.num_rows() * 10);
    // Line ends within texts are escaped, so each line is a row.
    for (index, line) in text.split(|byte| *byte == b'\n').take(batch.num_rows()).enumerate() {
        bytes.extend_from_slice(before(index));
        bytes.extend_from_slice(line);
        bytes.extend_from_slice(after);
    }
    Ok(bytes)
}
