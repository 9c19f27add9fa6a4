//! The rows of one job on this worker, and how they travel: as messages of the broker.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tenaz_cluster::{JobSpec, QueryEnd, ResultEnd, TableEnd};
use tenaz_core::{
    ClosedTable, JobId, Lineage, Log, LogPart, Partition, QueryEnded, QueryId, RowEngine, Source, StageId, TableId,
};
use tenaz_engine::{JobPlan, Workload};
use tenaz_vitals::WorkerMetrics;
use tokio::sync::OwnedSemaphorePermit;

use super::board::Board;
use super::fault::Faults;
use crate::cluster::rows::{Extras, decode, encode};
use crate::job_rows::{Conclusion, JobRows, LogOutput, LogRows, QuestionFaults, Resources, TaskProduct};
use crate::panics::guarded;
use crate::{Error, limits};

/// The bytes of a message that is sent.
pub(super) type SentBytes = Arc<[u8]>;

/// Computes with the rows of one job.
pub(super) struct ClusterEngine {
    pub(super) id: JobId,
    pub(super) strict: bool,
    pub(super) rows: JobRows<'static>,
    pub(super) board: Arc<Board>,
    pub(super) faults: Faults,
    pub(super) metrics: WorkerMetrics,
    /// For stages that failed at a record: the first chunk of which that is known here.
    pub(super) failing_chunks: Mutex<BTreeMap<StageId, u64>>,
}

impl ClusterEngine {
    /// Plans the job from its text. For the stages in `given_up` no worker has enough memory. Takes a while: not for an async thread.
    pub(super) fn plan(
        id: &JobId,
        spec: &JobSpec,
        shop: &super::Shop,
        given_up: BTreeSet<StageId>,
    ) -> Result<Self, Error> {
        let workload = Workload::from_text(&spec.workload)?.select(&spec.queries)?;
        shop.settings.faults.before_plan(&workload.name);
        let plan = JobPlan::new(&workload)?;
        let settings = &shop.settings;
        let resources = Resources {
            threads: settings.threads.clamp(1, limits::MAX_THREADS),
            memory_bytes: settings.memory_bytes,
            temp_dir: settings.temp_dir.clone(),
            budget: Arc::clone(&shop.budget),
            show_early: true,
            keep_answers: false,
            question_faults: QuestionFaults::of_worker(given_up),
        };
        Ok(Self {
            id: id.clone(),
            strict: spec.strict,
            rows: JobRows::new(Cow::Owned(workload), Cow::Owned(plan), spec.partitions, resources)?,
            board: Arc::clone(&shop.board),
            faults: settings.faults.clone(),
            metrics: shop.metrics.clone(),
            failing_chunks: Mutex::default(),
        })
    }

    /// Tells this plan from another one.
    pub(super) fn plan_digest(&self) -> String {
        self.faults.plan.clone().unwrap_or_else(|| crate::cluster::plan_digest(&self.rows.plan))
    }

    pub(super) fn table_name(&self, table: TableId) -> &str {
        self.rows.table_name(table)
    }

    /// The messages of a task: to every log that waits for it, even if there are no rows for it.
    pub(super) fn messages(
        &self,
        source: Source,
        lineage: Lineage,
        product: TaskProduct,
        extras: Extras<'_>,
    ) -> Result<Vec<(Log, SentBytes)>, Error> {
        let mut extras = Some(extras);
        let mut messages = Vec::new();
        for LogOutput { log, rows, failed } in self.rows.outputs_by_log(source, product) {
            let extras = if log == Log::Results { extras.take() } else { None };
            let parts = encode(source, lineage, &rows, Extras { failed, ..extras.unwrap_or_default() })?;
            messages.extend(parts.into_iter().map(|body| (log, body.into())));
        }
        Ok(messages)
    }

    fn tell_progress(&self, part: &crate::job_rows::Message) {
        match (part.id.source, &part.account) {
            (Source::Chunk { .. }, Some(account)) => self.board.progress(&self.id, |progress| {
                progress.chunks += 1;
                progress.bytes += account.bytes;
                progress.records += account.records;
                progress.rejected += account.rejected;
            }),
            // The other parts of a chunk's output.
            (Source::Chunk { .. }, None) => {}
            (Source::Task { .. }, _) => self.board.progress(&self.id, |progress| progress.answers += 1),
        }
    }

