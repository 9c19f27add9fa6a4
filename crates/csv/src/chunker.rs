//! From a file to chunks of whole records.
//!
//! Where a chunk ends depends on the bytes and the target size only, never on how the reader portions them: a chunk takes every
//! record that ends within `target_bytes` of its start, and at least one record. A record over the limit that does not fit is cut
//! after one byte more than the limit and ends its chunk; the rest of its line is dropped, so memory stays bounded.

use std::io::Read;

use arrow_buffer::Buffer;
use memchr::{memchr, memchr_iter};

use crate::filling::Filling;
use crate::index::scalar::{Exact, Scan};
use crate::index::{self, Marks, Rules, Splitting};
use crate::limits::{LOOKAHEAD_BYTES, MAX_CHUNK_BYTES, MAX_RECORD_BYTES, READ_BYTES};
use crate::simd::Simd;
use crate::{Error, Header, Layout, Spares, header};

const BOM: &[u8] = b"\xEF\xBB\xBF";

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
}

impl PartialEq for Chunk {
    /// Marks are no part of what a chunk is.
    fn eq(&self, other: &Self) -> bool {
        let place = |chunk: &Self| (chunk.number, chunk.byte, chunk.line, chunk.records);
        place(self) == place(other) && self.data == other.data
    }
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
    mark: bool,
    /// Whether the last chunk had quotes: without them, marks are no faster than looking again.
    had_quotes: bool,
    /// Of the chunk that is being read.
    marks: Marks,
}

/// Where a chunk ends.
struct Cut {
    /// Bytes of the buffer that make the chunk.
    keep: usize,
    /// Where the next chunk starts in the buffer; none: after the newline that is yet to be read.
    next: Option<usize>,
    records: u64,
    newlines: u64,
    marks: Marks,
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
            mark: false,
            had_quotes: false,
            marks: Marks::default(),
        }
    }

    /// The same chunker, which notes where fields end. That pays if the same process decodes the chunks.
    #[must_use]
    pub fn with_marks(mut self) -> Self {
        self.mark = true;
        self
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
            if self.marks_now() {
                self.marks = self.spares.take_marks();
                self.marks.reserve(self.target);
            }
            let pass = self.read()?;
            if self.buffer.is_empty() {
                return Ok(None);
            }
            let mut cut = self.cut(pass)?;
            let (records, marks) = (cut.records, std::mem::take(&mut cut.marks));
            let (byte, line) = (self.byte, self.line);
            let data = self.split_off(cut)?;
            // Blank lines alone make no chunk.
            if records > 0 {
                let number = self.number;
                self.number += 1;
                return Ok(Some(Chunk { number, byte, line, records, data: Buffer::from_vec(data), marks }));
            }
        }
    }

    /// Reads the byte order mark and the header.
    fn start(&mut self) -> Result<(), Error> {
        self.layout.check()?;
        self.buffer = Filling::new(self.spares.take(self.target + 1));
        self.fill(LOOKAHEAD_BYTES)?;
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
                Scan::Blank { next, .. } => {
                    self.drop_record(Some(next))?;
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
            self.drop_record(next)?;
            self.started = true;
        }
        self.started = true;
        Ok(())
    }

    /// Drops a record from the front of the buffer.
    fn drop_record(&mut self, next: Option<usize>) -> Result<(), Error> {
        let end = next.unwrap_or(self.buffer.len());
        self.line += memchr_iter(b'\n', &self.buffer[..end]).count() as u64;
        self.byte += end as u64;
        self.buffer.drop_front(end);
        self.exact.forget();
        if next.is_none() { self.drop_line() } else { Ok(()) }
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
    fn read(&mut self) -> Result<Splitting, Error> {
        let mut pass = Splitting::from(0);
        // Memory is taken only now: whoever asks for a chunk may just have given one back.
        if !self.eof && self.buffer.capacity() <= self.target {
            let mut room = Filling::new(self.spares.take(self.target + 1));
            room.push(&self.buffer);
            self.buffer = room;
        }
        // One byte more tells whether the file ends with the window.
        while self.buffer.len() <= self.target && !self.eof {
            self.fill((self.buffer.len() + READ_BYTES).min(self.target + 1))?;
            self.split(&mut pass, false);
            if self.marks_now() {
                self.marks.check_utf8(&self.buffer, pass.end);
            }
        }
        Ok(pass)
    }

    fn marks_now(&self) -> bool {
        self.mark && self.had_quotes
    }

    /// Goes on with a pass over the window. `last`: the window is complete.
    fn split(&mut self, pass: &mut Splitting, last: bool) {
        let window = self.target.min(self.buffer.len());
        let rules = Rules { delimiter: self.layout.delimiter, limit: self.limit };
        // Only the first pass, which has all that is easy, starts at the front.
        let marks = (self.marks_now() && pass.is_first()).then_some(&mut self.marks);
        index::split(self.simd, pass, &self.buffer[..window], rules, last, marks);
    }

    /// Finds the end of the chunk that starts at the buffer's front, of which a pass may have found records already.
    fn cut(&mut self, mut pass: Splitting) -> Result<Cut, Error> {
        self.exact.forget();
        let window = self.target.min(self.buffer.len());
        let last = self.eof && window == self.buffer.len();
        self.split(&mut pass, true);
        if self.marks_now() {
            pass.finish(&mut self.marks);
        }
        let marks = std::mem::take(&mut self.marks);
        self.had_quotes = pass.quotes;
        // Of passes before and of records that were scanned exactly.
        let (mut records, mut newlines) = (0, 0);
        loop {
            let end = pass.end;
            // A record whose first line does not end in the window ends beyond it, whatever follows.
            let beyond = end > 0 && !last && memchr(b'\n', &self.buffer[end..window]).is_none();
            let scan = match end == window || beyond {
                true => None,
                false => Some(self.exact.scan(&self.buffer, end, self.eof, |_| ())),
            };
            let (next, record) = match scan {
                None => (None, 0),
                Some(Scan::NeedMore) => {
                    self.look_ahead(end)?;
                    continue;
                }
                Some(Scan::Blank { next, .. }) => (Some(next), 0),
                Some(Scan::Record { next, .. }) => (Some(next), 1),
                Some(Scan::Faulty { next, .. }) => (next, 1),
            };
            match next {
                Some(next) if next <= window => {
                    let scanned = memchr_iter(b'\n', &self.buffer[end..next]).count() as u64;
                    newlines += pass.newlines(&self.buffer[..window]) + scanned;
                    records += pass.records + record;
                    pass = Splitting::from(next);
                    self.split(&mut pass, true);
                }
                _ if scan.is_none() || end > 0 => {
                    newlines += pass.newlines(&self.buffer[..window]);
                    return Ok(Cut { keep: end, next: Some(end), records: records + pass.records, newlines, marks });
                }
                _ => {
                    let whole = next.unwrap_or(self.buffer.len());
                    let newlines = memchr_iter(b'\n', &self.buffer[..whole]).count() as u64;
                    return Ok(Cut { keep: whole.min(self.limit + 1), next, records: record, newlines, marks });
                }
            }
        }
    }

    /// Takes the chunk off the buffer's front and moves on behind it.
    fn split_off(&mut self, cut: Cut) -> Result<Vec<u8>, Error> {
        let next = cut.next.unwrap_or(self.buffer.len());
        let rest = Filling::of(&self.buffer[next..]);
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
