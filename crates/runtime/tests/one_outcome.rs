//! What SQL leaves open has one outcome: the same bytes for any threads, partitions, chunks and memory.

mod staged;

use std::sync::Arc;

use staged::{Nobody, Rows, plan, text, workload, write_files};
use tenaz_csv::Kind;
use tenaz_engine::Role;
use tenaz_runtime::{DataSet, Options, Progress};

/// Rows that are alike in most columns, in no order at all.
fn tables() -> Vec<Rows> {
    let int = || Kind::Int { float_text: false };
    let row = |i: u64| {
        let (word, key) = (["x", "y", "", "zz"][(i * 13 % 4) as usize], (i * 7 % 5).to_string());
        let (qty, at) = ((i * 31 % 3).to_string(), format!("2024-01-{:02} 00:00:00", 1 + i * 11 % 4));
        let share = ["0.5", "-0.0", "0", "1.5", ""][(i * 17 % 5) as usize];
        text(&[&key, if i.is_multiple_of(6) { "" } else { &qty }, word, &at, share, &(i * 7_919 % 400).to_string()])
    };
    let columns = vec![
        ("k", int()),
        ("qty", int()),
        ("s", Kind::Text),
        ("at", Kind::Timestamp),
        ("share", Kind::Float),
        ("id", int()),
    ];
    let facts = Rows { name: "t", role: Role::Fact, columns, rows: (0..400).map(row).collect() };
    let names = Rows {
        name: "d",
        role: Role::Dimension,
        columns: vec![("k", int()), ("name", Kind::Text)],
        rows: (0..8_u64).map(|k| text(&[&(k % 4).to_string(), ["a", "b"][(k % 2) as usize]])).collect(),
    };
    vec![facts, names]
}

const QUERIES: [&str; 24] = [
    "SELECT id, row_number() OVER (ORDER BY qty) AS r FROM t",
    "SELECT id, row_number() OVER (ORDER BY qty) AS r FROM t LIMIT 3",
    "SELECT id, row_number() OVER (ORDER BY qty) AS r FROM t ORDER BY r LIMIT 7",
    "SELECT id, rank() OVER (ORDER BY qty) AS r FROM t ORDER BY r LIMIT 7",
    "SELECT id, lag(id) OVER (ORDER BY qty) AS l, lead(id, 2) OVER (PARTITION BY k ORDER BY s) AS m FROM t",
    "SELECT id, ntile(7) OVER (PARTITION BY k ORDER BY qty) AS n FROM t",
    "SELECT id, first_value(id) OVER (PARTITION BY k) AS f, last_value(s) OVER (PARTITION BY k ORDER BY qty) AS l FROM t",
    "SELECT id, nth_value(id, 3) OVER (PARTITION BY s ORDER BY at) AS n FROM t",
    "SELECT id, sum(id) OVER (ORDER BY qty ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT id, sum(share) OVER (PARTITION BY k ORDER BY at ROWS UNBOUNDED PRECEDING) AS s FROM t",
    "SELECT k, array_agg(id) OVER (PARTITION BY k ORDER BY qty) AS a FROM t",
    "SELECT id, array_agg(s) OVER () AS a FROM t WHERE id < 9",
    "SELECT id, row_number() OVER () AS r FROM t",
    "SELECT id, row_number() OVER (ORDER BY share) AS r FROM t",
    "SELECT k, s, id FROM (SELECT k, s, id, row_number() OVER (PARTITION BY k ORDER BY qty) AS r FROM t) x WHERE r <= 3",
    "SELECT k, s FROM (SELECT k, s, row_number() OVER (PARTITION BY s ORDER BY qty DESC) AS r FROM t) x WHERE r = 1",
    "SELECT k, id FROM (SELECT k, id, rank() OVER (PARTITION BY k ORDER BY at) AS r FROM t) x WHERE r <= 2",
    "SELECT DISTINCT ON (k) k, s, id FROM t ORDER BY k DESC, qty LIMIT 3",
    "SELECT DISTINCT ON (s, qty) s, qty, id FROM t",
    "SELECT name, id, row_number() OVER (PARTITION BY name ORDER BY qty) AS r FROM t JOIN d ON d.k = t.k",
    "SELECT y, id, sum(id) OVER (ORDER BY y ROWS UNBOUNDED PRECEDING) AS s FROM \
     (SELECT 'b' AS y, id FROM t WHERE k = 1 UNION ALL SELECT 'a', id FROM t WHERE k = 2) x",
    "SELECT k, n, row_number() OVER (ORDER BY n) AS r FROM (SELECT k, count(*) AS n FROM t GROUP BY k) x",
    "SELECT a, row_number() OVER (ORDER BY k) AS r FROM (SELECT k, make_array(s, at::text) AS a FROM t WHERE id < 60) x",
    "SELECT k, (SELECT x.id FROM t x WHERE x.qty = d.k LIMIT 1) AS i FROM d",
];

#[test]
fn ties_have_one_outcome_for_any_threads_partitions_chunks_and_memory() {
    let tables = tables();
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_files(&tables, dir.path());
    let workload = Arc::new(workload(&tables, QUERIES));
    let plan = Arc::new(plan(&workload).expect("a plan"));
    let fingerprints = |threads, partitions, chunk_bytes, memory: Option<usize>| {
        let default = Options::default();
        let options = Options {
            threads,
            partitions: Some(partitions),
            chunk_bytes: Some(chunk_bytes),
            block_bytes: Some(1 + chunk_bytes / 3),
            strict: true,
            memory_bytes: memory.unwrap_or(default.memory_bytes),
            ..default
        };
        let data = DataSet::find(dir.path(), &workload, &plan).expect("the files");
        let progress = Progress::new(workload.tables.len());
        let outcome = tenaz_runtime::run(&workload, &plan, data, &options, &progress, &Nobody).expect("answers");
        assert_eq!(outcome.failed, []);
        outcome.answers.iter().map(|answer| (answer.rows, answer.fingerprint.clone())).collect::<Vec<_>>()
    };
    let first = fingerprints(1, 1, 1 << 20, None);
    assert!(first.iter().all(|(rows, _)| *rows > 0));
    for (threads, partitions, chunk_bytes, memory) in
        [(1, 3, 500, None), (3, 8, 70, None), (2, 3, 1, Some(1 << 20)), (4, 1, 333, None)]
    {
        let found = fingerprints(threads, partitions, chunk_bytes, memory);
        for ((sql, first), found) in QUERIES.iter().zip(&first).zip(&found) {
            assert_eq!(first, found, "{threads} threads, {partitions} partitions, chunks of {chunk_bytes}: {sql}");
        }
    }
}
