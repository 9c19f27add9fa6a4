//! What a working thread does: put a chunk together and run its leaf task, or run an inner task.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenaz_core::{Partition, Source, StageId, TableId};
use tenaz_csv::{Added, Chunk, Decoder};
use tenaz_engine::{LeafInput, LeafRunner, run_inner};

use super::state::{Job, lock, working_memory};
use crate::Error;
use crate::limits::{HELD_SHARE, MAX_CHUNK_BYTES};
use crate::reader::{Claim, Next};
use crate::rejects::{RejectLine, reject_batch};
use crate::scheduler::Work;

/// A chunk that is being put together of portions.
struct OpenChunk {
    scan: usize,
    table: TableId,
    number: u64,
    /// Bytes that were read for it so far.
    bytes: u64,
    /// Portions that its rows point into, and how much memory they are.
    held: Vec<Chunk>,
    held_bytes: u64,
}

impl OpenChunk {
    /// The chunk that begins with these bytes, which are still to be added.
    fn with(first: &Claim) -> Self {
        Self { scan: first.scan, table: first.table, number: first.chunk, bytes: 0, held: Vec::new(), held_bytes: 0 }
    }

    /// Whether it is large enough, or needs as much memory as it may.
    fn is_full(&self, chunk_bytes: u64) -> bool {
        self.bytes >= chunk_bytes || self.held_bytes >= chunk_bytes / HELD_SHARE
    }
}

