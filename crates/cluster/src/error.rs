use tenaz_core::{Classified, FaultClass, JobId};

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
    /// The broker is there, but its registry stream is not.
    #[error(
        "the broker has not given out stream '{stream}' for {} s: it may still be recovering (try again), or it lost the \
         stream in a crash just after creating it (then delete the stream with rabbitmqctl, or use another --prefix)",
        .waited.as_secs()
    )]
    NoRegistry {
        /// The stream.
        stream: String,
        /// How long it was waited for.
        waited: std::time::Duration,
    },
    /// No random numbers from the system.
    #[error("the system has no random numbers: {0}")]
    Random(String),
}

impl Error {
    /// Whether trying again later may help.
    pub fn is_temporary(&self) -> bool {
        self.class().is_temporary()
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Broker(error) => error.class(),
            Self::NoRegistry { .. } => FaultClass::Broker,
            Self::BadPrefix(_) | Self::OtherJob(_) => FaultClass::Query,
            // Nothing that a user asks or sends can write such a message.
            Self::BadMessage { .. } => FaultClass::Bug,
            Self::Random(_) => FaultClass::Process,
        }
    }
}
