//! From a file to chunks of whole records.
//!
//! Where a chunk ends depends on the bytes and the target size only, never on how the reader portions them: a chunk takes every
//! record that ends within `target_bytes` of its start, and at least one record. A record over the limit that does not fit is cut
//! after one byte more than the limit and ends its chunk; the rest of its line is dropped, so memory stays bounded.

use std::io::Read;

use arrow_buffer::Buffer;
use memchr::{memchr, memchr_iter};

use crate::filling::Filling;
use crate::index;
use crate::index::scalar::{Exact, Scan};
use crate::limits::{LOOKAHEAD_BYTES, MAX_CHUNK_BYTES, MAX_RECORD_BYTES, READ_BYTES};
use crate::simd::Simd;
use crate::{Error, Header, Layout, Spares, header};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Consecutive whole records of a file.
#[derive(Debug, Clone, PartialEq)]
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
}

/// Cuts a file into [`Chunk`]s.
pub struct Chunker<R> {
    reader: R,
    layout: Layout,
    target: usize,
    limit: usize,
    simd: Simd,
    exact: Exact,
    /// Bytes read and not handed out.
    buffer: Filling,
    /// The reader has nothing more.
    eof: bool,
    started: bool,
    header: Option<String>,
    /// Of the next chunk.
    number: u64,
    byte: u64,
    line: u64,
    spares: Spares,
}

/// Records at the front of the buffer.
#[derive(Clone, Copy, Default)]
struct Found {
    /// Where the last one ends.
    end: usize,
    records: u64,
    newlines: u64,
}

/// Where a chunk ends.
struct Cut {
    /// Bytes of the buffer that make the chunk.
    keep: usize,
    /// Where the next chunk starts in the buffer; none: after the newline that is yet to be read.
    next: Option<usize>,
    records: u64,
    newlines: u64,
}

impl<R: Read> Chunker<R> {
    /// A chunker for the table that `layout` describes. Nothing is read yet.
    pub fn new(reader: R, layout: &Layout, target_bytes: usize) -> Self {
        Self {
            reader,
            layout: layout.clone(),
            target: target_bytes.clamp(1, MAX_CHUNK_BYTES / 2),
            limit: MAX_RECORD_BYTES,
            simd: Simd::detect(),
            exact: Exact::new(layout.delimiter, MAX_RECORD_BYTES),
            buffer: Filling::default(),
            eof: false,
            started: false,
            header: None,
            number: 0,
            byte: 0,
            line: 1,
            spares: Spares::default(),
        }
    }

    /// The same chunker, which takes memory for its chunks from `spares` before it asks for more.
    #[must_use]
    pub fn with_spares(mut self, spares: Spares) -> Self {
        self.spares = spares;
        self
    }

    /// The same chunker with another limit than [`MAX_RECORD_BYTES`]; the decoder must have the same.
    #[must_use]
    pub fn with_max_record_bytes(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.exact = Exact::new(self.layout.delimiter, limit);
        self
    }

    /// The same chunker, with the instructions that are the fastest of this processor but `way`; for tests. However many, the
    /// last way needs no special ones.
    #[doc(hidden)]
    #[must_use]
    pub fn with_way(mut self, way: usize) -> Self {
        let ways = Simd::all();
        self.simd = ways[way.min(ways.len() - 1)];
        self
    }

