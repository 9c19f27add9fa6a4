//! Every limit of this crate, in one place.

/// Bytes from the start of a file that are looked at to know its compression and encoding.
pub const HEAD_BYTES: usize = 64 << 10;

/// Bytes from the middle and from the end of a plain file that are looked at to know its encoding.
pub const SAMPLE_BYTES: usize = 64 << 10;

/// The longest record that is rewritten as a whole. A longer one is handed on piece by piece, and the chunker rejects it.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// Bytes that are decompressed or transcoded at a time.
pub(crate) const STEP_BYTES: usize = 128 << 10;
