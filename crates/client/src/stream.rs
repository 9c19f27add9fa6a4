//! Answers, read to their end record. A stream without one was cut off, and is read again from its start.

use std::io::Read;
use std::time::Instant;

use serde::Deserialize;

use crate::api::Told;
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
    Error(Told),
}

/// Codes of errors that another gateway may not have.
const PASSING: [&str; 6] = ["shutting_down", "busy", "broker_away", "broker_alarm", "no_workers", "internal"];

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
        Ok(LastLine::Error(told)) if PASSING.contains(&told.code.as_str()) => Err(Flow::Cut(told.text)),
        Ok(LastLine::Error(Told { code, text })) => Err(Flow::Stop(Error::Failed { job: job.to_owned(), code, text })),
        Err(_) => Err(Flow::Cut("the stream of rows has no end record".to_owned())),
    }
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
        let failed = end("{\"error\":{\"code\":\"task\",\"text\":\"division by zero\"}}\n");
        assert!(matches!(failed, Err(Flow::Stop(Error::Failed { text, .. })) if text == "division by zero"));
        let passing = end("{\"error\":{\"code\":\"shutting_down\",\"text\":\"bye\"}}\n");
        assert!(matches!(passing, Err(Flow::Cut(_))));
    }
}
