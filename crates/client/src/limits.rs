//! Every bound of the client in one place.

use std::time::Duration;

/// Gateways that one client knows.
pub const MAX_GATEWAYS: usize = 64;
/// Chunks in flight at most.
pub const MAX_PARALLEL: usize = 64;
/// Chunks in flight, unless the user says otherwise.
pub const DEFAULT_PARALLEL: usize = 4;
/// The smallest chunk that gateways take.
pub const MIN_CHUNK_BYTES: usize = 1 << 10;
/// The largest chunk that gateways take.
pub const MAX_CHUNK_BYTES: usize = 8 << 20;
/// Bytes of an answer in JSON.
pub const MAX_ANSWER_BYTES: u64 = 64 << 20;
/// Bytes of the line that ends a stream of rows.
pub const MAX_END_BYTES: u64 = 64 << 10;
/// Bytes of a file with the certificates of authorities: the largest collections have a quarter of a MiB.
pub const MAX_CA_BYTES: u64 = 4 << 20;
/// Bytes at each end of a file that its sample is taken of.
pub const SAMPLE_BYTES: u64 = 64 << 10;
/// Time for a connection to a gateway.
pub const CONNECT: Duration = Duration::from_secs(5);
/// Time for a gateway to answer a request that has been sent, and for the request or its answer to travel.
pub const ANSWER: Duration = Duration::from_secs(30);
/// A stream of rows that is silent for so long is opened again: its gateway may hang.
pub const STREAM_SILENCE: Duration = Duration::from_secs(60);
/// A stream that was open for so long was no failure of its gateway to answer.
pub const STREAM_LIVED: Duration = Duration::from_secs(5);
/// The first wait before a request is repeated; doubled each time.
pub const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait that the client chooses.
pub const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The longest wait that a gateway may ask for.
pub const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(30);
/// How long a gateway may not know a job that another one knows: it has yet to read of it.
pub const NOT_FOUND_GRACE: Duration = Duration::from_secs(5);
/// Time without any gateway being of use, unless the user says otherwise.
pub const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);
/// A job that could not be created for so long is created under another key: a broker may have lost half of what it needs.
pub const CREATION: Duration = Duration::from_secs(15);
/// Time between looks at a job.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Time between questions for what is missing, once everything has been sent.
pub const MISSING_EVERY: Duration = Duration::from_secs(2);
/// The same, after something was missing.
pub const MISSING_AGAIN: Duration = Duration::from_millis(500);
/// How long a thread sleeps before it looks whether it should stop.
pub const TICK: Duration = Duration::from_millis(25);
