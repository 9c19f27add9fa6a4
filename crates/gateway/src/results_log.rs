//! Reading a job's results log, over as many sessions as it takes, until the job itself ends otherwise.
//!
//! Most messages of a large job's log are accounts of chunks. So once a job is done, nothing reads the log from its start any
//! more: the registry says about where the end stands, and the end says where the rows of each answer do.

use std::collections::VecDeque;
use std::sync::Arc;

use tenaz_cluster::{IndexedRows, LogMessage, Session};
use tenaz_core::{End, JobId, Log, QueryId};
use tenaz_rabbit::{Backoff, Offset, StreamReader};
use tenaz_runtime::cluster::{ResultEvent, ResultsFold};

use crate::app::{App, FoundEnd, Job};
use crate::limits::{END_HINT_WAIT, RESULTS_PREFETCH};
use tenaz_api::ErrorRecord;

/// A reader of a job's results log.
pub(crate) struct ResultsLog<'a> {
    app: &'a App,
    job: JobId,
    name: String,
    /// Where reading begins when a session was lost.
    first: u64,
    next: u64,
    reader: Option<(Arc<Session>, StreamReader)>,
    backoff: Backoff,
}

impl<'a> ResultsLog<'a> {
    /// Begins at an offset.
    pub(crate) fn new(app: &'a App, job: &JobId, first: u64) -> Self {
        let name = app.link.names().log(job, Log::Results);
        Self { app, job: job.clone(), name, first, next: first, reader: None, backoff: Backoff::new() }
    }

    /// Goes on at another offset.
    fn jump(&mut self, first: u64) {
        if self.next != first {
            self.reader = None;
        }
        (self.first, self.next) = (first, first);
    }

    /// The next message, or why there will be none.
    pub(crate) async fn next(&mut self) -> Result<LogMessage, ErrorRecord> {
        let (app, job) = (self.app, self.job.clone());
        tokio::select! {
            biased;
            told = no_results(app, &job) => Err(told),
            message = self.read() => message,
        }
    }

    async fn read(&mut self) -> Result<LogMessage, ErrorRecord> {
        loop {
            let (session, error) = match &mut self.reader {
                Some((session, reader)) => match reader.next().await {
                    Ok(message) => {
                        self.backoff.reset();
                        self.next = message.offset + 1;
                        self.app.metrics.results_messages.inc();
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
            self.next = self.first;
            session.met(&error);
            // A log that is not there may be one whose broker is just coming back; if its job is gone, `next` knows.
            if !error.is_temporary() && !matches!(error, tenaz_rabbit::Error::NotFound { .. }) {
                return Err(ErrorRecord::internal(error.to_string()));
            }
            tokio::time::sleep(self.backoff.next_delay()).await;
        }
    }
}

/// Ends when it is certain that the job has no (more) results, and says why.
async fn no_results(app: &App, job: &JobId) -> ErrorRecord {
    let without_answers = app.book.wait(job, |view| view.end.as_ref().and_then(ErrorRecord::of_end)).await;
    without_answers.unwrap_or_else(ErrorRecord::gone)
}

/// Something that a follower of the results learns.
#[derive(Debug)]
pub(crate) enum News {
    /// Rows, rejects or accounts; never the end.
    Event(ResultEvent),
    /// Everything is there.
    End(Arc<FoundEnd>),
}

/// What a follower of the results is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The rows of an answer.
    Query(QueryId),
    /// The bad records.
    Rejects,
}

impl Wanted {
    /// Where the end of the results says that it stands. `None` if it does not say, or speaks of a log that is no more: one
    /// that has lost its tail in a power cut, and was written on.
    fn indexed(self, found: &FoundEnd) -> Option<&IndexedRows> {
        let index = found.end.index.as_ref().filter(|index| index.read_to <= found.offset)?;
        match self {
            Self::Query(query) => index.queries.get(usize::from(query.0)),
            Self::Rejects => Some(&index.rejects),
        }
    }

    /// How many of the wanted rows there are in an event.
    fn rows_in(self, event: &ResultEvent) -> u64 {
        match (self, event) {
            (Self::Query(wanted), ResultEvent::Rows(query, batch)) if *query == wanted => batch.num_rows() as u64,
            (Self::Rejects, ResultEvent::Rejects(_, piece)) => piece.records.num_rows() as u64,
            _ => 0,
        }
    }
}

/// Which messages of the log are read.
#[derive(Debug)]
enum Course {
    /// All of them, up to the end.
    Everything,
    /// Those in these ranges. The rows must be as many as promised then; if not, everything is read.
    Ranges { left: VecDeque<(u64, u64)>, promised: u64, end: Arc<FoundEnd> },
}

/// Reads the results, at least those that are wanted, to their end.
pub(crate) struct Follower<'a> {
    app: &'a App,
    job: &'a Job,
    log: ResultsLog<'a>,
    fold: ResultsFold,
    events: std::vec::IntoIter<ResultEvent>,
    wanted: Wanted,
    course: Course,
    /// Wanted rows found so far.
    found: u64,
}

impl<'a> Follower<'a> {
    /// Nothing read yet, except the end of a job that is done.
    pub(crate) async fn open(app: &'a App, job: &'a Job, wanted: Wanted) -> Result<Self, ErrorRecord> {
        let mut log = ResultsLog::new(app, job.id(), 0);
        let mut course = Course::Everything;
        if is_done(app, job) {
            let end = read_end(app, job).await?;
            if let Some(IndexedRows { rows, at }) = wanted.indexed(&end) {
                let left = VecDeque::from(at.ranges().to_vec());
                log.jump(left.front().map_or(0, |range| range.0));
                course = Course::Ranges { left, promised: *rows, end };
            }
        }
        let plan = Arc::clone(&job.planned.plan);
        let fold = ResultsFold::new(plan, &job.planned.topology, log.name.clone());
        Ok(Self { app, job, log, fold, events: Vec::new().into_iter(), wanted, course, found: 0 })
    }

