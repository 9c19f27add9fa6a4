//! From chunks to a batch of typed columns.
//!
//! A chunk is read in windows that fit the cache. Of each window first the separators are indexed, then columns are parsed one
//! after the other. A window with faults is put right before its values are kept, so that the good case carries no checks:
//! records left out are dropped from the index and the columns are read again.
//!
//! # Why decoder and chunker agree
//! Both split records by [`scalar`](crate::index::scalar)'s rules, but the decoder takes the end of the chunk for the end of the
//! file. That changes nothing: a chunk ends where a record ends, so a well-formed record is whole. A record that the chunker found
//! never closed is inside quotes at every line start up to the limit; the chunk's end is such a line start or beyond the limit,
//! so the decoder finds it open there, too. A record too large for the chunk is cut after one byte more than the limit, which is
//! all that its verdict depends on, and is the last of its chunk.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_schema::{Schema, SchemaRef};

use crate::column::{Cells, Keep};
use crate::fields::Fields;
use crate::index::scalar::{Exact, Fault, Scan};
use crate::index::{self, Marks, Rules};
use crate::limits::{DETACHED_SHARE, MARKED_WINDOW_BYTES, MAX_CHUNK_BYTES, MAX_RECORD_BYTES, WINDOW_BYTES};
use crate::rejects::Spot;
use crate::simd::Simd;
use crate::wanted::{Wanted, Within};
use crate::window::{Found, Window, is_regular};
use crate::{Chunk, Error, Layout, Reason, Rejects};

/// Decodes chunks of one table. Keeps its working memory from chunk to chunk.
pub struct Decoder {
    layout: Arc<Layout>,
    projection: Vec<usize>,
    schema: SchemaRef,
    cells: Vec<Cells>,
    /// Texts that are read after the other columns, because of them it depends of which records.
    wanted: Vec<Wanted>,
    limit: usize,
    simd: Simd,
    exact: Exact,
    window: Window,
    /// Rows of the batch so far.
    rows: usize,
    /// Its chunks so far, if texts of theirs are kept.
    chunks: Vec<Buffer>,
    /// Bytes that a batch is expected to be made of, at least.
    batch_bytes: usize,
}

/// What a chunk added to a batch.
#[derive(Debug)]
pub struct Added {
    /// The accepted records.
    pub rows: u64,
    /// All records, accepted and rejected.
    pub records: u64,
    /// The rejected records, in order.
    pub rejects: Rejects,
}

/// A decoded chunk.
#[derive(Debug)]
pub struct Decoded {
    /// The accepted records, in order.
    pub batch: RecordBatch,
    /// All records, accepted and rejected.
    pub records: u64,
    /// The rejected records, in order.
    pub rejects: Rejects,
}

/// How far the decoding of a chunk has come.
struct Progress<'a> {
    data: &'a [u8],
    marks: &'a Marks,
    records: u64,
    /// Whether rows of it were accepted.
    any_rows: bool,
    rejects: Rejects,
    /// Where newlines were counted up to, and how many they were.
    counted: (usize, u64),
}

impl Decoder {
    /// A decoder that checks every column of `layout` and returns those of `projection`, in its order.
    ///
    /// # Errors
    /// The layout is not usable, or a projected column is not in it.
    pub fn new(layout: Arc<Layout>, projection: Vec<usize>) -> Result<Self, Error> {
        layout.check()?;
        let columns = layout.columns.len();
        if let Some(&index) = projection.iter().find(|index| **index >= columns) {
            return Err(Error::Projection { index, columns });
        }
        let schema = Arc::new(Schema::new(projection.iter().map(|i| layout.columns[*i].field()).collect::<Vec<_>>()));
        let keep = |index| if projection.contains(&index) { Keep::Values } else { Keep::Nothing };
        let cells = layout.columns.iter().enumerate().map(|(i, c)| Cells::new(c, keep(i))).collect();
        let exact = Exact::new(layout.delimiter, MAX_RECORD_BYTES);
        let (limit, simd) = (MAX_RECORD_BYTES, Simd::detect());
        let (window, chunks) = (Window::default(), Vec::new());
        Ok(Self {
            layout,
            projection,
            schema,
            cells,
            wanted: Vec::new(),
            limit,
            simd,
            exact,
            window,
            rows: 0,
            chunks,
            batch_bytes: 0,
        })
    }

