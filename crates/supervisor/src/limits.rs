//! Every bound of this crate in one place.

use std::time::Duration;

/// Bytes of a `cluster.toml`.
pub const MAX_CONFIG_BYTES: u64 = 1 << 20;
/// Characters of a cluster's, machine's or prefix's name.
pub const MAX_NAME: usize = 32;
/// Machines of one cluster.
pub const MAX_MACHINES: usize = 256;
/// Supervisors of one cluster. More only make elections slower.
pub const MAX_SUPERVISORS: usize = 15;
/// Workers, gateways and brokers of one machine.
pub const MAX_PROCESSES_PER_MACHINE: usize = 512;
/// The shortest and the longest time that a `cluster.toml` may name.
pub const TIMES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(24 * 3600));

/// How long an order waits for the lock of the cluster's directory. It is held for milliseconds: whoever holds it longer is
/// stopped or lost.
pub const LOCK_PATIENCE: Duration = Duration::from_secs(5);
/// How long a supervisor waits for the lock on its own name before it believes that another one lives.
pub const IDENTITY_PATIENCE: Duration = Duration::from_secs(1);
/// How long someone who only looks waits for the lock to write down what was seen: it will be seen again.
pub const NOTE_PATIENCE: Duration = Duration::from_millis(200);
/// How often someone who waits for a lock looks again.
pub const LOCK_POLL: Duration = Duration::from_millis(2);

/// A log file of this size is put aside when its process starts again.
pub const MAX_LOG_BYTES: u64 = 16 << 20;
/// How much of the end of a log is looked through for the last lines.
pub const LOG_TAIL_BYTES: u64 = 64 << 10;
/// Characters of a line that is quoted from a log.
pub const MAX_LINE_CHARS: usize = 500;
/// Lines that are kept with a process that was given up.
pub const GIVEN_UP_LINES: usize = 20;

/// Starts and endings that a process's history keeps.
pub const MAX_HISTORY: usize = 64;
/// Bytes of a record that is believed: a longer one is no record.
pub const MAX_RECORD_BYTES: u64 = 256 << 10;
/// `events.ndjson` is put aside at this size.
pub const MAX_EVENTS_BYTES: u64 = 64 << 20;

/// Clock ticks per second in `/proc/PID/stat`. Linux shows 100 to programs on every machine that Rust's standard library
/// supports, whatever it counts with inside.
pub const TICKS_PER_SECOND: u64 = 100;

/// How long something that was killed may take to be gone.
pub const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// How long the helpers of a process may outlive it without being called leftovers.
pub const FAMILY_PATIENCE: Duration = Duration::from_secs(3);
