//! The chunks of a table: cut at the same places and numbered alike whenever its files are read.

use std::io::{Read, Seek, SeekFrom, copy, sink};
use std::path::PathBuf;
use std::sync::Arc;

use tenaz_core::limits::MAX_CHUNKS;
use tenaz_csv::{Chunk, Chunker, Layout};
use tenaz_source::{FileFormat, Opened};

use crate::Error;

/// One file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// The path to open.
    pub path: PathBuf,
    /// The path as reports name it: relative to the data directory.
    pub name: String,
    /// Its size when it was found.
    pub bytes: u64,
    /// Columns whose value stands in its path.
    pub constants: Vec<(String, String)>,
}

/// The files of a table, in their order.
#[derive(Debug, Clone)]
pub struct TableFiles {
    /// The table.
    pub name: String,
    /// The shape of a record.
    pub layout: Arc<Layout>,
    /// How the files are written.
    pub format: FileFormat,
    /// Its files.
    pub files: Vec<SourceFile>,
}

impl TableFiles {
    /// The bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// More chunks than there can be: two neighbours of one file together are larger than `chunk_bytes`. A file that has to be
    /// unpacked or rewritten may have any number of them.
    pub fn most_chunks(&self, chunk_bytes: u64) -> u64 {
        let of_file = |file: &SourceFile| match open(file, &self.format) {
            Ok(Opened::Plain(_)) => 2 * file.bytes.div_ceil(chunk_bytes.max(1)) + 2,
            Ok(Opened::Stream { .. }) | Err(_) => MAX_CHUNKS,
        };
        self.files.iter().fold(0, |most, file| of_file(file).saturating_add(most)).min(MAX_CHUNKS)
    }
}

/// A chunk with its number within the table.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) number: u64,
    /// The index of its file.
    pub(crate) file: usize,
    /// Bytes of the file that end with this chunk and were not counted before (header included).
    pub(crate) file_bytes: u64,
    pub(crate) chunk: Chunk,
}

/// Where a chunk is, to read it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) file: u32,
    pub(crate) length: u32,
    pub(crate) byte: u64,
    pub(crate) line: u64,
    pub(crate) records: u64,
}

impl Piece {
    pub(crate) fn place(&self) -> Place {
        let Chunk { byte, line, records, .. } = self.chunk;
        Place { file: self.file as u32, length: self.chunk.data.len() as u32, byte, line, records }
    }
}

impl Place {
    /// The chunk's bytes, once more.
    pub(crate) fn read(&self, table: &TableFiles) -> Result<Vec<u8>, Error> {
        let file = &table.files[self.file as usize];
        let opened = open(file, &table.format)?;
        let read = || {
            let mut data = vec![0; self.length as usize];
            match opened {
                Opened::Plain(mut open) => {
                    open.seek(SeekFrom::Start(self.byte))?;
                    open.read_exact(&mut data)?;
                }
                // A stream has no other way to a place than from its beginning.
                Opened::Stream { mut reader, .. } => {
                    copy(&mut (&mut reader).take(self.byte), &mut sink())?;
                    reader.read_exact(&mut data)?;
                }
            }
            Ok(data)
        };
        read().map_err(|source| Error::Unreadable { path: file.path.clone(), source })
    }
}

/// Cuts the files of a table, one after the other.
pub(crate) struct Cutter<'a> {
    table: &'a TableFiles,
    chunk_bytes: usize,
    file: usize,
    open: Option<Chunker<Box<dyn Read + Send>>>,
    counted: u64,
    number: u64,
}

impl<'a> Cutter<'a> {
    pub(crate) fn new(table: &'a TableFiles, chunk_bytes: usize) -> Self {
        Self { table, chunk_bytes, file: 0, open: None, counted: 0, number: 0 }
    }

