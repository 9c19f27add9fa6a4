//! Reads the files of a job, once, and cuts them into portions, of which threads make chunks.
//!
//! ```text
//!  claim ──▶ read ──▶ cut ──▶ decode ──▶ … until the portions make a chunk
//!  (a lock)           (in the order of claims, a lock)
//! ```
//!
//! Every thread reads its own block of a file; only finding out where records end goes through the blocks one after the other. A
//! block is small enough to be still in the processor's cache when it is decoded; a chunk is large enough that the cost of running
//! every stage over it vanishes. So a thread takes portion after portion until it has a chunk of them. Which ones those are
//! depends on the other threads. No answer does: rows of a table have no order, but for a LIMIT that takes the first rows of the
//! files. Then every portion is a chunk of its own, and chunks are numbered as they stand in the files; when enough rows have come
//! ([`Reader::stop`]), the table ends there.
//!
//! That is how files are read that are canonical CSV. All others (compressed, in another encoding or dialect) are streams: a
//! thread of its own unpacks each, several side by side, and the working threads take its blocks ([`stream`]).

mod stream;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use datafusion::arrow::buffer::Buffer;
use tenaz_core::TableId;
use tenaz_csv::{Block, BlockCutter, Chunk, Layout, Spares};
use tenaz_engine::{JobPlan, Workload};
use tenaz_source::{FileFormat, Opened};

use crate::job_rows::lock;
use crate::{DataFile, DataSet, Error};
use stream::{StreamSettings, StreamedFile};

/// What a thread may do with the files.
#[derive(Debug)]
pub(crate) enum Next {
    /// Read these bytes.
    Claim(Claim),
    /// All of a table has been claimed, in so many chunks.
    TableEnd { table: TableId, chunks: u64 },
    /// All of all tables has.
    End,
}

/// Bytes that one thread reads and gives to [`Reader::cut`], whatever happens: all that come after wait for it.
#[derive(Debug)]
pub(crate) struct Claim {
    /// Which scan of the plan they belong to.
    pub(crate) scan: usize,
    /// Where in the order of reading that scan stands.
    place_in_order: usize,
    pub(crate) table: TableId,
    /// The number of the chunk that they are a part of, within the table.
    pub(crate) chunk: u64,
    place: Place,
}

/// Where the bytes of a claim are.
#[derive(Debug)]
enum Place {
    /// A table without files has none.
    Nowhere {
        /// Its place among all claims of plain files.
        turn: u64,
    },
    /// In a file, and this is its place among all claims of plain files.
    File { part: FilePart, turn: u64 },
    /// Next in a stream; where the order of the files matters, this is its place among all claims of that kind.
    Stream { stream: Arc<StreamedFile>, turn: Option<u64> },
}

/// A part of a file.
#[derive(Debug)]
struct FilePart {
    /// The index of the file within its table.
    index: usize,
    file: Arc<File>,
    offset: u64,
    bytes: usize,
    /// They are the file's last; what has been added to it since belongs to them.
    last: bool,
}

/// Records that follow each other in a file, with their place.
#[derive(Debug)]
pub(crate) struct Portion {
    /// The index of the file within its table.
    pub(crate) file: usize,
    /// Its place among all portions of the table, in the order of the files.
    pub(crate) number: u64,
    /// Bytes of canonical CSV that it was cut from.
    pub(crate) bytes: u64,
    /// How much of the file itself was read for it.
    pub(crate) file_bytes: u64,
    pub(crate) records: Vec<Chunk>,
}

#[derive(Debug)]
struct ScanFiles {
    /// Which scan of the plan.
    scan: usize,
    table: TableId,
    layout: Arc<Layout>,
    format: FileFormat,
    /// Chunks are numbered as their records stand in the files.
    in_order: bool,
    /// The rest of the files is not needed.
    stopped: AtomicBool,
}

/// Bits of a portion's number that count the portions of one file.
const PORTION_BITS: u32 = 40;

/// The place of a file's portion among those of its table.
fn portion_number(file: usize, portion: u64) -> u64 {
    ((file as u64) << PORTION_BITS) | portion
}

