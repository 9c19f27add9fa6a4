//! One output file: written as `<name>.part`, given its own name when complete.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Written};

/// Bytes gathered before a write: large enough to make the system call cheap, small enough to stay in the L2 cache.
const FLUSH_AT: usize = 256 * 1024;
/// Room past [`FLUSH_AT`] for the records that cross it, so that the buffer seldom grows.
const HEADROOM: usize = 64 * 1024;

/// Adds up what all files of a run have written and passes it on.
pub(crate) struct Progress<'a> {
    bytes: AtomicU64,
    report: &'a (dyn Fn(u64) + Sync),
}

impl<'a> Progress<'a> {
    pub(crate) fn new(report: &'a (dyn Fn(u64) + Sync)) -> Self {
        Self { bytes: AtomicU64::new(0), report }
    }

    fn add(&self, bytes: u64) {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        (self.report)(before + bytes);
    }
}

/// A file being written. Dropped before [`Sink::finish`], it removes what it wrote.
pub(crate) struct Sink<'a> {
    progress: &'a Progress<'a>,
    path: PathBuf,
    part: PathBuf,
    file: File,
    buffer: Vec<u8>,
    written: Written,
    complete: bool,
}

impl<'a> Sink<'a> {
    /// Opens `<path>.part`, making the directories above it, and writes `header`, a line without its end.
    pub(crate) fn create(path: PathBuf, header: &str, progress: &'a Progress<'a>) -> Result<Self, Error> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|source| Error::io("create the directory", parent, source))?;
        }
        let part = part_path(&path);
        let file = File::create(&part).map_err(|source| Error::io("create the file", &part, source))?;
        let mut buffer = Vec::with_capacity(FLUSH_AT + HEADROOM);
        buffer.extend_from_slice(header.as_bytes());
        buffer.push(b'\n');
        Ok(Self { progress, path, part, file, buffer, written: Written::default(), complete: false })
    }

    /// Where the next record goes.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Counts `records` that were appended to the buffer, and writes the buffer out when it is full.
    #[inline]
    pub(crate) fn appended(&mut self, records: u64) -> Result<(), Error> {
        self.written.records += records;
        if self.buffer.len() >= FLUSH_AT { self.flush() } else { Ok(()) }
    }

    /// Appends a block of `records` made elsewhere.
    pub(crate) fn append_block(&mut self, block: &[u8], records: u64) -> Result<(), Error> {
        self.buffer.extend_from_slice(block);
        self.appended(records)
    }

    /// Writes the rest and gives the file its own name.
    pub(crate) fn finish(mut self) -> Result<Written, Error> {
        self.flush()?;
        fs::rename(&self.part, &self.path).map_err(|source| Error::io("give the file its name", &self.path, source))?;
        self.complete = true;
        self.written.files = 1;
        Ok(self.written)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write_all(&self.buffer).map_err(|source| Error::io("write", &self.part, source))?;
        let bytes = self.buffer.len() as u64;
        self.buffer.clear();
        self.written.bytes += bytes;
        self.progress.add(bytes);
        Ok(())
    }
}

impl Drop for Sink<'_> {
    fn drop(&mut self) {
        if !self.complete {
            // The run has failed already; a leftover `.part` is only untidy, so this failing too is not worth a word.
            let _ = fs::remove_file(&self.part);
        }
    }
}

fn part_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".part");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_complete_and_no_part_stays_behind() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("deep/a.csv");
        let progress = Progress::new(&|_| {});
        let sink = Sink::create(path.clone(), "x", &progress).expect("create");
        assert!(part_path(&path).exists() && !path.exists());
        drop(sink);
        assert!(!part_path(&path).exists() && !path.exists());

        let mut sink = Sink::create(path.clone(), "x", &progress).expect("create");
        sink.buffer().extend_from_slice(b"1\n");
        sink.appended(1).expect("append");
        let written = sink.finish().expect("finish");
        assert_eq!(written, Written { files: 1, bytes: 4, records: 1 });
        assert_eq!(fs::read(&path).expect("read"), b"x\n1\n");
        assert!(!part_path(&path).exists());
    }

    #[test]
    fn errors_name_the_path() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        fs::write(dir.path().join("taken"), "").expect("write");
        let progress = Progress::new(&|_| {});
        let error = Sink::create(dir.path().join("taken/a.csv"), "x", &progress).err().expect("a file is in the way");
        assert!(error.to_string().contains("taken"), "{error}");
    }
}
