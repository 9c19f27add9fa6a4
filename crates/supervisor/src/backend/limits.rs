//! Bounds of the Docker and systemd back-ends.

use std::time::Duration;

/// How long Docker's engine may take to answer.
pub const ENGINE_PATIENCE: Duration = Duration::from_secs(10);
/// How long `systemctl` and `journalctl` may take.
pub const SYSTEMD_PATIENCE: Duration = Duration::from_secs(10);
/// After this time without news a back-end asks its caller to look anyway: events can get lost.
pub const LOOK_ANYWAY: Duration = Duration::from_secs(5);
/// How often systemd's units are looked at: it has no events for programs that read its command line tools.
pub const UNIT_POLL: Duration = Duration::from_secs(1);
/// How long to wait before events are asked for again, when the engine does not give them.
pub const EVENTS_PAUSE: Duration = Duration::from_secs(1);
/// How often the engine is asked when its answer cannot be read.
pub const READ_TRIES: u32 = 10;
/// How long to wait in between.
pub const READ_PAUSE: Duration = Duration::from_millis(50);
/// Containers that are inspected at the same time.
pub const INSPECTED_AT_ONCE: usize = 8;
/// Bytes of a container's or unit's log that are read for its last lines.
pub const MAX_QUOTED_BYTES: usize = 256 << 10;
/// Bytes of the output of `systemctl` that are read.
pub const MAX_SHOWN_BYTES: usize = 4 << 20;
/// So much earlier than its noted start a container may have begun to write.
pub const START_SLACK_MS: u64 = 200;
