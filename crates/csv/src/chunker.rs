//! From a file to chunks of whole records.
//!
//! Where a chunk ends depends on the bytes and the target size only, never on how the reader portions them: a chunk takes every
//! record that ends within `target_bytes` of its start, and at least one record. A record over the limit that does not fit is cut
//! after one byte more than the limit and ends its chunk; the rest of its line is dropped, so memory stays bounded.

use std::io::Read;

use arrow_buffer::Buffer;

use crate::cutter::{Cutter, Supplied, Supply};
use crate::filling::Filling;
use crate::index::{Marks, Splitting};
use crate::limits::{MAX_CHUNK_BYTES, READ_BYTES};
use crate::{Error, Layout, Spares};

/// Consecutive whole records of a file.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// Which chunk of the file, counted from 0.
    pub number: u64,
    /// Where in the file it starts.
    pub byte: u64,
    /// The physical line on which it starts, counted from 1.
    pub line: u64,
    /// Records in it, bad ones included.
    pub records: u64,
    /// The records, without byte order mark and header.
    pub data: Buffer,
    /// Where their fields end, if the chunker was asked to note that.
    pub marks: Marks,
    /// What `data` is a part of.
    pub(crate) memory: Buffer,
}

impl PartialEq for Chunk {
    /// Marks are no part of what a chunk is.
    fn eq(&self, other: &Self) -> bool {
        let place = |chunk: &Self| (chunk.number, chunk.byte, chunk.line, chunk.records);
        place(self) == place(other) && self.data == other.data
    }
}

impl Chunk {
    /// No records, from the start of a file.
    #[must_use]
    pub fn empty() -> Self {
        let (data, memory) = (Buffer::from(Vec::<u8>::new()), Buffer::from(Vec::<u8>::new()));
        Self { number: 0, byte: 0, line: 1, records: 0, data, marks: Marks::default(), memory }
    }
}

/// Cuts a file into [`Chunk`]s.
pub struct Chunker<R> {
    reader: Reading<R>,
    target: usize,
    cutter: Cutter,
}

/// A file that is read from its start to its end.
struct Reading<R>(R);

impl<R: Read> Supply for Reading<R> {
    fn fill(&mut self, buffer: &mut Filling, to: usize) -> Result<Supplied, Error> {
        Ok(if buffer.fill(&mut self.0, to)? { Supplied::End } else { Supplied::All })
    }
}

impl<R: Read> Chunker<R> {
    /// A chunker for the table that `layout` describes. Nothing is read yet.
    pub fn new(reader: R, layout: &Layout, target_bytes: usize) -> Self {
        let target = target_bytes.clamp(1, MAX_CHUNK_BYTES / 2);
        Self { reader: Reading(reader), target, cutter: Cutter::new(layout) }
    }

    /// The same chunker, which notes where fields end. That pays if the same process decodes the chunks.
    #[must_use]
    pub fn with_marks(mut self) -> Self {
        self.cutter.mark = true;
        self
    }

    /// The same chunker, which takes memory for its chunks from `spares` before it asks for more.
    #[must_use]
    pub fn with_spares(mut self, spares: Spares) -> Self {
        self.cutter.spares = spares;
        self
    }

    /// The same chunker with another limit than [`MAX_RECORD_BYTES`](crate::limits::MAX_RECORD_BYTES); the decoder must have the
    /// same.
    #[must_use]
    pub fn with_max_record_bytes(mut self, limit: usize) -> Self {
        self.cutter.set_max_record_bytes(limit);
        self
    }

    /// The same chunker, with the instructions that are the fastest of this processor but `way`; for tests. However many, the
    /// last way needs no special ones.
    #[doc(hidden)]
    #[must_use]
    pub fn with_way(mut self, way: usize) -> Self {
        self.cutter.set_way(way);
        self
    }

    /// The header as it stands in the file, once the first chunk was asked for; none if the layout has none or the file is empty.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.cutter.header.as_deref()
    }

    /// The next chunk, or `None` at the end. A file without any data record has no chunks; an empty file needs no header.
    ///
    /// # Errors
    /// Reading fails, the header does not match, or the layout is not usable.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        if !self.cutter.started {
            self.cutter.buffer = Filling::new(self.cutter.spares.take(self.target + 1), 0);
            self.cutter.start(&mut self.reader)?;
        }
        loop {
            let pass = self.read()?;
            if self.cutter.buffer.is_empty() {
                return Ok(None);
            }
            let window = self.target.min(self.cutter.buffer.len());
            if let Some(chunk) = self.cutter.cut(&mut self.reader, pass, window)? {
                return Ok(Some(chunk));
            }
        }
    }

    /// Reads what may belong to the next chunk, and splits it into records on the way as far as that is easy.
    fn read(&mut self) -> Result<Splitting, Error> {
        let Self { reader, target, cutter } = self;
        let mut pass = cutter.begin(reader, *target)?.expect("a file that is read does not make us wait");
        // Memory is taken only now: whoever asks for a chunk may just have given one back.
        if !cutter.eof && cutter.buffer.capacity() <= *target {
            let mut room = Filling::new(cutter.spares.take(*target + 1), 0);
            room.push(&cutter.buffer);
            cutter.buffer = room;
        }
        // One byte more tells whether the file ends with the window.
        while cutter.buffer.len() <= *target && !cutter.eof {
            cutter.fill(reader, (cutter.buffer.len() + READ_BYTES).min(*target + 1))?;
            let window = cutter.buffer.len().min(*target);
            cutter.split(&mut pass, window, false);
        }
        Ok(pass)
    }
}
