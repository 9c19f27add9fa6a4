//! What the threads of a job share, and how it begins and ends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use tenaz_core::{Inbox, Ledger, Partition, QueryId, StageId, Topology};
use tenaz_engine::{Edge, EdgeInput, JobPlan, LeafRunner, Workload};

use super::{Observer, Options, Outcome, TableReport};
use crate::partition::PartitionState;
use crate::reader::Reader;
use crate::row_set::RowSet;
use crate::scheduler::Scheduler;
use crate::spool::{Budget, Spool};
use crate::{Answer, DataSet, Error, Progress, limits};

/// Memory for what tasks compute with (sorts, hash tables): twice what rows at rest may use, shared by `tasks` at a time.
pub(crate) fn working_memory(memory_bytes: usize, temp_dir: &Path, tasks: usize) -> Result<Arc<RuntimeEnv>, Error> {
    let bytes = (memory_bytes.saturating_mul(2) / tasks).max(limits::MIN_WORKING_BYTES);
    let builder = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(bytes)));
    // The system's own place is only touched when something is spilled; a named one at once.
    let builder = if temp_dir == std::env::temp_dir() { builder } else { builder.with_temp_file_path(temp_dir) };
    Ok(builder.build_arc()?)
}

/// The state that the threads of a job share.
pub(super) struct Job<'a> {
    pub(super) workload: &'a Workload,
    pub(super) plan: &'a JobPlan,
    pub(super) options: &'a Options,
    pub(super) progress: &'a Progress,
    pub(super) observer: &'a dyn Observer,
    pub(super) topology: Topology,
    pub(super) env: Arc<RuntimeEnv>,
    pub(super) budget: Arc<Budget>,
    pub(super) scheduler: Scheduler,
    pub(super) reader: Reader,
    /// Bytes that make a chunk.
    pub(super) chunk_bytes: usize,
    pub(super) file_names: Vec<Vec<String>>,
    pub(super) table_bytes: Vec<u64>,
    pub(super) leaves: Vec<OnceLock<LeafRunner>>,
    pub(super) partitions: Vec<Mutex<PartitionState>>,
    pub(super) broadcast: Mutex<Broadcast>,
    pub(super) results: Mutex<Results>,
    pub(super) account: Mutex<Account>,
    /// For each stage, the broadcasts it waits for.
    pub(super) needs: BTreeMap<StageId, BTreeSet<StageId>>,
    /// How many stages read each edge.
    pub(super) readers: BTreeMap<StageId, usize>,
}

pub(super) struct Broadcast {
    pub(super) inbox: Inbox,
    pub(super) spools: BTreeMap<StageId, Spool>,
    pub(super) complete: BTreeMap<StageId, Arc<dyn EdgeInput>>,
}

pub(super) struct Results {
    pub(super) inbox: Inbox,
    pub(super) spools: Vec<Spool>,
    /// For stages that answer early: the rows that the observer knows already.
    pub(super) told: BTreeMap<StageId, RowSet>,
    /// For each query, how many stages have not yet made all their rows of its answer.
    pub(super) open: Vec<usize>,
    /// Those that are put together.
    pub(super) answers: Vec<Option<Answer>>,
}

impl Results {
    /// Shows rows to the observer, each once.
    pub(super) fn tell(
        &mut self,
        observer: &dyn Observer,
        query: QueryId,
        stage: StageId,
        batch: &RecordBatch,
    ) -> Result<(), Error> {
        let news = match self.told.get_mut(&stage) {
            Some(told) => told.news(batch)?,
            None => batch.clone(),
        };
        if news.num_rows() > 0 {
            observer.rows(query, &news);
        }
        Ok(())
    }
}

pub(super) struct Account {
    pub(super) ledger: Ledger,
    pub(super) reasons: Vec<BTreeMap<&'static str, u64>>,
    pub(super) rejects: Spool,
}

