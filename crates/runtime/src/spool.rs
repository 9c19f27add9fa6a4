//! Rows at rest: in memory up to a budget, then in a temporary file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use tenaz_core::{Partition, Source, StageId};
use tenaz_engine::EdgeInput;

use crate::Error;
use crate::limits::MIN_SPILL_BYTES;

/// How many bytes of rows may rest in memory, over all spools of a job.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: AtomicUsize,
    spilled: AtomicU64,
    /// Bytes that temporary files may have.
    disk_limit: u64,
    /// Bytes that they have.
    on_disk: AtomicU64,
    dir: PathBuf,
}

impl Budget {
    /// A budget of `limit` bytes; what does not fit goes to unnamed files in `dir`.
    pub fn new(limit: usize, dir: PathBuf) -> Arc<Self> {
        Self::with_disk_limit(limit, u64::MAX, dir)
    }

    /// The same with a bound on the bytes of the files.
    pub fn with_disk_limit(limit: usize, disk_limit: u64, dir: PathBuf) -> Arc<Self> {
        let (used, spilled, on_disk) = (AtomicUsize::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { limit, used, spilled, disk_limit, on_disk, dir })
    }

    /// Asks for room on the disk.
    fn take_disk(&self, bytes: u64) -> Result<(), Error> {
        let taken = self.on_disk.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if taken <= self.disk_limit {
            return Ok(());
        }
        self.on_disk.fetch_sub(bytes, Ordering::Relaxed);
        let text = format!(
            "the temporary files of this process have reached the limit --spool-limit of {} bytes",
            self.disk_limit
        );
        Err(self.temporary(std::io::Error::new(std::io::ErrorKind::QuotaExceeded, text)))
    }

    /// Bytes written to temporary files so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    fn temporary(&self, source: std::io::Error) -> Error {
        Error::Temporary { dir: self.dir.clone(), source }
    }
}

/// Rows by source. Reading gives them in the order of their sources, whatever order they came in.
#[derive(Debug)]
pub struct Spool {
    budget: Arc<Budget>,
    entries: BTreeMap<(Source, u32), Held>,
    in_memory: usize,
    /// In memory and on disk.
    bytes: usize,
    rows: u64,
    file: Option<Arc<SpillFile>>,
}

#[derive(Debug, Clone)]
enum Held {
    Memory(RecordBatch),
    Disk { file: Arc<SpillFile>, offset: u64 },
}

/// A temporary file that has no name and vanishes with its last user.
#[derive(Debug)]
struct SpillFile {
    file: Mutex<File>,
    bytes: AtomicU64,
    budget: Arc<Budget>,
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.budget.on_disk.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl Spool {
    /// An empty spool.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, entries: BTreeMap::new(), in_memory: 0, bytes: 0, rows: 0, file: None }
    }

    /// How many rows are here.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether any of them are on disk.
    pub fn has_spilled(&self) -> bool {
        self.file.is_some()
    }

    /// Adds rows. Over budget, what this spool holds goes to its file.
    pub fn push(&mut self, source: Source, batch: RecordBatch) -> Result<(), Error> {
        let bytes = batch.get_array_memory_size();
        self.rows += batch.num_rows() as u64;
        self.in_memory += bytes;
        self.bytes += bytes;
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let sequence = self.entries.range((source, 0)..=(source, u32::MAX)).next_back().map_or(0, |((_, n), _)| n + 1);
        self.entries.insert((source, sequence), Held::Memory(batch));
        if used > self.budget.limit && self.in_memory >= MIN_SPILL_BYTES {
            self.spill()?;
        }
        Ok(())
    }

    /// Adds rows behind all others that were added like this.
    pub fn append(&mut self, batch: RecordBatch) -> Result<(), Error> {
        self.push(Source::Task { stage: StageId(u16::MAX), partition: Partition(u16::MAX) }, batch)
    }

    /// Takes everything that is in memory out, for merging.
    pub(crate) fn take_memory(&mut self) -> Vec<RecordBatch> {
        let mut taken = Vec::new();
        self.entries.retain(|_, held| match held {
            Held::Memory(batch) => {
                taken.push(batch.clone());
                false
            }
            Held::Disk { .. } => true,
        });
        self.rows -= taken.iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
        self.bytes -= self.in_memory;
        self.release();
        taken
    }

    fn release(&mut self) {
        self.budget.used.fetch_sub(self.in_memory, Ordering::Relaxed);
        self.in_memory = 0;
    }

