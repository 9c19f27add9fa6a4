//! What the cluster has of a table, compared with the files here: a file may have been changed since its upload began.

use tenaz_core::ChunkDigest;

use crate::cut::{Piece, Place, TableFiles};
use crate::{Error, Gateways};

/// The digests of a table's chunks, asked for page by page in the order in which its files are cut.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    gateways: &'a Gateways,
    job: &'a str,
    table: &'a TableFiles,
    first: u64,
    page: Vec<Option<ChunkDigest>>,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(gateways: &'a Gateways, job: &'a str, table: &'a TableFiles) -> Self {
        Self { gateways, job, table, first: 0, page: Vec::new() }
    }

    /// Whether a chunk that the cluster has is the one here.
    ///
    /// # Errors
    /// Names the file and the chunk if it is another.
    pub(crate) fn check(&mut self, piece: &Piece) -> Result<(), Error> {
        match self.digest(piece.number)? {
            Some(known) if known != ChunkDigest::of(&piece.chunk.data) => {
                Err(changed(self.job, self.table, piece.number, piece.place()))
            }
            _ => Ok(()),
        }
    }

    fn digest(&mut self, number: u64) -> Result<Option<ChunkDigest>, Error> {
        if !(self.first..self.first + self.page.len() as u64).contains(&number) {
            self.first = number;
            self.page = self.gateways.digests(self.job, &self.table.name, number)?;
        }
        Ok(self.page.get((number - self.first) as usize).copied().flatten())
    }
}

/// The chunk at this place is not the one that the cluster has.
pub(crate) fn changed(job: &str, table: &TableFiles, number: u64, place: Place) -> Error {
    Error::ChunkChanged {
        job: job.to_owned(),
        file: table.files[place.file as usize].name.clone(),
        table: table.name.clone(),
        chunk: number,
        line: place.line,
    }
}