/// How many stages make rows of a query's answer.
fn result_stages(plan: &JobPlan, query: usize) -> usize {
    let of_query = |edge: &Edge| matches!(edge, Edge::Results(of) if usize::from(of.0) == query);
    plan.stages.iter().filter(|stage| of_query(&stage.edge)).count()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside a task fails the job (see `guarded`), so a poisoned state is never used for an answer.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Job<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        plan: &'a JobPlan,
        data: DataSet,
        options: &'a Options,
        progress: &'a Progress,
        observer: &'a dyn Observer,
    ) -> Result<Self, Error> {
        let count = options.partitions(&data).max(1);
        let topology = plan.topology(count)?;
        let budget = Budget::new(options.memory_bytes, options.temp_dir.clone());
        let env = working_memory(options.memory_bytes, &options.temp_dir, 1)?;
        let spool = || Spool::new(Arc::clone(&budget));
        let show_early = observer.wants_rows();
        let state = |p| Mutex::new(PartitionState::new(&topology, Partition(p), Arc::clone(&budget), show_early));
        let mut readers = BTreeMap::new();
        let mut needs = BTreeMap::new();
        for (index, stage) in plan.stages.iter().enumerate() {
            for &edge in stage.reads.iter().chain(&stage.broadcasts) {
                *readers.entry(edge).or_insert(0) += 1;
            }
            needs.insert(StageId(index as u16), stage.broadcasts.iter().copied().collect());
        }
        let names = |table: usize| data.files(table).iter().map(|f| f.name.clone()).collect();
        let file_names = (0..workload.tables.len()).map(names).collect();
        let table_bytes = (0..workload.tables.len()).map(|table| data.table_bytes(table)).collect();
        let chunk_bytes = options.chunk_bytes(&data);
        let reader = Reader::new(workload, plan, data, options.block_bytes(chunk_bytes));
        let tables = workload.tables.len();
        Ok(Self {
            partitions: (0..count).map(state).collect(),
            broadcast: Mutex::new(Broadcast {
                inbox: Inbox::of_broadcast(&topology),
                spools: BTreeMap::new(),
                complete: BTreeMap::new(),
            }),
            results: Mutex::new(Results {
                inbox: Inbox::of_results(&topology),
                spools: plan.queries.iter().map(|_| spool()).collect(),
                told: BTreeMap::new(),
                open: plan.queries.iter().enumerate().map(|(query, _)| result_stages(plan, query)).collect(),
                answers: plan.queries.iter().map(|_| None).collect(),
            }),
            account: Mutex::new(Account {
                ledger: Ledger::new(tables),
                reasons: vec![BTreeMap::new(); tables],
                rejects: spool(),
            }),
            chunk_bytes,
            reader,
            leaves: plan.scans.iter().map(|_| OnceLock::new()).collect(),
            scheduler: Scheduler::default(),
            workload,
            plan,
            options,
            progress,
            observer,
            topology,
            env,
            budget,
            file_names,
            table_bytes,
            needs,
            readers,
        })
    }

    /// Tasks that need no input at all, such as `SELECT 1`, and the needs of the first table.
    pub(super) fn add_constant_tasks(&self) {
        for (index, state) in self.partitions.iter().enumerate() {
            let ready = lock(state).take_ready();
            self.scheduler.add(Partition(index as u16), &ready, &self.needs);
        }
        match self.plan.scans.first() {
            Some(scan) => self.scheduler.next_chunk_needs(&scan.needs),
            None => self.scheduler.files_read(),
        }
    }

    /// The closing checks, and the answers.
    pub(super) fn finish(self, started: Instant) -> Result<Outcome, Error> {
        if let Some(error) = self.scheduler.into_error() {
            return Err(error);
        }
        let results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let account = self.account.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Err(imbalance) = account.ledger.check() {
            return Err(Error::Imbalance { table: self.workload.tables[imbalance.table].name.clone(), imbalance });
        }
        if !results.inbox.is_done() {
            let missing: Vec<String> = results.inbox.missing().iter().map(|s| s.0.to_string()).collect();
            let task = format!("the job ended before stages {}", missing.join(", "));
            return Err(Error::Crashed { task, message: "their input never became complete".to_owned() });
        }
        let mut answers = Vec::new();
        for ((query, spool), made) in self.plan.queries.iter().zip(results.spools).zip(results.answers) {
            if self.progress.is_stopping() {
                return Err(Error::Stopped);
            }
            answers.push(match made {
                Some(answer) => answer,
                None => Answer::new(query, spool, &self.env, &self.budget)?,
            });
        }
        let mut scanned: Vec<usize> = self.plan.scans.iter().map(|scan| usize::from(scan.table.0)).collect();
        scanned.sort_unstable();
        let report = |table: usize| TableReport {
            name: self.workload.tables[table].name.clone(),
            counts: account.ledger.tables()[table],
            bytes: self.table_bytes[table],
            reasons: account.reasons[table].iter().map(|(code, count)| ((*code).to_owned(), *count)).collect(),
        };
        let rejects = (account.rejects.rows() > 0).then(|| Arc::new(account.rejects.into_input()));
        Ok(Outcome {
            answers,
            tables: scanned.into_iter().map(report).collect(),
            rejects,
            elapsed: started.elapsed(),
            spilled_bytes: self.budget.spilled_bytes(),
        })
    }
}