    fn spill(&mut self) -> Result<(), Error> {
        let file = match &self.file {
            Some(file) => Arc::clone(file),
            None => {
                let file = tempfile::tempfile_in(&self.budget.dir).map_err(|e| self.budget.temporary(e))?;
                let file = Arc::new(SpillFile {
                    file: Mutex::new(file),
                    bytes: AtomicU64::new(0),
                    budget: Arc::clone(&self.budget),
                });
                self.file = Some(Arc::clone(&file));
                file
            }
        };
        let mut bytes = Vec::new();
        let mut end = {
            let mut raw = file.file.lock().unwrap_or_else(PoisonError::into_inner);
            raw.seek(SeekFrom::End(0)).map_err(|e| self.budget.temporary(e))?
        };
        for held in self.entries.values_mut() {
            let Held::Memory(batch) = held else { continue };
            bytes.clear();
            let mut writer = StreamWriter::try_new(&mut bytes, batch.schema_ref())?;
            writer.write(batch)?;
            writer.finish()?;
            drop(writer);
            self.budget.take_disk(bytes.len() as u64)?;
            file.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            let mut raw = file.file.lock().unwrap_or_else(PoisonError::into_inner);
            raw.write_all(&bytes).map_err(|e| self.budget.temporary(e))?;
            drop(raw);
            *held = Held::Disk { file: Arc::clone(&file), offset: end };
            end += bytes.len() as u64;
            self.budget.spilled.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        self.release();
        Ok(())
    }

    /// The rows, ready to be read any number of times. The memory they rest in is given back with the last reader.
    pub fn into_input(mut self) -> SpooledRows {
        let entries = std::mem::take(&mut self.entries).into_values().collect();
        SpooledRows {
            entries,
            bytes: self.bytes,
            _lease: Lease { budget: Arc::clone(&self.budget), bytes: std::mem::take(&mut self.in_memory) },
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.release();
    }
}

/// The rows of a finished spool.
#[derive(Debug)]
pub struct SpooledRows {
    entries: Vec<Held>,
    bytes: usize,
    _lease: Lease,
}

#[derive(Debug)]
struct Lease {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl SpooledRows {
    /// How many batches there are.
    pub fn pieces(&self) -> usize {
        self.entries.len()
    }

    /// One of the batches.
    pub fn piece(&self, piece: usize) -> Option<datafusion::error::Result<RecordBatch>> {
        self.entries.get(piece).map(|held| held.clone().read())
    }
}

impl Held {
    fn read(self) -> datafusion::error::Result<RecordBatch> {
        match self {
            Self::Memory(batch) => Ok(batch),
            Self::Disk { file, offset } => file.read(offset),
        }
    }
}

impl EdgeInput for SpooledRows {
    fn batches(&self) -> Box<dyn Iterator<Item = datafusion::error::Result<RecordBatch>> + Send> {
        Box::new(self.entries.clone().into_iter().map(Held::read))
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl SpillFile {
    fn read(&self, offset: u64) -> datafusion::error::Result<RecordBatch> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let context = |e: std::io::Error| {
            let text = format!("cannot read a temporary file in {}: {e}", self.budget.dir.display());
            DataFusionError::IoError(std::io::Error::new(e.kind(), text))
        };
        file.seek(SeekFrom::Start(offset)).map_err(context)?;
        let mut reader = StreamReader::try_new(BufReader::new(&mut *file), None)?;
        let batch = reader.next().transpose()?;
        let too_short = || std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "a temporary file ends too early");
        batch.ok_or_else(|| DataFusionError::IoError(too_short()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
    use datafusion::arrow::datatypes::Int64Type;
    use tenaz_core::{Partition, StageId, TableId};

    use super::*;

    fn chunk(number: u64) -> Source {
        Source::Chunk { table: TableId(0), number }
    }

    fn task(partition: u16) -> Source {
        Source::Task { stage: StageId(3), partition: Partition(partition) }
    }

    fn rows(values: std::ops::Range<i64>) -> RecordBatch {
        let text: StringViewArray = values.clone().map(|v| (v % 7 != 0).then(|| format!("number {v:>20}"))).collect();
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(values));
        RecordBatch::try_from_iter_with_nullable([("n", numbers, false), ("t", Arc::new(text) as ArrayRef, true)])
            .unwrap()
    }

    /// Enough for a spool to be worth a write.
    fn many(from: i64) -> RecordBatch {
        let batch = rows(from..from + 10_000);
        assert!(batch.get_array_memory_size() >= MIN_SPILL_BYTES);
        batch
    }

    fn first_values(rows: &SpooledRows) -> Vec<i64> {
        rows.batches().map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().value(0)).collect()
    }

    #[test]
    fn rows_are_read_in_the_order_of_their_sources_and_of_arrival_within_one() {
        let budget = Budget::new(1 << 30, std::env::temp_dir());
        let mut spool = Spool::new(Arc::clone(&budget));
        for (source, value) in
            [(task(1), 50), (chunk(9), 30), (chunk(2), 10), (task(0), 40), (chunk(9), 31), (chunk(3), 20)]
        {
            spool.push(source, rows(value..value + 1)).unwrap();
        }
        assert_eq!(spool.rows(), 6);
        assert!(!spool.has_spilled());
        let input = spool.into_input();
        assert_eq!(first_values(&input), [10, 20, 30, 31, 40, 50]);
        assert_eq!(first_values(&input), [10, 20, 30, 31, 40, 50], "they can be read again");
        assert_eq!(budget.spilled_bytes(), 0);
    }

    #[test]
    fn what_went_to_disk_comes_back_as_it_was_in_the_same_order() {
        let dir = tempfile::tempdir().unwrap();
        let budget = Budget::new(1, dir.path().to_owned());
        let mut spool = Spool::new(Arc::clone(&budget));
        let order = [4, 1, 3, 0, 2];
        for number in order {
            spool.push(chunk(number), many(number as i64 * 10_000)).unwrap();
        }
        // Too little for a write: it stays in memory, between rows that are on disk.
        spool.push(chunk(2), rows(29_999..30_000)).unwrap();
        assert!(spool.has_spilled() && budget.spilled_bytes() > 0);
        assert_eq!(budget.used.load(Ordering::Relaxed), spool.in_memory);
        assert_eq!(spool.rows(), 50_001);
        let input = spool.into_input();
        assert_eq!(first_values(&input), [0, 10_000, 20_000, 29_999, 30_000, 40_000]);
        let batches: Vec<RecordBatch> = input.batches().map(|batch| batch.unwrap()).collect();
        assert_eq!(batches[1], many(10_000), "every value and every null");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "temporary files have no names");
    }

    #[test]
    fn the_disk_has_a_bound_over_all_spools_and_is_given_back() {
        let budget = Budget::with_disk_limit(1, 1 << 20, std::env::temp_dir());
        let fill = |spool: &mut Spool| (0..100).find_map(|number| spool.push(chunk(number), many(0)).err());
        let (mut first, mut second) = (Spool::new(Arc::clone(&budget)), Spool::new(Arc::clone(&budget)));
        let error = fill(&mut first).expect("a limit is reached");
        assert!(error.to_string().contains("--spool-limit of 1048576"), "{error}");
        assert!(second.push(chunk(0), many(0)).is_err(), "it is one bound for both");
        assert!(budget.on_disk.load(Ordering::Relaxed) <= 1 << 20);
        drop(first);
        drop(second);
        assert_eq!(budget.on_disk.load(Ordering::Relaxed), 0);
        Spool::new(Arc::clone(&budget)).push(chunk(0), many(0)).unwrap();
    }

    #[test]
    fn a_slice_of_a_larger_batch_reads_back_as_the_slice_alone() {
        let budget = Budget::new(1, std::env::temp_dir());
        let mut spool = Spool::new(Arc::clone(&budget));
        spool.push(chunk(0), many(0).slice(100, 3)).unwrap();
        assert!(spool.has_spilled());
        let input = spool.into_input();
        let batches: Vec<RecordBatch> = input.batches().map(|batch| batch.unwrap()).collect();
        assert_eq!(batches, [rows(100..103)]);
    }

    #[test]
    fn memory_is_given_back_by_spilling_taking_dropping_and_the_last_reader() {
        let budget = Budget::new(1 << 30, std::env::temp_dir());
        let used = || budget.used.load(Ordering::Relaxed);
        let mut dropped = Spool::new(Arc::clone(&budget));
        dropped.push(chunk(0), rows(0..10)).unwrap();
        assert!(used() > 0);
        drop(dropped);
        assert_eq!(used(), 0);

        let mut taken = Spool::new(Arc::clone(&budget));
        taken.push(chunk(1), rows(0..10)).unwrap();
        taken.push(chunk(0), rows(10..20)).unwrap();
        assert_eq!(taken.take_memory(), [rows(10..20), rows(0..10)], "in the order of their sources");
        assert_eq!((used(), taken.rows()), (0, 0));

        let mut read = Spool::new(Arc::clone(&budget));
        read.push(chunk(0), rows(0..10)).unwrap();
        let before = used();
        let input = read.into_input();
        assert_eq!(used(), before, "the rows still rest in memory");
        drop(input);
        assert_eq!(used(), 0);
    }

    #[test]
    fn what_is_on_disk_is_not_taken_for_merging() {
        let budget = Budget::new(1, std::env::temp_dir());
        let mut spool = Spool::new(Arc::clone(&budget));
        spool.push(chunk(0), many(0)).unwrap();
        spool.push(chunk(1), rows(1..2)).unwrap();
        let taken = spool.take_memory();
        assert_eq!(taken.len(), 1);
        assert_eq!(spool.rows(), 10_000);
        assert_eq!(first_values(&spool.into_input()), [0]);
    }

    #[test]
    fn a_temporary_directory_that_is_not_there_is_named_with_a_cure() {
        let budget = Budget::new(1, PathBuf::from("/no/such/place"));
        let mut spool = Spool::new(Arc::clone(&budget));
        let error = spool.push(chunk(0), many(0)).unwrap_err().to_string();
        assert!(error.contains("/no/such/place") && error.contains("TMPDIR"), "{error}");
    }
}
