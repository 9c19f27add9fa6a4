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