    /// The same decoder, which takes memory for batches made of so many bytes of records.
    #[must_use]
    pub fn with_batch_bytes(mut self, bytes: usize) -> Self {
        self.batch_bytes = bytes;
        self
    }

    /// The same decoder, which may return any text for the values of these columns that are not null: whoever asks only whether
    /// they are null gets that sooner. Columns that are not projected stay so.
    #[must_use]
    pub fn with_presence_of(mut self, columns: &[usize]) -> Self {
        for column in columns.iter().filter(|column| self.projection.contains(column)) {
            self.cells[*column] = Cells::new(&self.layout.columns[*column], Keep::Presence);
        }
        self
    }

    /// The same decoder, which may return any text of the text column `column` for records that lie in all ranges of none of
    /// `any_of`: whoever passes over those gets the others sooner. Nothing changes if the ranges' columns are not projected, or
    /// not of numbers of at most 64 bits.
    #[must_use]
    pub fn with_texts_where(mut self, column: usize, any_of: Vec<Vec<Within>>) -> Self {
        let is_kept = matches!(self.cells.get(column), Some(Cells::Text(texts)) if texts.keeps_values());
        let has_ranges = |within: &Within| self.cells.get(within.column).is_some_and(Cells::has_ranges);
        if is_kept && any_of.iter().flatten().all(has_ranges) {
            self.wanted.retain(|known| known.column != column);
            self.wanted.push(Wanted::new(column, any_of));
        }
        self
    }

    /// The same decoder with another limit than [`MAX_RECORD_BYTES`]; the chunker must have the same.
    #[must_use]
    pub fn with_max_record_bytes(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.exact = Exact::new(self.layout.delimiter, limit);
        self
    }

    /// The same decoder, with the instructions that are the fastest of this processor but `way`; for tests. However many, the
    /// last way needs no special ones.
    #[doc(hidden)]
    #[must_use]
    pub fn with_way(mut self, way: usize) -> Self {
        let ways = Simd::all();
        self.simd = ways[way.min(ways.len() - 1)];
        self
    }

    /// The schema of every batch: the projected columns, nullable unless required.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Decodes the whole records of `data`, a chunk that starts at `byte` and on line `line` of its file.
    ///
    /// # Errors
    /// The chunk is too large. Bad records are no errors but [`Decoded::rejects`].
    pub fn decode(&mut self, data: &Buffer, byte: u64, line: u64) -> Result<Decoded, Error> {
        self.decode_marked(data, &Marks::default(), byte, line)
    }

