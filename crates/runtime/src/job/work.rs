//! What a working thread does: cut a chunk and run its leaf task, or run an inner task.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tenaz_core::{Partition, Source, StageId};
use tenaz_csv::{Decoded, Decoder};
use tenaz_engine::{LeafInput, LeafRunner, run_inner};

use super::state::{Job, lock, working_memory};
use crate::Error;
use crate::reader::{CutChunk, Next};
use crate::rejects::{RejectLine, reject_batch};
use crate::scheduler::Work;

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

    pub(super) fn next_chunk(&self, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let next = {
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
            next
        };
        match next {
            Next::End => {
                self.scheduler.files_read();
                Ok(())
            }
            Next::TableEnd { table, chunks, bytes } => {
                self.progress.table(usize::from(table.0)).bytes.fetch_add(bytes, Ordering::Relaxed);
                self.progress.table(usize::from(table.0)).done.store(true, Ordering::Relaxed);
                self.close_table(table, chunks)
            }
            Next::Chunk(cut) => {
                let task = || format!("chunk {} of table {}", cut.number, self.table_name(cut.table.0));
                let done = guarded(task, || self.leaf_task(&cut, decoders));
                self.spares.give_back(cut.chunk);
                done
            }
        }
    }

    pub(super) fn is_runnable(&self, scan: usize) -> bool {
        let Some(scan) = self.plan.scans.get(scan) else { return true };
        let broadcast = lock(&self.broadcast);
        scan.needs.iter().all(|edge| broadcast.complete.contains_key(edge))
    }

    pub(super) fn table_name(&self, table: u16) -> &str {
        &self.workload.tables[usize::from(table)].name
    }

    pub(super) fn leaf_task(&self, cut: &CutChunk, decoders: &mut BTreeMap<usize, Decoder>) -> Result<(), Error> {
        let decoder = self.decoder(cut, decoders)?;
        let decoded = decoder.decode_chunk(&cut.chunk).map_err(tenaz_engine::Error::from)?;
        let source = cut.source();
        self.account_for(cut, &decoded)?;
        let input = LeafInput { source, rows: decoded.batch };
        let output = self.leaf_runner(cut.scan)?.run(&input)?;
        decoder.give_back(input.rows);
        let stages: Vec<StageId> = self.plan.scans[cut.scan].leaves.clone();
        self.deliver(source, &stages, output)
    }

    pub(super) fn decoder<'d>(
        &self,
        cut: &CutChunk,
        decoders: &'d mut BTreeMap<usize, Decoder>,
    ) -> Result<&'d mut Decoder, Error> {
        match decoders.entry(cut.scan) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let layout = Arc::clone(&self.workload.tables[usize::from(cut.table.0)].layout);
                Ok(entry.insert(self.plan.scans[cut.scan].decoder(layout)?))
            }
        }
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

    pub(super) fn account_for(&self, cut: &CutChunk, decoded: &Decoded) -> Result<(), Error> {
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
