//! Refused requests, as problem documents (RFC 9457) with the codes of the gateway.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tenaz_core::{Classified, ProblemCode};

/// A refused request.
#[derive(Debug)]
pub(crate) struct Problem {
    code: ProblemCode,
    detail: String,
    /// More members.
    extra: Vec<(&'static str, Value)>,
}

impl Problem {
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), extra: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.extra.push((name, value.into()));
        self
    }

    pub(crate) fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(ProblemCode::NotFound, format!("there is no {what}"))
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        tracing::error!(%error, "a request failed through a fault in tenaz");
        Self::new(ProblemCode::Internal, format!("{error}; this is a fault in tenaz"))
    }

    /// A question that cannot be planned.
    pub(crate) fn of_question(error: &(impl std::fmt::Display + Classified)) -> Self {
        let code = match error.class() {
            tenaz_core::FaultClass::Bug => ProblemCode::Internal,
            class if class.is_temporary() => ProblemCode::Busy,
            _ => ProblemCode::Unprocessable,
        };
        Self::new(code, error.to_string())
    }

    /// The system's reason why a file could not be read or written.
    pub(crate) fn of_file(error: &std::io::Error) -> Self {
        let full = matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        let cure = if full { "; set TMPDIR to a directory with more room" } else { "" };
        Self::new(ProblemCode::Busy, format!("a temporary file cannot be used: {error}{cure}"))
    }
}

fn status_of(code: ProblemCode) -> StatusCode {
    match code {
        ProblemCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ProblemCode::Forbidden => StatusCode::FORBIDDEN,
        ProblemCode::NotFound => StatusCode::NOT_FOUND,
        ProblemCode::BadRequest => StatusCode::BAD_REQUEST,
        ProblemCode::Contradiction | ProblemCode::AlreadyEnded => StatusCode::CONFLICT,
        ProblemCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ProblemCode::Unprocessable | ProblemCode::QueryFailed => StatusCode::UNPROCESSABLE_ENTITY,
        ProblemCode::TooManyJobs => StatusCode::TOO_MANY_REQUESTS,
        ProblemCode::Busy => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (name, status) = (self.code.name(), status_of(self.code));
        let mut document = json!({
            "type": format!("urn:tenaz:{name}"),
            "title": name.replace('_', " "),
            "status": status.as_u16(),
            "detail": self.detail,
            "code": name,
            "class": self.code.class(),
        });
        for (name, value) in self.extra {
            document[name] = value;
        }
        (status, [(header::CONTENT_TYPE, "application/problem+json")], document.to_string()).into_response()
    }
}