    /// The header as it stands in the file, once the first chunk was asked for; none if the layout has none or the file is empty.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// The next chunk, or `None` at the end. A file without any data record has no chunks; an empty file needs no header.
    ///
    /// # Errors
    /// Reading fails, the header does not match, or the layout is not usable.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>, Error> {
        if !self.started {
            self.start()?;
        }
        loop {
            let found = self.read()?;
            if self.buffer.is_empty() {
                return Ok(None);
            }
            let cut = self.cut(found)?;
            let records = cut.records;
            let (byte, line) = (self.byte, self.line);
            let data = self.split_off(cut)?;
            // Blank lines alone make no chunk.
            if records > 0 {
                let number = self.number;
                self.number += 1;
                return Ok(Some(Chunk { number, byte, line, records, data: Buffer::from_vec(data) }));
            }
        }
    }

    /// Reads the byte order mark and the header.
    fn start(&mut self) -> Result<(), Error> {
        self.layout.check()?;
        self.buffer = Filling::new(self.spares.take(self.target + 1));
        self.fill(self.target.max(BOM.len()))?;
        if self.byte == 0 && self.buffer.starts_with(BOM) {
            self.buffer.drop_front(BOM.len());
            self.byte = BOM.len() as u64;
        }
        while !self.started && self.layout.header != Header::Absent {
            let mut delimiters = Vec::new();
            let scan = self.exact.scan(&self.buffer, 0, self.eof, |at| delimiters.push(at));
            let (next, newline) = match scan {
                Scan::NeedMore => {
                    self.look_ahead(0)?;
                    continue;
                }
                Scan::Blank { .. } if self.buffer.is_empty() => break,
                Scan::Blank { next, newline } => {
                    self.drop_record(Some(next), newline)?;
                    continue;
                }
                Scan::Record { newline, next } => (Some(next), newline),
                Scan::Faulty { next, .. } => (next, next.unwrap_or(self.buffer.len()).min(self.limit)),
            };
            let text = &self.buffer[..newline];
            let text = text.strip_suffix(b"\n").unwrap_or(text);
            self.header = Some(header::shown(text));
            if self.layout.header == Header::Check {
                header::check(&self.layout, text, &delimiters)?;
            }
            self.drop_record(next, newline)?;
            self.started = true;
        }
        self.started = true;
        Ok(())
    }

    /// Drops a record from the front of the buffer.
    fn drop_record(&mut self, next: Option<usize>, newline: usize) -> Result<(), Error> {
        let end = next.unwrap_or(self.buffer.len());
        let newlines = memchr_iter(b'\n', &self.buffer[..end]).count() as u64;
        let keep = newline.min(end);
        self.split_off(Cut { keep, next, records: 0, newlines })?;
        Ok(())
    }

    /// Reads until the buffer holds `to` bytes or the file ends.
    fn fill(&mut self, to: usize) -> Result<(), Error> {
        if self.buffer.len() < to && !self.eof {
            self.eof = self.buffer.fill(&mut self.reader, to)?;
        }
        Ok(())
    }

    /// Reads more of the record at `start`. When a byte more than the limit is there, its end or its fault is known.
    fn look_ahead(&mut self, start: usize) -> Result<(), Error> {
        let have = self.buffer.len();
        let step = LOOKAHEAD_BYTES.max(have - start);
        self.exact.forget();
        self.fill((have + step).min(start + self.limit + 1).max(have + 1))
    }

    /// Reads what may belong to the next chunk, and splits it into records on the way as far as that is easy.
    fn read(&mut self) -> Result<Found, Error> {
        let mut found = Found::default();
        let mut easy = true;
        // One byte more tells whether the file ends with the window.
        while self.buffer.len() <= self.target && !self.eof {
            self.fill((self.buffer.len() + READ_BYTES).min(self.target + 1))?;
            if easy {
                easy = !self.split(&mut found);
            }
        }
        Ok(found)
    }

    /// Splits the window's records from where the last one was found. Returns whether something hard is in the way.
    fn split(&mut self, found: &mut Found) -> bool {
        let window = self.target.min(self.buffer.len());
        let more = index::split(self.simd, &self.buffer[..window], found.end, self.layout.delimiter, self.limit);
        found.end = more.end;
        found.records += more.records;
        found.newlines += more.newlines;
        more.trouble
    }

    /// Finds the end of the chunk that starts at the buffer's front, of which some records are found already.
    fn cut(&mut self, mut found: Found) -> Result<Cut, Error> {
        self.exact.forget();
        let cut = |end, records, newlines| Ok(Cut { keep: end, next: Some(end), records, newlines });
        loop {
            let window = self.target.min(self.buffer.len());
            self.split(&mut found);
            let Found { end, records, newlines } = found;
            let last = self.eof && window == self.buffer.len();
            // A record whose first line does not end in the window ends beyond it, whatever follows.
            if end == window || (end > 0 && !last && memchr(b'\n', &self.buffer[end..window]).is_none()) {
                return cut(end, records, newlines);
            }
            let (next, record) = match self.exact.scan(&self.buffer, end, self.eof, |_| ()) {
                Scan::NeedMore => {
                    self.look_ahead(end)?;
                    continue;
                }
                Scan::Blank { next, .. } => (Some(next), 0),
                Scan::Record { next, .. } => (Some(next), 1),
                Scan::Faulty { next, .. } => (next, 1),
            };
            match next {
                Some(next) if next <= window => {
                    found.newlines += memchr_iter(b'\n', &self.buffer[end..next]).count() as u64;
                    found.records += record;
                    found.end = next;
                }
                _ if end > 0 => return cut(end, records, newlines),
                _ => {
                    let whole = next.unwrap_or(self.buffer.len());
                    let newlines = memchr_iter(b'\n', &self.buffer[..whole]).count() as u64;
                    return Ok(Cut { keep: whole.min(self.limit + 1), next, records: record, newlines });
                }
            }
        }
    }

    /// Takes the chunk off the buffer's front and moves on behind it.
    fn split_off(&mut self, cut: Cut) -> Result<Vec<u8>, Error> {
        let next = cut.next.unwrap_or(self.buffer.len());
        let tail = &self.buffer[next..];
        let more = if self.eof { 0 } else { self.target + 1 };
        let needed = tail.len().max(more);
        let mut rest = Filling::new(if needed > 0 { self.spares.take(needed) } else { Vec::new() });
        rest.push(tail);
        let data = std::mem::replace(&mut self.buffer, rest).into_front(cut.keep);
        self.exact.forget();
        self.byte += next as u64;
        self.line += cut.newlines;
        if cut.next.is_none() {
            self.drop_line()?;
        }
        Ok(data)
    }

    /// Drops bytes up to and including the next newline. The buffer is empty.
    fn drop_line(&mut self) -> Result<(), Error> {
        while !self.eof {
            self.fill(LOOKAHEAD_BYTES)?;
            if let Some(newline) = memchr(b'\n', &self.buffer) {
                self.buffer.drop_front(newline + 1);
                self.byte += newline as u64 + 1;
                self.line += 1;
                break;
            }
            self.byte += self.buffer.len() as u64;
            self.buffer.drop_front(self.buffer.len());
        }
        Ok(())
    }
}