    /// The next chunk; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Piece>, Error> {
        while let Some(file) = self.table.files.get(self.file) {
            let mut chunker = match self.open.take() {
                Some(chunker) => chunker,
                None => {
                    self.counted = 0;
                    let reader = open(file, &self.table.format)?.into_reader();
                    Chunker::new(reader, &self.table.layout, self.chunk_bytes)
                }
            };
            if let Some(chunk) = chunker.next_chunk().map_err(|source| of_file(file, source))? {
                let end = chunk.byte + chunk.data.len() as u64;
                let piece = Piece { number: self.number, file: self.file, file_bytes: end - self.counted, chunk };
                self.counted = end;
                self.number += 1;
                self.open = Some(chunker);
                return Ok(Some(piece));
            }
            still_as_found(file)?;
            self.file += 1;
        }
        Ok(None)
    }
}

pub(crate) fn open(file: &SourceFile, format: &FileFormat) -> Result<Opened, Error> {
    tenaz_source::open(&file.path, format, &file.constants).map_err(|source| match source {
        tenaz_source::Error::Io(source) => Error::Unreadable { path: file.path.clone(), source },
        source => Error::Source { path: file.path.clone(), source },
    })
}

pub(crate) fn of_file(file: &SourceFile, source: tenaz_csv::Error) -> Error {
    match source {
        tenaz_csv::Error::Io(source) => Error::Unreadable { path: file.path.clone(), source },
        source => Error::File { path: file.path.clone(), source },
    }
}

/// A file that grows while it is read would be cut at other places the next time.
fn still_as_found(file: &SourceFile) -> Result<(), Error> {
    let now =
        std::fs::metadata(&file.path).map_err(|source| Error::Unreadable { path: file.path.clone(), source })?.len();
    if now == file.bytes { Ok(()) } else { Err(Error::Changed { path: file.path.clone(), before: file.bytes, now }) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tenaz_csv::{Column, Kind};

    use super::*;

    fn table(dir: &std::path::Path, texts: &[&str]) -> TableFiles {
        let file = |(index, text): (usize, &&str)| {
            let name = format!("t_{index}.csv");
            let path = dir.join(&name);
            std::fs::write(&path, text).unwrap();
            SourceFile { path, name, bytes: text.len() as u64, constants: Vec::new() }
        };
        let layout = Layout::new(vec![Column::new("a", Kind::Text), Column::new("b", Kind::Text)]);
        TableFiles {
            name: "t".to_owned(),
            layout: Arc::new(layout),
            format: FileFormat { has_header: true, ..FileFormat::default() },
            files: texts.iter().enumerate().map(file).collect(),
        }
    }

    fn cut(table: &TableFiles, chunk_bytes: usize) -> Vec<Piece> {
        let mut cutter = Cutter::new(table, chunk_bytes);
        std::iter::from_fn(|| cutter.next().unwrap()).collect()
    }

    #[test]
    fn chunks_are_numbered_over_all_files_and_can_be_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let table = table(dir.path(), &["a,b\n1,2\n3,4\n\"5\n\",6\n", "a,b\n", "a,b\r\n7,8\r\n"]);
        let pieces = cut(&table, 4);
        let seen: Vec<_> = pieces.iter().map(|p| (p.number, p.file, p.chunk.byte, p.chunk.line)).collect();
        assert_eq!(seen, [(0, 0, 4, 2), (1, 0, 8, 3), (2, 0, 12, 4), (3, 2, 5, 2)]);
        assert_eq!(pieces.iter().map(|p| p.file_bytes).sum::<u64>(), 19 + 10, "headers of files with records included");
        for piece in &pieces {
            assert_eq!(piece.place().read(&table).unwrap(), &piece.chunk.data[..]);
        }
        assert!(pieces.len() as u64 <= table.most_chunks(4));
    }

    #[test]
    fn a_file_that_grew_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let mut table = table(dir.path(), &["a,b\n1,2\n"]);
        table.files[0].bytes = 4;
        let mut cutter = Cutter::new(&table, 100);
        assert!(cutter.next().unwrap().is_some());
        assert!(matches!(cutter.next(), Err(Error::Changed { before: 4, now: 8, .. })));
    }
}
