//! Every bound of the runtime in one place.

/// Rows at rest in memory before they go to a temporary file, unless the user says otherwise.
pub const DEFAULT_MEMORY_BYTES: usize = 256 << 20;
/// Threads of a worker beyond its own, for tenants that would have none.
pub const MAX_EXTRA_THREADS: usize = 8;
/// Bytes of temporary files of a worker over all its jobs, unless its operator says otherwise.
pub const DEFAULT_SPOOL_BYTES: u64 = 64 << 30;
/// Bytes of an embedded job that a thread reads at a time: they stay in the cache of its core.
pub const MAX_BLOCK_BYTES: usize = 512 << 10;
/// The same, however small chunks shall be: what is left of a block is copied to the next.
pub const MIN_BLOCK_BYTES: usize = 4 << 10;
/// The largest chunk of an embedded job. Large enough that the cost per chunk vanishes.
pub const MAX_CHUNK_BYTES: usize = 16 << 20;
/// A chunk whose rows point into what was read ends when that is this part of it: every thread keeps so much memory.
pub const HELD_SHARE: u64 = 2;
/// The smallest chunk worth a task.
pub const MIN_CHUNK_BYTES: usize = 64 << 10;
/// Bytes of input per partition: more partitions keep each one's hash tables small.
pub const BYTES_PER_PARTITION: u64 = 128 << 20;
/// The most partitions that are chosen by size.
pub const MAX_CHOSEN_PARTITIONS: u64 = 64;
/// A spool smaller than this is not worth a write.
pub const MIN_SPILL_BYTES: usize = 256 << 10;
/// Memory for the rows that tasks work on, however little may rest: below this an aggregation cannot even start.
pub const MIN_WORKING_BYTES: usize = 64 << 20;
/// Rows on an aggregated edge before they are merged for the first time.
pub const MERGE_ROWS: u64 = 4 << 10;
/// So many of them tell whether merging is of use: of fewer, most are groups of their own even if there are few groups.
pub const MANY_ROWS: u64 = 16 << 10;
/// The same, where each merge may show rows of an answer that are certain by now.
pub const EARLY_MERGE_ROWS: u64 = 1 << 8;
/// Threads of an embedded job.
pub const MAX_THREADS: usize = 256;
/// The stack of a thread that runs tasks: operators call each other, a hundred joins deep. Only what is used of it takes memory.
pub const TASK_STACK_BYTES: usize = 64 << 20;
/// Files of one table.
pub const MAX_FILES: usize = 100_000;
/// How often a worker starts the actor of a job again that has panicked, before the job fails.
pub(crate) const MAX_ACTOR_PANICS: u32 = 3;
/// A worker that could not do a job's work leaves it to others for so long. Longer than [`tenaz_core::limits::UNSERVED_MS`]:
/// if there is nobody else, the job ends with the reason.
pub(crate) const STAND_BACK: std::time::Duration = std::time::Duration::from_secs(30);
/// Bytes of a piece of a chunk's bad records.
pub(crate) const REJECT_PIECE_BYTES: usize = 512 << 10;
/// For each thread of an embedded job, the outputs of so many chunks may wait to be taken in before no more is read.
pub(crate) const WAITING_CHUNKS: usize = 2;

/// Blocks of a streamed file that are unpacked before somebody takes them.
pub(crate) const BLOCKS_AHEAD: usize = 4;
/// How long it may take to write down that a job is going to be planned, before this worker stands back.
pub(crate) const PLAN_NOTE: std::time::Duration = std::time::Duration::from_secs(30);
/// How long heartbeats are listened for before a plan is said to have killed workers: several of them.
pub(crate) const PLAN_LISTEN: std::time::Duration = std::time::Duration::from_secs(3);
