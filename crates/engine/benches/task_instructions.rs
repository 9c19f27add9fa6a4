//! Instructions of partial aggregation, routing and merging, counted by callgrind: run by `bench/instructions`.
#![allow(missing_docs)]

mod rows;

use std::hint::black_box;

use datafusion::arrow::record_batch::RecordBatch;
use gungraun::{library_benchmark, library_benchmark_group, main};
use rows::{FEW_GROUPS, MANY_GROUPS, MONTHS, ROUTED, Task};
use tenaz_core::StageId;
use tenaz_engine::TaskOutput;

const ROWS: usize = 16_384;

fn arrived() -> (Task, StageId, Vec<RecordBatch>) {
    let task = Task::new(MANY_GROUPS, ROWS, 1);
    let (edge, batches) = task.arrived(4);
    (task, edge, batches)
}

#[library_benchmark]
#[bench::few_groups(Task::new(FEW_GROUPS, ROWS, 1))]
#[bench::months(Task::new(MONTHS, ROWS, 1))]
#[bench::many_groups(Task::new(MANY_GROUPS, ROWS, 1))]
#[bench::many_groups_routed(Task::new(MANY_GROUPS, ROWS, 16))]
#[bench::all_rows_routed(Task::new(ROUTED, ROWS, 16))]
fn leaf(task: Task) -> (TaskOutput, Task) {
    (black_box(task.run()), task)
}

#[library_benchmark]
#[bench::four_chunks(arrived())]
fn merge((task, edge, batches): (Task, StageId, Vec<RecordBatch>)) -> (Vec<RecordBatch>, Task) {
    (black_box(task.compact(edge, batches)), task)
}

library_benchmark_group!(name = task, benchmarks = [leaf, merge]);
main!(library_benchmark_groups = task);
