//! Every bound of the protocol in one place. Reaching one is a clear error, never a silent cut.

/// Partitions of one job. More would only make messages smaller.
pub const MAX_PARTITIONS: u16 = 256;
/// Tables of one workload.
pub const MAX_TABLES: usize = 256;
/// Stages of one job, over all its queries.
pub const MAX_STAGES: usize = 4096;
/// Chunks of one table.
pub const MAX_CHUNKS: u64 = 1 << 32;
/// A task that was begun so often and not finished is a suspect: it is tried alone, so that nothing else dies with it.
pub const SUSPECT_ATTEMPTS: usize = 2;
/// How many workers may begin a chunk that was delivered before. A chunk that kills its worker every time is then given
/// up, and its job with it.
pub const MAX_CHUNK_ATTEMPTS: usize = 5;
/// How many workers may begin an inner task. It runs longer than a chunk, so more may die of other causes meanwhile.
pub const MAX_TASK_ATTEMPTS: usize = 10;
/// A worker that begins the same task again has survived it, and has only lost its connection, say. That may happen so many
/// times as often as workers may die.
pub const PATIENCE: usize = 4;
