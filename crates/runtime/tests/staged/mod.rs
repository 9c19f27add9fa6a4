//! The same SQL over the same small tables twice: staged by tenaz, and run directly by DataFusion.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own share of this")]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::config::Dialect;
use datafusion::datasource::MemTable;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use tenaz_core::QueryId;
use tenaz_csv::{Column, Header, Kind, Layout};
use tenaz_engine::{JobPlan, Query, Role, Table, Workload};
use tenaz_runtime::format::Format;
use tenaz_runtime::{DataSet, Observer, Options, Progress, RejectLine};

/// A run that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A table as text; `None` is null.
#[derive(Debug, Clone)]
pub struct Rows {
    pub name: &'static str,
    pub role: Role,
    pub columns: Vec<(&'static str, Kind)>,
    pub rows: Vec<Vec<Option<String>>>,
}

/// An answer as CSV lines, in the order in which it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    pub header: String,
    pub rows: Vec<String>,
}

impl Lines {
    pub fn sorted(mut self) -> Self {
        self.rows.sort_unstable();
        self
    }

    fn new(schema: &Arc<Schema>, batches: &[RecordBatch]) -> Self {
        let mut bytes = Vec::new();
        let mut writer = Format::Csv.writer(&mut bytes);
        writer.begin(schema).expect("a vector takes anything");
        batches.iter().for_each(|batch| writer.rows(batch).expect("every value has a text"));
        writer.end().expect("a vector takes anything");
        drop(writer);
        let text = String::from_utf8(bytes).expect("CSV is text");
        let mut lines = text.lines().map(str::to_owned);
        Self { header: lines.next().expect("the header"), rows: lines.collect() }
    }
}

/// How a staged run is cut up.
#[derive(Debug, Clone, Copy)]
pub struct Cutting {
    pub partitions: u16,
    pub chunk_bytes: usize,
    pub threads: usize,
}

pub fn text(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|value| (!value.is_empty()).then(|| (*value).to_owned())).collect()
}

/// Writes every table as `<name>.csv`.
pub fn write_files(tables: &[Rows], dir: &Path) {
    for table in tables {
        let names: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        let mut file = names.join(",");
        file.push('\n');
        for row in &table.rows {
            let fields: Vec<String> = row.iter().map(|field| quoted(field.as_deref())).collect();
            writeln!(file, "{}", fields.join(",")).expect("a string takes anything");
        }
        std::fs::write(dir.join(format!("{}.csv", table.name)), file).expect("write a table");
    }
}

fn quoted(field: Option<&str>) -> String {
    match field {
        None => String::new(),
        Some(text) if text.contains(['"', ',', '\n']) => format!("\"{}\"", text.replace('"', "\"\"")),
        Some(text) => text.to_owned(),
    }
}

/// A workload over the tables with these queries.
pub fn workload<'q>(tables: &[Rows], queries: impl IntoIterator<Item = &'q str>) -> Workload {
    let tables = tables.iter().map(|table| {
        let columns = table.columns.iter().map(|(name, kind)| Column::new(*name, kind.clone())).collect();
        let layout = Layout { columns, delimiter: b',', header: Header::Check };
        Table::new(table.name.to_owned(), vec![format!("{}.csv", table.name)], table.role, layout)
    });
    let queries = queries.into_iter().enumerate().map(|(index, sql)| Query {
        name: format!("q{index}"),
        title: String::new(),
        origin: format!("query {index}"),
        sql: sql.to_owned(),
        ordered: None,
    });
    let (tables, queries) = (tables.collect(), queries.collect());
    Workload { name: "test".to_owned(), title: String::new(), tables, queries, time: None }
}

