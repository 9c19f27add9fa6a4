//! From bytes to chunks of whole records, whoever brings the bytes.

use memchr::{memchr, memchr_iter};

use crate::filling::Filling;
use crate::index::scalar::{Exact, Scan};
use crate::index::{self, Marks, Rules, Splitting};
use crate::limits::{LOOKAHEAD_BYTES, MAX_RECORD_BYTES};
use crate::simd::Simd;
use crate::{Chunk, Error, Header, Layout, Spares, header};

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// Where more bytes of the file come from.
pub(crate) trait Supply {
    /// Fills the buffer until it holds `to` bytes or the file ends.
    fn fill(&mut self, buffer: &mut Filling, to: usize) -> Result<Supplied, Error>;
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Supplied {
    /// The bytes are there.
    All,
    /// The file has no more.
    End,
    /// There are none now. What was found so far has to do, or everybody has to wait.
    Later,
}

/// Cuts chunks off the front of a buffer.
pub(crate) struct Cutter {
    layout: Layout,
    limit: usize,
    simd: Simd,
    exact: Exact,
    /// Bytes read and not handed out.
    pub(crate) buffer: Filling,
    /// The file has nothing more.
    pub(crate) eof: bool,
    pub(crate) started: bool,
    pub(crate) header: Option<String>,
    /// The buffer's front lies in a line of which the rest is to be dropped.
    dropping: bool,
    /// Of the next chunk.
    number: u64,
    byte: u64,
    line: u64,
    pub(crate) spares: Spares,
    pub(crate) mark: bool,
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
}

impl Cutter {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            limit: MAX_RECORD_BYTES,
            simd: Simd::detect(),
            exact: Exact::new(layout.delimiter, MAX_RECORD_BYTES),
            buffer: Filling::default(),
            eof: false,
            started: false,
            header: None,
            dropping: false,
            number: 0,
            byte: 0,
            line: 1,
            spares: Spares::default(),
            mark: false,
            had_quotes: false,
            marks: Marks::default(),
        }
    }

    pub(crate) fn set_max_record_bytes(&mut self, limit: usize) {
        self.limit = limit;
        self.exact = Exact::new(self.layout.delimiter, limit);
    }

    pub(crate) fn set_way(&mut self, way: usize) {
        let ways = Simd::all();
        self.simd = ways[way.min(ways.len() - 1)];
    }

    /// To be called when the bytes in the buffer have changed or moved.
    pub(crate) fn forget(&mut self) {
        self.exact.forget();
    }

    /// Fills the buffer up to so many bytes, as far as the file has them. False: later.
    pub(crate) fn fill(&mut self, supply: &mut impl Supply, to: usize) -> Result<bool, Error> {
        if self.buffer.len() < to && !self.eof {
            let supplied = supply.fill(&mut self.buffer, to)?;
            self.eof = supplied == Supplied::End;
            return Ok(supplied != Supplied::Later);
        }
        Ok(true)
    }

    /// Reads more of the record at `start`. When a byte more than the limit is there, its end or its fault is known. False: later.
    fn look_ahead(&mut self, supply: &mut impl Supply, start: usize) -> Result<bool, Error> {
        let have = self.buffer.len();
        let step = LOOKAHEAD_BYTES.max(have - start);
        self.exact.forget();
        self.fill(supply, (have + step).min(start + self.limit + 1).max(have + 1))
    }

    /// Reads the byte order mark and the header, once. False: later.
    pub(crate) fn start(&mut self, supply: &mut impl Supply) -> Result<bool, Error> {
        if self.started {
            return Ok(true);
        }
        self.layout.check()?;
        if self.byte == 0 {
            if !self.fill(supply, LOOKAHEAD_BYTES)? && self.buffer.len() < BOM.len() {
                return Ok(false);
            }
            if self.buffer.starts_with(BOM) {
                self.buffer.drop_front(BOM.len());
                self.byte = BOM.len() as u64;
            }
        }
        while self.layout.header != Header::Absent {
            if self.dropping && !self.drop_line(supply)? {
                return Ok(false);
            }
            let mut delimiters = Vec::new();
            let scan = self.exact.scan(&self.buffer, 0, self.eof, |at| delimiters.push(at));
            let (next, newline) = match scan {
                Scan::NeedMore => match self.look_ahead(supply, 0)? {
                    true => continue,
                    false => return Ok(false),
                },
                Scan::Blank { .. } if self.buffer.is_empty() => break,
                Scan::Blank { next, .. } => {
                    self.drop_record(Some(next));
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
            self.drop_record(next);
            break;
        }
        self.started = true;
        Ok(true)
    }

    /// Drops a record from the front of the buffer.
    fn drop_record(&mut self, next: Option<usize>) {
        let end = next.unwrap_or(self.buffer.len());
        self.line += memchr_iter(b'\n', &self.buffer[..end]).count() as u64;
        self.byte += end as u64;
        self.buffer.drop_front(end);
        self.exact.forget();
        self.dropping = next.is_none();
    }

    /// Drops bytes up to and including the next newline. False: later.
    fn drop_line(&mut self, supply: &mut impl Supply) -> Result<bool, Error> {
        loop {
            if let Some(newline) = memchr(b'\n', &self.buffer) {
                self.buffer.drop_front(newline + 1);
                self.byte += newline as u64 + 1;
                self.line += 1;
                break;
            }
            self.byte += self.buffer.len() as u64;
            self.buffer.drop_front(self.buffer.len());
            if self.eof {
                break;
            }
            if !self.fill(supply, LOOKAHEAD_BYTES)? {
                return Ok(false);
            }
        }
        self.exact.forget();
        self.dropping = false;
        Ok(true)
    }

    /// Whether the chunk to come is marked.
    pub(crate) fn marks_now(&self) -> bool {
        self.mark && self.had_quotes
    }

    /// Begins a pass over the next chunk, of about so many bytes. False: later.
    pub(crate) fn begin(&mut self, supply: &mut impl Supply, bytes: usize) -> Result<Option<Splitting>, Error> {
        if self.dropping && !self.drop_line(supply)? {
            return Ok(None);
        }
        if self.marks_now() {
            if !self.marks.has_memory() {
                self.marks = self.spares.take_marks();
            }
            self.marks.forget();
            self.marks.reserve(bytes);
        }
        Ok(Some(Splitting::from(0)))
    }

    /// Goes on with a pass over the first `window` bytes. `complete`: there will not be more of them.
    pub(crate) fn split(&mut self, pass: &mut Splitting, window: usize, complete: bool) {
        let rules = Rules { delimiter: self.layout.delimiter, limit: self.limit };
        // Only the first pass, which has all that is easy, starts at the front.
        let marks = (self.marks_now() && pass.is_first()).then_some(&mut self.marks);
        index::split(self.simd, pass, &self.buffer[..window], rules, complete, marks);
        if self.marks_now() && !complete {
            self.marks.check_utf8(&self.buffer, pass.end);
        }
    }

    /// Takes the records that end within the first `window` bytes off the buffer's front, at least one; a pass may have found
    /// some already. None: only blank lines were there, or what is there is not enough, which leaves it untouched.
    pub(crate) fn cut(
        &mut self,
        supply: &mut impl Supply,
        mut pass: Splitting,
        window: usize,
    ) -> Result<Option<Chunk>, Error> {
        self.exact.forget();
        self.split(&mut pass, window, true);
        let marked = self.marks_now();
        if marked {
            pass.finish(&mut self.marks);
        }
        self.had_quotes = pass.quotes;
        let cut = self.find_end(supply, pass, window)?;
        let (number, byte, line, records) = (self.number, self.byte, self.line, cut.records);
        let next = cut.next.unwrap_or(self.buffer.len());
        self.byte += next as u64;
        self.line += cut.newlines;
        self.dropping = cut.next.is_none();
        self.exact.forget();
        // Blank lines alone make no chunk.
        if records == 0 {
            self.buffer.drop_front(next);
            return Ok(None);
        }
        self.number += 1;
        let rest = Filling::of(&self.buffer[next..]);
        let (data, memory) = std::mem::replace(&mut self.buffer, rest).into_front(cut.keep);
        let marks = if marked { std::mem::take(&mut self.marks) } else { Marks::default() };
        Ok(Some(Chunk { number, byte, line, records, data, marks, memory }))
    }

    /// Finds the end of the chunk that starts at the buffer's front.
    fn find_end(&mut self, supply: &mut impl Supply, mut pass: Splitting, window: usize) -> Result<Cut, Error> {
        let last = self.eof && window == self.buffer.len();
        // Of passes before and of records that were scanned exactly.
        let (mut records, mut newlines) = (0, 0);
        loop {
            let end = pass.end;
            // A record whose first line does not end in the window ends beyond it, whatever follows.
            let beyond = end > 0 && !last && memchr(b'\n', &self.buffer[end..window]).is_none();
            let mut scan = match end == window || beyond {
                true => None,
                false => Some(self.exact.scan(&self.buffer, end, self.eof, |_| ())),
            };
            if scan == Some(Scan::NeedMore) {
                if self.look_ahead(supply, end)? {
                    continue;
                }
                scan = None;
            }
            let (next, record) = match scan {
                None | Some(Scan::NeedMore) => (None, 0),
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
                    self.split(&mut pass, window, true);
                }
                _ if scan.is_none() || end > 0 => {
                    newlines += pass.newlines(&self.buffer[..window]);
                    return Ok(Cut { keep: end, next: Some(end), records: records + pass.records, newlines });
                }
                _ => {
                    let whole = next.unwrap_or(self.buffer.len());
                    let newlines = memchr_iter(b'\n', &self.buffer[..whole]).count() as u64;
                    return Ok(Cut { keep: whole.min(self.limit + 1), next, records: record, newlines });
                }
            }
        }
    }
}