    /// Decodes a chunk, with the help of its marks if it has some.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn decode_chunk(&mut self, chunk: &Chunk) -> Result<Decoded, Error> {
        self.decode_marked(&chunk.data, &chunk.marks, chunk.byte, chunk.line)
    }

    fn decode_marked(&mut self, data: &Buffer, marks: &Marks, byte: u64, line: u64) -> Result<Decoded, Error> {
        let Added { records, rejects, .. } = self.add_marked(data, marks, byte, line)?;
        Ok(Decoded { batch: self.take_batch()?, records, rejects })
    }

    /// Decodes a chunk, with the help of its marks if it has some, and adds its records to those of the batch to come.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn add_chunk(&mut self, chunk: &Chunk) -> Result<Added, Error> {
        self.add_marked(&chunk.data, &chunk.marks, chunk.byte, chunk.line)
    }

    fn add_marked(&mut self, data: &Buffer, marks: &Marks, byte: u64, line: u64) -> Result<Added, Error> {
        if data.len() > MAX_CHUNK_BYTES {
            return Err(Error::ChunkTooLarge { bytes: data.len() });
        }
        let mut keeps_texts = false;
        self.cells.iter_mut().for_each(|cells| keeps_texts |= cells.begin_chunk());
        if keeps_texts {
            self.chunks.push(data.clone());
        }
        self.exact.forget();
        let before = self.rows;
        let mut progress =
            Progress { data, marks, records: 0, any_rows: false, rejects: Rejects::new(byte, line), counted: (0, 0) };
        let mut at = 0;
        while at < data.len() {
            at = self.decode_window(&mut progress, at);
        }
        if keeps_texts {
            self.detach(data, before);
        }
        let rows = (self.rows - before) as u64;
        debug_assert_eq!(progress.records, rows + progress.rejects.len() as u64);
        Ok(Added { rows, records: progress.records, rejects: progress.rejects })
    }

    /// Copies texts out of the chunk that was just read, if they are a small part of it: it need not be kept for them, and they
    /// lie close together for whoever reads them.
    fn detach(&mut self, data: &Buffer, first_row: usize) {
        let bytes: usize = self.cells.iter().map(|cells| cells.bytes_from(first_row)).sum();
        if bytes <= data.len() / DETACHED_SHARE {
            self.cells.iter_mut().for_each(|cells| cells.detach(first_row, data));
            self.chunks.pop();
        }
    }

    /// Whether the batch to come points into the chunks that were added: they can not be given back before it.
    #[must_use]
    pub fn points_into_chunks(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// The accepted records of all chunks that were added, in that order. The next batch begins.
    ///
    /// # Errors
    /// Arrow does not take the columns, which would be a fault of this crate.
    pub fn take_batch(&mut self) -> Result<RecordBatch, Error> {
        let chunks = std::mem::take(&mut self.chunks);
        let mut taken = vec![None; self.cells.len()];
        let arrays = self.projection.iter().map(|&column| {
            let take = || self.cells[column].take(&self.layout.columns[column], &chunks);
            Arc::clone(taken[column].get_or_insert_with(take))
        });
        let arrays = arrays.collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        Ok(RecordBatch::try_new_with_options(self.schema(), arrays, &options)?)
    }

    /// Takes back the memory of a batch that this decoder made and that nobody else holds, for batches to come.
    pub fn give_back(&mut self, batch: RecordBatch) {
        let (_, arrays, _) = batch.into_parts();
        for (column, array) in self.projection.iter().zip(arrays) {
            self.cells[*column].give_back(array);
        }
    }

    /// Decodes a window of records from `start`, a record's start, and returns where the next one starts.
    fn decode_window(&mut self, progress: &mut Progress<'_>, start: usize) -> usize {
        let (next, newlines, crlf, faulty) = self.index_window(progress.data, progress.marks, start);
        let columns = self.layout.columns.len();
        let rows = newlines;
        self.window.faults.clear();
        let first_record = progress.records;
        let regular = !crlf && is_regular(progress.data, progress.marks, next, &self.window.seps, rows, columns);
        if regular {
            progress.records += rows as u64;
        } else {
            self.keep_well_counted(progress);
        }
        let end = self.window.seps.last().map_or(start, |sep| (*sep as usize).min(progress.data.len()));
        let known = end <= start.max(progress.marks.utf8_end);
        let utf8 = known || simdutf8::basic::from_utf8(&progress.data[start..end]).is_ok();
        let regular = if utf8 { regular } else { self.keep_utf8(progress.data, regular, rows, first_record) };
        self.read_columns(progress, regular, rows, first_record);
        self.report(progress);
        if let Some((fault, from)) = faulty {
            progress.reject_fault(fault, from, next, self.limit);
        }
        next
    }

    /// Fills the index from `start` until the window is full or a record has a fault in its structure. Returns where the next
    /// window starts, the number of newlines, whether one follows a carriage return, and the faulty record's start.
    fn index_window(
        &mut self,
        data: &[u8],
        marks: &Marks,
        start: usize,
    ) -> (usize, usize, bool, Option<(Fault, usize)>) {
        let Self { window: Window { seps, doubled, .. }, layout, simd, limit, exact, .. } = self;
        let window_bytes = if start < marks.end { MARKED_WINDOW_BYTES } else { WINDOW_BYTES };
        let window_end = data.len().min(start + window_bytes);
        let rules = Rules { delimiter: layout.delimiter, limit: *limit };
        *doubled = false;
        seps.clear();
        seps.push((start as u32).wrapping_sub(1));
        let (mut at, mut newlines, mut crlf) = (start, 0, false);
        while at < window_end {
            let found = match at < marks.end {
                true => index::marked(*simd, marks, at, window_end.min(marks.end), seps),
                false => index::index(*simd, &data[..window_end], at, rules, seps),
            };
            newlines += found.newlines as usize;
            crlf |= found.crlf;
            *doubled |= found.doubled;
            let progressed = found.end > start;
            at = found.end;
            if at == data.len() || (progressed && !found.trouble && window_end < data.len()) {
                break;
            }
            *doubled = true;
            let before = seps.len();
            match exact.scan(data, at, true, |delimiter| seps.push(delimiter as u32)) {
                Scan::Record { newline, next } | Scan::Blank { newline, next } => {
                    seps.push(newline as u32);
                    newlines += 1;
                    crlf |= newline < data.len() && newline > 0 && data[newline - 1] == b'\r';
                    at = next;
                }
                Scan::Faulty { fault, next } => {
                    seps.truncate(before);
                    return (next.unwrap_or(data.len()), newlines, crlf, Some((fault, at)));
                }
                Scan::NeedMore => unreachable!("nothing follows a chunk, as the scan was told"),
            }
        }
        (at, newlines, crlf, None)
    }

    /// Leaves out blank lines and records with a wrong number of fields, and takes carriage returns off line ends.
    fn keep_well_counted(&mut self, progress: &mut Progress<'_>) {
        let Window { seps, kept, ordinals, faults, .. } = &mut self.window;
        let data = progress.data;
        let columns = self.layout.columns.len();
        kept.clear();
        ordinals.clear();
        let mut first = 0;
        for last in 1..seps.len() {
            let newline = seps[last] as usize;
            if data.get(newline).is_some_and(|byte| *byte != b'\n') {
                continue;
            }
            let start = seps[first].wrapping_add(1) as usize;
            let ends_crlf = newline < data.len() && newline > start && data[newline - 1] == b'\r';
            let end = newline - usize::from(ends_crlf);
            let blank = end == start || (newline == data.len() && data[start..] == *b"\r");
            if !blank {
                let found = last - first;
                if found == columns {
                    kept.extend_from_slice(&seps[first..last]);
                    kept.push(end as u32);
                    ordinals.push(progress.records);
                } else {
                    let reason = Reason::FieldCount { expected: columns, found };
                    faults.push(Found { record: progress.records, start, end, column: None, reason });
                }
                progress.records += 1;
            }
            first = last;
        }
    }

    /// Leaves out records that are not UTF-8. Returns whether none was.
    fn keep_utf8(&mut self, data: &[u8], regular: bool, rows: usize, first_record: u64) -> bool {
        let columns = self.layout.columns.len();
        let fields = self.window.fields(regular, rows, columns);
        let bad: Vec<_> = (0..fields.rows)
            .filter(|row| {
                let (start, end) = fields.record(*row, columns);
                simdutf8::basic::from_utf8(&data[start..end]).is_err()
            })
            .map(|row| (row, None, Reason::NotUtf8))
            .collect();
        if bad.is_empty() {
            return regular;
        }
        self.window.leave_out(regular, rows, columns, first_record, bad);
        false
    }

    fn read_columns(&mut self, progress: &mut Progress<'_>, regular: bool, rows: usize, first_record: u64) {
        let columns = self.layout.columns.len();
        let fields = self.window.fields(regular, rows, columns);
        if !progress.any_rows && fields.rows > 0 {
            progress.any_rows = true;
            // The rest of the chunk, and of the batch if this is its first one, is expected to be like its first window.
            let bytes = fields.record(fields.rows - 1, columns).1.max(1);
            let whole = if self.rows == 0 { self.batch_bytes.max(progress.data.len()) } else { progress.data.len() };
            let expected = whole as u64 * fields.rows as u64 / bytes as u64;
            let expected = (expected + expected / 32) as usize + 64;
            self.cells.iter_mut().for_each(|cells| cells.reserve(expected));
        }
        let bad = read_all(self.simd, &mut self.cells, &mut self.wanted, self.rows, progress.data, fields);
        if bad.is_empty() {
            self.rows += fields.rows;
            return;
        }
        self.window.leave_out(regular, rows, columns, first_record, bad);
        let fields = self.window.fields(false, rows, columns);
        self.cells.iter_mut().for_each(|cells| cells.truncate(self.rows));
        let bad = read_all(self.simd, &mut self.cells, &mut self.wanted, self.rows, progress.data, fields);
        assert!(bad.is_empty(), "records that were good are good");
        self.rows += fields.rows;
    }

    /// Turns the window's faults into rejects.
    fn report(&mut self, progress: &mut Progress<'_>) {
        self.window.faults.sort_by_key(|fault| fault.record);
        for fault in self.window.faults.drain(..) {
            progress.reject(fault);
        }
    }
}

