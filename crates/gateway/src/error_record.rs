//! Why there are no rows, or no more of them: the error of a job, and the last record of a stream.

use serde_json::{Value, json};
use tenaz_core::{Classified, End, FailedQuery, FaultClass, ProblemCode};

use crate::state::end_name;

/// An error for programs (code, class, state) and for people (text).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorRecord {
    pub(crate) code: String,
    pub(crate) text: String,
    pub(crate) class: FaultClass,
    /// How the job ended, if that is the reason. Otherwise the gateway could not do it, and another one may.
    pub(crate) state: Option<&'static str>,
}

impl ErrorRecord {
    pub(crate) fn new(code: impl Into<String>, class: FaultClass, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), class, state: None }
    }

    /// A fault of ours.
    pub(crate) fn internal(text: impl Into<String>) -> Self {
        Self::new("internal", FaultClass::Bug, text)
    }

    /// Something that this gateway could not do.
    pub(crate) fn of_error(error: &(impl Classified + std::error::Error)) -> Self {
        Self::new("internal", error.class(), error.to_string())
    }

    /// The job is no more.
    pub(crate) fn gone() -> Self {
        Self::new("gone", FaultClass::Query, "the job was removed")
    }

    /// Why a stream is cut short.
    pub(crate) fn shutting_down() -> Self {
        Self::new("shutting_down", FaultClass::Process, "this gateway is shutting down: ask another one")
    }

    /// Why a job that has ended has no answers.
    pub(crate) fn of_end(end: &End) -> Option<Self> {
        let record = match end {
            End::Done(_) => return None,
            End::Failed { code, reason, class } => Self::new(code, *class, reason.as_str()),
            // Somebody asked for it.
            End::Cancelled => Self::new("cancelled", FaultClass::Query, "the job was cancelled"),
            // The upload is not what was promised.
            End::Expired => {
                let text = "the job expired: no client went on with its upload";
                Self::new("expired", FaultClass::Data, text)
            }
        };
        Some(Self { state: Some(end_name(end)), ..record })
    }

    /// Why a question of a job that is done has no answer.
    pub(crate) fn of_question(failed: &FailedQuery) -> Self {
        let text = format!("{}: {}", failed.name, failed.text);
        Self { state: Some("done"), ..Self::new(ProblemCode::QueryFailed.name(), failed.class, text) }
    }

    /// As JSON.
    pub(crate) fn value(&self) -> Value {
        let mut value = json!({"code": self.code, "text": self.text, "class": self.class});
        if let Some(state) = self.state {
            value["state"] = json!(state);
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_job_can_be_told_from_the_trouble_of_a_gateway() {
        let end = End::Failed { code: "no_disk".to_owned(), reason: "full".into(), class: FaultClass::Process };
        let record = ErrorRecord::of_end(&end).expect("an error");
        assert_eq!(record.value(), json!({"code": "no_disk", "text": "full", "class": "process", "state": "failed"}));
        let own = ErrorRecord::shutting_down().value();
        assert_eq!((&own["class"], own.get("state")), (&json!("process"), None));
        assert_eq!(ErrorRecord::of_end(&End::Done(Default::default())), None);
    }
}
