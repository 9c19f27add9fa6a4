use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass};

use crate::rejects::RejectLine;

/// Why a job failed, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process cannot show itself.
    #[error(transparent)]
    Vitals(#[from] tenaz_vitals::Error),
    /// The data directory is not there.
    #[error("there is no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// No file of the data directory belongs to a table that a query needs.
    #[error("no file for table {table}: nothing in {} matches {patterns}", .dir.display())]
    NoFiles {
        /// The table.
        table: String,
        /// The data directory.
        dir: PathBuf,
        /// The patterns tried.
        patterns: String,
    },
    /// What matches the pattern of a table's files is something else.
    #[error("{} is {what}: name the files themselves in the workload, or move it away", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A table has more files than we are willing to open.
    #[error("table {table} has {found} files; the limit is {limit}")]
    TooManyFiles {
        /// The table.
        table: String,
        /// Files found.
        found: usize,
        /// The limit.
        limit: usize,
    },
    /// A data file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A data file has lost bytes while the job ran.
    #[error(
        "{} has become shorter since the job began, so its records are not all there; run again when nobody writes to it",
        .path.display()
    )]
    Shorter {
        /// The file.
        path: PathBuf,
    },
    /// A data file cannot be what the workload says.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: tenaz_csv::Error,
    },
    /// A data file cannot be read as CSV at all.
    #[error("{}: {source}", .path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        source: tenaz_source::Error,
    },
    /// The first bad record of a strict job.
    #[error("bad record in {}: {}", .0.place(), .0.reason_with_column())]
    Strict(Box<RejectLine>),
    /// Records got lost or doubled on the way: a fault of ours.
    #[error("table {table}: {imbalance}; this is a fault in tenaz, and the answers are withheld")]
    Imbalance {
        /// The table.
        table: String,
        /// The counts.
        imbalance: tenaz_core::Imbalance,
    },
    /// Whoever uploaded the data counted other records than there are.
    #[error(
        "{what}: {promised} records were announced, but {found} arrived; whoever uploaded it counted wrong, or sent other data"
    )]
    Miscounted {
        /// The table or chunk.
        what: String,
        /// Records announced.
        promised: u64,
        /// Records found.
        found: u64,
    },
    /// Planning or a task failed.
    #[error(transparent)]
    Engine(#[from] tenaz_engine::Error),
    /// A stage needs more memory than its task may have in this process.
    #[error("{error}")]
    TooLittleMemory {
        /// The stage.
        stage: tenaz_core::StageId,
        /// What was too much. It is no `source`: whoever shows errors with their sources would say the same twice.
        error: tenaz_engine::Error,
    },
    /// The parties of the protocol disagree: a fault of ours.
    #[error("{0}; this is a fault in tenaz")]
    Protocol(#[from] tenaz_core::Error),
    /// The answers were not made of one version of every chunk.
    #[error("{0}; the answers are withheld")]
    Mixed(String),
    /// A task panicked.
    #[error("{task} crashed: {message}; this is a fault in tenaz")]
    Crashed {
        /// What was being done, with the chunk named.
        task: String,
        /// The panic's text.
        message: String,
    },
    /// A temporary file cannot be written or read.
    #[error("cannot use a temporary file in {}: {source}; free some space or set TMPDIR to a roomier place", .dir.display())]
    Temporary {
        /// The directory.
        dir: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The cluster's fault, or the broker's.
    #[error(transparent)]
    Cluster(#[from] tenaz_cluster::Error),
    /// The user stopped the job.
    #[error("stopped")]
    Stopped,
}

impl From<datafusion::error::DataFusionError> for Error {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        Self::Engine(error.into())
    }
}

impl From<datafusion::arrow::error::ArrowError> for Error {
    fn from(error: datafusion::arrow::error::ArrowError) -> Self {
        Self::Engine(error.into())
    }
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
            Self::NoDirectory(_) => FaultClass::Query,
            Self::NoFiles { .. }
            | Self::NotAFile { .. }
            | Self::TooManyFiles { .. }
            | Self::Shorter { .. }
            | Self::Strict(_)
            | Self::Miscounted { .. }
            | Self::Mixed(_) => FaultClass::Data,
            // A file that is away or forbidden will be so for the next process; one that could not be opened for want of
            // file handles will not.
            Self::Unreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Data),
            Self::File { source, .. } => source.class(),
            Self::Source { source, .. } => source.class(),
            Self::Engine(error) | Self::TooLittleMemory { error, .. } => error.class(),
            Self::Cluster(error) => error.class(),
            Self::Vitals(error) => error.class(),
            // Whatever the protocol saw, in a running job it says "this is a fault in tenaz".
            Self::Imbalance { .. } | Self::Protocol(_) | Self::Crashed { .. } => FaultClass::Bug,
            // Another process may do what this one was told to leave. Programs that were stopped by their user look for
            // this variant before they ask for its class.
            Self::Temporary { .. } | Self::Stopped => FaultClass::Process,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_data_file_is_to_blame_unless_the_machine_has_run_out_of_something() {
        let unreadable = |kind| Error::Unreadable { path: "x.csv".into(), source: io::Error::from(kind) }.class();
        assert_eq!(unreadable(io::ErrorKind::NotFound), FaultClass::Data);
        assert_eq!(unreadable(io::ErrorKind::PermissionDenied), FaultClass::Data);
        assert_eq!(unreadable(io::ErrorKind::OutOfMemory), FaultClass::Process);
    }

    #[test]
    fn a_worker_gives_back_what_its_own_disk_or_memory_stopped() {
        let dir = PathBuf::from("/tmp");
        let full = Error::Temporary { dir, source: io::Error::from(io::ErrorKind::StorageFull) };
        assert_eq!(full.class(), FaultClass::Process);
        let memory = datafusion::error::DataFusionError::ResourcesExhausted("no memory left".to_owned());
        assert_eq!(Error::from(memory).class(), FaultClass::Process);
        // A spool that cannot be written passes through DataFusion on its way up.
        let wrapped = datafusion::error::DataFusionError::External(Box::new(full));
        assert_eq!(Error::from(wrapped).class(), FaultClass::Process);
        assert_eq!(
            Error::Protocol(tenaz_core::Error::Limit { what: "x", found: 2, limit: 1 }).class(),
            FaultClass::Bug
        );
    }
}