/// The files of a job, being read.
pub(crate) struct Reader {
    data: DataSet,
    scans: Vec<ScanFiles>,
    block_bytes: usize,
    /// Streams that are unpacked side by side.
    streams: usize,
    claims: Mutex<Claims>,
    cuts: Mutex<Cuts>,
    cut: Condvar,
    spares: Spares,
}

/// What has been claimed.
#[derive(Debug, Default)]
struct Claims {
    scan: usize,
    /// The file that comes next, or the one that is open.
    file: usize,
    open: Option<Arc<File>>,
    /// Streams that are being read, and the one whose turn it is.
    streams: Vec<Arc<StreamedFile>>,
    next_stream: usize,
    offset: u64,
    /// Chunks of this table.
    chunks: u64,
    turn: u64,
}

/// What has been cut.
#[derive(Default)]
struct Cuts {
    turn: u64,
    cutter: Option<BlockCutter>,
    /// A claim was not cut: nothing behind it can be.
    broken: bool,
}

/// A file from some place on.
struct From<'a> {
    file: &'a File,
    offset: u64,
}

impl Read for From<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(buf, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Reader {
    /// Reads the files of the plan's scans in this order, in blocks of so many bytes, so many streams side by side.
    pub(crate) fn new(
        workload: &Workload,
        plan: &JobPlan,
        order: &[usize],
        data: DataSet,
        (block_bytes, streams): (usize, usize),
    ) -> Self {
        let scans = order.iter().map(|&scan| {
            let id = plan.scans[scan].table;
            let table = &workload.tables[usize::from(id.0)];
            let (layout, format) = (Arc::clone(&table.layout), table.format.clone());
            let in_order = plan.scans[scan].order.matters;
            ScanFiles { scan, table: id, layout, format, in_order, stopped: AtomicBool::new(false) }
        });
        Self {
            data,
            scans: scans.collect(),
            block_bytes,
            streams: streams.max(1),
            claims: Mutex::default(),
            cuts: Mutex::default(),
            cut: Condvar::new(),
            spares: Spares::default(),
        }
    }

    /// The scan of the plan that is read at this place of the order.
    pub(crate) fn scan_at(&self, place: usize) -> Option<usize> {
        self.scans.get(place).map(|files| files.scan)
    }

    /// Whether chunks of this scan of the plan are numbered as their records stand in the files, and have one portion each.
    pub(crate) fn is_in_order(&self, scan: usize) -> bool {
        self.scans.iter().any(|files| files.scan == scan && files.in_order)
    }

    /// Nothing more of this scan of the plan needs to be read: its table ends with what was claimed.
    pub(crate) fn stop(&self, scan: usize) {
        self.scans
            .iter()
            .filter(|files| files.scan == scan)
            .for_each(|files| files.stopped.store(true, Ordering::Release));
    }

    /// Reads bytes of a file that were read before, as they are canonical CSV. A stream is read from its beginning. `None`: they
    /// cannot be read any more.
    pub(crate) fn read_again(&self, table: TableId, file: usize, bytes: Range<u64>) -> Option<Buffer> {
        let scan = self.scans.iter().find(|scan| scan.table == table)?;
        let file = self.data.files(usize::from(table.0)).get(file)?;
        let mut reader: Box<dyn Read + Send> =
            match tenaz_source::open(&file.path, &scan.format, &file.constants()).ok()? {
                Opened::Plain(open) => {
                    let mut open = open;
                    open.seek(SeekFrom::Start(bytes.start)).ok()?;
                    Box::new(open)
                }
                Opened::Stream { reader, .. } => {
                    let mut reader = reader;
                    std::io::copy(&mut reader.by_ref().take(bytes.start), &mut std::io::sink()).ok()?;
                    reader
                }
            };
        let mut data = vec![0; usize::try_from(bytes.end - bytes.start).ok()?];
        reader.read_exact(&mut data).ok()?;
        Some(Buffer::from_vec(data))
    }

    /// Where portions that are done with leave their memory.
    pub(crate) fn spares(&self) -> &Spares {
        &self.spares
    }

    /// Claims the next bytes. `may` says whether, and for which chunk (none: for a new one), those of the scan at a place of
    /// the order may be claimed; if they may not, that is told by none. `ended` is called before anybody can claim bytes of the table after one that ends.
    pub(crate) fn claim(
        &self,
        may: impl FnOnce(usize) -> Option<Option<u64>>,
        ended: impl FnOnce(usize),
    ) -> Result<Option<Next>, Error> {
        let mut claims = lock(&self.claims);
        let Some(chunk) = may(claims.scan) else { return Ok(None) };
        let Some(scan) = self.scans.get(claims.scan) else { return Ok(Some(Next::End)) };
        let files = self.data.files(usize::from(scan.table.0));
        let place = if claims.chunks > 0 && scan.stopped.load(Ordering::Acquire) {
            claims.leave_files();
            None
        } else {
            claims.next_place(files, scan, self)?
        };
        if place.is_none() && claims.chunks > 0 {
            let chunks = std::mem::take(&mut claims.chunks);
            (claims.scan, claims.file) = (claims.scan + 1, 0);
            ended(claims.scan);
            // The next table may need much less.
            self.spares.clear();
            return Ok(Some(Next::TableEnd { table: scan.table, chunks }));
        }
        // A table without any bytes has a chunk, too: a grouping has a grand total even of nothing.
        let place = place.unwrap_or_else(|| Place::Nowhere { turn: claims.next_turn() });
        let claim = Claim {
            scan: scan.scan,
            place_in_order: claims.scan,
            table: scan.table,
            chunk: chunk.unwrap_or(claims.chunks),
            place,
        };
        claims.chunks += u64::from(chunk.is_none());
        Ok(Some(Next::Claim(claim)))
    }

    /// Reads what was claimed, and cuts it once all before it has been cut. None: that can not be, because something before it
    /// has failed.
    pub(crate) fn cut(&self, claim: Claim) -> Result<Option<Portion>, Error> {
        let (place, turn) = match claim.place {
            Place::Stream { stream, turn: None } => return stream.next_portion(&self.spares).map(Some),
            Place::Stream { stream, turn: Some(turn) } => {
                return Turn { reader: self, turn }.wait(|_| stream.next_portion(&self.spares));
            }
            Place::Nowhere { turn } => {
                let nothing = Portion { file: 0, number: 0, bytes: 0, file_bytes: 0, records: Vec::new() };
                return Turn { reader: self, turn }.wait(|_| Ok(nothing));
            }
            Place::File { part, turn } => (part, Turn { reader: self, turn }),
        };
        let path = &self.data.files(usize::from(claim.table.0))[place.index].path;
        let mut from = From { file: &place.file, offset: place.offset };
        let unreadable = |source| Error::Unreadable { path: path.clone(), source };
        let wrong = |source| Error::File { path: path.clone(), source };
        // One byte more tells whether the file still ends where it did.
        let block = Block::read(&mut from, place.bytes + usize::from(place.last), &self.spares);
        let cut = turn.wait(|cuts| {
            if place.offset == 0 {
                cuts.cutter = Some(BlockCutter::new(&self.scans[claim.place_in_order].layout, self.spares.clone()));
            }
            let cutter = cuts.cutter.as_mut().expect("a file's first block comes first");
            let mut block = block.map_err(unreadable)?;
            let mut bytes = block.bytes();
            if bytes < place.bytes {
                // Part of the data would pass for all of it.
                return Err(Error::Shorter { path: path.clone() });
            }
            let mut ends = place.last && bytes <= place.bytes;
            let mut records = cutter.cut(block, ends).map_err(wrong)?;
            while place.last && !ends {
                block = Block::read(&mut from, self.block_bytes, &self.spares).map_err(unreadable)?;
                bytes += block.bytes();
                ends = block.bytes() < self.block_bytes;
                records.extend(cutter.cut(block, ends).map_err(wrong)?);
            }
            Ok((bytes as u64, records))
        })?;
        let number = portion_number(place.index, place.offset / self.block_bytes as u64);
        Ok(cut.map(|(bytes, records)| Portion { file: place.index, number, bytes, file_bytes: bytes, records }))
    }
}

impl Claims {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn - 1
    }

    /// Where the next bytes of a table are; none: it has no more.
    fn next_place(&mut self, files: &[DataFile], scan: &ScanFiles, reader: &Reader) -> Result<Option<Place>, Error> {
        if let Some(stream) = self.next_stream(files, scan, reader)? {
            let turn = scan.in_order.then(|| self.next_turn());
            return Ok(Some(Place::Stream { stream, turn }));
        }
        let part = self.next_part(files, reader.block_bytes);
        Ok(part.map(|part| Place::File { part, turn: self.next_turn() }))
    }

    /// Opens files until one is plain or enough streams are open; the stream whose turn it is. None: a plain file comes next, or
    /// there are no more.
    fn next_stream(
        &mut self,
        files: &[DataFile],
        scan: &ScanFiles,
        reader: &Reader,
    ) -> Result<Option<Arc<StreamedFile>>, Error> {
        self.streams.retain(|stream| !stream.has_ended());
        let side_by_side = if scan.in_order { 1 } else { reader.streams };
        while self.open.is_none() && self.streams.len() < side_by_side {
            let Some(file) = files.get(self.file) else { break };
            let failed = |source| Error::of_source(&file.path, source);
            match tenaz_source::open(&file.path, &scan.format, &file.constants()).map_err(failed)? {
                Opened::Plain(open) => self.open = Some(Arc::new(open)),
                Opened::Stream { reader: stream, consumed } => {
                    let settings = StreamSettings {
                        index: self.file,
                        path: file.path.clone(),
                        layout: Arc::clone(&scan.layout),
                        block_bytes: reader.block_bytes,
                    };
                    self.streams.push(StreamedFile::start(settings, stream, consumed, &reader.spares)?);
                    self.file += 1;
                }
            }
        }
        if self.open.is_some() || self.streams.is_empty() {
            return Ok(None);
        }
        self.next_stream = (self.next_stream + 1) % self.streams.len();
        Ok(Some(Arc::clone(&self.streams[self.next_stream])))
    }

    /// Leaves the files of a table where they are.
    fn leave_files(&mut self) {
        (self.open, self.offset) = (None, 0);
        self.streams.clear();
    }

    /// The next bytes of the plain file that is open; none: no file is.
    fn next_part(&mut self, files: &[DataFile], block_bytes: usize) -> Option<FilePart> {
        let open = self.open.take()?;
        let left = usize::try_from(files[self.file].bytes.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let (bytes, last) = (left.min(block_bytes), left <= block_bytes);
        let part = FilePart { index: self.file, file: Arc::clone(&open), offset: self.offset, bytes, last };
        if last {
            (self.file, self.offset) = (self.file + 1, 0);
        } else {
            self.offset += block_bytes as u64;
            self.open = Some(open);
        }
        Some(part)
    }
}

/// A claim's turn to be cut. It is over when this is dropped, however that comes.
struct Turn<'a> {
    reader: &'a Reader,
    turn: u64,
}

impl Turn<'_> {
    /// Does its part when its turn has come. None: something before it has failed.
    fn wait<T>(self, part: impl FnOnce(&mut Cuts) -> Result<T, Error>) -> Result<Option<T>, Error> {
        let mut cuts = lock(&self.reader.cuts);
        while cuts.turn < self.turn && !cuts.broken {
            cuts = self.reader.cut.wait(cuts).unwrap_or_else(PoisonError::into_inner);
        }
        if cuts.broken {
            return Ok(None);
        }
        let done = part(&mut cuts)?;
        cuts.turn += 1;
        Ok(Some(done))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut cuts = lock(&self.reader.cuts);
        cuts.broken |= cuts.turn <= self.turn;
        drop(cuts);
        self.reader.cut.notify_all();
    }
}
