//! Where the rows of an embedded job's chunk stand in the files.

use tenaz_core::{Source, StageId, TableId};
use tenaz_csv::Chunk;

use super::engine::LocalEngine;
use crate::job_rows::{RecordPlace, RecordPlaces, lock};

/// Records that follow each other in a file, and are rows of a chunk.
pub(super) struct Piece {
    /// The index of the file within its table.
    file: usize,
    /// The place of their portion among all portions of the table.
    portion: u64,
    byte: u64,
    bytes: u64,
    line: u64,
    rows: u64,
}

impl Piece {
    /// Records that gave so many rows, of a portion with a file and a place among all portions.
    pub(super) fn new((file, portion): (usize, u64), records: &Chunk, rows: u64) -> Self {
        Self { file, portion, byte: records.byte, bytes: records.data.len() as u64, line: records.line, rows }
    }
}

/// The places of a chunk's rows. Its bytes have been given back, so they are read again.
pub(super) struct ReadPlaces<'a> {
    pub(super) engine: &'a LocalEngine<'a>,
    pub(super) scan: usize,
    pub(super) table: TableId,
    pub(super) pieces: &'a [Piece],
}

impl ReadPlaces<'_> {
    /// The number of the chunk's first portion. Portions are numbered in the order of the data, chunks of several threads are not.
    fn first_portion(&self) -> u64 {
        self.pieces.first().map_or(0, |piece| piece.portion)
    }

    /// The piece that a row is from, and which of its rows it is.
    fn piece_of(&self, row: usize) -> Option<(&Piece, u64)> {
        let mut row = row as u64;
        for piece in self.pieces {
            if row < piece.rows {
                return Some((piece, row));
            }
            row -= piece.rows;
        }
        None
    }
}

impl RecordPlaces for ReadPlaces<'_> {
    fn source(&self) -> Source {
        Source::Chunk { table: self.table, number: self.first_portion() }
    }

    fn are_wanted(&self, stage: StageId) -> bool {
        lock(&self.engine.failing_portions).get(&stage).is_none_or(|known| self.first_portion() < *known)
    }

    fn place_of(&self, stage: StageId, row: usize) -> Option<RecordPlace> {
        let (piece, row) = self.piece_of(row)?;
        let engine = self.engine;
        let data = engine.reader.read_again(self.table, piece.file, piece.byte..piece.byte + piece.bytes)?;
        let line = engine.rows.line_of_row(self.scan, &data, piece.line, row)?;
        let mut known = lock(&engine.failing_portions);
        let first = known.entry(stage).or_insert(piece.portion);
        *first = piece.portion.min(*first);
        let source = Source::Chunk { table: self.table, number: piece.portion };
        let file = engine.file_names[usize::from(self.table.0)].get(piece.file)?.clone();
        Some(RecordPlace { source, file, line })
    }
}
