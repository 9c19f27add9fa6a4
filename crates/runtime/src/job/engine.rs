//! The rows of an embedded job: chunks are put together of what threads read, messages stay in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;
use tenaz_core::{
    ChunkDigest, ClosedTable, FailedQuery, Header, Lineage, Log, LogPart, Partition, QueryEnded, QueryId, QueryOutcome,
    RowEngine, Source, StageId, TableId,
};
use tenaz_engine::{Edge, JobPlan, Workload};

use super::chunk::OpenChunk;
use super::first_rows::{FirstRows, first_rows};
use super::{Observer, Options};
use crate::job_rows::{
    ChunkAccount, Conclusion, EdgeRows, JobRows, LogOutput, LogRows, Message, QuestionFaults, Resources, TaskProduct,
    lock,
};
use crate::panics::guarded;
use crate::reader::Reader;
use crate::rejects::RejectLine;
use crate::row_set::RowSet;
use crate::spool::{Budget, Spool};
use crate::{DataSet, Error, Progress, limits};

/// Chunks of an embedded job have no digest: nobody could send them twice.
const NO_DIGEST: ChunkDigest = ChunkDigest(0);

/// Computes with the rows of an embedded job, and reads its files.
pub(super) struct LocalEngine<'a> {
    pub(super) rows: JobRows<'a>,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) observer: &'a dyn Observer,
    pub(super) reader: Reader,
    /// Bytes that make a chunk.
    pub(super) chunk_bytes: usize,
    pub(super) file_names: Vec<Vec<String>>,
    pub(super) table_bytes: Vec<u64>,
    /// For each scan of which the first rows are enough: what has come of them.
    pub(super) first_rows: Vec<Option<Mutex<FirstRows>>>,
    /// The place, in the order of reading, of the table whose chunks come next.
    pub(super) next_scan: AtomicUsize,
    /// Tables that were read to their end, and in how many chunks, as far as the driver has not been told.
    pub(super) ended: Mutex<Vec<(TableId, u64)>>,
    /// All bad records, in the order of the data.
    pub(super) rejects: Mutex<Spool>,
    /// Of a strict job: the first bad record found so far, and its place in the data.
    first_reject: Mutex<Option<(u64, RejectLine)>>,
    has_reject: AtomicBool,
    /// For stages that failed at a record: the place among all portions of the first such record found so far.
    pub(super) failing_portions: Mutex<BTreeMap<StageId, u64>>,
    /// For stages that answer early: the rows that the observer knows already.
    told: Mutex<BTreeMap<StageId, RowSet>>,
}

