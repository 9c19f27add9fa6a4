//! The shell of an embedded job: threads that run the driver's steps and read chunks, and a broker that is a few lines.
//!
//! All partitions belong to this one worker, and what is published has arrived and is confirmed at once.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tenaz_core::{
    ChunkDigest, Effect, Fact, Input, JobDriver, JobFacts, JobFailure, MemberId, Partition, Promise, Source, Step,
    TableId, Tag, Ticket,
};
use tenaz_engine::{JobPlan, Workload};

use super::chunk::OpenChunk;
use super::engine::LocalEngine;
use super::{Observer, Options, Outcome, TableReport};
use crate::job_rows::{Conclusion, lock};
use crate::limits::WAITING_CHUNKS;
use crate::reader::{Claim, Next};
use crate::{DataSet, Error, Progress};

/// A job whose threads share one driver.
pub(super) struct LocalJob<'a> {
    engine: LocalEngine<'a>,
    /// For each scan in the order of reading, the wave of its table.
    waves: Vec<usize>,
    state: Mutex<State<'a>>,
    changed: Condvar,
}

/// What the threads share under one lock, which is never held while rows are computed with.
struct State<'a> {
    driver: JobDriver<LocalEngine<'a>>,
    facts: JobFacts,
    /// Steps that wait for a thread. They come before chunks, so that rows do not pile up.
    steps: VecDeque<Step<LocalEngine<'a>>>,
    /// Waves whose chunks may be taken, by the number of their subscription.
    consumers: Vec<Option<u64>>,
    files_read: bool,
    /// Threads that work; while there are any, more may become possible.
    busy: usize,
    last_tag: u64,
    next_offset: u64,
    end: Option<Arc<Conclusion>>,
    error: Option<Error>,
    stopping: bool,
}

/// What a thread may do now.
enum ThreadWork<'a> {
    /// Run a step.
    Step(Box<Step<LocalEngine<'a>>>),
    /// Begin a chunk.
    Chunk,
    /// Go home.
    Nothing,
}

impl<'a> LocalJob<'a> {
    pub(super) fn new(
        workload: &'a Workload,
        plan: &'a JobPlan,
        data: DataSet,
        options: &'a Options,
        progress: &'a Progress,
        observer: &'a dyn Observer,
    ) -> Result<Self, Error> {
        let engine = LocalEngine::new(workload, plan, data, options, progress, observer)?;
        let topology = &engine.rows.topology;
        let waves = topology.waves();
        let wave_of = |scan: usize| {
            let table = plan.scans[scan].table;
            waves.iter().position(|wave| wave.tables.contains(&table)).unwrap_or(0)
        };
        let order = (0..plan.scans.len()).filter_map(|place| engine.reader.scan_at(place));
        let scan_waves: Vec<usize> = order.map(wave_of).collect();
        let state = State {
            driver: JobDriver::new(MemberId(0), topology.clone(), 0),
            facts: JobFacts::default(),
            steps: VecDeque::new(),
            consumers: vec![None; waves.len()],
            files_read: plan.scans.is_empty(),
            busy: 0,
            last_tag: 0,
            next_offset: 0,
            end: None,
            error: None,
            stopping: false,
        };
        let partitions: BTreeSet<Partition> = (0..topology.partitions()).map(Partition).collect();
        let job = Self { engine, waves: scan_waves, state: Mutex::new(state), changed: Condvar::new() };
        let mut begun = job.lock();
        begun.handle(&job.engine, Input::Connected);
        begun.handle(&job.engine, Input::Owns { partitions, results: true });
        drop(begun);
        Ok(job)
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        lock(&self.state)
    }

    /// A working thread, from start to end.
    pub(super) fn work(&self) {
        loop {
            match self.next() {
                ThreadWork::Nothing => return,
                ThreadWork::Step(step) => self.run(*step),
                ThreadWork::Chunk => self.begin_chunk(),
            }
            self.lock().busy -= 1;
            self.changed.notify_all();
        }
    }

