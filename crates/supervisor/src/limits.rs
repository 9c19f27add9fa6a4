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
/// How often someone looks whether a process that should be ours carries our mark, before it is a stranger.
pub const MARK_LOOKS: u32 = 5;
/// The time between such looks.
pub const MARK_PAUSE: Duration = Duration::from_millis(2);
/// How often someone who waits for a lock looks again.
pub const LOCK_POLL: Duration = Duration::from_millis(2);

/// Time between two looks at how large the logs of this machine are.
pub const LOGS_LOOK_EVERY: Duration = Duration::from_secs(5);
/// A log file of this size is put aside.
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

/// Bytes of a message between supervisors.
pub const MAX_FRAME_BYTES: usize = 1 << 20;
/// Bytes of the first message of someone who has not shown yet that it has the key.
pub const MAX_FIRST_FRAME_BYTES: usize = 256;
/// Bytes of an answer, so that a message around it is small enough.
pub const MAX_ANSWER_BYTES: usize = MAX_FRAME_BYTES - 256;
/// How long the first words of a connection may take.
pub const HELLO_DEADLINE: Duration = Duration::from_secs(3);
/// How long a message may take from its first byte to its last.
pub const FRAME_DEADLINE: Duration = Duration::from_secs(10);
/// A connection over which nothing came for so long is given up.
pub const IDLE_DEADLINE: Duration = Duration::from_secs(10);
/// How often a supervisor says over a connection that it is still there.
pub const PING_EVERY: Duration = Duration::from_secs(1);
/// Connections of others that have shown that they have the key.
pub const MAX_PEER_CONNECTIONS: usize = 128;
/// Connections of others that have not. One more, and the oldest is closed.
pub const MAX_STRANGERS: usize = 32;
/// Requests of one connection that are answered at the same time.
pub const OPEN_ANSWERS: usize = 64;
/// Messages to one peer that wait to be sent.
pub const PEER_QUEUE: usize = 256;
/// Messages of all peers that wait to be looked at.
pub const PEER_EVENTS: usize = 1024;
/// How soon a peer that could not be reached is dialled again, at first; and at last.
pub const DIAL_AGAIN: Duration = Duration::from_millis(50);
/// See [`DIAL_AGAIN`].
pub const DIAL_AGAIN_CAP: Duration = Duration::from_millis(500);
/// How long to wait when no connection can be accepted.
pub const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// How long `tenaz status` waits for one supervisor before it asks the next.
pub const ASK_EACH: Duration = Duration::from_secs(2);

/// How often a supervisor's clock ticks.
pub const TICK: Duration = Duration::from_millis(100);
/// A leader that is not heard for so many ticks is missed.
pub const SILENCE_TICKS: u32 = 15;
/// A supervisor whose clock ticks so much too late was asleep.
pub const ASLEEP: Duration = Duration::from_millis(600);
/// How often a machine is looked at when nothing seems to have happened there.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a look may take.
pub const LOOK_DEADLINE: Duration = Duration::from_secs(5);
/// How long an order may take, from here to the machine and back. Waiting for the lock there takes some of it.
pub const ORDER_DEADLINE: Duration = Duration::from_secs(20);
/// Without a leader for so long, the supervisors of a machine revive each other: the lowest first, each other one so much
/// later.
pub const REVIVE_AFTER: Duration = Duration::from_secs(1);
/// Heartbeats that wait to be looked at.
pub const HEARD_QUEUE: usize = 4096;
/// How often the number of processes by state is counted.
pub const COUNT_EVERY: Duration = Duration::from_secs(1);
