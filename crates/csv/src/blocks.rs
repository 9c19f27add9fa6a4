//! From the blocks of a file to chunks of whole records.
//!
//! Several threads can read a file at a time, each a block of it; the blocks are then cut one after the other. What is left of a
//! block behind its last whole record goes in front of the next one.

use std::io::{Read, Result as IoResult};

use crate::cutter::{Cutter, Supplied, Supply};
use crate::filling::Filling;
use crate::limits::{BLOCK_FRONT_BYTES, READ_BYTES};
use crate::{Chunk, Error, Layout, Spares};

/// Bytes of a file that follow each other.
pub struct Block(Filling);

impl Block {
    /// Reads a block of so many bytes, in memory from `spares` if there is some. It is shorter if the reader has no more.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn read(reader: &mut impl Read, bytes: usize, spares: &Spares) -> IoResult<Self> {
        let front = bytes.min(BLOCK_FRONT_BYTES);
        let mut filling = Filling::new(spares.take(front + bytes), front);
        filling.fill(reader, bytes)?;
        Ok(Self(filling))
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }
}

/// Cuts the blocks of a file, which come in their order, into [`Chunk`]s.
pub struct BlockCutter {
    cutter: Cutter,
    /// Bytes that must be there before it is worth looking for the end of the first record again.
    worth: usize,
}

/// Blocks come when they come.
struct Later;

impl Supply for Later {
    fn fill(&mut self, _: &mut Filling, _: usize) -> Result<Supplied, Error> {
        Ok(Supplied::Later)
    }
}

impl BlockCutter {
    /// For a file of the table that `layout` describes, which notes where fields end, and takes memory from `spares`.
    #[must_use]
    pub fn new(layout: &Layout, spares: Spares) -> Self {
        let mut cutter = Cutter::new(layout);
        (cutter.mark, cutter.spares) = (true, spares);
        Self { cutter, worth: 0 }
    }

    /// The same with another limit than [`MAX_RECORD_BYTES`](crate::limits::MAX_RECORD_BYTES); the decoder must have the same.
    #[must_use]
    pub fn with_max_record_bytes(mut self, limit: usize) -> Self {
        self.cutter.set_max_record_bytes(limit);
        self
    }

    /// The same, with the instructions that are the fastest of this processor but `way`; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_way(mut self, way: usize) -> Self {
        self.cutter.set_way(way);
        self
    }

    /// Takes the file's next block; `last`: there are no more. Returns the whole records that are now there: in one chunk, or in
    /// several if some of them are far too large.
    ///
    /// # Errors
    /// The header does not match, or the layout is not usable.
    pub fn cut(&mut self, block: Block, last: bool) -> Result<Vec<Chunk>, Error> {
        let cutter = &mut self.cutter;
        let before = std::mem::replace(&mut cutter.buffer, block.0);
        cutter.buffer.prepend(&before);
        cutter.forget();
        cutter.eof = last;
        let mut chunks = Vec::new();
        if cutter.buffer.len() >= self.worth || last {
            while cutter.start(&mut Later)? && !cutter.buffer.is_empty() {
                let bytes = cutter.buffer.len();
                let Some(mut pass) = cutter.begin(&mut Later, bytes)? else { break };
                // A part is looked at twice while it is in the cache.
                let window = cutter.buffer.len();
                for part in (READ_BYTES..window).step_by(READ_BYTES) {
                    cutter.split(&mut pass, part, false);
                }
                cutter.split(&mut pass, window, false);
                chunks.extend(cutter.cut(&mut Later, pass, window)?);
                // What is left now waits for the next block.
                if !last {
                    break;
                }
            }
            self.worth = 2 * cutter.buffer.len();
        }
        Ok(chunks)
    }
}