    /// Waits for something to do. Whoever gets it counts as busy until it is done.
    fn next(&self) -> ThreadWork<'a> {
        let mut state = self.lock();
        loop {
            if self.engine.progress.is_stopping() {
                state.fail(Error::Stopped);
            }
            if state.stopping || self.engine.has_strict_reject() {
                return ThreadWork::Nothing;
            }
            if let Some(step) = state.steps.pop_front() {
                state.busy += 1;
                return ThreadWork::Step(Box::new(step));
            }
            if !state.files_read && !self.is_behind(&state) && self.is_open(&state, self.next_scan()) {
                state.busy += 1;
                return ThreadWork::Chunk;
            }
            if state.busy == 0 {
                // Nobody works, so nothing new can become possible.
                return ThreadWork::Nothing;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next_scan(&self) -> usize {
        self.engine.next_scan.load(Ordering::Acquire)
    }

    /// Whether rows come faster than they are taken in. Whoever takes them in counts as busy, so waiting has an end.
    fn is_behind(&self, state: &State<'a>) -> bool {
        let partitions = usize::from(self.engine.rows.topology.partitions());
        state.driver.backlog() > WAITING_CHUNKS * self.engine.options.threads * (partitions + 1)
    }

    /// Whether chunks of the scan at this place of the reading order may be taken. Behind the last there is only the end.
    fn is_open(&self, state: &State<'a>, place: usize) -> bool {
        self.waves.get(place).is_none_or(|&wave| state.consumers[wave].is_some())
    }

    fn run(&self, step: Step<LocalEngine<'a>>) {
        let stop = self.engine.progress.stop_flag();
        let finished = stop.during(|| step.run(&self.engine));
        if stop.is_set() {
            // What a task made of the rows that it had is worth nothing, and neither is its error.
            return self.lock().fail(Error::Stopped);
        }
        let ended = std::mem::take(&mut *lock(&self.engine.ended));
        let mut state = self.lock();
        state.handle(&self.engine, Input::Finished(finished));
        ended.into_iter().for_each(|(table, chunks)| state.close_table(&self.engine, table, chunks));
    }

    /// Claims bytes of the table whose turn it is, and makes a chunk of what begins with them.
    fn begin_chunk(&self) {
        let next = self.engine.begin(|place| self.is_open(&self.lock(), place));
        match next {
            // Another thread has just reached a table that must wait.
            Ok(None) => {}
            Ok(Some(Next::Claim(claim))) => self.run_chunk(claim),
            Ok(Some(Next::TableEnd { table, chunks })) => self.lock().close_table(&self.engine, table, chunks),
            Ok(Some(Next::End)) => self.lock().files_read = true,
            Err(error) => self.lock().fail(error),
        }
    }

    /// The thread that has claimed bytes reads them itself, and at once: all who claim after it wait for that.
    fn run_chunk(&self, claim: Claim) {
        let step = {
            let mut state = self.lock();
            let wave = self.engine.rows.scan_of(claim.table).map_or(0, |scan| self.wave_of_scan(scan));
            state.last_tag += 1;
            let (tag, consumer) = (Tag(state.last_tag), state.consumers[wave].unwrap_or(0));
            let leaf = OpenChunk::with(claim);
            let source = Source::Chunk { table: leaf.table, number: leaf.number };
            let digest = ChunkDigest(0);
            let delivered = Input::Delivered { wave, consumer, tag, source, digest, redelivered: false, leaf };
            state.handle(&self.engine, delivered);
            let place = state.steps.iter().position(|step| step.ticket == Ticket::Chunk(tag));
            place.and_then(|place| state.steps.remove(place))
        };
        match step {
            Some(step) => self.run(step),
            None => self.lock().fail(no_step()),
        }
    }

    fn wave_of_scan(&self, scan: usize) -> usize {
        let place = (0..self.waves.len()).find(|&place| self.engine.reader.scan_at(place) == Some(scan));
        place.map_or(0, |place| self.waves[place])
    }

    /// The answers, after all threads have gone home.
    pub(super) fn finish(self, started: Instant) -> Result<Outcome, Error> {
        let Self { engine, state, .. } = self;
        let State { end, error, driver, .. } = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reject = engine.take_first_reject().map(|line| Error::Strict(Box::new(line)));
        if let Some(error) = error.or(reject) {
            return Err(error);
        }
        let missing = driver.machine().results().map(|inbox| inbox.missing()).unwrap_or_default();
        drop(driver);
        let Some(conclusion) = end.and_then(Arc::into_inner) else {
            let missing: Vec<String> = missing.iter().map(|stage| stage.0.to_string()).collect();
            let task = format!("the job ended before stages {}", missing.join(", "));
            return Err(Error::Crashed { task, message: "their input never became complete".to_owned() });
        };
        let Conclusion { answers, failed, ledger, reasons, .. } = conclusion;
        let mut scanned: Vec<usize> = engine.rows.plan.scans.iter().map(|scan| usize::from(scan.table.0)).collect();
        scanned.sort_unstable();
        let report = |table: usize| TableReport {
            name: engine.rows.workload.tables[table].name.clone(),
            counts: ledger.tables()[table],
            bytes: engine.bytes_read(table),
            is_partial: engine.bytes_read(table) < engine.table_bytes[table],
            reasons: reasons[table].clone(),
        };
        let tables = scanned.into_iter().map(report).collect();
        let spilled_bytes = engine.rows.budget().spilled_bytes();
        let rejects = engine.rejects.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rejects = (rejects.rows() > 0).then(|| Arc::new(rejects.into_input()));
        Ok(Outcome { answers, failed, tables, rejects, elapsed: started.elapsed(), spilled_bytes })
    }
}

impl<'a> State<'a> {
    /// Hands an input to the driver, and whatever follows from its effects until nothing does.
    fn handle(&mut self, engine: &LocalEngine<'a>, input: Input<LocalEngine<'a>>) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            for effect in self.driver.handle(engine, &self.facts, input) {
                self.carry_out(effect, &mut inputs);
            }
        }
    }

