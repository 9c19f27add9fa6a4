//! What went wrong with a request: RFC 9457 problem documents with stable codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
pub(crate) use tenaz_core::ProblemCode as Code;
use tenaz_core::{Classified, FaultClass};

/// What HTTP adds to a code: status, title, seconds after which to try again.
fn facts(code: Code) -> (u16, &'static str, Option<u32>) {
    match code {
        Code::BadRequest => (400, "The request cannot be understood", None),
        Code::Unauthorized => (401, "A valid token is needed", None),
        Code::Forbidden => (403, "This is not allowed", None),
        Code::NotFound => (404, "There is nothing here", None),
        Code::MethodNotAllowed => (405, "This cannot be done here", None),
        Code::RequestTimeout => (408, "The request came too slowly", None),
        Code::OtherRequest => (409, "The key was used for another request", None),
        Code::Contradiction => (409, "This contradicts what was said before", None),
        Code::ChunkConflict => (409, "The chunk was sent before with other bytes", None),
        Code::AlreadyEnded => (409, "The job has ended", None),
        Code::TooLarge => (413, "Something is too large", None),
        Code::UnsupportedEncoding => (415, "This encoding is not supported", None),
        Code::Unprocessable => (422, "The request makes no sense", None),
        Code::QueryFailed => (422, "The question could not be answered", None),
        Code::TooManyJobs => (429, "There are too many jobs", Some(10)),
        Code::Internal => (500, "A fault in tenaz", None),
        Code::QueueFull => (503, "The job's work queue is full", Some(1)),
        Code::NoWorkers => (503, "No worker is alive", Some(5)),
        Code::OtherBuild => (503, "The job belongs to another build of tenaz", Some(5)),
        Code::BeingCreated => (503, "The job is still being created", Some(1)),
        Code::BrokerAway => (503, "The broker cannot be reached", Some(2)),
        Code::BrokerAlarm => (503, "The broker is short of memory or disk", Some(10)),
        Code::Busy => (503, "The gateway has too much to do", Some(2)),
        Code::ShuttingDown => (503, "The gateway is shutting down", Some(1)),
    }
}

/// The HTTP status of a code.
pub(crate) fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(facts(code).0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A refused request.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    class: FaultClass,
    detail: String,
    extra: Vec<(&'static str, Value)>,
}

impl Problem {
    /// What happened, and what to do.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, class: code.class(), detail: detail.into(), extra: Vec::new() }
    }

    /// The same with one more member.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.extra.push((name, value.into()));
        self
    }

    /// The same as somebody else's fault than its code says.
    pub(crate) fn of_class(self, class: FaultClass) -> Self {
        Self { class, ..self }
    }

    /// Its code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// What happened.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// A fault of ours: the details go to the log.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed through a fault in tenaz");
        Self::new(Code::Internal, format!("{error}; this is a fault in tenaz"))
    }

    fn document(&self) -> tenaz_api::Problem {
        let name = self.code.name();
        let (status, title, _) = facts(self.code);
        tenaz_api::Problem {
            kind: format!("urn:tenaz:{name}"),
            title: title.to_owned(),
            status,
            detail: self.detail.clone(),
            code: name.to_owned(),
            class: Some(self.class),
            extra: self.extra.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        }
    }
}

impl From<tenaz_cluster::Error> for Problem {
    fn from(error: tenaz_cluster::Error) -> Self {
        match error {
            tenaz_cluster::Error::OtherJob(job) => Self::new(
                Code::OtherRequest,
                format!("job {job} was created with this Idempotency-Key by another request: use another key"),
            )
            .with("job", job.as_str()),
            error => match error.class() {
                FaultClass::Broker => Self::new(Code::BrokerAway, error.to_string()),
                FaultClass::Process => Self::new(Code::Busy, error.to_string()),
                FaultClass::Data | FaultClass::Query | FaultClass::Bug => Self::internal(error),
            },
        }
    }
}

/// A workload that cannot be planned.
impl From<tenaz_engine::Error> for Problem {
    fn from(error: tenaz_engine::Error) -> Self {
        match error.class() {
            FaultClass::Process | FaultClass::Broker => Self::new(Code::Busy, error.to_string()),
            FaultClass::Bug => Self::internal(error),
            class => Self::new(Code::Unprocessable, error.to_string()).of_class(class),
        }
    }
}

pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let document = serde_json::to_string(&self.document()).expect("a problem is plain data");
        let mut response = (status_of(self.code), document).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = facts(self.code).2 {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.code == Code::ShuttingDown {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_names_its_code_and_when_to_come_back() {
        let problem = Problem::new(Code::QueueFull, "wait").with("job", "00");
        assert_eq!(
            json!(problem.document()),
            json!({"type": "urn:tenaz:queue_full", "title": "The job's work queue is full", "status": 503,
                   "detail": "wait", "code": "queue_full", "class": "broker", "job": "00"})
        );
        let response = problem.into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
        assert_eq!(response.headers()[header::CONTENT_TYPE], PROBLEM_JSON);
    }

    #[test]
    fn codes_have_names_of_their_own_and_those_for_later_say_when() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
        let later = |code: &Code| matches!(status_of(*code).as_u16(), 429 | 503);
        assert!(Code::ALL.iter().all(|code| later(code) == facts(*code).2.is_some()));
        // What passes has a temporary class, and nothing else has. Slow clients are not told when to come back.
        let passes = |code: &Code| later(code) || *code == Code::RequestTimeout;
        assert!(Code::ALL.iter().all(|code| passes(code) == code.class().is_temporary()));
    }

    #[test]
    fn errors_of_the_cluster_become_problems_by_their_class() {
        use tenaz_cluster::Error as Cluster;
        use tenaz_rabbit::Error as Rabbit;
        let code = |error: Cluster| Problem::from(error).code();
        assert_eq!(code(Rabbit::Lost("gone".to_owned()).into()), Code::BrokerAway);
        assert_eq!(code(Rabbit::TooManyChannels { channels: 1 }.into()), Code::Busy);
        assert_eq!(code(Cluster::BadPrefix("?".to_owned())), Code::Internal);
        let planned = |error: tenaz_engine::Error| Problem::from(error).code();
        let wrong = tenaz_engine::Error::Sql { query: "q".into(), place: String::new(), message: "no".into() };
        assert_eq!(planned(wrong), Code::Unprocessable);
    }
}
