//! One job on this machine: threads, partitions, answers.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use tenaz_core::{Inbox, Ledger, Partition, QueryId, Received, Source, StageId, Topology};
use tenaz_csv::{Decoded, Decoder};
use tenaz_engine::{Edge, EdgeInput, JobPlan, LeafInput, LeafRunner, TaskOutput, Workload, run_inner};

use crate::partition::PartitionState;
use crate::reader::{CutChunk, Next, Reader};
use crate::rejects::{RejectLine, reject_batch};
use crate::row_set::RowSet;
use crate::scheduler::{Scheduler, Work};
use crate::spool::{Budget, Spool, SpooledRows};
use crate::{Answer, DataSet, Error, Progress, limits};

/// How to run a job. None of it changes an answer.
#[derive(Debug, Clone)]
pub struct Options {
    /// Working threads.
    pub threads: usize,
    /// Bytes of a chunk; `None`: by the size of the data.
    pub chunk_bytes: Option<usize>,
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
            partitions: None,
            memory_bytes: limits::DEFAULT_MEMORY_BYTES,
            temp_dir: std::env::temp_dir(),
            strict: false,
        }
    }
}

impl Options {
    fn chunk_bytes(&self, data: &DataSet) -> usize {
        self.chunk_bytes.unwrap_or_else(|| {
            let share = data.bytes() / (self.threads as u64 * 8);
            (share as usize).clamp(limits::MIN_CHUNK_BYTES, limits::MAX_CHUNK_BYTES)
        })
    }

    fn partitions(&self, data: &DataSet) -> u16 {
        self.partitions.unwrap_or_else(|| {
            let wanted = data.bytes().div_ceil(limits::BYTES_PER_PARTITION);
            wanted.clamp(1, limits::MAX_CHOSEN_PARTITIONS) as u16
        })
    }
}

/// Who wants to know of rows and rejects while the job runs. Called from the working threads.
pub trait Observer: Sync {
    /// Rows of an unordered answer, as they become known. They are never taken back.
    fn rows(&self, query: QueryId, batch: &RecordBatch);
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
    /// The bytes of its files.
    pub bytes: u64,
    /// Rejected records by reason.
    pub reasons: BTreeMap<&'static str, u64>,
}

/// The answers of a finished job.
#[derive(Debug)]
pub struct Outcome {
    /// One per query, in the order asked.
    pub answers: Vec<Answer>,
    /// One per table read, in the workload's order.
    pub tables: Vec<TableReport>,
    /// All bad records, in the order of the data.
    pub rejects: Option<Arc<SpooledRows>>,
    /// The time it took.
    pub elapsed: Duration,
    /// Bytes that went through temporary files.
    pub spilled_bytes: u64,
}

/// Runs a job: reads every file once and answers all queries.
pub fn run(
    workload: &Workload,
    plan: &JobPlan,
    data: DataSet,
    options: &Options,
    progress: &Progress,
    observer: &dyn Observer,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    let job = Job::new(workload, plan, data, options, progress, observer)?;
    job.add_constant_tasks();
    let threads = options.threads.clamp(1, limits::MAX_THREADS);
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| job.work());
        }
        job.work();
    });
    job.finish(started)
}

/// The state that the threads of a job share.
struct Job<'a> {
    workload: &'a Workload,
    plan: &'a JobPlan,
    options: &'a Options,
    progress: &'a Progress,
    observer: &'a dyn Observer,
    topology: Topology,
    env: Arc<RuntimeEnv>,
    budget: Arc<Budget>,
    scheduler: Scheduler,
    reader: Mutex<Reader>,
    file_names: Vec<Vec<String>>,
    table_bytes: Vec<u64>,
    leaves: Vec<OnceLock<LeafRunner>>,
    partitions: Vec<Mutex<PartitionState>>,
    broadcast: Mutex<Broadcast>,
    results: Mutex<Results>,
    account: Mutex<Account>,
    /// For each stage, the broadcasts it waits for.
    needs: BTreeMap<StageId, BTreeSet<StageId>>,
    /// How many stages read each edge.
    readers: BTreeMap<StageId, usize>,
}

struct Broadcast {
    inbox: Inbox,
    spools: BTreeMap<StageId, Spool>,
    complete: BTreeMap<StageId, Arc<dyn EdgeInput>>,
}

