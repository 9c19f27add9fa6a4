//! Chunks of an embedded job: a thread takes portion after portion of a table until they make one, and runs its leaf task.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use tenaz_core::{Log, Source, TableId};
use tenaz_csv::{Added, Chunk, Decoder};
use tenaz_engine::LeafInput;

use super::engine::{LocalEngine, usual_batch_bytes};
use super::places::{Piece, ReadPlaces};
use crate::Error;
use crate::job_rows::{ChunkAccount, Message, lock};
use crate::limits::HELD_SHARE;
use crate::reader::{Claim, Next};
use crate::rejects::{RejectLine, reject_pieces, with_names};

/// A chunk that is being put together of portions.
pub(super) struct OpenChunk {
    scan: usize,
    pub(super) table: TableId,
    pub(super) number: u64,
    /// What it begins with.
    first: Option<Claim>,
    account: ChunkAccount,
    reasons: BTreeMap<&'static str, u64>,
    /// Where its rows are from, in their order.
    pieces: Vec<Piece>,
    /// Portions that its rows point into, and how much memory they are.
    held: Vec<Chunk>,
    held_bytes: u64,
}

impl OpenChunk {
    /// The chunk that begins with these bytes, which are still to be added.
    pub(super) fn with(first: Claim) -> Self {
        Self {
            scan: first.scan,
            table: first.table,
            number: first.chunk,
            first: Some(first),
            account: ChunkAccount::default(),
            reasons: BTreeMap::new(),
            pieces: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
        }
    }

    /// Whether it is large enough, or needs as much memory as it may.
    fn is_full(&self, chunk_bytes: u64) -> bool {
        self.account.bytes >= chunk_bytes || self.held_bytes >= chunk_bytes / HELD_SHARE
    }

    fn into_account(self) -> (ChunkAccount, Vec<Chunk>) {
        let reasons = self.reasons.into_iter().map(|(code, count)| (code.to_owned(), count)).collect();
        (ChunkAccount { reasons, ..self.account }, self.held)
    }
}

impl LocalEngine<'_> {
    /// The next bytes that a thread may begin a chunk with. `None`: those that come next must wait for a broadcast.
    pub(super) fn begin(&self, is_open: impl Fn(usize) -> bool) -> Result<Option<Next>, Error> {
        // Another thread may just have reached a table whose broadcasts are not complete yet.
        self.claim(|scan| is_open(scan).then_some(None))
    }

    fn claim(&self, may: impl FnOnce(usize) -> Option<Option<u64>>) -> Result<Option<Next>, Error> {
        self.reader.claim(may, |next| self.next_scan.store(next, Ordering::Release))
    }

    /// Takes portions of the chunk's table until they make a chunk or the table ends, and runs its leaf task.
    pub(super) fn fill_and_run(&self, mut chunk: OpenChunk) -> Result<Vec<(Log, Message)>, Error> {
        let batch_bytes = usual_batch_bytes(self.chunk_bytes, self.table_bytes[usize::from(chunk.table.0)]);
        self.rows.with_decoder(chunk.scan, Some(batch_bytes), |decoder| {
            let mut next = chunk.first.take();
            while let Some(claim) = next {
                self.add_portion(claim, &mut chunk, decoder)?;
                next = self.next_portion(&chunk)?;
            }
            self.run_leaf(chunk, decoder)
        })
    }

    fn next_portion(&self, chunk: &OpenChunk) -> Result<Option<Claim>, Error> {
        if chunk.is_full(self.chunk_bytes as u64) || self.reader.is_in_order(chunk.scan) {
            return Ok(None);
        }
        match self.claim(|place| (self.reader.scan_at(place) == Some(chunk.scan)).then_some(Some(chunk.number)))? {
            Some(Next::Claim(claim)) => Ok(Some(claim)),
            Some(Next::TableEnd { table, chunks }) => {
                lock(&self.ended).push((table, chunks));
                Ok(None)
            }
            Some(Next::End) | None => Ok(None),
        }
    }

    /// Reads what was claimed, and adds its records to those of its chunk.
    fn add_portion(&self, claim: Claim, chunk: &mut OpenChunk, decoder: &mut Decoder) -> Result<(), Error> {
        // First of all: everybody behind waits for it. If what comes before it has failed, that error is the one to tell.
        let Some(portion) = self.reader.cut(claim)? else { return Err(Error::Stopped) };
        chunk.account.bytes += portion.bytes;
        self.progress.table(usize::from(chunk.table.0)).bytes.fetch_add(portion.file_bytes, Ordering::Relaxed);
        for records in portion.records {
            let added = decoder.add_chunk(&records).map_err(tenaz_engine::Error::from)?;
            chunk.pieces.push(Piece::new((portion.file, portion.number), &records, added.rows));
            self.account_for(chunk, (portion.file, portion.number), records.records, &added)?;
            if decoder.points_into_chunks() {
                chunk.held_bytes += records.data.len() as u64;
                chunk.held.push(records);
            } else {
                self.reader.spares().give_back(records);
            }
        }
        Ok(())
    }

    fn run_leaf(&self, chunk: OpenChunk, decoder: &mut Decoder) -> Result<Vec<(Log, Message)>, Error> {
        let rows = decoder.take_batch().map_err(tenaz_engine::Error::from)?;
        let (scan, table) = (chunk.scan, chunk.table);
        let source = Source::Chunk { table, number: chunk.number };
        let input = LeafInput { source, rows };
        let places = ReadPlaces { engine: self, scan, table, pieces: &chunk.pieces };
        let product = self.rows.run_leaf(scan, &input, &places)?;
        if let Some(first_rows) = &self.first_rows[scan]
            && lock(first_rows).add(chunk.number, &product)
        {
            self.reader.stop(scan);
        }
        decoder.give_back(input.rows);
        let (account, held) = chunk.into_account();
        held.into_iter().for_each(|records| self.reader.spares().give_back(records));
        Ok(self.messages(source, self.lineage_of_chunk(table), product, Some(account)))
    }

    /// Counts the records of a portion, which has a file and a place among all portions.
    fn account_for(
        &self,
        chunk: &mut OpenChunk,
        (file, number): (usize, u64),
        read: u64,
        added: &Added,
    ) -> Result<(), Error> {
        let table = usize::from(chunk.table.0);
        let rejected = added.rejects.len() as u64;
        let progress = self.progress.table(table);
        progress.records.fetch_add(added.records, Ordering::Relaxed);
        progress.rejected.fetch_add(rejected, Ordering::Relaxed);
        chunk.account.records += read;
        chunk.account.accepted += added.rows;
        chunk.account.rejected += rejected;
        if rejected == 0 {
            return Ok(());
        }
        for reject in added.rejects.iter() {
            *chunk.reasons.entry(reject.reason.code()).or_insert(0) += 1;
        }
        let layout = &self.rows.workload.tables[table].layout;
        let file = &self.file_names[table][file];
        let name = self.rows.table_name(chunk.table);
        // Bad records are told in the order of the data, so by portions.
        let source = Source::Chunk { table: chunk.table, number };
        for piece in reject_pieces(layout, &added.rejects) {
            let rows = with_names(name, file, &piece)?;
            lock(&self.rejects).push(source, rows)?;
        }
        let mut lines = added.rejects.iter().map(|reject| RejectLine::new(name, file, layout, reject)).peekable();
        if let Some(first) = lines.peek().filter(|_| self.options.strict) {
            self.reject_strictly(number, first.clone());
        }
        lines.for_each(|line| self.observer.reject(&line));
        Ok(())
    }
}