impl<'a> LocalEngine<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        plan: &'a JobPlan,
        data: DataSet,
        options: &'a Options,
        progress: &'a Progress,
        observer: &'a dyn Observer,
    ) -> Result<Self, Error> {
        let resources = Resources {
            threads: options.threads,
            memory_bytes: options.memory_bytes,
            temp_dir: options.temp_dir.clone(),
            budget: Budget::new(options.memory_bytes, options.temp_dir.clone()),
            show_early: observer.wants_rows(),
            keep_answers: true,
            question_faults: QuestionFaults::of_lone_process(),
        };
        let partitions = options.partitions(&data);
        let rows = JobRows::new(Cow::Borrowed(workload), Cow::Borrowed(plan), partitions, resources)?;
        let names = |table: usize| data.files(table).iter().map(|f| f.name.clone()).collect();
        let file_names = (0..workload.tables.len()).map(names).collect();
        let table_bytes = (0..workload.tables.len()).map(|table| data.table_bytes(table)).collect();
        let chunk_bytes = options.chunk_bytes(&data);
        let order = reading_order(&rows);
        // The first bad record of a strict job is the first of the data: then streams are read one after the other.
        let streams = if options.strict { 1 } else { options.threads };
        let reader = Reader::new(workload, plan, &order, data, (options.block_bytes(chunk_bytes), streams));
        Ok(Self {
            rejects: Mutex::new(rows.spool()),
            first_reject: Mutex::new(None),
            has_reject: AtomicBool::new(false),
            failing_portions: Mutex::default(),
            told: Mutex::default(),
            first_rows: first_rows(plan, options),
            next_scan: AtomicUsize::new(0),
            ended: Mutex::default(),
            rows,
            options,
            progress,
            observer,
            reader,
            chunk_bytes,
            file_names,
            table_bytes,
        })
    }

    /// How much of a table's files was read. They may grow meanwhile.
    pub(super) fn bytes_read(&self, table: usize) -> u64 {
        let scan = self.rows.plan.scans.iter().position(|scan| usize::from(scan.table.0) == table);
        let first_rows = scan.and_then(|scan| self.first_rows[scan].as_ref());
        let was_enough = first_rows.is_some_and(|rows| lock(rows).is_enough());
        let read = self.progress.table(table).bytes.load(Ordering::Relaxed);
        if was_enough { read.min(self.table_bytes[table]) } else { self.table_bytes[table] }
    }

    /// A strict job met a bad record. Blocks are cut in the order of the data, so those before this one are all being
    /// worked on: the first bad record is among what the threads still finish.
    pub(super) fn reject_strictly(&self, place: u64, line: RejectLine) {
        let mut first = lock(&self.first_reject);
        if first.as_ref().is_none_or(|(known, _)| place < *known) {
            *first = Some((place, line));
        }
        self.has_reject.store(true, Ordering::Release);
    }

    /// Whether a strict job has met a bad record.
    pub(super) fn has_strict_reject(&self) -> bool {
        self.has_reject.load(Ordering::Acquire)
    }

    pub(super) fn take_first_reject(&self) -> Option<RejectLine> {
        lock(&self.first_reject).take().map(|(_, line)| line)
    }

    /// The messages of a task, one for each log that waits for it.
    pub(super) fn messages(
        &self,
        source: Source,
        lineage: Lineage,
        product: TaskProduct,
        mut account: Option<ChunkAccount>,
    ) -> Vec<(Log, Message)> {
        let id = Header { source, content: 0, part: 0, parts: 1, lineage };
        let outputs = self.rows.outputs_by_log(source, product).into_iter();
        let messages = outputs.map(|LogOutput { log, rows, failed }| {
            let account = if log == Log::Results { account.take() } else { None };
            (log, Message { id, rows, account, rejects: None, failed })
        });
        messages.collect()
    }

    pub(super) fn lineage_of_chunk(&self, table: TableId) -> Lineage {
        Lineage::of_chunk(NO_DIGEST, self.rows.broadcast_lineage(table))
    }

    /// Rows that are certain before their task is complete go to the observer at once. The answer itself is made of the
    /// complete task's rows.
    fn tell_early(&self, rows: &EdgeRows) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut told = lock(&self.told);
        for (stage, batch) in rows {
            if !told.contains_key(stage) {
                told.insert(*stage, RowSet::new(&batch.schema())?);
            }
            self.tell(&mut told, *stage, batch)?;
        }
        Ok(())
    }

    /// Rows of unordered answers are shown as they come.
    fn tell_results(&self, rows: &EdgeRows) -> Result<(), Error> {
        if !self.observer.wants_rows() {
            return Ok(());
        }
        let mut told = lock(&self.told);
        for (stage, batch) in rows {
            let Edge::Results(query) = self.rows.plan.stage(*stage).edge else { continue };
            if !self.rows.plan.queries[usize::from(query.0)].ordered {
                self.tell(&mut told, *stage, batch)?;
            }
        }
        Ok(())
    }

    /// Shows rows to the observer, each once.
    fn tell(&self, told: &mut BTreeMap<StageId, RowSet>, stage: StageId, batch: &RecordBatch) -> Result<(), Error> {
        let Edge::Results(query) = self.rows.plan.stage(stage).edge else { return Ok(()) };
        let news = match told.get_mut(&stage) {
            Some(told) => told.news(batch)?,
            None => batch.clone(),
        };
        if news.num_rows() > 0 {
            self.observer.rows(query, &news);
        }
        Ok(())
    }
}

