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
/// How often a chunk that was delivered before may be begun again. A chunk that kills its worker every time is then given
/// up, and its job with it.
pub const MAX_CHUNK_ATTEMPTS: usize = 5;
/// How often an inner task may be begun. It runs longer than a chunk, so more workers may die of other causes meanwhile.
pub const MAX_TASK_ATTEMPTS: usize = 10;