impl Job<'_> {
    /// A working thread, from start to end.
    pub(super) fn work(&self) {
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
                Work::Answer(query) => {
                    let task = || format!("the answer to {}", self.plan.queries[usize::from(query.0)].name);
                    guarded(task, || self.make_answer(query))
                }
            };
            if let Err(error) = done {
                self.scheduler.fail(error);
            }
            self.scheduler.finished();
        }
    }

    /// Takes portions of a table until they make a chunk or the table ends, and runs the chunk's leaf task.
    pub(super) fn next_chunk(&self, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let mut open: Option<OpenChunk> = None;
        let end = loop {
            match self.claim(open.as_ref())? {
                Some(Next::Claim(claim)) => {
                    let chunk = open.get_or_insert_with(|| OpenChunk::with(&claim));
                    let (table, number) = (chunk.table, chunk.number);
                    let add = || self.add_portion(claim, chunk, decoders);
                    if !guarded(|| self.task_name(table, number), add)? {
                        // Whoever has failed says why.
                        return Ok(());
                    }
                    if chunk.is_full(self.chunk_bytes as u64) {
                        break None;
                    }
                }
                other => break other,
            }
        };
        if let Some(chunk) = open {
            guarded(|| self.task_name(chunk.table, chunk.number), || self.leaf_task(&chunk, decoders))?;
            chunk.held.into_iter().for_each(|records| self.reader.spares().give_back(records));
        }
        match end {
            Some(Next::TableEnd { table, chunks }) => {
                self.progress.table(usize::from(table.0)).done.store(true, Ordering::Relaxed);
                self.close_table(table, chunks)
            }
            Some(Next::End) => {
                self.scheduler.files_read();
                Ok(())
            }
            Some(Next::Claim(_)) | None => Ok(()),
        }
    }

    /// What comes next in the files; none if that is no part of this chunk's table, or must wait.
    fn claim(&self, open: Option<&OpenChunk>) -> Result<Option<Next>, Error> {
        let may = |scan: usize| match open {
            Some(chunk) => (chunk.scan == scan).then_some(Some(chunk.number)),
            // Another thread may just have reached a table whose broadcasts are not complete yet.
            None => self.is_runnable(scan).then_some(None),
        };
        self.reader.claim(may, |next| match self.plan.scans.get(next) {
            Some(scan) => self.scheduler.next_chunk_needs(&scan.needs),
            None => self.scheduler.files_read(),
        })
    }

    fn task_name(&self, table: TableId, chunk: u64) -> String {
        format!("chunk {chunk} of table {}", self.table_name(table.0))
    }

    pub(super) fn is_runnable(&self, scan: usize) -> bool {
        let Some(scan) = self.plan.scans.get(scan) else { return true };
        let broadcast = lock(&self.broadcast);
        scan.needs.iter().all(|edge| broadcast.complete.contains_key(edge))
    }

    pub(super) fn table_name(&self, table: u16) -> &str {
        &self.workload.tables[usize::from(table)].name
    }

    /// Reads what was claimed, and adds its records to those of its chunk. False: what comes before it has failed.
    fn add_portion(
        &self,
        claim: Claim,
        chunk: &mut OpenChunk,
        decoders: &mut BTreeMap<usize, Decoder>,
    ) -> Result<bool, Error> {
        // First of all: everybody behind waits for it.
        let Some(portion) = self.reader.cut(claim)? else { return Ok(false) };
        let decoder = self.decoder(chunk, decoders)?;
        chunk.bytes += portion.bytes;
        self.progress.table(usize::from(chunk.table.0)).bytes.fetch_add(portion.bytes, Ordering::Relaxed);
        for records in portion.records {
            let added = decoder.add_chunk(&records).map_err(tenaz_engine::Error::from)?;
            self.account_for(chunk, (portion.file, portion.number), records.records, &added)?;
            if decoder.points_into_chunks() {
                chunk.held_bytes += records.data.len() as u64;
                chunk.held.push(records);
            } else {
                self.reader.spares().give_back(records);
            }
        }
        Ok(true)
    }

    fn decoder<'d>(
        &self,
        chunk: &OpenChunk,
        decoders: &'d mut BTreeMap<usize, Decoder>,
    ) -> Result<&'d mut Decoder, Error> {
        Ok(match decoders.entry(chunk.scan) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let layout = Arc::clone(&self.workload.tables[usize::from(chunk.table.0)].layout);
                let decoder = self.plan.scans[chunk.scan].decoder(layout)?;
                // Memory for the chunks that are usual: where they are larger, more comes once, and is used again.
                let usual = (self.chunk_bytes / HELD_SHARE as usize).min(MAX_CHUNK_BYTES);
                let all = usize::try_from(self.table_bytes[usize::from(chunk.table.0)]).unwrap_or(usize::MAX);
                entry.insert(decoder.with_batch_bytes(usual.min(all)))
            }
        })
    }

    fn leaf_task(&self, chunk: &OpenChunk, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let decoder = self.decoder(chunk, decoders)?;
        let rows = decoder.take_batch().map_err(tenaz_engine::Error::from)?;
        let source = Source::Chunk { table: chunk.table, number: chunk.number };
        let input = LeafInput { source, rows };
        let output = self.leaf_runner(chunk.scan)?.run(&input)?;
        decoder.give_back(input.rows);
        let stages: Vec<StageId> = self.plan.scans[chunk.scan].leaves.clone();
        self.deliver(source, &stages, output)
    }

    pub(super) fn leaf_runner(&self, scan: usize) -> Result<&LeafRunner, Error> {
        if let Some(runner) = self.leaves[scan].get() {
            return Ok(runner);
        }
        let broadcasts = lock(&self.broadcast).complete.clone();
        let count = self.topology.partitions();
        let runner = LeafRunner::new(self.plan, &self.plan.scans[scan], count, broadcasts, Arc::clone(&self.env))?;
        Ok(self.leaves[scan].get_or_init(|| runner))
    }

    /// Counts the records of a portion, which has a file and a place among all portions.
    fn account_for(
        &self,
        chunk: &OpenChunk,
        (file, number): (usize, u64),
        read: u64,
        added: &Added,
    ) -> Result<(), Error> {
        let table = usize::from(chunk.table.0);
        let rejected = added.rejects.len() as u64;
        let progress = self.progress.table(table);
        progress.records.fetch_add(added.records, Ordering::Relaxed);
        progress.rejected.fetch_add(rejected, Ordering::Relaxed);
        let mut account = lock(&self.account);
        account.ledger.read(table, read);
        account.ledger.decoded(table, added.rows, rejected);
        if rejected == 0 {
            return Ok(());
        }
        for reject in &added.rejects {
            *account.reasons[table].entry(reject.reason.code()).or_insert(0) += 1;
        }
        let layout = &self.workload.tables[table].layout;
        let file = &self.file_names[table][file];
        let name = self.table_name(chunk.table.0);
        let lines: Vec<RejectLine> = added.rejects.iter().map(|r| RejectLine::new(name, file, layout, r)).collect();
        // Bad records are told in the order of the data, so by portions.
        account.rejects.push(Source::Chunk { table: chunk.table, number }, reject_batch(&lines))?;
        drop(account);
        if self.options.strict {
            self.scheduler.reject((chunk.scan, number), lines[0].clone());
        }
        lines.iter().for_each(|line| self.observer.reject(line));
        Ok(())
    }

    pub(super) fn inner_task(&self, stage: StageId, partition: Partition) -> Result<(), Error> {
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
        // Each task has memory of its own: what it may use does not depend on what others do.
        let env = working_memory(self.options.memory_bytes, &self.options.temp_dir, self.options.threads)?;
        let output = run_inner(self.plan, stage, partition, self.topology.partitions(), inputs, &env)?;
        self.deliver(Source::Task { stage, partition }, &[stage], output)
    }
}

/// A panic in a task fails the job with the task named, and nothing else.
pub(crate) fn guarded<T>(task: impl Fn() -> String, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "no message".to_owned());
        Err(Error::Crashed { task: task(), message })
    })
}
