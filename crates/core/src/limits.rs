//! Every bound of the protocol in one place. Reaching one is a clear error, never a silent cut.

/// Partitions of one job. More would only make messages smaller.
pub const MAX_PARTITIONS: u16 = 256;
/// Tables of one workload.
pub const MAX_TABLES: usize = 256;
/// Stages of one job, over all its queries.
pub const MAX_STAGES: usize = 4096;
/// Chunks of one table.
pub const MAX_CHUNKS: u64 = 1 << 32;
/// A task that was begun so often and not finished is a suspect: it is tried alone, so that nothing else dies with it, and only
/// these attempts count against it.
pub const SUSPECT_ATTEMPTS: usize = 2;
/// How many workers may begin a chunk that was delivered before. A chunk that kills its worker every time is then given
/// up, and its job with it.
pub const MAX_CHUNK_ATTEMPTS: usize = 5;
/// How many workers may begin an inner task. It runs longer than a chunk, so more may die of other causes meanwhile.
pub const MAX_TASK_ATTEMPTS: usize = 10;
/// A worker that begins the same task again has survived it, and has only lost its connection, say. That may happen so many
/// times as often as workers may die.
pub const PATIENCE: usize = 4;
/// For so long a job waits for a worker that can serve it, while only others are alive, before it is given up.
pub const UNSERVED_MS: u64 = 20_000;
/// For so long heartbeats are listened for, once the broker has answered, before such a job is given up: three of them.
pub const UNSERVED_LISTEN_MS: u64 = 1_500;
/// So many workers must be gone after they had begun to plan a job, and before they ended, until it counts as deadly.
pub const MAX_PLAN_ATTEMPTS: usize = 5;
/// Rounds of elections. A message that tells of more is broken, and must not carry the count to where it cannot go on.
pub const MAX_ROUND: u64 = 1 << 48;
/// Rounds between two leaders whom one machine obeys: elections that fail once a millisecond need 49 days for them.
pub const MAX_ROUND_LEAP: u64 = 1 << 32;
/// How often in a row a supervisor leaves the election to a higher one that answers, before it stands itself.
pub const MAX_DEFERRALS: u32 = 2;
/// Ranges of offsets in which the messages with rows of one answer are found. More would make the end of the results large.
pub const MAX_OFFSET_RANGES: usize = 1_024;
/// Messages that are read over rather than jumped over: another subscription costs about as much.
pub const OFFSET_JUMP: u64 = 256;
/// A connection over which a queue has refused messages for this long, although nothing waits in it, is given up.
pub const REFUSING_MS: u64 = 2_000;
/// A work queue that has confirmed nothing for so many milliseconds, over all connections of all gateways that waited for it, is
/// looked into. Shorter than two lives of a gateway that dies every few seconds.
pub const SILENT_QUEUE_MS: u64 = 8_000;
/// A silent work queue is made anew when the broker has stored messages elsewhere for so many milliseconds: what a disk that stood
/// still has kept is confirmed, and its receipts are read, in less.
pub const REVIVAL_MS: u64 = 1_000;
/// A gateway that waits for a silent work queue writes that down whenever so many more milliseconds have passed.
pub const SILENCE_NOTE_MS: u64 = 1_000;
/// Connections that are remembered to have waited for one work queue in vain. Each has waited for [`SILENCE_NOTE_MS`] at least.
pub const MAX_SILENCE_WITNESSES: usize = 32;
/// Queues that are watched at a time because they seem not to work.
pub const MAX_WATCHED_QUEUES: usize = 1_024;
/// Bytes of a text that every process keeps, as the reason why a job has failed.
pub const MAX_TEXT_BYTES: usize = 4 << 10;
/// Bytes of the text of a stage's failure: it stands in every message of the task that failed.
pub const MAX_FAILURE_TEXT_BYTES: usize = 1 << 10;
/// Failed queries that the registry tells of a done job. The end of its results tells all of them.
pub const MAX_TOLD_FAILURES: usize = 8;
/// What only running jobs need is deleted so long after the end, in milliseconds: all processes that read the job's logs have
/// heard of its end by then. A broker may crash a connection that begins to read a stream just when it is deleted.
pub const TRIM_AFTER_MS: u64 = 1_000;
/// A process that has not looked after jobs for so many milliseconds was stopped or cut off, and does not know which of them live.
pub const STOOD_STILL_MS: u64 = 5_000;
/// A chore that was ordered and has shown no effect is ordered again after so many milliseconds.
pub const CHORE_AGAIN_MS: u64 = 5_000;
/// A job that must be written into the registry again is left to each member for so many milliseconds before it is the turn
/// of the next.
pub const MENTION_TURN_MS: u64 = 10_000;
/// The same for a job that the registry is about to forget: members may have died one after the other, each before its turn.
pub const URGENT_TURN_MS: u64 = 1_000;
/// Removed jobs that a process remembers, so that a late mention does not bring them back.
pub const MAX_REMEMBERED_REMOVALS: usize = 4_096;
/// Jobs that one process may write into the registry again per second.
pub const MENTIONS_PER_SECOND: u32 = 64;
/// Nothing has arrived for a job for so many milliseconds although nobody works on it: something may be lost. Doubled each
/// time that something was done about it.
pub const STALL_MS: u64 = 10_000;
/// For so many milliseconds such a job must look idle before something is done about it: four heartbeats.
pub const IDLE_MS: u64 = 2_000;
/// A job that gateways call unfinished for so many milliseconds is created again by its client. (Creating one takes less, and the
/// gateway that does it may have died.)
pub const CREATE_AGAIN_MS: u64 = 5_000;
/// So many chunks may be accounted for before their receipts are looked for again.
pub const UNRECEIPTED_CHUNKS: usize = 1_024;
/// A subscription to a stream that was silent for so many milliseconds is made anew. Doubled each time that this brings nothing.
pub const STREAM_SILENCE_MS: u64 = 3_000;
/// See [`STREAM_SILENCE_MS`].
pub const MAX_STREAM_SILENCE_MS: u64 = 60_000;
