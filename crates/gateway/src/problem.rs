//! What went wrong with a request: RFC 9457 problem documents with stable codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

/// The stable codes. A program that acts on one of them may rely on its name and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    RequestTimeout,
    OtherRequest,
    Contradiction,
    AlreadyEnded,
    TooLarge,
    UnsupportedEncoding,
    Unprocessable,
    TooManyJobs,
    Internal,
    QueueFull,
    NoWorkers,
    BrokerAway,
    BrokerAlarm,
    Busy,
    ShuttingDown,
}

impl Code {
    #[cfg(test)]
    pub(crate) const ALL: [Code; 20] = [
        Code::BadRequest,
        Code::Unauthorized,
        Code::Forbidden,
        Code::NotFound,
        Code::MethodNotAllowed,
        Code::RequestTimeout,
        Code::OtherRequest,
        Code::Contradiction,
        Code::AlreadyEnded,
        Code::TooLarge,
        Code::UnsupportedEncoding,
        Code::Unprocessable,
        Code::TooManyJobs,
        Code::Internal,
        Code::QueueFull,
        Code::NoWorkers,
        Code::BrokerAway,
        Code::BrokerAlarm,
        Code::Busy,
        Code::ShuttingDown,
    ];

    /// Name, status, title, seconds after which to try again.
    fn facts(self) -> (&'static str, u16, &'static str, Option<u32>) {
        match self {
            Code::BadRequest => ("bad_request", 400, "The request cannot be understood", None),
            Code::Unauthorized => ("unauthorized", 401, "A valid token is needed", None),
            Code::Forbidden => ("forbidden", 403, "Requests of other web sites are refused", None),
            Code::NotFound => ("not_found", 404, "There is nothing here", None),
            Code::MethodNotAllowed => ("method_not_allowed", 405, "This cannot be done here", None),
            Code::RequestTimeout => ("request_timeout", 408, "The request came too slowly", None),
            Code::OtherRequest => ("other_request", 409, "The key was used for another request", None),
            Code::Contradiction => ("contradiction", 409, "This contradicts what was said before", None),
            Code::AlreadyEnded => ("already_ended", 409, "The job has ended", None),
            Code::TooLarge => ("too_large", 413, "Something is too large", None),
            Code::UnsupportedEncoding => ("unsupported_encoding", 415, "This encoding is not supported", None),
            Code::Unprocessable => ("unprocessable", 422, "The request makes no sense", None),
            Code::TooManyJobs => ("too_many_jobs", 429, "There are too many jobs", Some(10)),
            Code::Internal => ("internal", 500, "A fault in tenaz", None),
            Code::QueueFull => ("queue_full", 503, "The job's work queue is full", Some(1)),
            Code::NoWorkers => ("no_workers", 503, "No worker is alive", Some(5)),
            Code::BrokerAway => ("broker_away", 503, "The broker cannot be reached", Some(2)),
            Code::BrokerAlarm => ("broker_alarm", 503, "The broker is short of memory or disk", Some(10)),
            Code::Busy => ("busy", 503, "The gateway has too much to do", Some(2)),
            Code::ShuttingDown => ("shutting_down", 503, "The gateway is shutting down", Some(1)),
        }
    }

    /// Its name.
    #[cfg(test)]
    pub(crate) fn name(self) -> &'static str {
        self.facts().0
    }

    /// Its HTTP status.
    pub(crate) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.facts().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// A refused request.
#[derive(Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: String,
    extra: Vec<(&'static str, Value)>,
}

impl Problem {
    /// What happened, and what to do.
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), extra: Vec::new() }
    }

    /// The same with one more member.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.extra.push((name, value.into()));
        self
    }

    /// Its code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> Code {
        self.code
    }

    /// What happened.
    #[cfg(test)]
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// A fault of ours: the details go to the log.
    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed through a fault in tenaz");
        Self::new(Code::Internal, format!("{error}; this is a fault in tenaz"))
    }

    fn document(&self) -> Value {
        let (name, status, title, _) = self.code.facts();
        let mut document = Map::new();
        document.insert("type".to_owned(), json!(format!("urn:tenaz:{name}")));
        document.insert("title".to_owned(), json!(title));
        document.insert("status".to_owned(), json!(status));
        document.insert("detail".to_owned(), json!(self.detail));
        document.insert("code".to_owned(), json!(name));
        self.extra.iter().for_each(|(name, value)| {
            document.insert((*name).to_owned(), value.clone());
        });
        Value::Object(document)
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
            error if error.is_temporary() => Self::new(Code::BrokerAway, error.to_string()),
            error => Self::internal(error),
        }
    }
}

pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), self.document().to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if let Some(seconds) = self.code.facts().3 {
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
    use super::*;

    #[test]
    fn a_problem_names_its_code_and_when_to_come_back() {
        let problem = Problem::new(Code::QueueFull, "wait").with("job", "00");
        assert_eq!(
            problem.document(),
            json!({"type": "urn:tenaz:queue_full", "title": "The job's work queue is full", "status": 503,
                   "detail": "wait", "code": "queue_full", "job": "00"})
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
        let later = |code: &Code| matches!(code.status().as_u16(), 429 | 503);
        assert!(Code::ALL.iter().all(|code| later(code) == code.facts().3.is_some()));
    }
}
