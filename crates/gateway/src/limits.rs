//! Every bound of the gateway in one place. Those that a deployment may want to move are in [`crate::Limits`].

use std::time::Duration;

/// Bytes of a chunk unless the client asks for another size.
pub const DEFAULT_CHUNK_BYTES: u64 = 1 << 20;
/// The smallest chunk that a client may cut.
pub const MIN_CHUNK_BYTES: u64 = 1 << 10;
/// The largest chunk, decompressed.
pub const MAX_CHUNK_BYTES: u64 = 8 << 20;
/// The largest body of a chunk: compressing what cannot be compressed adds a little.
pub const MAX_CHUNK_BODY_BYTES: usize = (MAX_CHUNK_BYTES + (64 << 10)) as usize;
/// How much larger than its body a chunk may become once it is more than [`FREE_RATIO_BYTES`]. More looks like a bomb.
pub const MAX_RATIO: u64 = 1000;
/// Below this many bytes any ratio is fine.
pub const FREE_RATIO_BYTES: u64 = 1 << 20;
/// Log2 of the window that a zstd frame may ask for.
pub const MAX_ZSTD_WINDOW_LOG: u32 = 23;
/// The largest JSON body.
pub const MAX_JSON_BYTES: usize = 4 << 20;
/// Files in the manifest of a job.
pub const MAX_MANIFEST_FILES: usize = 20_000;
/// Queries named in one request.
pub const MAX_QUERIES: usize = 1024;
/// Characters of an `Idempotency-Key`.
pub const MAX_KEY_CHARS: usize = 200;
/// Bytes of a file's name.
pub const MAX_FILE_NAME_BYTES: usize = 1024;
/// Characters of a tenant's name.
pub const MAX_TENANT_CHARS: usize = 64;
/// Bytes of a tokens file.
pub const MAX_TOKENS_BYTES: u64 = 1 << 20;
/// Bytes of a file with certificates or a key.
pub const MAX_CERTIFICATE_BYTES: u64 = 1 << 20;
/// Time between two looks at the files of the certificate.
pub const CERTIFICATES_LOOK_EVERY: Duration = Duration::from_secs(1);
/// A client that has not shown a token for so long is sent away.
pub const STRANGER_PATIENCE: Duration = Duration::from_secs(10);
/// The largest ordinal of a file that is sent whole.
pub const MAX_FILE_ORDINAL: u32 = 65_535;
/// Partitions chosen by size at most; a client may ask for more.
pub const MAX_CHOSEN_PARTITIONS: u64 = 16;
/// Bytes of data per partition.
pub const BYTES_PER_PARTITION: u64 = 128 << 20;
/// Plans kept in memory.
pub const KEPT_PLANS: usize = 64;
/// Jobs planned at a time.
pub const PLANNING_AT_ONCE: usize = 2;
/// Ends of results kept in memory.
pub const KEPT_ENDS: usize = 256;
/// Chunks in one receipt.
pub const RECEIPT_CHUNKS: usize = 4096;
/// A job's receipts task ends after this long without work.
pub const RECEIPTS_IDLE: Duration = Duration::from_secs(30);
/// How long an upload waits to see its own receipt in the book: only to save a repeated upload.
pub const READ_BACK_WAIT: Duration = Duration::from_secs(2);
/// How long a job that this gateway has not heard of may take to appear: another gateway may have just made it.
pub const APPEAR_WAIT: Duration = Duration::from_secs(2);
/// Time between two signs of life of a job's client, at least.
pub const TOUCH_EVERY: Duration = Duration::from_secs(60);
/// An upload without news for this long is what its job waits for.
pub const UPLOAD_IDLE: Duration = Duration::from_secs(5);
/// Rows turned into bytes at a time.
pub const STREAM_ROWS: usize = 2048;
/// Pieces of a response waiting for the client.
pub const STREAM_AHEAD: usize = 4;
/// Messages of a results log that the broker sends ahead to one stream.
pub const RESULTS_PREFETCH: u16 = 4;
/// How long the end of the results is looked for where the registry says that it stands, before the whole log is read.
pub const END_HINT_WAIT: Duration = Duration::from_secs(2);
/// Headers of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 32 << 10;
/// Time between heartbeats of an event stream.
pub const EVENT_HEARTBEAT: Duration = Duration::from_secs(10);
/// Time between two looks at a job's progress, for its events.
pub const EVENT_EVERY: Duration = Duration::from_millis(500);
/// Parts of a whole file's body that wait to be cut.
pub const FILE_PARTS_AHEAD: usize = 16;
/// Chunks of a whole file on their way to the broker at a time.
pub const FILE_CHUNKS_AT_ONCE: usize = 4;
/// Bytes that a whole file may have before its ratio counts.
pub const MAX_FILE_BYTES: u64 = 1 << 42;
/// Digests of chunks in one answer: 80 KB.
pub(crate) const DIGESTS_PER_PAGE: u64 = 4096;
