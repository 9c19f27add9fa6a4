//! The one error type. Only the file system can fail; the rest are requests that make no sense.

use std::io;
use std::path::{Path, PathBuf};

use tenaz_core::{Classified, FaultClass};

use crate::scale::{SCALE_MAX, SCALE_MIN};

/// Why no data (or not all of it) was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The caller asked for more or less than can be made.
    #[error("scale {found} is out of range: expected a number from {SCALE_MIN} to {SCALE_MAX} (1 is the real volume)")]
    Scale {
        /// What was asked for.
        found: f64,
    },
    /// The caller named a data set that does not exist.
    #[error("unknown data set '{found}': expected coffee, steam or books")]
    UnknownDataset {
        /// The name that was given.
        found: String,
    },
    /// The output path is taken by something that is not a directory.
    #[error("{}: is a file, expected a directory to write into: name another path or remove the file", path.display())]
    NotADirectory {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{}: could not {action}: {source}", path.display())]
    Io {
        /// What was being done, as a verb phrase.
        action: &'static str,
        /// To which file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Scale { .. } | Self::UnknownDataset { .. } | Self::NotADirectory { .. } => FaultClass::Query,
            // The path that the user chose, unless the machine has run out of something.
            Self::Io { source, .. } => FaultClass::of_system_error(source, FaultClass::Query),
        }
    }
}
