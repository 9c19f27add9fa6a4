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
/// Words and signs of one query: the depth of what the parser makes of it is at most half.
pub const MAX_QUERY_TOKENS: usize = 65_536;
/// Operators, functions and subqueries inside each other.
pub const MAX_QUERY_DEPTH: usize = 256;
/// The depths of all operators and functions of one query, added up.
pub const MAX_DEPTHS_ADDED_UP: usize = 500_000;
/// Tables and SELECTs of one query, after each name of WITH is replaced by its query.
pub const MAX_QUERY_TABLES: usize = 256;
/// Grouping sets of one SELECT.
pub const MAX_GROUPING_SETS: usize = 1024;
/// Columns that one SELECT names.
pub const MAX_SELECT_COLUMNS: usize = 4096;
/// Terms of AND or OR in a row from which on they are put together anew, as a tree of small depth.
pub const LONG_CHAIN: usize = 32;
/// The stack of the thread that plans. Only what is used of it takes memory.
pub const PLANNING_STACK_BYTES: usize = 256 << 20;
/// How long planning a job may take where nobody says otherwise.
pub const PLANNING_TIME: std::time::Duration = std::time::Duration::from_secs(60);
/// Bytes of one value that a function makes of less: a repeated or padded text, a series of numbers.
pub const MAX_VALUE_BYTES: usize = 16 << 20;
/// Bytes of all such values of one batch of rows.
pub const MAX_BATCH_BYTES: usize = 256 << 20;
/// Bytes of all such values that are computed while a job is planned, and stay in its plan.
pub const MAX_CONSTANT_BYTES: usize = 64 << 20;
/// Bytes of rows that one task may make: they rest in memory until it is done.
pub const MAX_TASK_BYTES: usize = 2 << 30;
