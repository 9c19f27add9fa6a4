//! The stable codes of refused requests, shared by gateways and clients.

use crate::FaultClass;

/// Why a gateway refuses a request. A program that acts on a code may rely on its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProblemCode {
    /// The request cannot be understood.
    BadRequest,
    /// A valid token is needed.
    Unauthorized,
    /// Requests of other web sites are refused.
    Forbidden,
    /// There is nothing here.
    NotFound,
    /// The method does not exist here.
    MethodNotAllowed,
    /// The request came too slowly.
    RequestTimeout,
    /// The idempotency key was used for another request.
    OtherRequest,
    /// The request contradicts an earlier one.
    Contradiction,
    /// The chunk was sent before with other bytes.
    ChunkConflict,
    /// The job has ended.
    AlreadyEnded,
    /// Something is over a limit.
    TooLarge,
    /// The encoding is not supported.
    UnsupportedEncoding,
    /// The request makes no sense.
    Unprocessable,
    /// The question could not be answered, though its job is done.
    QueryFailed,
    /// There are too many jobs.
    TooManyJobs,
    /// A fault in tenaz.
    Internal,
    /// The job's work queue is full: the job advances, and its workers have to catch up.
    QueueFull,
    /// No worker is alive.
    NoWorkers,
    /// The job belongs to another build of tenaz.
    OtherBuild,
    /// The job is still being created.
    BeingCreated,
    /// The broker cannot be reached.
    BrokerAway,
    /// The broker is short of memory or disk.
    BrokerAlarm,
    /// The gateway has too much to do.
    Busy,
    /// The gateway is shutting down.
    ShuttingDown,
}

impl ProblemCode {
    /// All codes.
    pub const ALL: [ProblemCode; 24] = [
        Self::BadRequest,
        Self::Unauthorized,
        Self::Forbidden,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::RequestTimeout,
        Self::OtherRequest,
        Self::Contradiction,
        Self::ChunkConflict,
        Self::AlreadyEnded,
        Self::TooLarge,
        Self::UnsupportedEncoding,
        Self::Unprocessable,
        Self::QueryFailed,
        Self::TooManyJobs,
        Self::Internal,
        Self::QueueFull,
        Self::NoWorkers,
        Self::OtherBuild,
        Self::BeingCreated,
        Self::BrokerAway,
        Self::BrokerAlarm,
        Self::Busy,
        Self::ShuttingDown,
    ];

    /// The name of the code in a problem document.
    pub fn name(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::RequestTimeout => "request_timeout",
            Self::OtherRequest => "other_request",
            Self::Contradiction => "contradiction",
            Self::ChunkConflict => "chunk_conflict",
            Self::AlreadyEnded => "already_ended",
            Self::TooLarge => "too_large",
            Self::UnsupportedEncoding => "unsupported_encoding",
            Self::Unprocessable => "unprocessable",
            Self::QueryFailed => "query_failed",
            Self::TooManyJobs => "too_many_jobs",
            Self::Internal => "internal",
            Self::QueueFull => "queue_full",
            Self::NoWorkers => "no_workers",
            Self::OtherBuild => "other_build",
            Self::BeingCreated => "being_created",
            Self::BrokerAway => "broker_away",
            Self::BrokerAlarm => "broker_alarm",
            Self::Busy => "busy",
            Self::ShuttingDown => "shutting_down",
        }
    }

    /// The code with this name; none for codes of other versions and of proxies.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }

    /// Whose fault it is, unless the problem knows better. Clients repeat requests whose problem has a temporary class, and
    /// go to another gateway at once if it is this one's.
    pub fn class(self) -> FaultClass {
        match self {
            Self::BadRequest
            | Self::Unauthorized
            | Self::Forbidden
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::OtherRequest
            | Self::AlreadyEnded
            | Self::TooLarge
            | Self::UnsupportedEncoding
            | Self::Unprocessable
            | Self::QueryFailed => FaultClass::Query,
            Self::Contradiction | Self::ChunkConflict => FaultClass::Data,
            Self::OtherBuild | Self::Busy | Self::ShuttingDown => FaultClass::Process,
            // All gateways of the cluster would say the same.
            Self::RequestTimeout
            | Self::TooManyJobs
            | Self::QueueFull
            | Self::NoWorkers
            | Self::BeingCreated
            | Self::BrokerAway
            | Self::BrokerAlarm => FaultClass::Broker,
            Self::Internal => FaultClass::Bug,
        }
    }

    /// Whether the request would succeed if it only waited: the work that it belongs to advances meanwhile. Such a wait costs a
    /// client no patience.
    pub fn job_advances(self) -> bool {
        self == Self::QueueFull
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_its_name_and_has_one_of_its_own() {
        for code in ProblemCode::ALL {
            assert_eq!(ProblemCode::parse(code.name()), Some(code));
        }
        assert_eq!(ProblemCode::parse("teapot"), None);
    }
}