/// The scans of the plan in the order in which they are read: wave by wave, so that no table is in the way of one that it
/// waits for.
fn reading_order(rows: &JobRows<'_>) -> Vec<usize> {
    let waves = rows.topology.waves();
    let wave_of = |table| waves.iter().position(|wave| wave.tables.contains(&table)).unwrap_or(0);
    let mut order: Vec<usize> = (0..rows.plan.scans.len()).collect();
    order.sort_by_key(|&scan| wave_of(rows.plan.scans[scan].table));
    order
}

impl LocalEngine<'_> {
    /// Shows the observer what has come of a query. Nothing else looks at the answer before this step has come back.
    fn tell_end(&self, rows: &LogRows, query: QueryId, ended: &QueryEnded) {
        let LogRows::Results(results) = rows else { return };
        match &ended.outcome {
            QueryOutcome::Answered { .. } => {
                let answer = lock(results).take_answer(query);
                if let Some(answer) = answer {
                    self.observer.question_final(query, &answer);
                    lock(results).put_answer(query, answer);
                }
            }
            QueryOutcome::Failed { class, text } => {
                let name = self.rows.plan.queries[usize::from(query.0)].name.clone();
                self.observer.question_failed(query, &FailedQuery { name, class: *class, text: text.clone() });
            }
        }
    }
}

impl RowEngine for LocalEngine<'_> {
    type LogRows = LogRows;
    type Body = Message;
    type Sent = Message;
    type Permit = ();
    type Leaf = OpenChunk;
    /// Certain rows are shown at once.
    type Early = std::convert::Infallible;
    type End = Arc<Conclusion>;
    type Error = Error;

    fn open(&self, log: Log) -> LogRows {
        self.rows.open(log)
    }

    fn run_chunk(&self, leaf: OpenChunk) -> Result<Vec<(Log, Message)>, Error> {
        let (table, number) = (leaf.table, leaf.number);
        let task = || format!("chunk {number} of table {}", self.rows.table_name(table));
        guarded(task, || self.fill_and_run(leaf))
    }

    fn take(
        &self,
        log: Log,
        rows: &LogRows,
        _source: Source,
        parts: Vec<LogPart<Message>>,
    ) -> Result<Option<Self::Early>, Error> {
        let task = || format!("taking rows into log {log}");
        guarded(task, || {
            for part in parts {
                if log == Log::Results {
                    self.tell_results(&part.body.rows)?;
                }
                let early = self.rows.take(rows, vec![(part.offset, part.body)])?;
                self.tell_early(&early)?;
            }
            Ok(None)
        })
    }

    fn complete_broadcast(&self, rows: &LogRows, edge: StageId) -> Result<(), Error> {
        self.rows.complete_broadcast(rows, edge);
        Ok(())
    }

    fn run_task(
        &self,
        (stage, partition): (StageId, Partition),
        sources: u64,
        rows: Arc<LogRows>,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<(Log, Message)>>, Error> {
        let task = || format!("stage {} of partition {}", stage.0, partition.0);
        guarded(task, || {
            let ran = self.rows.run_task((stage, partition), sources, rows, is_wanted)?;
            let source = Source::Task { stage, partition };
            Ok(ran.map(|(lineage, product)| self.messages(source, lineage, product, None)))
        })
    }

    fn make_answer(
        &self,
        rows: &LogRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, Error> {
        let name = &self.rows.plan.queries[usize::from(query.0)].name;
        guarded(
            || format!("the answer to {name}"),
            || {
                let ended = self.rows.make_answer(rows, query, closed)?;
                self.tell_end(rows, query, &ended);
                Ok(ended)
            },
        )
    }

    fn conclude(&self, rows: &LogRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<Arc<Conclusion>, Error> {
        self.rows.conclude(rows, closed).map(Arc::new)
    }
}

/// Room that a decoder begins with: for the chunks that are usual. Where they are larger, more comes once, and is used again.
pub(super) fn usual_batch_bytes(chunk_bytes: usize, table_bytes: u64) -> usize {
    let usual = (chunk_bytes / limits::HELD_SHARE as usize).min(limits::MAX_CHUNK_BYTES);
    usual.min(usize::try_from(table_bytes).unwrap_or(usize::MAX))
}
