//! Answers as text or bytes, in every common format.
//!
//! A value looks the same in all text formats: decimals with their full scale, times as `YYYY-MM-DD HH:MM:SS`, nothing
//! for null.

mod arrow;
mod cells;
mod chart;
pub mod csv;
mod excel;
mod json;
mod markdown;
#[cfg(feature = "parquet")]
mod parquet;
mod table;
mod zip;

use std::io::{self, Write};

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;

pub use chart::ChartWriter;
pub use table::TableWriter;

/// A format in which answers can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// Comma-separated values, RFC 4180, `\n` line ends. Its SHA-256 is the fingerprint.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// One JSON array of objects.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A Markdown table.
    Markdown,
    /// An Arrow IPC file.
    Arrow,
    /// An Arrow IPC stream, for pipes.
    Arrows,
    /// Bars for people: a column of names and one of numbers.
    Chart,
    /// A Parquet file.
    #[cfg(feature = "parquet")]
    Parquet,
    /// A workbook of Excel.
    Xlsx,
}

impl Format {
    /// All formats of this build.
    pub const ALL: &'static [Format] = &[
        Format::Table,
        Format::Csv,
        Format::Tsv,
        Format::Json,
        Format::Ndjson,
        Format::Markdown,
        Format::Arrow,
        Format::Arrows,
        Format::Chart,
        #[cfg(feature = "parquet")]
        Format::Parquet,
        Format::Xlsx,
    ];

    /// The name, which is also the suffix of files.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Markdown => "markdown",
            Format::Arrow => "arrow",
            Format::Arrows => "arrows",
            Format::Chart => "chart",
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
            Format::Xlsx => "xlsx",
        }
    }

    /// Whether it is meant for programs rather than for a screen.
    pub fn is_binary(self) -> bool {
        #[cfg(feature = "parquet")]
        if self == Format::Parquet {
            return true;
        }
        matches!(self, Format::Arrow | Format::Arrows | Format::Xlsx)
    }

    /// Whether its numbers can have a decimal comma: those of programs have none.
    pub fn takes_decimal_comma(self) -> bool {
        matches!(self, Format::Table | Format::Csv | Format::Tsv | Format::Markdown)
    }

    /// A writer of this format.
    pub fn writer<'w>(self, out: impl Write + Send + 'w) -> Box<dyn RowWriter + Send + 'w> {
        self.writer_with(out, DecimalMark::Point)
    }

    /// A writer of this format, with this mark in numbers where the format takes it. With decimal commas, CSV has semicolons between
    /// fields, as spreadsheets expect it that have such numbers.
    pub fn writer_with<'w>(self, out: impl Write + Send + 'w, mark: DecimalMark) -> Box<dyn RowWriter + Send + 'w> {
        match self {
            Format::Table => Box::new(TableWriter::new(out, None).with_mark(mark)),
            Format::Csv if mark == DecimalMark::Comma => Box::new(csv::CsvWriter::new(out, b';').with_mark(mark)),
            Format::Csv => Box::new(csv::CsvWriter::new(out, b',')),
            Format::Tsv => Box::new(csv::CsvWriter::new(out, b'\t').with_mark(mark)),
            Format::Json => Box::new(json::JsonWriter::array(out)),
            Format::Ndjson => Box::new(json::JsonWriter::lines(out)),
            Format::Markdown => Box::new(markdown::MarkdownWriter::new(out, mark)),
            Format::Arrow => Box::new(arrow::ArrowWriter::file(out)),
            Format::Arrows => Box::new(arrow::ArrowWriter::stream(out)),
            Format::Chart => Box::new(ChartWriter::new(out, None)),
            #[cfg(feature = "parquet")]
            Format::Parquet => Box::new(parquet::ParquetWriter::new(out)),
            Format::Xlsx => Box::new(excel::ExcelWriter::new(out)),
        }
    }
}