    fn carry_out(&mut self, effect: Effect<LocalEngine<'a>>, inputs: &mut VecDeque<Input<LocalEngine<'a>>>) {
        match effect {
            Effect::Run(step) => self.steps.push_back(step),
            // What is published stands in its log, and whoever owns the log has read it.
            Effect::Publish { work, message, log, body } => {
                if let Some(reading) = self.driver.reading(log) {
                    let (offset, header) = (self.next_offset, body.id);
                    self.next_offset += 1;
                    inputs.push_back(Input::Arrived { log, reading, offset, header, body, permit: () });
                }
                inputs.push_back(Input::Confirmed { work, message });
            }
            Effect::TakeChunks { wave, consumer } => self.consumers[wave] = Some(consumer),
            Effect::StopTaking { wave } => self.consumers[wave] = None,
            Effect::Tell(Fact::Attempted { source, by }) => inputs.push_back(Input::Attempted { source, by }),
            Effect::Tell(Fact::Exonerated { source }) => inputs.push_back(Input::Exonerated { source }),
            Effect::AnnounceEnd(end) => self.end = Some(end),
            Effect::StandBack(error) => self.fail(error),
            Effect::Fail(JobFailure::Step { error, .. }) => self.fail(error),
            Effect::Fail(JobFailure::Protocol(failure)) => {
                self.fail(Error::Crashed { task: "the job".to_owned(), message: failure.to_string() });
            }
            Effect::Show(never) => match never {},
            Effect::Read { .. }
            | Effect::StopReading { .. }
            | Effect::Ack { .. }
            | Effect::GiveBack { .. }
            | Effect::Forget { .. }
            | Effect::Dropped
            | Effect::Tell(_) => {}
        }
    }

    /// All of a table has been read.
    fn close_table(&mut self, engine: &LocalEngine<'a>, table: TableId, chunks: u64) {
        engine.progress.table(usize::from(table.0)).done.store(true, Ordering::Relaxed);
        self.handle(engine, Input::TableClosed { table, promise: Promise::count(chunks) });
    }

    /// The job has failed. The first error stays, but another is better than that somebody was stopped by it.
    fn fail(&mut self, error: Error) {
        if matches!(self.error, None | Some(Error::Stopped)) {
            self.error = Some(error);
        }
        self.stopping = true;
    }
}

fn no_step() -> Error {
    let message = "the driver did not begin it".to_owned();
    Error::Crashed { task: "a chunk".to_owned(), message }
}
