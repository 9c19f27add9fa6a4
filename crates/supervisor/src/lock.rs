//! Locks that the kernel lets go of when their holder dies: flock on a file.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::Error;
use crate::limits::LOCK_POLL;

/// Held until it is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

impl FileLock {
    /// The lock, unless someone has it.
    pub(crate) fn attempt(path: &Path) -> Result<Option<Self>, Error> {
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.open(path).map_err(Error::file("open", path))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Error::file("lock", path)(error.into())),
            }
            // Someone may have removed the file while we opened it: then the lock is of a file that nobody else finds.
            let same = |a: &std::fs::Metadata, b: &std::fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
            match (file.metadata(), std::fs::metadata(path)) {
                (Ok(ours), Ok(there)) if same(&ours, &there) => return Ok(Some(Self { file })),
                _ => continue,
            }
        }
    }

    /// The lock, if whoever has it lets go in time. Blocks the thread.
    pub(crate) fn within(path: &Path, patience: Duration) -> Result<Option<Self>, Error> {
        let deadline = Instant::now() + patience;
        loop {
            match Self::attempt(path)? {
                None if Instant::now() < deadline => std::thread::sleep(LOCK_POLL),
                found => return Ok(found),
            }
        }
    }

    /// The file that is locked.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Not by closing alone: a child that is being started at this moment has the same file open until its exec.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// The process that holds a lock, as the kernel lists it.
pub(crate) fn holder(path: &Path) -> Option<u32> {
    let inode = format!(":{}", std::fs::metadata(path).ok()?.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        // `1: FLOCK  ADVISORY  WRITE 1234 fd:01:98765 0 EOF`; waiting ones have `->` after the number.
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", pid, file, ..] = fields.as_slice() else { return None };
        if file.ends_with(&inode) { pid.parse().ok() } else { None }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_waiting_for_it_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = FileLock::attempt(&path).unwrap().unwrap();
        assert!(FileLock::attempt(&path).unwrap().is_none());
        assert!(FileLock::within(&path, Duration::from_millis(20)).unwrap().is_none());
        assert_eq!(holder(&path), Some(std::process::id()));
        drop(held);
        let held = FileLock::attempt(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(FileLock::attempt(&path).unwrap().is_some(), "a removed file is not in the way");
        drop(held);
    }
}