/// A DataFusion session with the tables in memory, one partition, and nothing of tenaz but its functions.
pub fn direct_context(tables: &[Rows]) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.dialect = Dialect::PostgreSQL;
    config.options_mut().sql_parser.parse_float_as_decimal = true;
    let context = SessionContext::new_with_config(config);
    tenaz_engine::functions::register(&context);
    for table in tables {
        let fields: Vec<Field> = table.columns.iter().map(|(n, kind)| Field::new(*n, kind.data_type(), true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let columns: Vec<ArrayRef> = (0..table.columns.len()).map(|index| column(table, index)).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("columns of one length");
        let provider = MemTable::try_new(schema, vec![vec![batch]]).expect("a table");
        context.register_table(table.name, Arc::new(provider)).expect("a new name");
    }
    context
}

fn column(table: &Rows, index: usize) -> ArrayRef {
    let texts: StringArray = table.rows.iter().map(|row| row[index].as_deref()).collect();
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(&texts, &table.columns[index].1.data_type(), &strict).expect("the test's values have their types")
}

/// What DataFusion itself says.
pub fn direct(context: &SessionContext, sql: &str) -> Result<Lines, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        let frame = context.sql_with_options(sql, only_queries).await.map_err(|e| e.to_string())?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await.map_err(|e| e.to_string())?;
        Ok(Lines::new(&schema, &batches))
    })
}

/// Plans, and fails the test where planning panics.
pub fn plan(workload: &Workload) -> Result<JobPlan, String> {
    JobPlan::new(workload).map_err(|e| e.to_string())
}

/// Runs a planned job in stages; one answer per query. A run that does not end fails the test.
pub fn staged(
    workload: &Arc<Workload>,
    plan: &Arc<JobPlan>,
    dir: &Path,
    cutting: Cutting,
) -> Result<Vec<Lines>, String> {
    let (workload, plan, dir) = (Arc::clone(workload), Arc::clone(plan), dir.to_owned());
    let (send, receive) = channel();
    let runner = std::thread::spawn(move || {
        let answers = run(&workload, &plan, &dir, cutting);
        // Nobody listens any more when the patience is at its end.
        let _ = send.send(answers);
    });
    match receive.recv_timeout(PATIENCE) {
        Ok(answers) => answers,
        Err(RecvTimeoutError::Timeout) => panic!("the job hangs with {cutting:?}"),
        Err(RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => unreachable!("the thread sends before it ends"),
        },
    }
}

fn run(workload: &Workload, plan: &JobPlan, dir: &Path, cutting: Cutting) -> Result<Vec<Lines>, String> {
    let data = DataSet::find(dir, workload, plan).map_err(|e| e.to_string())?;
    let options = Options {
        threads: cutting.threads,
        chunk_bytes: Some(cutting.chunk_bytes),
        // A chunk is made of several blocks that need not follow each other.
        block_bytes: Some(1 + cutting.chunk_bytes / 3),
        partitions: Some(cutting.partitions),
        strict: true,
        ..Options::default()
    };
    let progress = Progress::new(workload.tables.len());
    let outcome = tenaz_runtime::run(workload, plan, data, &options, &progress, &Nobody).map_err(|e| e.to_string())?;
    if let Some(failed) = outcome.failed.first() {
        return Err(format!("{}: {}", failed.name, failed.text));
    }
    let lines = outcome.answers.iter().map(|answer| {
        let batches = answer.batches().collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        let lines = Lines::new(&answer.schema, &batches);
        assert_eq!(lines.rows.len() as u64, answer.rows, "the answer counts its rows");
        Ok(lines)
    });
    lines.collect()
}

/// An observer that does not care.
pub struct Nobody;

impl Observer for Nobody {
    fn rows(&self, _: QueryId, _: &RecordBatch) {}
    fn reject(&self, _: &RejectLine) {}
}

/// Whether an error is one that a user may see: a text, and no fault of ours.
pub fn is_clean(error: &str) -> bool {
    const DIRTY: [&str; 6] = ["fault in tenaz", "panicked", "Internal error", "crashed", "backtrace", "RecordBatch {"];
    !error.is_empty() && DIRTY.iter().all(|dirty| !error.contains(dirty))
}
