//! Doing what the driver says.

use std::sync::Arc;

use tenaz_cluster::{Control, ResultEnd, Session};
use tenaz_core::limits::MAX_TOLD_FAILURES;
use tenaz_core::{
    BoundedText, Classified, DoneSummary, Effect, End, Fact, Failure, FaultClass, JobFailure, JobId, Log,
    RegistryEvent, Source, Step, Ticket, Work,
};
use tenaz_rabbit::{Backoff, Properties};

use super::Shop;
use super::actor::{Done, JobActor, Joined};
use super::engine::{ClusterEngine, SentBytes};
use super::reading;
use super::unserved::StandBack;
use crate::Error;
use crate::cluster::results::kind;

impl JobActor {
    pub(super) fn carry_out(&mut self, effect: Effect<ClusterEngine>) {
        match effect {
            Effect::Run(step) => self.run_step(step),
            Effect::Read { log, from, reading } => self.read(log, from, reading),
            Effect::StopReading { log } => drop(self.readers.remove(&log)),
            Effect::TakeChunks { wave, consumer } => self.take_chunks(wave, consumer),
            Effect::StopTaking { wave } => drop(self.consumers.remove(&wave)),
            Effect::Publish { work, message, log, body } => self.publish((work, message), log, body),
            Effect::Ack { tag } => {
                if let Some(delivered) = self.delivered.remove(&tag) {
                    // If the acknowledgement is lost, the chunk comes again, and its ids are known.
                    tokio::spawn(async move { delivered.acker.ack(delivered.tag).await });
                }
            }
            Effect::GiveBack { tag } => {
                if let Some(delivered) = self.delivered.remove(&tag) {
                    tokio::spawn(async move { delivered.acker.nack_requeue(delivered.tag).await });
                }
            }
            Effect::Forget { tag } => drop(self.delivered.remove(&tag)),
            Effect::Tell(fact) => self.tell(fact),
            Effect::Show(messages) => messages.into_iter().for_each(|body| self.hint(body)),
            Effect::Dropped => {
                self.shop.metrics.duplicates_dropped.inc();
            }
            Effect::AnnounceEnd(end) => self.announce_end(&end),
            Effect::StandBack(error) => {
                tracing::error!(job = %self.card.id, %error, "this process cannot do the job's work and stands back");
                self.stood_back = Some(StandBack::new(&error, self.given_up.clone()));
            }
            Effect::Fail(failure) => self.fail(failure),
        }
    }

    fn run_step(&self, step: Step<ClusterEngine>) {
        if let Ticket::Task(Work::Inner(stage, partition, _)) = step.ticket {
            tracing::debug!(job = %self.card.id, stage = stage.0, partition = partition.0, "a task is queued");
        }
        let (engine, done, place) = (Arc::clone(&self.engine), self.done.clone(), Arc::clone(&self.place));
        let stop = self.stop.clone();
        self.pool.run(move || {
            // An actor that is gone does not wait for it.
            if !stop.is_set() {
                let _ = done.send(Done::Ran(stop.during(|| step.run(&engine))));
            }
            drop(place);
        });
    }

    fn read(&mut self, log: Log, from: u64, number: u64) {
        let Some(session) = self.session.clone() else { return };
        let name = self.shop.link.names().log(&self.card.id, log);
        let job = &self.card.id;
        // Everybody reads broadcasts from the start: there is nothing that was taken over.
        let owned = matches!(log, Log::Partition(_) | Log::Results);
        let recovery = (owned && from == 0 && self.joined == Joined::UnderWay).then(|| {
            self.shop.metrics.replays.inc();
            reading::Recovery::begin(self.shop.metrics.recovery_seconds.clone())
        });
        tracing::debug!(%job, %log, from, replay = recovery.is_some(), "a log is read");
        let reading = reading::LogReading { name, log, from, number, recovery };
        self.readers.insert(log, reading::read(&session, reading, self.readings.clone()));
    }

    fn take_chunks(&mut self, wave: usize, number: u64) {
        let Some(session) = self.session.clone() else { return };
        let queue = self.shop.link.names().chunks(&self.card.id, wave);
        // Enough that no thread waits for the broker, few enough that chunks are where the idle workers are.
        let prefetch = (self.shop.settings.threads + 1).min(64) as u16;
        let job = self.card.id.clone();
        let reader = reading::take_chunks(&session, job, queue, wave, prefetch, number, self.readings.clone());
        self.consumers.insert(wave, reader);
    }

    fn publish(&mut self, (work, message): (Work, u32), log: Log, body: SentBytes) {
        let Some(session) = self.session.clone() else { return };
        let queue = self.shop.link.names().log(&self.card.id, log);
        self.sent_bytes += body.len() as u64;
        self.shop.metrics.bytes_out.inc_by(body.len() as u64);
        let done = self.done.clone();
        self.spawn(async move {
            match send(&session, &queue, kind::ROWS, &body).await {
                Ok(true) => drop(done.send(Done::Confirmed(work, message))),
                // The session is lost: on the next one the protocol says what to send again.
                Ok(false) => {}
                Err(error) => drop(done.send(Done::Refused(error.into()))),
            }
        });
    }

    /// Rows that are certain already. If this message is lost, the rows come with the finished task.
    fn hint(&mut self, body: SentBytes) {
        let Some(session) = self.session.clone() else { return };
        let queue = self.shop.link.names().log(&self.card.id, Log::Results);
        self.shop.metrics.bytes_out.inc_by(body.len() as u64);
        self.spawn(async move { drop(send(&session, &queue, kind::EARLY, &body).await) });
    }

