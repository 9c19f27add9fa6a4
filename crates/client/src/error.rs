use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass};

use crate::api::ErrorRecord;

/// Why the client gave up, by whose fault it is.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The user: not the address of a gateway.
    #[error("{url:?} is not the address of a gateway: {why}; write http://HOST:PORT, several separated by commas")]
    Address {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The user: anybody between here and the gateway could read the token.
    #[error(
        "the token would travel to {url} in clear: use https:// (--ca-file names the authority), or --insecure-token-over-http if \
         the network between is yours"
    )]
    TokenInClear {
        /// The gateway.
        url: String,
    },
    /// The gateway's certificate is not believed, or it speaks no TLS.
    #[error("{url} is not believed to be the gateway: {why}; --ca-file names the certificates to believe")]
    Untrusted {
        /// The gateway.
        url: String,
        /// What is wrong with its certificate, or with what it says.
        why: String,
    },
    /// The user: the certificates to believe cannot be read.
    #[error("{}: {problem}; --ca-file wants the certificates of the gateways' authority, in PEM", .path.display())]
    Authorities {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The outside world, for the moment: no gateway could do it for as long as the user is willing to wait.
    #[error("no gateway could be of use for {seconds} s: {reason}; try again later")]
    Away {
        /// How long.
        seconds: u64,
        /// What the last one said, or why it could not be reached.
        reason: String,
    },
    /// The gateway wants a token, or another one.
    #[error("{url} wants a token that it knows: set TENAZ_TOKEN, or write --token-file FILE")]
    Unauthorized {
        /// The gateway.
        url: String,
    },
    /// A gateway understood the request and refused it.
    #[error("{detail}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The stable code of the reason.
        code: String,
        /// Whose fault it is; never a temporary class, because those requests are repeated.
        class: FaultClass,
        /// What happened and what to do.
        detail: String,
    },
    /// Something answers that is not a gateway, or not one of this version.
    #[error("{url} does not answer as a gateway of tenaz: {what}")]
    NotAGateway {
        /// The gateway.
        url: String,
        /// What it said.
        what: String,
    },
    /// The job is not there.
    #[error(
        "there is no job {job}: it was fetched or cancelled and then forgotten, it expired, or it belongs to another token"
    )]
    NoJob {
        /// The job.
        job: String,
    },
    /// The job failed.
    #[error("job {job} failed: {text}")]
    Failed {
        /// The job.
        job: String,
        /// The stable code of the reason.
        code: String,
        /// Whose fault it is.
        class: FaultClass,
        /// What happened.
        text: String,
    },
    /// Somebody cancelled the job.
    #[error("job {job} was cancelled")]
    Cancelled {
        /// The job.
        job: String,
    },
    /// Nobody went on with the job for too long.
    #[error("job {job} expired: nobody went on with it for too long, and its data is gone; submit it again")]
    Expired {
        /// The job.
        job: String,
    },
    /// A data file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A data file cannot be read as CSV at all.
    #[error("{}: {source}", .path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// What it is instead, and what to do.
        source: tenaz_source::Error,
    },
    /// A data file cannot be what the workload says.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: tenaz_csv::Error,
    },
    /// A data file was changed while it was sent.
    #[error("{} had {before} bytes and now has {now}: it was changed while it was sent; submit the job again", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Its size when it was found.
        before: u64,
        /// Its size now.
        now: u64,
    },
    /// The files here are not those that the job was made for.
    #[error("these are not the files of job {job}: {file} {what}")]
    OtherFiles {
        /// The job.
        job: String,
        /// The file that differs.
        file: String,
        /// How it differs.
        what: String,
    },
    /// A file was changed after a part of it had been sent.
    #[error(
        "{file} was changed since job {job} was begun: chunk {chunk} of table {table}, from line {line}, has other bytes than \
         those that the cluster has; bring the old file back and resume, or submit the job again"
    )]
    ChunkChanged {
        /// The job.
        job: String,
        /// The file.
        file: String,
        /// Its table.
        table: String,
        /// The chunk.
        chunk: u64,
        /// The line where the chunk begins.
        line: u64,
    },
    /// A chunk cannot be compressed.
    #[error("a chunk cannot be compressed: {0}")]
    Compress(std::io::Error),
    /// A fault of ours.
    #[error("{0}; this is a fault in tenaz")]
    Fault(String),
    /// The user stopped us.
    #[error("stopped")]
    Stopped,
}

impl Error {
    /// The end of a job that failed.
    pub(crate) fn failed(job: &str, error: ErrorRecord) -> Self {
        let ErrorRecord { code, text, class, .. } = error;
        Self::Failed { job: job.to_owned(), code, class, text }
    }

    /// Whether the job is over, or was never there: there is nothing to resume.
    pub fn is_end_of_job(&self) -> bool {
        matches!(self, Self::NoJob { .. } | Self::Failed { .. } | Self::Cancelled { .. } | Self::Expired { .. })
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Away { .. } => FaultClass::Broker,
            Self::Refused { class, .. } | Self::Failed { class, .. } => *class,
            Self::Address { .. }
            | Self::TokenInClear { .. }
            | Self::Authorities { .. }
            | Self::Untrusted { .. }
            | Self::Unauthorized { .. }
            | Self::NotAGateway { .. }
            | Self::NoJob { .. }
            | Self::Cancelled { .. } => FaultClass::Query,
            Self::Expired { .. } | Self::Changed { .. } | Self::OtherFiles { .. } | Self::ChunkChanged { .. } => {
                FaultClass::Data
            }
            Self::Unreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Data),
            Self::File { source, .. } => source.class(),
            Self::Source { source, .. } => source.class(),
            // Compression writes to memory only.
            Self::Compress(_) | Self::Fault(_) => FaultClass::Bug,
            // Another client may go on with the job. Programs that were stopped by their user look for this variant before
            // they ask for its class.
            Self::Stopped => FaultClass::Process,
        }
    }
}
