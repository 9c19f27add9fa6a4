//! Every bound of the engine in one place.

/// Columns of one table.
pub const MAX_COLUMNS: usize = 4096;
/// Characters of a table, column or query name.
pub const MAX_NAME: usize = 64;
/// Bytes of a workload file or of one query's SQL.
pub const MAX_SQL_BYTES: u64 = 1 << 20;
/// Rows that a task hands to DataFusion's operators at a time: small enough for a batch's columns to stay in the cache.
pub const BATCH_ROWS: usize = 16 * 1024;
/// How often a leaf plan is run before its instance is replaced: DataFusion's operators keep a few counters per run.
pub const RUNS_PER_INSTANCE: usize = 128;
/// So many rows of a chunk tell whether grouping makes them fewer.
pub const PROBE_ROWS: usize = 2048;
/// It does not if so many of them are groups of their own. Among more rows more are alike, so this is nearly all.
pub const PROBE_SHARE: f64 = 0.98;
/// Columns whose values are shown where an expression fails.
pub const SHOWN_VALUES: usize = 6;
/// Characters of an expression or of a value that are shown there.
pub const SHOWN_CHARACTERS: usize = 160;
/// An aggregation in memory holds at most so many times the bytes of its input.
pub const GROUPS_PER_INPUT: usize = 4;
