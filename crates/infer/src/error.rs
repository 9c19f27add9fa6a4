use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass};

/// Why no workload could be inferred. All but [`Error::Unreadable`] are for the user to put right.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory is not there.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// There is nothing to ask questions about.
    #[error("there are no CSV files in {}: files are looked for by their endings .csv, .tsv, .tab and .psv, also compressed (.csv.gz)", .0.display())]
    NoFiles(PathBuf),
    /// There are CSV files, but none can be used.
    #[error("no CSV file in {} can be used: {}", .dir.display(), .notes.join("; "))]
    NothingUsable {
        /// The data directory.
        dir: PathBuf,
        /// What is wrong with each file.
        notes: Vec<String>,
    },
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file cannot be read as CSV at all.
    #[error("{}: {source}", .path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        source: tenaz_source::Error,
    },
    /// There is more than we are willing to look at.
    #[error("{} has more than {limit} {what}; name a smaller directory", .dir.display())]
    TooMany {
        /// The data directory.
        dir: PathBuf,
        /// Files or tables.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A user's type that means nothing.
    #[error("--types {entry}: {problem}; {cure}")]
    Types {
        /// The part of the list.
        entry: String,
        /// What is wrong.
        problem: String,
        /// What to write instead.
        cure: String,
    },
}

impl Error {
    /// What is wrong with a file, as the source of its bytes says.
    pub(crate) fn of_source(path: &std::path::Path, source: tenaz_source::Error) -> Self {
        let path = path.to_owned();
        match source {
            tenaz_source::Error::Io(source) => Self::Unreadable { path, source },
            source => Self::Source { path, source },
        }
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::NoDirectory(_) | Self::Types { .. } => FaultClass::Query,
            Self::NoFiles(_) | Self::NothingUsable { .. } | Self::TooMany { .. } => FaultClass::Data,
            Self::Unreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Data),
            Self::Source { source, .. } => source.class(),
        }
    }
}
