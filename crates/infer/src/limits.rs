//! Every bound of inference in one place.

/// Bytes at the start of a file that show its shape.
pub const PROBE_BYTES: usize = 64 << 10;
/// The same, where there are many files.
pub const SMALL_PROBE_BYTES: usize = 8 << 10;
/// More files than this are many.
pub const MANY_FILES: usize = 256;
/// Bytes of a table that are looked at for the types of its columns.
pub const TABLE_SAMPLE_BYTES: usize = 4 << 20;
/// Bytes at the start of a file that are sampled, at most.
pub const HEAD_SAMPLE_BYTES: usize = 1 << 20;
/// Bytes of a table that are unpacked or rewritten to look at blocks from further inside: of such files, parts cannot be had alone.
pub const STREAM_SAMPLE_BYTES: usize = 32 << 20;
/// Files of a table whose records are sampled; of more files, these many are taken evenly.
pub const SAMPLED_FILES: usize = 256;
/// Files of a data directory.
pub const MAX_FILES: usize = 100_000;
/// Folders below the data directory.
pub const MAX_DEPTH: usize = 8;
/// The bytes up to which a table is a dimension, given to everybody who scans.
pub const DIMENSION_BYTES: u64 = 1 << 20;
/// Characters of a column's name in a header. What is longer is data.
pub const MAX_HEADER_NAME: usize = 200;
