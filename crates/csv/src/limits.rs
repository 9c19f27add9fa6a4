//! Every limit of this crate, in one place.

/// The longest record, in bytes from its first byte to its newline. Longer records are rejected, and a quoted field that is still
/// open at this distance from its record's start counts as never closed.
pub const MAX_RECORD_BYTES: usize = 1 << 20;

/// The longest chunk a decoder takes. Text views hold offsets into the chunk that must fit 31 bits.
pub const MAX_CHUNK_BYTES: usize = i32::MAX as usize;

/// Characters of a rejected record that are kept for the report.
pub const MAX_REJECT_CHARS: usize = 200;

/// Characters of a field that are quoted in the reason of a reject.
pub const MAX_FOUND_CHARS: usize = 60;

/// Bytes that the decoder indexes and parses at a time, so that both passes find them in the cache.
pub(crate) const WINDOW_BYTES: usize = 16 << 10;

/// The same where separators are marked: there are texts, which are not looked at, so as many bytes have fewer records.
pub(crate) const MARKED_WINDOW_BYTES: usize = 64 << 10;

/// Bytes that a chunker reads before it looks at them, while they are still in the cache.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// The first step when a chunker must look past the end of its chunk to know where a record ends.
pub(crate) const LOOKAHEAD_BYTES: usize = 64 << 10;

/// Room in front of a block for what was left of the one before. Where that is more, the block is copied.
pub(crate) const BLOCK_FRONT_BYTES: usize = 64 << 10;

/// Texts that are at most this part of their chunk are copied out of it.
pub(crate) const DETACHED_SHARE: usize = 4;