/// Reads every column of a window. Returns the rows that cannot be taken, each with its first fault.
fn read_all(
    simd: Simd,
    cells: &mut [Cells],
    wanted: &mut [Wanted],
    first_row: usize,
    data: &[u8],
    fields: Fields<'_>,
) -> Vec<(usize, Option<usize>, Reason)> {
    let mut all = Vec::new();
    let mut bad = Vec::new();
    for (column, cells) in cells.iter_mut().enumerate() {
        if wanted.iter().all(|wanted| wanted.column != column) {
            cells.read(simd, data, fields, column, &mut bad);
            all.extend(bad.drain(..).map(|(row, reason)| (row, Some(column), reason)));
        }
    }
    for wanted in wanted {
        let column = wanted.column;
        let bits = wanted.find(simd, cells, first_row, fields.rows);
        cells[column].read_wanted(data, fields, column, bits, &mut bad);
        all.extend(bad.drain(..).map(|(row, reason)| (row, Some(column), reason)));
    }
    all.sort_by_key(|(row, column, _)| (*row, *column));
    all.dedup_by_key(|(row, ..)| *row);
    all
}

impl Progress<'_> {
    fn reject(&mut self, fault: Found) {
        let Found { record, start, end, column, reason } = fault;
        let (counted, lines) = self.counted;
        let lines = lines + memchr::memchr_iter(b'\n', &self.data[counted..start]).count() as u64;
        self.counted = (start, lines);
        self.rejects.push(Spot { record, start, lines, column }, reason, &self.data[start..end]);
    }

    /// Rejects the record `data[start..next]` for a fault in its structure.
    fn reject_fault(&mut self, fault: Fault, start: usize, next: usize, limit: usize) {
        let reason = match fault {
            Fault::NeverClosed => Reason::NeverClosed,
            Fault::TooLarge => Reason::TooLarge { limit },
            Fault::TextAfterQuote => Reason::TextAfterQuote,
        };
        let record = &self.data[start..next];
        let record = record.strip_suffix(b"\n").map_or(record, |line| line.strip_suffix(b"\r").unwrap_or(line));
        let end = start + record.len();
        self.reject(Found { record: self.records, start, end, column: None, reason });
        self.records += 1;
    }
}