/// Takes an answer: its columns, its rows, its end.
pub trait RowWriter {
    /// The columns. Called once, first.
    fn begin(&mut self, schema: &SchemaRef) -> io::Result<()>;
    /// Some rows.
    fn rows(&mut self, batch: &RecordBatch) -> io::Result<()>;
    /// No more rows. Everything is handed to the writer below, and that one is flushed.
    fn end(&mut self) -> io::Result<()>;
    /// What is not as the answer has it, because the format knows no such values. Asked after the end.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The mark before the decimals of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecimalMark {
    /// `1234.5`
    #[default]
    Point,
    /// `1234,5`
    Comma,
}

/// What went wrong below the Arrow writer, as it was: a reader that has gone must still be known as one.
fn from_arrow(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        error => io::Error::other(error),
    }
}

fn other(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::*;
    use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn written(format: Format, batch: &RecordBatch) -> String {
        let mut out = Vec::new();
        let mut writer = format.writer(&mut out);
        writer.begin(&batch.schema()).unwrap();
        writer.rows(batch).unwrap();
        writer.end().unwrap();
        drop(writer);
        String::from_utf8(out).unwrap()
    }

    fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
    }

    /// Texts as both of Arrow's kinds, which must not be told apart in any format.
    fn texts(values: &[Option<&str>]) -> RecordBatch {
        let plain: StringArray = values.iter().copied().collect();
        let view: StringViewArray = values.iter().copied().collect();
        batch(vec![("a", Arc::new(plain) as ArrayRef), ("b", Arc::new(view) as ArrayRef)])
    }

    #[test]
    fn csv_tells_null_from_empty_text_and_quotes_only_what_must_be() {
        let batch = texts(&[
            None,
            Some(""),
            Some("x y"),
            Some("a,b"),
            Some("say \"hi\""),
            Some("1\n2"),
            Some("\r"),
            Some("\t"),
        ]);
        let expected = "a,b\n,\n\"\",\"\"\nx y,x y\n\"a,b\",\"a,b\"\n\"say \"\"hi\"\"\",\"say \"\"hi\"\"\"\n\"1\n2\",\"1\n2\"\n\"\r\",\"\r\"\n\t,\t\n";
        assert_eq!(written(Format::Csv, &batch), expected);
        let tabs = texts(&[Some("a,b"), Some("\t")]);
        assert_eq!(written(Format::Tsv, &tabs), "a\tb\na,b\ta,b\n\"\t\"\t\"\t\"\n");
    }

    #[test]
    fn values_look_the_same_in_all_text_formats() {
        let money =
            Decimal128Array::from(vec![Some(-5), Some(1_234_500), None]).with_precision_and_scale(15, 3).unwrap();
        let times =
            TimestampMicrosecondArray::from(vec![Some(1_704_067_199_000_000), Some(1_704_067_200_500_000), None]);
        let batch = batch(vec![
            ("m", Arc::new(money) as ArrayRef),
            ("t", Arc::new(times) as ArrayRef),
            ("d", Arc::new(Date32Array::from(vec![Some(0), Some(-1), None])) as ArrayRef),
            ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])) as ArrayRef),
            ("f", Arc::new(Float64Array::from(vec![Some(0.5), Some(f64::NAN), None])) as ArrayRef),
        ]);
        let csv = "m,t,d,b,f\n-0.005,2023-12-31 23:59:59,1970-01-01,true,0.5\n\
                   1234.500,2024-01-01 00:00:00.500,1969-12-31,false,NaN\n,,,,\n";
        assert_eq!(written(Format::Csv, &batch), csv);
        let json = "{\"m\":-0.005,\"t\":\"2023-12-31 23:59:59\",\"d\":\"1970-01-01\",\"b\":true,\"f\":0.5}\n\
                    {\"m\":1234.500,\"t\":\"2024-01-01 00:00:00.500\",\"d\":\"1969-12-31\",\"b\":false,\"f\":\"NaN\"}\n\
                    {\"m\":null,\"t\":null,\"d\":null,\"b\":null,\"f\":null}\n";
        assert_eq!(written(Format::Ndjson, &batch), json);
        let markdown = written(Format::Markdown, &batch);
        assert!(markdown.contains("| -0.005 | 2023-12-31 23:59:59 | 1970-01-01 | true | 0.5 |"), "{markdown}");
    }

    #[test]
    fn nulls_lists_structs_and_maps_are_those_of_json() {
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(1), None]), None]);
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a \"b\""), None]));
        let inner: ArrayRef = Arc::new(lists.clone());
        let structs = StructArray::try_from(vec![("t", texts), ("l", inner)]).unwrap();
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Decimal128Builder::new());
        maps.keys().append_value("k");
        maps.values().append_value(5);
        maps.append(true).unwrap();
        maps.append(false).unwrap();
        let batch = batch(vec![
            ("n", Arc::new(NullArray::new(2)) as ArrayRef),
            ("l", Arc::new(lists) as ArrayRef),
            ("s", Arc::new(structs) as ArrayRef),
            ("m", Arc::new(maps.finish()) as ArrayRef),
        ]);
        let json = "{\"n\":null,\"l\":[1,null],\"s\":{\"t\":\"a \\\"b\\\"\",\"l\":[1,null]},\"m\":{\"k\":0.0000000005}}\n\
                    {\"n\":null,\"l\":null,\"s\":{\"t\":null,\"l\":null},\"m\":null}\n";
        assert_eq!(written(Format::Ndjson, &batch), json);
        assert!(written(Format::Csv, &batch).starts_with("n,l,s,m\n,"), "a null is an empty field");
    }

    #[test]
    fn json_escapes_texts_and_keys_and_is_valid_without_rows() {
        let batch = batch(vec![("a \"key\"", Arc::new(StringArray::from(vec!["q\"\\\n\u{1}"])) as ArrayRef)]);
        let parsed: serde_json::Value = serde_json::from_str(&written(Format::Json, &batch)).unwrap();
        assert_eq!(parsed, serde_json::json!([{"a \"key\"": "q\"\\\n\u{1}"}]));
        assert_eq!(written(Format::Json, &batch.slice(0, 0)), "[]\n");
    }

    #[test]
    fn a_table_keeps_control_characters_and_endless_texts_off_the_terminal() {
        let long = "x".repeat(500);
        let table = written(Format::Table, &texts(&[Some("red \u{1b}[31m"), Some("two\nlines"), Some(&long)]));
        assert!(!table.contains('\u{1b}') && table.contains("two⏎lines"), "{table}");
        assert!(table.contains(&format!("{}…", "x".repeat(120))) && !table.contains(&"x".repeat(121)));
    }

    #[test]
    fn a_limited_table_counts_what_it_leaves_out_over_all_batches() {
        let batch = texts(&[Some("1"), Some("2"), Some("3")]);
        let mut out = Vec::new();
        let mut writer = TableWriter::new(&mut out, Some(4));
        writer.begin(&batch.schema()).unwrap();
        for _ in 0..3 {
            writer.rows(&batch).unwrap();
        }
        writer.end().unwrap();
        drop(writer);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("… and 5 more rows"), "{text}");
    }

    #[test]
    fn arrow_files_read_back_as_they_were_even_without_rows() {
        use datafusion::arrow::compute::concat_batches;
        use datafusion::arrow::ipc::reader::FileReader;
        let batch = texts(&[None, Some(""), Some("a")]);
        for batches in [vec![batch.clone(), batch.slice(1, 2)], vec![]] {
            let mut out = Vec::new();
            let mut writer = Format::Arrow.writer(&mut out);
            writer.begin(&batch.schema()).unwrap();
            batches.iter().for_each(|batch| writer.rows(batch).unwrap());
            writer.end().unwrap();
            drop(writer);
            let read = FileReader::try_new(io::Cursor::new(out), None).unwrap();
            assert_eq!(read.schema(), batch.schema());
            let read: Vec<RecordBatch> = read.map(|batch| batch.unwrap()).collect();
            let all = |batches| concat_batches(&batch.schema(), batches).unwrap();
            assert_eq!(all(&read), all(&batches), "the same rows, in batches of the file's own");
        }
    }

    #[test]
    fn arrow_streams_read_back_from_a_pipe() {
        use datafusion::arrow::ipc::reader::StreamReader;
        let batch = texts(&[None, Some(""), Some("a")]);
        let mut out = Vec::new();
        let mut writer = Format::Arrows.writer(&mut out);
        writer.begin(&batch.schema()).unwrap();
        writer.rows(&batch).unwrap();
        writer.end().unwrap();
        drop(writer);
        let read: Vec<RecordBatch> =
            StreamReader::try_new(&out[..], None).unwrap().map(|batch| batch.unwrap()).collect();
        assert_eq!(read, [batch]);
    }

    #[test]
    fn a_chart_has_a_bar_for_each_row_as_long_as_its_number() {
        let names: StringArray = vec![Some("Rome"), Some("Oslo"), None].into_iter().collect();
        let numbers = Decimal128Array::from(vec![Some(1000), Some(250), None]).with_precision_and_scale(10, 1).unwrap();
        let two = batch(vec![("city", Arc::new(names) as ArrayRef), ("total", Arc::new(numbers) as ArrayRef)]);
        let chart = written(Format::Chart, &two);
        let bars: Vec<usize> = chart.lines().skip(1).map(|line| line.matches('█').count()).collect();
        assert_eq!(bars, [60, 15, 0], "{chart}");
        assert!(chart.starts_with("city  total\n") && chart.contains("\nRome  100.0  ██"), "{chart}");
        let below = batch(vec![
            ("x", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
            ("y", Arc::new(Int64Array::from(vec![-30, 30])) as ArrayRef),
        ]);
        let chart = written(Format::Chart, &below);
        assert!(chart.contains("▒▒") && chart.lines().nth(1).unwrap().matches('▒').count() == 60, "{chart}");
        let mut out = Vec::new();
        let error = Format::Chart.writer(&mut out).begin(&texts(&[]).schema()).unwrap_err().to_string();
        assert!(error.contains("the second one a number"), "{error}");
    }

    /// A place where nothing can be written, for a reason of its own.
    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    }

    #[test]
    fn every_format_passes_on_why_it_could_not_write() {
        let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        for format in
            [Format::Table, Format::Csv, Format::Tsv, Format::Json, Format::Ndjson, Format::Markdown, Format::Arrow]
        {
            let mut writer = format.writer(Broken);
            let error = writer.begin(&schema).and_then(|()| writer.end()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{}", format.name());
        }
    }

    #[test]
    fn numbers_may_have_a_decimal_comma_and_fields_then_semicolons_between() {
        let money = Decimal128Array::from(vec![Some(123_450), None]).with_precision_and_scale(15, 2).unwrap();
        let texts: StringArray = vec![Some("1.5;x"), Some("a,b")].into_iter().collect();
        let batch = batch(vec![("m", Arc::new(money) as ArrayRef), ("t", Arc::new(texts) as ArrayRef)]);
        let written = |format: Format| {
            let mut out = Vec::new();
            let mut writer = format.writer_with(&mut out, DecimalMark::Comma);
            writer.begin(&batch.schema()).unwrap();
            writer.rows(&batch).unwrap();
            writer.end().unwrap();
            drop(writer);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Format::Csv), "m;t\n1234,50;\"1.5;x\"\n;a,b\n");
        assert_eq!(written(Format::Tsv), "m\tt\n1234,50\t1.5;x\n\ta,b\n");
        assert!(written(Format::Table).contains("1234,50") && written(Format::Markdown).contains("| 1234,50 |"));
        assert!(written(Format::Ndjson).contains("1234.50"), "numbers of JSON have a point");
    }

    #[test]
    fn names_of_formats_are_different() {
        let mut names: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Format::ALL.len());
    }
}
