//! Time of partial aggregation, routing and merging: `cargo bench -p tenaz -p tenaz-engine --bench task`.
#![allow(missing_docs)]

mod rows;

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rows::{FEW_GROUPS, MANY_GROUPS, MONTHS, ROUTED, Task};

/// About the records of a chunk of 1 MiB.
const ROWS: usize = 16_384;

fn leaf(c: &mut Criterion) {
    let mut group = c.benchmark_group("leaf");
    group.throughput(Throughput::Elements(ROWS as u64));
    for (name, sql, partitions) in [
        ("aggregate, few groups", FEW_GROUPS, 1),
        ("aggregate, months", MONTHS, 1),
        ("aggregate, many groups", MANY_GROUPS, 1),
        ("aggregate and route, many groups", MANY_GROUPS, 16),
        ("route all rows to 16", ROUTED, 16),
    ] {
        let task = Task::new(sql, ROWS, partitions);
        group.bench_function(name, |b| b.iter(|| black_box(task.run())));
    }
}

fn merge(c: &mut Criterion) {
    let task = Task::new(MANY_GROUPS, ROWS, 1);
    let (edge, batches) = task.arrived(4);
    c.bench_function("merge partial aggregates of 4 chunks", |b| {
        b.iter_batched(|| batches.clone(), |batches| black_box(task.compact(edge, batches)), BatchSize::SmallInput);
    });
}

criterion_group!(benches, leaf, merge);
criterion_main!(benches);
