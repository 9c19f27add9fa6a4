//! Every bound of this crate in one place.

use std::time::Duration;

/// Bytes of a heartbeat with its seal: it must fit one datagram on any network.
pub const MAX_HEARTBEAT_BYTES: usize = 1200;
/// Bytes of the URL that a heartbeat carries.
pub const MAX_URL_BYTES: usize = 512;
/// Bytes of an HTTP address in a heartbeat (`[IPv6%scope]:port`).
pub const MAX_ADDRESS_BYTES: usize = 64;
/// Supervisors that one process sends heartbeats to.
pub const MAX_SUPERVISORS: usize = 32;
/// A challenge counts only if it answers one of so many heartbeats sent last.
pub const RECENT_HEARTBEATS: usize = 256;
/// Names whose latest heartbeat a listener remembers.
pub const MAX_PROCESSES: usize = 10_000;
/// The shortest time between two heartbeats to one supervisor.
pub const MIN_EVERY: Duration = Duration::from_millis(10);
/// The longest time between two heartbeats to one supervisor.
pub const MAX_EVERY: Duration = Duration::from_secs(60);
/// How often a loop beats its pulse at least.
pub const BEAT_EVERY: Duration = Duration::from_millis(250);
/// How often the addresses of supervisors with a host name are looked up again: a container may come back elsewhere.
pub const RESOLVE_EVERY: Duration = Duration::from_secs(10);
/// How soon again while one of them is not known, or sending to it failed.
pub const RESOLVE_AGAIN: Duration = Duration::from_secs(1);
/// Bytes of a key file: the digits and some white space.
pub const MAX_KEY_FILE_BYTES: u64 = 256;
/// Open connections of the HTTP server.
pub const MAX_CONNECTIONS: usize = 64;
/// How long a connection may last: one request, one answer.
pub const CONNECTION_DEADLINE: Duration = Duration::from_secs(10);
/// How long a client may take to send its request's head.
pub const HEADER_DEADLINE: Duration = Duration::from_secs(5);
/// Bytes of a request's head.
pub const MAX_HEAD_BYTES: usize = 16 << 10;
/// Bytes of an answer that a probe reads.
pub const MAX_PROBE_BYTES: usize = 8 << 10;
