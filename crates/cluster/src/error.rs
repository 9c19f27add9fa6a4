use tenaz_core::JobId;

/// What can go wrong between the processes of a cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The deployment's prefix cannot be part of a name.
    #[error("the prefix {0:?} is no good: use 1 to 32 letters, digits, '-' or '_'")]
    BadPrefix(String),
    /// The broker's fault, or the way to it.
    #[error(transparent)]
    Broker(#[from] tenaz_rabbit::Error),
    /// A message that nobody of this version can have written.
    #[error("a message in {place} cannot be read: {detail}; is another version of tenaz using the same prefix?")]
    BadMessage {
        /// Where it stood.
        place: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A job with this id exists and asks something else.
    #[error("job {0} exists and was created with another request")]
    OtherJob(JobId),
    /// No random numbers from the system.
    #[error("the system has no random numbers: {0}")]
    Random(String),
}

impl Error {
    /// Whether trying again later may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Broker(error) if error.is_temporary())
    }
}
