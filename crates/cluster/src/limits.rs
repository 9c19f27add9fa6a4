//! Every bound of the cluster in one place.

use std::time::Duration;

/// Characters of a deployment's prefix.
pub const MAX_PREFIX_CHARS: usize = 32;
/// Bytes that the registry's log keeps.
pub const REGISTRY_BYTES: u64 = 16 << 20;
/// Events of the cluster that are kept.
pub const KEPT_EVENTS: usize = 10_000;
/// Bytes of the stream of events: an event has some 300.
pub const EVENTS_BYTES: u64 = 8 << 20;
/// Bytes of a segment of the registry's log: what is dropped at a time.
pub const REGISTRY_SEGMENT_BYTES: u64 = 1 << 20;
/// Chunks that may wait in one work queue, and their bytes. A full queue slows that job's upload and nobody else's.
pub const QUEUED_CHUNKS: u32 = 1024;
/// See [`QUEUED_CHUNKS`].
pub const QUEUED_BYTES: u64 = 512 << 20;
/// Bytes of a message that carries rows, where it can be helped.
pub const MESSAGE_BYTES: usize = 1 << 20;
/// Bytes of a message altogether: RabbitMQ 4 refuses more than 16 MiB.
pub const MAX_MESSAGE_BYTES: usize = 15 << 20;
/// Bytes of a workload's text with all its SQL.
pub const MAX_SPEC_BYTES: usize = 1 << 20;
/// Time between heartbeats.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
/// A member that was silent for this long is believed dead, unless it speaks again.
pub const SILENCE: Duration = Duration::from_secs(3);
/// Time between looks at whether other members' queues are still there.
pub const PROBE_EVERY: Duration = Duration::from_millis(250);
/// How many members each member looks after.
pub const PROBED_MEMBERS: usize = 3;
/// Messages of a log that may be read ahead of whoever takes them.
pub const READ_AHEAD: usize = 16;
/// How long a process that starts waits for the registry to be readable.
pub const OPEN_PATIENCE: Duration = Duration::from_secs(60);
/// Queues and logs of a job that are made or deleted at a time. More wait for the broker's one coordinator of streams anyway.
pub const OBJECTS_AT_ONCE: usize = 16;
/// Channels of a process that jobs do not get: the registry, and questions under way.
pub const RESERVED_CHANNELS: usize = 2 * OBJECTS_AT_ONCE;
/// So often a queue or stream is asked to be deleted that does not answer, before it is left where it is.
pub const DELETE_QUESTIONS: u32 = 2;