    fn tell(&self, fact: Fact) {
        let (book, job) = (Arc::clone(&self.shop.book), self.card.id.clone());
        self.spawn(async move {
            if let Err(error) = book.tell(&job, &Control::Fact(fact)).await {
                tracing::error!(%job, %error, "a fact could not be written down");
            }
        });
    }

    /// Runs until the job is over.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let over = self.over.clone();
        tokio::spawn(async move {
            over.run_until_cancelled(work).await;
        });
    }

    /// First the end of the results, then the end of the job: whoever knows that it has ended finds them complete.
    fn announce_end(&self, end: &ResultEnd) {
        let body = serde_json::to_vec(end).expect("the end is plain data");
        let done = End::Done(self.summarize(end));
        let (shop, id) = (Arc::clone(&self.shop), self.card.id.clone());
        let log = shop.link.names().log(&id, Log::Results);
        self.spawn(async move {
            let told = match shop.link.publish(&log, kind::END, body.into()).await {
                Ok(()) => shop.book.write(&RegistryEvent::Ended { id: id.clone(), end: done }).await,
                Err(error) => Err(error),
            };
            match told {
                Ok(()) => tracing::info!(job = %id, "the job is done"),
                Err(error) => tracing::error!(job = %id, %error, "the end of the job could not be written down"),
            }
        });
    }

    /// The job in a few numbers, for the registry.
    fn summarize(&self, end: &ResultEnd) -> DoneSummary {
        DoneSummary {
            chunks: self.driver.closed_tables().values().map(|closed| closed.chunks.len()).sum(),
            bytes: end.tables.iter().map(|table| table.bytes).sum(),
            records: end.tables.iter().map(|table| table.records).sum(),
            rejected: end.tables.iter().map(|table| table.rejected).sum(),
            answers: end.queries.len() as u64,
            end_from: end.index.as_ref().map_or(0, |index| index.read_to),
            failed: end.failed.iter().take(MAX_TOLD_FAILURES).cloned().collect(),
        }
    }

    fn fail(&self, failure: JobFailure<Error>) {
        let job = &self.card.id;
        match failure {
            JobFailure::Protocol(failure) => {
                let code = match failure {
                    Failure::Quarantined { .. } => "quarantined",
                    Failure::Contradiction(_) => "contradiction",
                };
                fail(&self.shop, job, code, failure.class(), self.failure_text(&failure));
            }
            JobFailure::Step { ticket, source, error } => {
                match source {
                    Some(Source::Chunk { table, number }) => {
                        let table = self.engine.table_name(table);
                        tracing::warn!(%job, table, chunk = number, %error, "a chunk has failed");
                    }
                    Some(Source::Task { stage, partition }) => {
                        tracing::warn!(%job, stage = stage.0, partition = partition.0, %error, "a task has failed");
                    }
                    None => tracing::warn!(%job, ?ticket, %error, "a step has failed"),
                }
                fail_with(&self.shop, job, &error);
            }
        }
    }

    fn failure_text(&self, failure: &Failure) -> String {
        match failure {
            Failure::Quarantined { task: Source::Chunk { table, number }, attempts } => {
                let name = self.engine.table_name(*table);
                let header = self.delivered.values().map(|delivered| &delivered.header);
                let place = header.filter(|header| (header.table, header.number) == (*table, *number));
                let place = place.map(|h| format!(" ({}, from line {})", h.file, h.line)).next().unwrap_or_default();
                format!(
                    "chunk {number} of table {name}{place} was begun {attempts} times and never finished: it seems to kill \
                     its worker; look at that part of the file, or give workers more memory"
                )
            }
            Failure::Contradiction(error) => error.in_words(|table| self.engine.table_name(table).to_owned()),
            other @ Failure::Quarantined { .. } => other.to_string(),
        }
    }
}

/// Sends a message in this session. False if the session is lost.
async fn send(
    session: &Session,
    queue: &str,
    kind: &'static str,
    body: &SentBytes,
) -> Result<bool, tenaz_cluster::Error> {
    let mut backoff = Backoff::new();
    let properties = Properties::of_kind(kind);
    while !session.is_lost() {
        match session.publish(queue, body.to_vec(), &properties).await {
            Ok(()) => return Ok(true),
            // Not there: the broker is coming back, or the job has ended, and then this is cancelled.
            Err(error) if error.is_temporary() || matches!(error, tenaz_rabbit::Error::Unroutable { .. }) => {
                session.met_publishing(&error);
                if !error.is_lost() {
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// The job cannot succeed: everybody is told. The first reason counts.
pub(super) fn fail(shop: &Arc<Shop>, job: &JobId, code: &str, class: FaultClass, reason: String) {
    let reason = BoundedText::from(reason);
    tracing::warn!(%job, code, %class, %reason, "the job fails");
    let (shop, id) = (Arc::clone(shop), job.clone());
    let end = End::Failed { code: code.to_owned(), reason, class };
    tokio::spawn(async move {
        if let Err(error) = shop.book.write(&RegistryEvent::Ended { id: id.clone(), end }).await {
            tracing::error!(job = %id, %error, "a failure could not be written down");
        }
    });
}

/// The job cannot succeed because of this error.
pub(super) fn fail_with(shop: &Arc<Shop>, job: &JobId, error: &Error) {
    fail(shop, job, code_of(error), error.class(), error.to_string());
}

fn code_of(error: &Error) -> &'static str {
    match error {
        Error::Strict(_) => "bad_record",
        Error::Imbalance { .. } | Error::Miscounted { .. } => "imbalance",
        Error::Crashed { .. } => "crashed",
        Error::Temporary { .. } => "no_disk",
        Error::Cluster(_) => "bad_message",
        Error::Protocol(_) | Error::Mixed(_) => "contradiction",
        _ => "task",
    }
}
