//! Answers, read to their end record. A stream without one was cut off, and is read again from its start.

use std::io::Read;
use std::time::Instant;

use serde::Deserialize;
use tenaz_core::{FaultClass, ProblemCode};

use crate::api::{ErrorRecord, JobState};
use crate::gateways::percent_encoded;
use crate::limits::{MAX_END_BYTES, STREAM_LIVED};
use crate::{Error, Gateways};

/// How reading a stream ended badly.
#[derive(Debug)]
pub enum Flow<E> {
    /// It is cut off: read it again, through another gateway.
    Cut(String),
    /// Reading it again would not help.
    Stop(E),
}

impl<E> From<E> for Flow<E> {
    fn from(error: E) -> Self {
        Self::Stop(error)
    }
}

/// The end record of a stream that is whole.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct End {
    /// Rows in all.
    pub rows: u64,
    /// SHA-256 of the answer's CSV form; bad records have none.
    #[serde(default)]
    pub fingerprint: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LastLine {
    End(End),
    Error(ErrorRecord),
}

/// Reads what follows the rows: the end record.
///
/// # Errors
/// The stream is cut off, or it ends with an error record.
pub fn read_end(job: &str, rest: &mut dyn Read) -> Result<End, Flow<Error>> {
    let mut line = Vec::new();
    let read = rest.take(MAX_END_BYTES).read_to_end(&mut line);
    read.map_err(|error| Flow::Cut(format!("the stream of rows broke off: {error}")))?;
    match serde_json::from_slice(&line) {
        Ok(LastLine::End(end)) => Ok(end),
        Ok(LastLine::Error(error)) if may_pass(&error) => Err(Flow::Cut(error.text)),
        Ok(LastLine::Error(error)) => Err(Flow::Stop(Error::failed(job, error))),
        Err(_) => Err(Flow::Cut("the stream of rows has no end record".to_owned())),
    }
}

/// Whether another gateway, or the same one later, may have the rows: unless the job has ended without them, and unless
/// data or query are to blame, or the question could not be answered. A bug need not be in every gateway.
fn may_pass(error: &ErrorRecord) -> bool {
    if error.code == ProblemCode::QueryFailed.name() {
        return false;
    }
    let is_of_gateway = matches!(error.class, FaultClass::Process | FaultClass::Broker | FaultClass::Bug);
    error.state.is_none_or(|state| state == JobState::Done) && is_of_gateway
}

impl Gateways {
    /// Reads the rows of a query as an Arrow stream. `take` may be called several times, each time from the start.
    pub fn read_rows<T, E: From<Error>>(
        &self,
        job: &str,
        query: &str,
        take: impl FnMut(&mut dyn Read) -> Result<T, Flow<E>>,
    ) -> Result<T, E> {
        self.read_stream(job, &format!("/results/{}", percent_encoded(query)), take)
    }

    /// Reads the bad records of a job as an Arrow stream, in the same way.
    pub fn read_rejects<T, E: From<Error>>(
        &self,
        job: &str,
        take: impl FnMut(&mut dyn Read) -> Result<T, Flow<E>>,
    ) -> Result<T, E> {
        self.read_stream(job, "/rejects", take)
    }

    fn read_stream<T, E: From<Error>>(
        &self,
        job: &str,
        rest: &str,
        mut take: impl FnMut(&mut dyn Read) -> Result<T, Flow<E>>,
    ) -> Result<T, E> {
        let mut waits = self.waits();
        loop {
            let (mut rows, at) = self.open_rows(job, rest)?;
            let opened = Instant::now();
            let why = match take(&mut rows) {
                Ok(taken) => return Ok(taken),
                Err(Flow::Stop(error)) => return Err(error),
                Err(Flow::Cut(why)) => why,
            };
            self.leave(at);
            if opened.elapsed() >= STREAM_LIVED {
                waits.forget();
            }
            let wait = waits.after_failure(|| format!("{}: {why}", self.url(at)))?;
            self.pause(wait)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Result<End, Flow<Error>> {
        read_end("j", &mut text.as_bytes())
    }

    #[test]
    fn only_an_end_record_ends_a_stream() {
        let whole = end("{\"end\":{\"rows\":2,\"fingerprint\":\"ab\",\"ordered\":true}}\n").expect("whole");
        assert_eq!(whole, End { rows: 2, fingerprint: Some("ab".to_owned()) });
        for cut in ["", "{\"end\":{\"rows\":2", "{\"end\":{}}", "what"] {
            assert!(matches!(end(cut), Err(Flow::Cut(_))), "{cut}");
        }
    }

    #[test]
    fn an_error_record_fails_the_job_unless_it_is_the_gateways_own() {
        let failed = end(r#"{"error":{"code":"task","text":"division by zero","class":"query","state":"failed"}}"#);
        assert!(matches!(failed, Err(Flow::Stop(Error::Failed { text, .. })) if text == "division by zero"));
        for class in ["process", "broker", "bug"] {
            let own = end(&format!(r#"{{"error":{{"code":"x","text":"bye","class":"{class}"}}}}"#));
            assert!(matches!(own, Err(Flow::Cut(_))), "{class}");
            let of_job = format!(r#"{{"error":{{"code":"x","text":"bye","class":"{class}","state":"failed"}}}}"#);
            let Err(Flow::Stop(Error::Failed { class: told, .. })) = end(&of_job) else { panic!("{of_job}") };
            assert_eq!(told.as_str(), class);
        }
        let question = r#"{"error":{"code":"query_failed","text":"q2: no memory","class":"process","state":"done"}}"#;
        assert!(matches!(end(question), Err(Flow::Stop(_))), "every gateway would say the same");
        let gone = end(r#"{"error":{"code":"gone","text":"the job was removed","class":"query"}}"#);
        assert!(matches!(gone, Err(Flow::Stop(_))));
        let old = end(r#"{"error":{"code":"task","text":"division by zero"}}"#);
        assert!(matches!(old, Err(Flow::Stop(Error::Failed { .. }))));
    }
}
