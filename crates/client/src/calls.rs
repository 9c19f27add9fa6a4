//! One function per request of the HTTP API.

use std::sync::Arc;
use std::time::Instant;

use serde::de::DeserializeOwned;
use tenaz_core::ChunkDigest;
use ureq::http::{Method, Response};
use ureq::{Body, BodyReader};

use crate::api::{CreatedJob, Digests, Finish, Job, JobLine, JobList, Missing, NewJob, TableMissing};
use crate::gateways::{Ask, Creation, ReadError, percent_encoded};
use crate::limits::{CREATION, MAX_ANSWER_BYTES};
use crate::{Compression, Error, Gateways};

/// Where a chunk is in its file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkPlace<'a> {
    pub(crate) table: &'a str,
    pub(crate) number: u64,
    pub(crate) file: &'a str,
    pub(crate) byte: u64,
    pub(crate) line: u64,
    pub(crate) records: u64,
}

impl Gateways {
    /// Makes a job. The same key with the same request gives the same job, through whichever gateway.
    ///
    /// A broker that was killed while it made the logs of a job may leave some that can never be used, so that the job can never
    /// be created. One that is not there after [`CREATION`] is given up, and made under the next key. What there is of the first one expires,
    /// because nobody ever sends it anything.
    pub fn create(&self, new: &NewJob, mut key: impl FnMut() -> String) -> Result<CreatedJob, Error> {
        let (body, started) = (Arc::from(json_body(new)?), Instant::now());
        loop {
            let created = Creation { key: key(), body: Arc::clone(&body) };
            let left = self.patience().saturating_sub(started.elapsed());
            match self.ask_for(&created.ask(), left.min(CREATION), json) {
                Err(Error::Away { .. }) if started.elapsed() < self.patience() => {}
                Err(Error::Away { reason, .. }) => {
                    return Err(Error::Away { seconds: started.elapsed().as_secs(), reason });
                }
                made => {
                    let (made, _) = made?;
                    self.has_created(created);
                    return Ok(made);
                }
            }
        }
    }

    /// A job as it is now.
    pub fn job(&self, job: &str) -> Result<Job, Error> {
        Ok(self.ask(&Ask::job(Method::GET, job, ""), json)?.0)
    }

    /// All jobs that the cluster knows and that are this client's, oldest first.
    pub fn jobs(&self) -> Result<Vec<JobLine>, Error> {
        let (jobs, _): (JobList, _) = self.ask(&Ask::new(Method::GET, "/v1/jobs".to_owned()), json)?;
        Ok(jobs.jobs)
    }

    /// What is missing of the tables that are closed, and which are not.
    pub fn missing(&self, job: &str) -> Result<Vec<TableMissing>, Error> {
        let (missing, _): (Missing, _) = self.ask(&Ask::job(Method::GET, job, "/missing"), json)?;
        Ok(missing.tables)
    }

    /// What is missing of the first `chunks` chunks of a table that is not closed.
    pub fn missing_of(&self, job: &str, table: &str, chunks: u64) -> Result<TableMissing, Error> {
        let rest = format!("/missing?table={}&chunks={chunks}", percent_encoded(table));
        let (missing, at): (Missing, _) = self.ask(&Ask::job(Method::GET, job, &rest), json)?;
        let found = missing.tables.into_iter().find(|found| found.name == table);
        found.ok_or_else(|| {
            let what = format!("asked what is missing of table {table}, it speaks of other tables");
            Error::NotAGateway { url: self.url(at).to_owned(), what }
        })
    }

    /// The digests of chunks that the cluster has of a table, from one on, as many as the gateway likes to tell.
    pub(crate) fn digests(&self, job: &str, table: &str, from: u64) -> Result<Vec<Option<ChunkDigest>>, Error> {
        let rest = format!("/tables/{}/digests?from={from}", percent_encoded(table));
        let (page, _): (Digests, _) = self.ask(&Ask::job(Method::GET, job, &rest), json)?;
        Ok(page.digests)
    }

    /// Sends a chunk. When this returns, the cluster has it.
    pub(crate) fn send_chunk(
        &self,
        job: &str,
        place: ChunkPlace<'_>,
        data: &[u8],
        compression: Compression,
    ) -> Result<(), Error> {
        let (body, encoding) = compression.apply(data)?;
        let rest = format!("/tables/{}/chunks/{}", percent_encoded(place.table), place.number);
        let mut ask = Ask::job(Method::PUT, job, &rest);
        ask.headers = vec![
            ("Content-Type", "text/csv".to_owned()),
            ("Tenaz-File", percent_encoded(place.file)),
            ("Tenaz-Byte", place.byte.to_string()),
            ("Tenaz-Line", place.line.to_string()),
            ("Tenaz-Records", place.records.to_string()),
        ];
        if let Some(encoding) = encoding {
            ask.headers.push(("Content-Encoding", encoding.to_owned()));
        }
        ask.body = Some(&body);
        self.ask(&ask, nothing).map(|_| ())
    }

    /// Says what a table consists of. Saying the same again is harmless.
    pub(crate) fn finish(&self, job: &str, table: &str, finish: &Finish) -> Result<(), Error> {
        let body = json_body(finish)?;
        let mut ask = Ask::job(Method::POST, job, &format!("/tables/{}/finish", percent_encoded(table)));
        ask.headers = vec![json_type()];
        ask.body = Some(&body);
        self.ask(&ask, nothing).map(|_| ())
    }

    /// Ends a job: an open one is cancelled, an ended one forgotten. One that is not there is as good as ended.
    pub fn delete(&self, job: &str) -> Result<(), Error> {
        match self.ask(&Ask::job(Method::DELETE, job, ""), nothing) {
            Ok(_) => Ok(()),
            Err(Error::NoJob { .. }) if self.knew_job() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The rows of a query as an Arrow stream, from the start, and which gateway they come from.
    pub(crate) fn open_rows(&self, job: &str, rest: &str) -> Result<(BodyReader<'static>, usize), Error> {
        let mut ask = Ask::job(Method::GET, job, rest);
        ask.headers = vec![("Accept", "application/vnd.apache.arrow.stream".to_owned())];
        ask.stream = true;
        self.ask(&ask, |_, response| Ok(response.into_body().into_reader()))
    }
}

fn json_type() -> (&'static str, String) {
    ("Content-Type", "application/json".to_owned())
}

fn json_body(value: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|error| Error::Fault(format!("a request cannot be written as JSON: {error}")))
}

/// Reads an answer to its end, so that the connection can be used again.
fn bytes(mut response: Response<Body>) -> Result<Vec<u8>, ReadError> {
    let read = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_vec();
    read.map_err(|error| ReadError::Cut(format!("its answer is cut off ({error})")))
}

fn json<T: DeserializeOwned>(url: &str, response: Response<Body>) -> Result<T, ReadError> {
    let bytes = bytes(response)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        if error.is_eof() {
            return ReadError::Cut("its answer is cut off".to_owned());
        }
        ReadError::Never(Error::NotAGateway {
            url: url.to_owned(),
            what: format!("its answer is not understood: {error}"),
        })
    })
}

fn nothing(_: &str, response: Response<Body>) -> Result<(), ReadError> {
    bytes(response).map(drop)
}
