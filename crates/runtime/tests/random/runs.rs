//! Running queries: in stages by tenaz, and directly by DataFusion.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use datafusion::prelude::{SQLOptions, SessionContext};
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::format::Format;
use tenaz_runtime::{DataSet, Options, Progress};

use super::rng::Rng;
use super::value::{Answer, Value};
use crate::staged::Nobody;

/// A run that takes longer than this hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// What must not change an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub threads: usize,
    pub partitions: u16,
    pub chunk_bytes: usize,
    pub block_bytes: usize,
    pub memory_bytes: usize,
}

impl Settings {
    /// Settings for tables of so many bytes: chunks are few, or of one record each where there are few records.
    pub fn random(rng: &mut Rng, bytes: usize) -> Self {
        let chunk_bytes = match rng.below(4) {
            0 => 1 << 20,
            1 => 1,
            _ => 1 + rng.below(200),
        };
        let chunk_bytes = chunk_bytes.max(bytes / 128);
        Self {
            threads: 1 + rng.below(3),
            partitions: 1 + rng.below(8) as u16,
            chunk_bytes,
            block_bytes: 1 + rng.below(chunk_bytes),
            memory_bytes: *rng.pick(&[1, 64 << 10, 1 << 20, 256 << 20]),
        }
    }
}

/// An answer of tenaz.
#[derive(Debug, Clone)]
pub struct Ours {
    pub csv: String,
    pub fingerprint: String,
    pub values: Answer,
}

/// Plans; a panic is an error like any other.
pub fn plan(workload: &Workload) -> Result<Arc<JobPlan>, String> {
    let planned = std::panic::catch_unwind(|| JobPlan::new(workload));
    match planned {
        Ok(planned) => planned.map(Arc::new).map_err(|error| error.to_string()),
        Err(panic) => Err(format!("planning panicked: {}", panic_text(&*panic))),
    }
}

/// Runs a planned job; one answer per query.
pub fn staged(
    workload: &Arc<Workload>,
    plan: &Arc<JobPlan>,
    dir: &Path,
    settings: Settings,
) -> Result<Vec<Ours>, String> {
    let (workload, plan, dir) = (Arc::clone(workload), Arc::clone(plan), dir.to_owned());
    let (send, receive) = channel();
    let runner = std::thread::spawn(move || {
        let answers = run(&workload, &plan, &dir, settings);
        // Nobody listens any more when the patience is at its end.
        let _ = send.send(answers);
    });
    match receive.recv_timeout(PATIENCE) {
        Ok(answers) => answers,
        Err(RecvTimeoutError::Timeout) => Err(format!("the job hangs with {settings:?}")),
        Err(RecvTimeoutError::Disconnected) => match runner.join() {
            Err(panic) => Err(format!("the job panicked: {}", panic_text(&*panic))),
            Ok(()) => unreachable!("the thread sends before it ends"),
        },
    }
}

fn run(workload: &Workload, plan: &JobPlan, dir: &Path, settings: Settings) -> Result<Vec<Ours>, String> {
    let data = DataSet::find(dir, workload, plan).map_err(|error| error.to_string())?;
    let options = Options {
        threads: settings.threads,
        chunk_bytes: Some(settings.chunk_bytes),
        block_bytes: Some(settings.block_bytes),
        partitions: Some(settings.partitions),
        memory_bytes: settings.memory_bytes,
        strict: true,
        ..Options::default()
    };
    let progress = Progress::new(workload.tables.len());
    let outcome = tenaz_runtime::run(workload, plan, data, &options, &progress, &Nobody).map_err(|e| e.to_string())?;
    if let Some(failed) = outcome.failed.first() {
        return Err(format!("{}: {}", failed.name, failed.text));
    }
    let answers = outcome.answers.iter().map(|answer| {
        let batches = answer.batches().collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let mut writer = Format::Csv.writer(&mut bytes);
        writer.begin(&answer.schema).expect("a vector takes anything");
        batches.iter().for_each(|batch| writer.rows(batch).expect("every value has a text"));
        writer.end().expect("a vector takes anything");
        drop(writer);
        let csv = String::from_utf8(bytes).expect("CSV is text");
        Ok(Ours { csv, fingerprint: answer.fingerprint.clone(), values: Value::rows(&batches) })
    });
    answers.collect()
}

/// What DataFusion itself says.
pub fn direct(context: &SessionContext, sql: &str) -> Result<Answer, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let answered = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        runtime.block_on(async {
            let only_queries =
                SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
            let frame = context.sql_with_options(sql, only_queries).await?;
            Ok::<_, datafusion::error::DataFusionError>(Value::rows(&frame.collect().await?))
        })
    }));
    match answered {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("DataFusion panicked: {}", panic_text(&*panic))),
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text").to_owned()
}
