use std::path::PathBuf;

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
    /// The outside world, for the moment: no gateway could do it for as long as the user is willing to wait.
    #[error("no gateway could be of use for {seconds} s: {reason}; try again later")]
    Away {
        /// How long.
        seconds: u64,
        /// What the last one said, or why it could not be reached.
        reason: String,
    },
    /// The gateway wants a token, or another one.
    #[error("{url} wants a token that it knows: set TENAZ_TOKEN, or write --token TOKEN")]
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
    /// Whether the same command may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    /// Whether the job is over, or was never there: there is nothing to resume.
    pub fn is_end_of_job(&self) -> bool {
        matches!(self, Self::NoJob { .. } | Self::Failed { .. } | Self::Cancelled { .. } | Self::Expired { .. })
    }
}