    /// What comes next, or why nothing will.
    pub(crate) async fn next(&mut self) -> Result<News, ErrorRecord> {
        loop {
            match self.events.next() {
                Some(ResultEvent::End(end)) => {
                    return Ok(News::End(self.app.remember_end(self.job.id(), end, self.log.next - 1)));
                }
                Some(event) => {
                    self.found += self.wanted.rows_in(&event);
                    return Ok(News::Event(event));
                }
                None => {
                    if let Some(end) = self.is_complete() {
                        return Ok(News::End(end));
                    }
                    let message = self.log.next().await?;
                    let events = self.fold.take(&message).map_err(|error| ErrorRecord::internal(error.to_string()))?;
                    self.events = events.into_iter();
                }
            }
        }
    }

    /// Goes on to the next range when the present one is read. The end, if all rows have been found in them. What the fold
    /// has taken it does not take again, so that reading everything after all brings only what is missing.
    fn is_complete(&mut self) -> Option<Arc<FoundEnd>> {
        let Course::Ranges { left, promised, end } = &mut self.course else { return None };
        if left.front().is_some_and(|range| self.log.next >= range.1) {
            left.pop_front();
            if let Some(range) = left.front() {
                self.log.jump(range.0);
            }
        }
        if !left.is_empty() {
            return None;
        }
        if self.found == *promised {
            return Some(Arc::clone(end));
        }
        tracing::warn!(job = %self.job.id(), found = self.found, promised, "rows are not where they were: reading all results");
        self.course = Course::Everything;
        self.log.jump(0);
        None
    }
}

/// Whether the job has come to its end with results.
pub(crate) fn is_done(app: &App, job: &Job) -> bool {
    app.book.view(job.id(), |view| view.end.as_ref().is_some_and(End::is_done)) == Some(true)
}

/// The end of a job that is done, without its rows.
pub(crate) async fn read_end(app: &App, job: &Job) -> Result<Arc<FoundEnd>, ErrorRecord> {
    if let Some(end) = app.known_end(job.id()) {
        return Ok(end);
    }
    let from = app.book.view(job.id(), |view| match &view.end {
        Some(End::Done(summary)) => summary.end_from,
        _ => 0,
    });
    // A log that has lost its tail in a power cut may have its end before that.
    if let Some(from) = from.filter(|from| *from > 0)
        && let Ok(found) = tokio::time::timeout(END_HINT_WAIT, find_end(app, job, from)).await
    {
        return found;
    }
    find_end(app, job, 0).await
}

/// The first end at or behind an offset.
async fn find_end(app: &App, job: &Job, from: u64) -> Result<Arc<FoundEnd>, ErrorRecord> {
    let mut log = ResultsLog::new(app, job.id(), from);
    loop {
        let message = log.next().await?;
        if message.kind == "end" {
            let end = serde_json::from_slice(&message.body);
            let end = end.map_err(|error| ErrorRecord::internal(error.to_string()))?;
            return Ok(app.remember_end(job.id(), end, message.offset));
        }
    }
}
