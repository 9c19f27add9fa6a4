//! Whether a file is still the one that was read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Tells one content of a file from another: a file of the same size that was written in the same moment has another inode or
/// time of change. `None`: there is no file.
pub(crate) type FileStamp = Option<(u64, u64, i64, i64, i64)>;

/// The stamp of the file that is there now.
pub(crate) fn file_stamp(path: &Path) -> FileStamp {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec(), found.ctime_nsec()))
}
