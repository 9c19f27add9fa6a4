//! Where a task's rows go.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringViewArray, UInt32Array};
use datafusion::arrow::compute::take_arrays;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::hash_utils::create_hashes;
use datafusion::common::{DataFusionError, Result};
use datafusion::physical_plan::joins::SeededRandomState;
use std::sync::Arc;
use tenaz_core::{Partition, Source, StageId};

use crate::Error;
use crate::limits::MAX_TASK_BYTES;
use crate::plan::Edge;

/// The seed of the hash that assigns keys to partitions: the same everywhere, and unlike the seeds of hash tables.
const PARTITION_SEED: SeededRandomState = SeededRandomState::with_seed(0x7e4a_2d31);

/// The output of one task, by destination.
#[derive(Debug, Default)]
pub struct TaskOutput {
    /// For each partition, rows by edge.
    pub partitions: Vec<Vec<(StageId, RecordBatch)>>,
    /// Rows for everybody who scans.
    pub broadcast: Vec<(StageId, RecordBatch)>,
    /// Rows of answers, by the stage that made them.
    pub results: Vec<(StageId, RecordBatch)>,
    /// Stages that failed, and why. They have no rows above.
    pub failures: Vec<(StageId, Error)>,
    /// The bytes of all rows that were added.
    bytes: usize,
}

impl TaskOutput {
    /// No rows.
    pub fn new(partitions: u16) -> Self {
        Self { partitions: vec![Vec::new(); usize::from(partitions)], ..Self::default() }
    }

    /// The stage has failed: what it had made until then are not all its rows, and go nowhere.
    pub(super) fn fail(&mut self, stage: StageId, error: Error) {
        self.drop_rows(stage);
        self.failures.push((stage, error));
    }

    /// Forgets what a stage has made.
    pub(super) fn drop_rows(&mut self, stage: StageId) {
        let all = self.partitions.iter_mut().chain([&mut self.broadcast, &mut self.results]);
        all.for_each(|rows| rows.retain(|(of, _)| *of != stage));
    }

    pub(super) fn add(
        &mut self,
        stage: StageId,
        edge: &Edge,
        home: Partition,
        source: Source,
        batch: RecordBatch,
    ) -> Result<()> {
        self.bytes = self.bytes.saturating_add(slice_bytes(&batch));
        if self.bytes > MAX_TASK_BYTES {
            let text = format!(
                "one task makes more than {} MiB of rows, which is the limit; filter, group or LIMIT them, or use more partitions",
                MAX_TASK_BYTES >> 20
            );
            return Err(DataFusionError::Execution(text));
        }
        match edge {
            Edge::Results(_) => self.results.push((stage, tight(batch))),
            Edge::Broadcast => self.broadcast.push((stage, tight(batch))),
            Edge::One => self.partitions[usize::from(home.0)].push((stage, tight(batch))),
            Edge::Spread => {
                let partitions = self.partitions.len() as u64;
                let share = match source {
                    Source::Chunk { number, .. } => number % partitions,
                    Source::Task { partition, .. } => u64::from(partition.0) % partitions,
                };
                self.partitions[share as usize].push((stage, tight(batch)));
            }
            Edge::Hash(_) if self.partitions.len() == 1 => self.partitions[0].push((stage, tight(batch))),
            Edge::Hash(keys) => {
                let columns = keys.iter().map(|key| key.evaluate(&batch)?.into_array(batch.num_rows()));
                let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
                self.add_by_hash(stage, &columns, &batch)?;
            }
        }
        Ok(())
    }

    fn add_by_hash(&mut self, stage: StageId, keys: &[ArrayRef], batch: &RecordBatch) -> Result<()> {
        let mut hashes = vec![0; batch.num_rows()];
        create_hashes(keys, PARTITION_SEED.random_state(), &mut hashes)?;
        let partitions = self.partitions.len();
        let mut rows: Vec<Vec<u32>> = vec![Vec::with_capacity(batch.num_rows() / partitions + 16); partitions];
        for (row, hash) in hashes.iter().enumerate() {
            // The upper half times the count, shifted: as even as a remainder, without the division.
            let partition = ((hash >> 32) * partitions as u64) >> 32;
            rows[partition as usize].push(row as u32);
        }
        for (partition, rows) in rows.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            let count = rows.len();
            let columns = take_arrays(batch.columns(), &UInt32Array::from(rows), None)?;
            let options = RecordBatchOptions::new().with_row_count(Some(count));
            let part = RecordBatch::try_new_with_options(batch.schema(), columns, &options)?;
            self.partitions[partition].push((stage, tight(part)));
        }
        Ok(())
    }
}

/// The memory of the rows themselves, whatever else lies in the same buffers.
fn slice_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum()
}

/// A batch that keeps no more memory alive than its rows need: text columns point into the chunk they were read from,
/// and a few surviving rows must not hold a whole chunk.
pub fn tight(batch: RecordBatch) -> RecordBatch {
    if !batch.columns().iter().any(is_loose) {
        return batch;
    }
    let (schema, columns, rows) = batch.into_parts();
    let columns = columns.into_iter().map(|c| if is_loose(&c) { tightened(&c) } else { c }).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema, columns, &options).expect("same columns, same lengths")
}

fn is_loose(column: &ArrayRef) -> bool {
    let Some(views) = column.as_string_view_opt() else { return false };
    let held: usize = views.data_buffers().iter().map(|b| b.capacity()).sum();
    held > 0 && held > 2 * used_bytes(views) + 1024
}

fn used_bytes(views: &StringViewArray) -> usize {
    views.views().iter().map(|view| *view as u32 as usize).filter(|len| *len > 12).sum()
}

fn tightened(column: &ArrayRef) -> ArrayRef {
    debug_assert_eq!(column.data_type(), &DataType::Utf8View);
    Arc::new(column.as_string_view().gc())
}
