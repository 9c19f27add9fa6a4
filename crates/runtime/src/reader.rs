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
//! depends on the other threads. No answer does: rows of a table have no order.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tenaz_core::TableId;
use tenaz_csv::{Block, BlockCutter, Chunk, Layout, Spares};
use tenaz_engine::{JobPlan, Workload};

use crate::job::lock;
use crate::{DataSet, Error};

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
    pub(crate) table: TableId,
    /// The number of the chunk that they are a part of, within the table.
    pub(crate) chunk: u64,
    /// Its place among all claims.
    turn: u64,
    place: Option<Place>,
}

/// Where bytes are.
#[derive(Debug)]
struct Place {
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
    /// Its place among all portions.
    pub(crate) number: u64,
    /// How much of the file was read for it.
    pub(crate) bytes: u64,
    pub(crate) records: Vec<Chunk>,
}

#[derive(Debug)]
struct ScanFiles {
    table: TableId,
    layout: Arc<Layout>,
}

/// The files of a job, being read.
pub(crate) struct Reader {
    data: DataSet,
    scans: Vec<ScanFiles>,
    block_bytes: usize,
    claims: Mutex<Claims>,
    cuts: Mutex<Cuts>,
    cut: Condvar,
    spares: Spares,
}

/// What has been claimed.
#[derive(Debug, Default)]
struct Claims {
    scan: usize,
    file: usize,
    open: Option<Arc<File>>,
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
    pub(crate) fn new(workload: &Workload, plan: &JobPlan, data: DataSet, block_bytes: usize) -> Self {
        let scans = plan.scans.iter().map(|scan| ScanFiles {
            table: scan.table,
            layout: Arc::clone(&workload.tables[usize::from(scan.table.0)].layout),
        });
        Self {
            data,
            scans: scans.collect(),
            block_bytes,
            claims: Mutex::default(),
            cuts: Mutex::default(),
            cut: Condvar::new(),
            spares: Spares::default(),
        }
    }

    /// Where portions that are done with leave their memory.
    pub(crate) fn spares(&self) -> &Spares {
        &self.spares
    }

    /// Claims the next bytes. `may` says whether, and for which chunk (none: for a new one), those of a scan may be claimed;
    /// if they may not, that is told by none. `ended` is called before anybody can claim bytes of the table after one that ends.
    pub(crate) fn claim(
        &self,
        may: impl FnOnce(usize) -> Option<Option<u64>>,
        ended: impl FnOnce(usize),
    ) -> Result<Option<Next>, Error> {
        let mut claims = lock(&self.claims);
        let Some(chunk) = may(claims.scan) else { return Ok(None) };
        let Some(scan) = self.scans.get(claims.scan) else { return Ok(Some(Next::End)) };
        let place = claims.next_place(self.data.files(usize::from(scan.table.0)), self.block_bytes)?;
        if place.is_none() && claims.chunks > 0 {
            let chunks = std::mem::take(&mut claims.chunks);
            (claims.scan, claims.file) = (claims.scan + 1, 0);
            ended(claims.scan);
            // The next table may need much less.
            self.spares.clear();
            return Ok(Some(Next::TableEnd { table: scan.table, chunks }));
        }
        // A table without any bytes has a chunk, too: a grouping has a grand total even of nothing.
        let claim = Claim {
            scan: claims.scan,
            table: scan.table,
            chunk: chunk.unwrap_or(claims.chunks),
            turn: claims.turn,
            place,
        };
        claims.chunks += u64::from(chunk.is_none());
        claims.turn += 1;
        Ok(Some(Next::Claim(claim)))
    }

    /// Reads what was claimed, and cuts it once all before it has been cut. None: that can not be, because something before it
    /// has failed.
    pub(crate) fn cut(&self, claim: Claim) -> Result<Option<Portion>, Error> {
        let turn = Turn { reader: self, turn: claim.turn };
        let Some(place) = claim.place else {
            return Ok(turn.wait(|_| Ok(Vec::new()))?.map(|records| Portion {
                file: 0,
                number: claim.turn,
                bytes: 0,
                records,
            }));
        };
        let path = &self.data.files(usize::from(claim.table.0))[place.index].path;
        let mut from = From { file: &place.file, offset: place.offset };
        let unreadable = |source| Error::Unreadable { path: path.clone(), source };
        let wrong = |source| Error::File { path: path.clone(), source };
        // One byte more tells whether the file still ends where it did.
        let block = Block::read(&mut from, place.bytes + usize::from(place.last), &self.spares);
        let cut = turn.wait(|cuts| {
            if place.offset == 0 {
                cuts.cutter = Some(BlockCutter::new(&self.scans[claim.scan].layout, self.spares.clone()));
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
        Ok(cut.map(|(bytes, records)| Portion { file: place.index, number: claim.turn, bytes, records }))
    }
}

impl Claims {
    /// The next bytes of these files; none: there are no more.
    fn next_place(&mut self, files: &[crate::DataFile], block_bytes: usize) -> Result<Option<Place>, Error> {
        let Some(file) = files.get(self.file) else { return Ok(None) };
        let open = match self.open.take() {
            Some(open) => open,
            None => {
                let opened = File::open(&file.path);
                Arc::new(opened.map_err(|source| Error::Unreadable { path: file.path.clone(), source })?)
            }
        };
        let left = usize::try_from(file.bytes.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        let (bytes, last) = (left.min(block_bytes), left <= block_bytes);
        let place = Place { index: self.file, file: Arc::clone(&open), offset: self.offset, bytes, last };
        if last {
            (self.file, self.offset) = (self.file + 1, 0);
        } else {
            self.offset += block_bytes as u64;
            self.open = Some(open);
        }
        Ok(Some(place))
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
