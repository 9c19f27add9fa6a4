use tenaz_core::{Classified, FaultClass};

/// A file cannot be read as CSV. The path is the caller's to add.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system, or a damaged compressed file, says no.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The bytes are a known format that is not CSV.
    #[error("this is {what}, not CSV; {cure}")]
    NotCsv {
        /// The format, with its article.
        what: &'static str,
        /// What to do about it.
        cure: &'static str,
    },
    /// An encoding that nobody knows.
    #[error(
        "there is no encoding {name:?}; write utf-8, utf-16, windows-1252, iso-8859-15, shift_jis or another name of the WHATWG's list"
    )]
    UnknownEncoding {
        /// What was written.
        name: String,
    },
    /// A dialect that cannot be read.
    #[error("{problem}; {cure}")]
    Dialect {
        /// What is wrong with it.
        problem: String,
        /// What to write instead.
        cure: String,
    },
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            // A file that is away, forbidden or damaged will be so for the next process, too.
            Self::Io(error) => FaultClass::of_system_error(error, FaultClass::Data),
            Self::NotCsv { .. } => FaultClass::Data,
            Self::UnknownEncoding { .. } | Self::Dialect { .. } => FaultClass::Query,
        }
    }
}