    fn end(&self, conclusion: Conclusion, closed: &BTreeMap<TableId, ClosedTable>) -> ResultEnd {
        let Conclusion { answers, failed, ledger, reasons, index } = conclusion;
        let queries = answers.into_iter().map(|answer| QueryEnd {
            name: answer.name,
            rows: answer.rows,
            fingerprint: answer.fingerprint,
            ordered: answer.ordered,
            final_at_ms: Some(answer.final_at_ms),
        });
        let mut scanned: Vec<TableId> = self.rows.plan.scans.iter().map(|scan| scan.table).collect();
        scanned.sort_unstable();
        let tables = scanned.into_iter().map(|id| {
            let counts = ledger.tables()[usize::from(id.0)];
            TableEnd {
                name: self.table_name(id).to_owned(),
                records: counts.records,
                accepted: counts.accepted,
                rejected: counts.rejected,
                reasons: reasons[usize::from(id.0)].clone(),
                bytes: closed.get(&id).map_or(0, |closed| closed.bytes),
                chunks: closed.get(&id).map_or(0, |closed| closed.chunks.len()),
            }
        });
        ResultEnd { queries: queries.collect(), failed, tables: tables.collect(), index: Some(index) }
    }
}

impl RowEngine for ClusterEngine {
    type LogRows = LogRows;
    type Body = Vec<u8>;
    type Sent = SentBytes;
    type Permit = OwnedSemaphorePermit;
    type Leaf = Vec<u8>;
    /// Messages for the results log.
    type Early = Vec<SentBytes>;
    type End = ResultEnd;
    type Error = Error;

    fn open(&self, log: Log) -> LogRows {
        self.rows.open(log)
    }

    fn run_chunk(&self, leaf: Vec<u8>) -> Result<Vec<(Log, SentBytes)>, Error> {
        super::chunk::run(self, leaf)
    }

    fn take(
        &self,
        log: Log,
        rows: &LogRows,
        source: Source,
        parts: Vec<LogPart<Vec<u8>>>,
    ) -> Result<Option<Vec<SentBytes>>, Error> {
        let task = || format!("taking in {source} from log {log}");
        guarded(task, || {
            let name = log.to_string();
            let decoded = parts.into_iter().map(|part| Ok((part.offset, decode(&name, &part.body)?)));
            let parts = decoded.collect::<Result<Vec<_>, Error>>()?;
            if log == Log::Results {
                parts.iter().for_each(|(_, part)| self.tell_progress(part));
            }
            let early = self.rows.take(rows, parts)?;
            let Log::Partition(partition) = log else { return Ok(None) };
            let mut messages = Vec::new();
            for (stage, batch) in early {
                let source = Source::Task { stage, partition };
                let parts = encode(source, Lineage::default(), &[(stage, batch)], Extras::default())?;
                messages.extend(parts.into_iter().map(SentBytes::from));
            }
            Ok((!messages.is_empty()).then_some(messages))
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
    ) -> Result<Option<Vec<(Log, SentBytes)>>, Error> {
        let source = Source::Task { stage, partition };
        tracing::debug!(job = %self.id, stage = stage.0, partition = partition.0, "a task is begun");
        let ran = guarded(
            || source.to_string(),
            || {
                self.faults.before_task();
                let Some((lineage, product)) = self.rows.run_task((stage, partition), sources, rows, is_wanted)? else {
                    return Ok(None);
                };
                let messages = self.messages(source, lineage, product, Extras::default())?;
                self.metrics.tasks.inc();
                Ok(Some(messages))
            },
        );
        tracing::debug!(job = %self.id, stage = stage.0, partition = partition.0, "a task is finished");
        ran
    }

    fn make_answer(
        &self,
        rows: &LogRows,
        query: QueryId,
        closed: &BTreeMap<TableId, ClosedTable>,
    ) -> Result<QueryEnded, Error> {
        let task = || format!("the answer to {}", self.rows.plan.queries[usize::from(query.0)].name);
        guarded(task, || self.rows.make_answer(rows, query, closed))
    }

    fn conclude(&self, rows: &LogRows, closed: &BTreeMap<TableId, ClosedTable>) -> Result<ResultEnd, Error> {
        guarded(|| "concluding the job".to_owned(), || Ok(self.end(self.rows.conclude(rows, closed)?, closed)))
    }
}
