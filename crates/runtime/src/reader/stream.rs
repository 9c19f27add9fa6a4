//! A file that has to be unpacked, transcoded or rewritten: one thread does that from its first byte to its last, and the
//! working threads cut and decode the blocks that it makes.
//!
//! A block is cut under the stream's lock, in the order of the file; different streams never wait for each other.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tenaz_csv::{Block, BlockCutter, Layout, Spares};

use super::{Portion, portion_number};
use crate::Error;
use crate::job_rows::lock;
use crate::limits::BLOCKS_AHEAD;

/// What is known of a streamed file before it is read.
pub(super) struct StreamSettings {
    /// The index of the file within its table.
    pub(super) index: usize,
    pub(super) path: PathBuf,
    pub(super) layout: Arc<Layout>,
    pub(super) block_bytes: usize,
}

/// A file that is being streamed.
pub(super) struct StreamedFile {
    index: usize,
    path: PathBuf,
    ended: AtomicBool,
    state: Mutex<StreamState>,
}

struct StreamState {
    blocks: Receiver<std::io::Result<StreamBlock>>,
    cutter: BlockCutter,
    /// Portions that were cut.
    portions: u64,
}

struct StreamBlock {
    block: Block,
    last: bool,
    /// How much of the file was read for it.
    file_bytes: u64,
}

impl fmt::Debug for StreamedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl StreamedFile {
    /// Begins to unpack a file. The thread ends with the file, or when nobody reads it any more.
    pub(super) fn start(
        settings: StreamSettings,
        reader: Box<dyn Read + Send>,
        consumed: Arc<AtomicU64>,
        spares: &Spares,
    ) -> Result<Arc<Self>, Error> {
        let (send, blocks) = sync_channel(BLOCKS_AHEAD);
        let StreamSettings { index, path, layout, block_bytes } = settings;
        let cutter = BlockCutter::new(&layout, spares.clone());
        let memory = spares.clone();
        let unpack = move || unpack(reader, &consumed, block_bytes, &memory, &send);
        let thread = std::thread::Builder::new().name("tenaz-unpack".to_owned()).spawn(unpack);
        thread.map_err(|source| Error::Unreadable { path: path.clone(), source })?;
        let state = Mutex::new(StreamState { blocks, cutter, portions: 0 });
        Ok(Arc::new(Self { index, path, ended: AtomicBool::new(false), state }))
    }

    /// Whether all its blocks have been taken.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The records of the next block; none if another thread has taken the last one meanwhile.
    pub(super) fn next_portion(&self, _: &Spares) -> Result<Portion, Error> {
        let mut state = lock(&self.state);
        let number = portion_number(self.index, state.portions);
        let mut portion = Portion { file: self.index, number, bytes: 0, file_bytes: 0, records: Vec::new() };
        if self.has_ended() {
            return Ok(portion);
        }
        let unreadable = |source| Error::Unreadable { path: self.path.clone(), source };
        let crashed = |_| unreadable(std::io::Error::other("the thread that unpacked it has crashed"));
        let taken = state.blocks.recv().map_err(crashed).and_then(|block| block.map_err(unreadable));
        // Whoever comes after an error must not wait for more.
        let StreamBlock { block, last, file_bytes } =
            taken.inspect_err(|_| self.ended.store(true, Ordering::Release))?;
        portion.bytes = block.bytes() as u64;
        portion.file_bytes = file_bytes;
        let cut = state.cutter.cut(block, last);
        portion.records = cut.map_err(|source| Error::File { path: self.path.clone(), source })?;
        state.portions += 1;
        self.ended.store(last, Ordering::Release);
        Ok(portion)
    }
}

fn unpack(
    mut reader: Box<dyn Read + Send>,
    consumed: &AtomicU64,
    block_bytes: usize,
    spares: &Spares,
    send: &SyncSender<std::io::Result<StreamBlock>>,
) {
    let mut counted = 0;
    loop {
        let block = Block::read(&mut reader, block_bytes, spares);
        let read = consumed.load(Ordering::Relaxed);
        let file_bytes = read - std::mem::replace(&mut counted, read);
        let block = block.map(|block| StreamBlock { last: block.bytes() < block_bytes, block, file_bytes });
        let ends = block.as_ref().map_or(true, |block| block.last);
        // Nobody listens: the job has ended.
        if send.send(block).is_err() || ends {
            return;
        }
    }
}