struct Results {
    inbox: Inbox,
    spools: Vec<Spool>,
    /// For stages that answer early: the rows that the observer knows already.
    told: BTreeMap<StageId, RowSet>,
}

impl Results {
    /// Shows rows to the observer, each once.
    fn tell(
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

struct Account {
    ledger: Ledger,
    reasons: Vec<BTreeMap<&'static str, u64>>,
    rejects: Spool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic inside a task fails the job (see `guarded`), so a poisoned state is never used for an answer.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Job<'a> {
    fn new(
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
        let pool = FairSpillPool::new(options.memory_bytes.saturating_mul(2).max(limits::MIN_WORKING_BYTES));
        let env = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(pool))
            .with_temp_file_path(&options.temp_dir)
            .build_arc()?;
        let spool = || Spool::new(Arc::clone(&budget));
        let state = |p| Mutex::new(PartitionState::new(&topology, Partition(p), Arc::clone(&budget)));
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
            }),
            account: Mutex::new(Account {
                ledger: Ledger::new(tables),
                reasons: vec![BTreeMap::new(); tables],
                rejects: spool(),
            }),
            reader: Mutex::new(Reader::new(workload, plan, data, chunk_bytes)),
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
    fn add_constant_tasks(&self) {
        for (index, state) in self.partitions.iter().enumerate() {
            let ready = lock(state).take_ready();
            self.scheduler.add(Partition(index as u16), &ready, &self.needs);
        }
        match self.plan.scans.first() {
            Some(scan) => self.scheduler.next_chunk_needs(&scan.needs),
            None => self.scheduler.files_read(),
        }
    }

    /// A working thread, from start to end.
    fn work(&self) {
        let mut decoders: BTreeMap<usize, Decoder> = BTreeMap::new();
        loop {
            if self.progress.is_stopping() {
                self.scheduler.fail(Error::Stopped);
            }
            let done = match self.scheduler.next() {
                Work::Nothing => return,
                Work::Chunk => self.next_chunk(&mut decoders),
                Work::Inner(stage, partition) => {
                    let task = || format!("stage {} of partition {}", stage.0, partition.0);
                    guarded(task, || self.inner_task(stage, partition))
                }
            };
            if let Err(error) = done {
                self.scheduler.fail(error);
            }
            self.scheduler.finished();
        }
    }

    fn next_chunk(&self, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let (next, scan_after) = {
            let mut reader = lock(&self.reader);
            if !self.is_runnable(reader.current_scan()) {
                // Another thread has just reached a table whose broadcasts are not complete yet.
                return Ok(());
            }
            let next = reader.next()?;
            if let Next::TableEnd { .. } = next {
                // Still under the reader's lock, so that no thread takes a chunk of the next table too early.
                match self.plan.scans.get(reader.current_scan()) {
                    Some(scan) => self.scheduler.next_chunk_needs(&scan.needs),
                    None => self.scheduler.files_read(),
                }
            }
            (next, reader.current_scan())
        };
        match next {
            Next::End => {
                self.scheduler.files_read();
                Ok(())
            }
            Next::TableEnd { table, chunks, bytes } => {
                debug_assert!(scan_after > 0);
                self.progress.table(usize::from(table.0)).bytes.fetch_add(bytes, Ordering::Relaxed);
                self.progress.table(usize::from(table.0)).done.store(true, Ordering::Relaxed);
                self.close_table(table, chunks)
            }
            Next::Chunk(cut) => {
                let task = || format!("chunk {} of table {}", cut.number, self.table_name(cut.table.0));
                guarded(task, || self.leaf_task(&cut, decoders))
            }
        }
    }

    fn is_runnable(&self, scan: usize) -> bool {
        let Some(scan) = self.plan.scans.get(scan) else { return true };
        let broadcast = lock(&self.broadcast);
        scan.needs.iter().all(|edge| broadcast.complete.contains_key(edge))
    }

    fn table_name(&self, table: u16) -> &str {
        &self.workload.tables[usize::from(table)].name
    }

