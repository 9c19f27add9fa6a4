//! One job on this machine.
//!
//! ```text
//!  run ──▶ LocalJob ──▶ threads: LocalJob::work ──▶ LocalJob::finish
//!          (shell.rs: the shell around `tenaz_core::JobDriver`)
//!            ├── engine.rs   what is done with rows
//!            ├── chunk.rs    reading, decoding and the leaf task of a chunk
//!            └── places.rs   where the rows of a chunk stand in the files, when one of them is told of
//! ```

mod chunk;
mod engine;
mod first_rows;
mod places;
mod shell;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::{FailedQuery, QueryId};
use tenaz_engine::{JobPlan, Workload};

use crate::rejects::RejectLine;
use crate::spool::SpooledRows;
use crate::{Answer, DataSet, Error, Progress, limits};

use shell::LocalJob;

/// How to run a job. None of it changes an answer.
#[derive(Debug, Clone)]
pub struct Options {
    /// Working threads.
    pub threads: usize,
    /// Bytes of a chunk; `None`: by the size of the data.
    pub chunk_bytes: Option<usize>,
    /// Bytes that a thread reads at a time; `None`: by the size of a chunk.
    pub block_bytes: Option<usize>,
    /// Partitions; `None`: by the size of the data.
    pub partitions: Option<u16>,
    /// Bytes of rows that may rest in memory.
    pub memory_bytes: usize,
    /// Where temporary files go.
    pub temp_dir: PathBuf,
    /// Whether the first bad record fails the job.
    pub strict: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: None,
            block_bytes: None,
            partitions: None,
            memory_bytes: limits::DEFAULT_MEMORY_BYTES,
            temp_dir: std::env::temp_dir(),
            strict: false,
        }
    }
}

impl Options {
    pub(super) fn chunk_bytes(&self, data: &DataSet) -> usize {
        let chosen = || {
            let share = data.bytes() / (self.threads as u64 * 8);
            (share as usize).clamp(limits::MIN_CHUNK_BYTES, limits::MAX_CHUNK_BYTES)
        };
        // Text views hold offsets into all texts of a chunk that must fit 31 bits.
        self.chunk_bytes.unwrap_or_else(chosen).min(tenaz_csv::limits::MAX_CHUNK_BYTES / 2)
    }

    /// The blocks of chunks of so many bytes.
    pub(super) fn block_bytes(&self, chunk_bytes: usize) -> usize {
        let chosen = || chunk_bytes.clamp(limits::MIN_BLOCK_BYTES, limits::MAX_BLOCK_BYTES);
        self.block_bytes.unwrap_or_else(chosen).max(1)
    }

    pub(super) fn partitions(&self, data: &DataSet) -> u16 {
        self.partitions.unwrap_or_else(|| {
            let wanted = data.bytes().div_ceil(limits::BYTES_PER_PARTITION);
            wanted.clamp(1, limits::MAX_CHOSEN_PARTITIONS) as u16
        })
    }
}

/// Who wants to know of rows and rejects while the job runs. Called from the working threads.
pub trait Observer: Sync {
    /// Whether it does anything with [`rows`](Self::rows): what is certain before its time costs work to find out.
    fn wants_rows(&self) -> bool {
        true
    }
    /// Rows of an unordered answer, as they become known. They are never taken back.
    fn rows(&self, query: QueryId, batch: &RecordBatch);
    /// The answer to a query is complete and will not change, though others may go on.
    fn question_final(&self, _query: QueryId, _answer: &Answer) {}
    /// A query could not be answered; others go on.
    fn question_failed(&self, _query: QueryId, _failed: &FailedQuery) {}
    /// A bad record.
    fn reject(&self, line: &RejectLine);
}

/// What a table contributed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableReport {
    /// The table.
    pub name: String,
    /// Its counts.
    pub counts: tenaz_core::TableLedger,
    /// The bytes of its files that were read.
    pub bytes: u64,
    /// The rest of its files was not needed (a LIMIT without an order) and not read: the counts are of what was.
    pub is_partial: bool,
    /// Rejected records by reason.
    pub reasons: BTreeMap<String, u64>,
}

/// The answers of a finished job.
#[derive(Debug)]
pub struct Outcome {
    /// One per query that was answered, in the order asked.
    pub answers: Vec<Answer>,
    /// The queries that could not be answered, in the order asked.
    pub failed: Vec<FailedQuery>,
    /// One per table read, in the workload's order.
    pub tables: Vec<TableReport>,
    /// All bad records, in the order of the data.
    pub rejects: Option<Arc<SpooledRows>>,
    /// The time it took.
    pub elapsed: Duration,
    /// Bytes that went through temporary files.
    pub spilled_bytes: u64,
}

/// Runs a job: reads every file once and answers all queries. A query that fails while it is computed does not keep the others
/// from their answers.
pub fn run(
    workload: &Workload,
    plan: &JobPlan,
    data: DataSet,
    options: &Options,
    progress: &Progress,
    observer: &dyn Observer,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    let job = LocalJob::new(workload, plan, data, options, progress, observer)?;
    let threads = options.threads.clamp(1, limits::MAX_THREADS);
    std::thread::scope(|scope| {
        for number in 0..threads {
            let thread = std::thread::Builder::new().name(format!("task-{number}"));
            let begun = thread.stack_size(limits::TASK_STACK_BYTES).spawn_scoped(scope, || job.work());
            // Those that were begun do the work; without any of them this one does.
            if begun.is_err() && number == 0 {
                job.work();
            }
        }
    });
    job.finish(started)
}
