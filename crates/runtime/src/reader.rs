//! Reads the files of a job, once, in order, and cuts them into numbered chunks.
//!
//! Threads share one reader behind a lock: cutting is cheap next to decoding, and numbering stays deterministic.

use std::fs::File;
use std::sync::Arc;

use tenaz_core::{Source, TableId};
use tenaz_csv::{Chunk, Chunker, Layout, Marks, Spares};
use tenaz_engine::{JobPlan, Workload};

use crate::{DataSet, Error};

/// The next thing to do with the files.
#[derive(Debug)]
pub(crate) enum Next {
    /// Work on this chunk.
    Chunk(CutChunk),
    /// A table has been read to its end. `bytes` of its files belong to no chunk: headers of files without records, what
    /// follows the limit of a record too large.
    TableEnd { table: TableId, chunks: u64, bytes: u64 },
    /// All tables have.
    End,
}

/// A chunk with its place.
#[derive(Debug)]
pub(crate) struct CutChunk {
    /// Which scan of the plan it belongs to.
    pub(crate) scan: usize,
    pub(crate) table: TableId,
    /// Its number within the table.
    pub(crate) number: u64,
    /// The index of its file within the table.
    pub(crate) file: usize,
    /// Bytes of the file that end with this chunk and were not counted before (header included).
    pub(crate) file_bytes: u64,
    pub(crate) chunk: Chunk,
}

impl CutChunk {
    pub(crate) fn source(&self) -> Source {
        Source::Chunk { table: self.table, number: self.number }
    }
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
    chunk_bytes: usize,
    scan: usize,
    file: usize,
    open: Option<Chunker<File>>,
    /// Where the next uncounted byte of the open file is.
    counted: u64,
    /// Bytes of this table's files that ended up in no chunk.
    left_over: u64,
    chunks: u64,
    spares: Spares,
}

impl Reader {
    pub(crate) fn new(workload: &Workload, plan: &JobPlan, data: DataSet, chunk_bytes: usize) -> Self {
        let scans = plan.scans.iter().map(|scan| ScanFiles {
            table: scan.table,
            layout: Arc::clone(&workload.tables[usize::from(scan.table.0)].layout),
        });
        let scans = scans.collect();
        let spares = Spares::default();
        Self { data, scans, chunk_bytes, scan: 0, file: 0, open: None, counted: 0, left_over: 0, chunks: 0, spares }
    }

    /// Where chunks that are done with leave their memory.
    pub(crate) fn spares(&self) -> Spares {
        self.spares.clone()
    }

    /// The scan that the next chunk belongs to.
    pub(crate) fn current_scan(&self) -> usize {
        self.scan
    }

    pub(crate) fn next(&mut self) -> Result<Next, Error> {
        loop {
            let Some(scan) = self.scans.get(self.scan) else { return Ok(Next::End) };
            let table = scan.table;
            let files = self.data.files(usize::from(table.0));
            let Some(file) = files.get(self.file) else {
                if self.chunks == 0 {
                    return Ok(Next::Chunk(self.empty_chunk(table)));
                }
                let chunks = std::mem::take(&mut self.chunks);
                self.scan += 1;
                self.file = 0;
                let bytes = std::mem::take(&mut self.left_over);
                return Ok(Next::TableEnd { table, chunks, bytes });
            };
            let mut chunker = match self.open.take() {
                Some(chunker) => chunker,
                None => {
                    let unreadable = |source| Error::Unreadable { path: file.path.clone(), source };
                    self.counted = 0;
                    let opened = File::open(&file.path).map_err(unreadable)?;
                    Chunker::new(opened, &scan.layout, self.chunk_bytes).with_spares(self.spares.clone()).with_marks()
                }
            };
            let cut = chunker.next_chunk().map_err(|source| match source {
                tenaz_csv::Error::Io(source) => Error::Unreadable { path: file.path.clone(), source },
                source => Error::File { path: file.path.clone(), source },
            })?;
            match cut {
                Some(chunk) => {
                    let end = chunk.byte + chunk.data.len() as u64;
                    let cut = CutChunk {
                        scan: self.scan,
                        table,
                        number: self.chunks,
                        file: self.file,
                        file_bytes: end - self.counted,
                        chunk,
                    };
                    self.counted = end;
                    self.chunks += 1;
                    self.open = Some(chunker);
                    return Ok(Next::Chunk(cut));
                }
                None => {
                    self.left_over += file.bytes.saturating_sub(self.counted);
                    self.file += 1;
                }
            }
        }
    }

    /// The only chunk of a table without records: its tasks run, because a grouping has a grand total even of nothing.
    fn empty_chunk(&mut self, table: TableId) -> CutChunk {
        self.chunks = 1;
        let chunk =
            Chunk { number: 0, byte: 0, line: 1, records: 0, data: Vec::<u8>::new().into(), marks: Marks::default() };
        CutChunk { scan: self.scan, table, number: 0, file: 0, file_bytes: 0, chunk }
    }
}
