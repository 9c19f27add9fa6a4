//! Reading a job's results log, over as many sessions as it takes, until the job itself ends otherwise.

use std::sync::Arc;

use tenaz_cluster::{LogMessage, ResultEnd, Session};
use tenaz_core::{End, JobId, Log};
use tenaz_rabbit::{Backoff, Offset, StreamReader};
use tenaz_runtime::cluster::{ResultEvent, ResultsFold};

use crate::app::{App, Job};
use crate::limits::RESULTS_PREFETCH;
use crate::problem::Problem;
use crate::state::{Told, end_error};

/// A reader of a job's results log.
pub(crate) struct ResultsLog<'a> {
    app: &'a App,
    job: JobId,
    name: String,
    next: u64,
    reader: Option<(Arc<Session>, StreamReader)>,
    backoff: Backoff,
}

impl<'a> ResultsLog<'a> {
    /// From the start.
    pub(crate) fn new(app: &'a App, job: &JobId) -> Self {
        let name = app.link.names().log(job, Log::Results);
        Self { app, job: job.clone(), name, next: 0, reader: None, backoff: Backoff::new() }
    }

    /// The next message, or why there will be none.
    pub(crate) async fn next(&mut self) -> Result<LogMessage, Told> {
        let (app, job) = (self.app, self.job.clone());
        tokio::select! {
            biased;
            told = no_results(app, &job) => Err(told),
            message = self.read() => message,
        }
    }

    async fn read(&mut self) -> Result<LogMessage, Told> {
        loop {
            let (session, error) = match &mut self.reader {
                Some((session, reader)) => match reader.next().await {
                    Ok(message) => {
                        self.backoff.reset();
                        self.next = message.offset + 1;
                        let kind = message.properties.kind.unwrap_or_default();
                        return Ok(LogMessage { offset: message.offset, kind, body: message.body });
                    }
                    Err(error) => (Arc::clone(session), error),
                },
                None => {
                    let session = self.app.link.session().await;
                    let from = Offset::Next(self.next);
                    match StreamReader::open_with(&session.reading, &self.name, from, RESULTS_PREFETCH).await {
                        Ok(reader) => {
                            self.reader = Some((session, reader));
                            continue;
                        }
                        Err(error) => (session, error),
                    }
                }
            };
            self.reader = None;
            // A lone broker whose power was cut may have lost the end of the log, and uses its offsets again: what was read
            // before is read again, and known by its identity.
            self.next = 0;
            session.met(&error);
            // A log that is not there may be one whose broker is just coming back; if its job is gone, `next` knows.
            if !error.is_temporary() && !matches!(error, tenaz_rabbit::Error::NotFound { .. }) {
                return Err(Told::new("internal", error.to_string()));
            }
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }
}

/// Ends when it is certain that the job has no (more) results, and says why.
async fn no_results(app: &App, job: &JobId) -> Told {
    let without_answers = app.book.wait(job, |view| view.end.as_ref().and_then(end_error)).await;
    without_answers.unwrap_or_else(|| Told::new("gone", "the job was removed"))
}

/// Something that a follower of the results learns.
#[derive(Debug)]
pub(crate) enum News {
    /// Rows, rejects or accounts; never the end.
    Event(ResultEvent),
    /// Everything is there.
    End(Arc<ResultEnd>),
}

/// Reads the results from the start to their end.
pub(crate) struct Follower<'a> {
    app: &'a App,
    job: &'a Job,
    log: ResultsLog<'a>,
    fold: ResultsFold,
    events: std::vec::IntoIter<ResultEvent>,
}

impl<'a> Follower<'a> {
    /// Nothing read yet.
    pub(crate) fn new(app: &'a App, job: &'a Job) -> Self {
        let log = ResultsLog::new(app, job.id());
        let plan = Arc::clone(&job.planned.plan);
        let fold = ResultsFold::new(plan, &job.planned.topology, log.name.clone());
        Self { app, job, log, fold, events: Vec::new().into_iter() }
    }

    /// What comes next, or why nothing will.
    pub(crate) async fn next(&mut self) -> Result<News, Told> {
        loop {
            match self.events.next() {
                Some(ResultEvent::End(end)) => return Ok(News::End(self.app.remember_end(self.job.id(), end))),
                Some(event) => return Ok(News::Event(event)),
                None => {
                    let message = self.log.next().await?;
                    let events = self.fold.take(&message).map_err(|error| Told::new("internal", error.to_string()))?;
                    self.events = events.into_iter();
                }
            }
        }
    }
}

/// The end of a job that is done, without its rows.
pub(crate) async fn read_end(app: &App, job: &Job) -> Result<Arc<ResultEnd>, Problem> {
    if let Some(end) = app.known_end(job.id()) {
        return Ok(end);
    }
    debug_assert!(app.book.view(job.id(), |view| view.end == Some(End::Done)) != Some(false));
    let mut log = ResultsLog::new(app, job.id());
    loop {
        let message = log.next().await.map_err(|told| Problem::internal(told.text))?;
        if message.kind == "end" {
            let end = serde_json::from_slice(&message.body).map_err(Problem::internal)?;
            return Ok(app.remember_end(job.id(), end));
        }
    }
}
