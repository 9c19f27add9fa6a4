//! A planned query and a decoded chunk for it: what a leaf task works on, without files or threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::buffer::Buffer;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::runtime_env::RuntimeEnv;
use tenaz_core::{Source, StageId};
use tenaz_csv::Decoder;
use tenaz_engine::{JobPlan, LeafInput, LeafRunner, TaskOutput, Workload, compact};

const TABLE: &str = r#"
name = "bench"
title = "Benchmarks"

[[table]]
name = "sales"
files = "sales.csv"
role = "fact"
header = "skip"
columns = [
    { name = "id", type = "text" },
    { name = "store_id", type = "int" },
    { name = "user_id", type = "int" },
    { name = "amount", type = "decimal(15,3)" },
    { name = "created_at", type = "timestamp" },
]

[[query]]
name = "q"
title = "The query"
file = "q.sql"
ordered = false
"#;

/// Few groups: a partial aggregation that stays in the cache.
pub(crate) const FEW_GROUPS: &str = "SELECT store_id, sum(amount) AS total, count(*) AS n FROM sales GROUP BY store_id";
/// Nearly as many groups as rows, as in coffee q4.
pub(crate) const MANY_GROUPS: &str = "SELECT store_id, user_id, count(*) AS n FROM sales GROUP BY store_id, user_id";
/// A group per month, as in coffee q2.
pub(crate) const MONTHS: &str = "SELECT date_trunc('month', created_at) AS month, store_id, sum(amount) AS total FROM sales \
                          WHERE created_at >= TIMESTAMP '2024-01-01 00:00:00' GROUP BY month, store_id";
/// No aggregation before the rows move: all of them are routed by the hash of a key.
pub(crate) const ROUTED: &str =
    "SELECT id, user_id, row_number() OVER (PARTITION BY user_id ORDER BY amount, id) AS place FROM sales";

/// A leaf task, ready to run.
pub(crate) struct Task {
    plan: JobPlan,
    runner: LeafRunner,
    input: LeafInput,
    env: Arc<RuntimeEnv>,
}

impl Task {
    /// The task of a chunk of `rows` records for `sql`, with so many partitions to route to.
    pub(crate) fn new(sql: &str, rows: usize, partitions: u16) -> Self {
        let workload = Workload::parse("bench.toml", TABLE, &|_| Ok(sql.to_owned())).expect("a fair workload");
        let plan = JobPlan::new(&workload).expect("a fair query");
        let env = Arc::new(RuntimeEnv::default());
        let scan = &plan.scans[0];
        let layout = Arc::clone(&workload.tables[0].layout);
        let mut decoder = Decoder::new(layout, scan.columns.clone()).expect("a fair layout");
        let decoded = decoder.decode(&Buffer::from(sales(rows).into_bytes()), 0, 1).expect("fair records");
        assert_eq!(decoded.batch.num_rows(), rows, "no record may be rejected");
        let runner = LeafRunner::new(&plan, scan, partitions, BTreeMap::new(), &BTreeSet::new(), Arc::clone(&env))
            .expect("no broadcast is needed");
        let input = LeafInput { source: Source::Chunk { table: scan.table, number: 0 }, rows: decoded.batch };
        Self { plan, runner, input, env }
    }

    /// Runs it.
    pub(crate) fn run(&self) -> TaskOutput {
        self.runner.run(&self.input)
    }

    /// What `times` such chunks bring to a partition, by the edge over which it comes.
    pub(crate) fn arrived(&self, times: usize) -> (StageId, Vec<RecordBatch>) {
        let output = self.run();
        let edge = output.partitions[0][0].0;
        let batches: Vec<RecordBatch> = output.partitions[0].iter().map(|(_, batch)| batch.clone()).collect();
        (edge, batches.iter().cycle().take(batches.len() * times).cloned().collect())
    }

    /// Merges what arrived.
    pub(crate) fn compact(&self, edge: StageId, batches: Vec<RecordBatch>) -> Vec<RecordBatch> {
        compact(&self.plan, edge, batches, &self.env).expect("partial aggregates can be merged")
    }
}

fn sales(rows: usize) -> String {
    let mut random = Random(3);
    let mut text = String::new();
    for row in 0..rows {
        let (store, user) = (1 + random.below(10), random.below(100_000));
        let (month, day, amount) = (1 + random.below(12), 1 + random.below(28), random.below(100_000));
        let (whole, part) = (amount / 1000, amount % 1000);
        writeln!(text, "{row:036x},{store},{user},{whole}.{part:03},2024-{month:02}-{day:02} 12:00:00")
            .expect("a string takes everything");
    }
    text
}

/// Pseudo-random numbers, always the same.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}