    fn leaf_task(&self, cut: &CutChunk, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let decoder = self.decoder(cut, decoders)?;
        let decoded =
            decoder.decode(&cut.chunk.data, cut.chunk.byte, cut.chunk.line).map_err(tenaz_engine::Error::from)?;
        let source = cut.source();
        self.account_for(cut, &decoded)?;
        let input = LeafInput { source, rows: decoded.batch };
        let output = self.leaf_runner(cut.scan)?.run(&input)?;
        let stages: Vec<StageId> = self.plan.scans[cut.scan].leaves.clone();
        self.deliver(source, &stages, output)
    }

    fn decoder<'d>(
        &self,
        cut: &CutChunk,
        decoders: &'d mut BTreeMap<usize, Decoder>,
    ) -> Result<&'d mut Decoder, Error> {
        match decoders.entry(cut.scan) {
            std::collections::btree_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let layout = Arc::clone(&self.workload.tables[usize::from(cut.table.0)].layout);
                let columns = self.plan.scans[cut.scan].columns.clone();
                Ok(entry.insert(Decoder::new(layout, columns).map_err(tenaz_engine::Error::from)?))
            }
        }
    }

    fn leaf_runner(&self, scan: usize) -> Result<&LeafRunner, Error> {
        if let Some(runner) = self.leaves[scan].get() {
            return Ok(runner);
        }
        let broadcasts = lock(&self.broadcast).complete.clone();
        let count = self.topology.partitions();
        let runner = LeafRunner::new(self.plan, &self.plan.scans[scan], count, broadcasts, Arc::clone(&self.env))?;
        Ok(self.leaves[scan].get_or_init(|| runner))
    }

    fn account_for(&self, cut: &CutChunk, decoded: &Decoded) -> Result<(), Error> {
        let table = usize::from(cut.table.0);
        let rejected = decoded.rejects.len() as u64;
        let progress = self.progress.table(table);
        progress.bytes.fetch_add(cut.file_bytes, Ordering::Relaxed);
        progress.records.fetch_add(decoded.records, Ordering::Relaxed);
        progress.rejected.fetch_add(rejected, Ordering::Relaxed);
        let mut account = lock(&self.account);
        account.ledger.read(table, cut.chunk.records);
        account.ledger.decoded(table, decoded.batch.num_rows() as u64, rejected);
        if rejected == 0 {
            return Ok(());
        }
        for reject in &decoded.rejects {
            *account.reasons[table].entry(reject.reason.code()).or_insert(0) += 1;
        }
        let layout = &self.workload.tables[table].layout;
        let file = &self.file_names[table][cut.file];
        let name = self.table_name(cut.table.0);
        let lines: Vec<RejectLine> = decoded.rejects.iter().map(|r| RejectLine::new(name, file, layout, r)).collect();
        account.rejects.push(cut.source(), reject_batch(&lines))?;
        drop(account);
        if self.options.strict {
            self.scheduler.reject((cut.scan, cut.number), lines[0].clone());
        }
        lines.iter().for_each(|line| self.observer.reject(line));
        Ok(())
    }

    fn inner_task(&self, stage: StageId, partition: Partition) -> Result<(), Error> {
        let task = self.plan.stage(stage);
        let mut inputs = {
            let keep = |edge: StageId| self.readers.get(&edge).copied().unwrap_or(0) > 1;
            lock(&self.partitions[usize::from(partition.0)]).inputs(&task.reads, keep)
        };
        if !task.broadcasts.is_empty() {
            let broadcast = lock(&self.broadcast);
            let wanted = task.broadcasts.iter().filter_map(|edge| broadcast.complete.get_key_value(edge));
            inputs.extend(wanted.map(|(edge, rows)| (*edge, Arc::clone(rows))));
        }
        let output = run_inner(self.plan, stage, partition, self.topology.partitions(), inputs, &self.env)?;
        self.deliver(Source::Task { stage, partition }, &[stage], output)
    }

    /// Hands the output of a task to everybody who waits for it.
    fn deliver(&self, source: Source, stages: &[StageId], output: TaskOutput) -> Result<(), Error> {
        let routed = |wanted: fn(&Edge) -> bool| stages.iter().any(|&stage| wanted(&self.plan.stage(stage).edge));
        for (index, rows) in output.partitions.into_iter().enumerate() {
            let partition = Partition(index as u16);
            if !stages.iter().any(|&stage| self.topology.arrives_in(stage, partition)) {
                continue;
            }
            let arrival = lock(&self.partitions[index]).receive(self.plan, &self.env, source, rows)?;
            self.scheduler.add(partition, &arrival.ready, &self.needs);
            self.tell_early(&arrival.early)?;
        }
        if routed(|edge| matches!(edge, Edge::Broadcast)) {
            self.deliver_broadcast(source, output.broadcast)?;
        }
        if routed(|edge| matches!(edge, Edge::Results(_))) {
            self.deliver_results(source, output.results)?;
        }
        Ok(())
    }

    fn deliver_broadcast(&self, source: Source, rows: Vec<(StageId, RecordBatch)>) -> Result<(), Error> {
        let mut broadcast = lock(&self.broadcast);
        if broadcast.inbox.receive(source) == Received::Duplicate {
            return Ok(());
        }
        for (edge, batch) in rows {
            let spool = broadcast.spools.entry(edge).or_insert_with(|| Spool::new(Arc::clone(&self.budget)));
            spool.push(source, batch)?;
        }
        self.complete_broadcasts(&mut broadcast);
        Ok(())
    }

    fn complete_broadcasts(&self, broadcast: &mut Broadcast) {
        let ready = broadcast.inbox.take_ready();
        for edge in &ready {
            let spool = broadcast.spools.remove(edge).unwrap_or_else(|| Spool::new(Arc::clone(&self.budget)));
            broadcast.complete.insert(*edge, Arc::new(spool.into_input()));
        }
        if !ready.is_empty() {
            self.scheduler.broadcast_complete(&ready, &self.needs);
        }
    }

    fn deliver_results(&self, source: Source, rows: Vec<(StageId, RecordBatch)>) -> Result<(), Error> {
        let mut results = lock(&self.results);
        if results.inbox.receive(source) == Received::Duplicate {
            return Ok(());
        }
        for (stage, batch) in rows {
            let Edge::Results(query) = self.plan.stage(stage).edge else { continue };
            if !self.plan.queries[usize::from(query.0)].ordered {
                results.tell(self.observer, query, stage, &batch)?;
            }
            results.spools[usize::from(query.0)].push(source, batch)?;
        }
        results.inbox.take_ready();
        Ok(())
    }

    /// Rows that are certain before their task is complete go to the observer at once. The answer itself is made of the
    /// complete task's rows.
    fn tell_early(&self, rows: &[(StageId, RecordBatch)]) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let mut results = lock(&self.results);
        for (stage, batch) in rows {
            let Edge::Results(query) = self.plan.stage(*stage).edge else { continue };
            if !results.told.contains_key(stage) {
                results.told.insert(*stage, RowSet::new(&batch.schema())?);
            }
            results.tell(self.observer, query, *stage, batch)?;
        }
        Ok(())
    }

    fn close_table(&self, table: tenaz_core::TableId, chunks: u64) -> Result<(), Error> {
        for (index, state) in self.partitions.iter().enumerate() {
            let ready = lock(state).close_table(table, chunks)?;
            self.scheduler.add(Partition(index as u16), &ready, &self.needs);
        }
        {
            let mut broadcast = lock(&self.broadcast);
            broadcast.inbox.close_table(table, chunks)?;
            self.complete_broadcasts(&mut broadcast);
        }
        let mut results = lock(&self.results);
        results.inbox.close_table(table, chunks)?;
        results.inbox.take_ready();
        Ok(())
    }

    /// The closing checks, and the answers.
    fn finish(self, started: Instant) -> Result<Outcome, Error> {
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
        for (query, spool) in self.plan.queries.iter().zip(results.spools) {
            if self.progress.is_stopping() {
                return Err(Error::Stopped);
            }
            answers.push(Answer::new(query, spool, &self.env, &self.budget)?);
        }
        let mut scanned: Vec<usize> = self.plan.scans.iter().map(|scan| usize::from(scan.table.0)).collect();
        scanned.sort_unstable();
        let report = |table: usize| TableReport {
            name: self.workload.tables[table].name.clone(),
            counts: account.ledger.tables()[table],
            bytes: self.table_bytes[table],
            reasons: account.reasons[table].clone(),
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

/// A panic in a task fails the job with the task named, and nothing else.
fn guarded(task: impl Fn() -> String, work: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "no message".to_owned());
        Err(Error::Crashed { task: task(), message })
    })
}
