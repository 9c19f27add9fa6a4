//! Doing what the protocol says.

use std::sync::Arc;

use tenaz_cluster::{Control, ResultEnd, Session};
use tenaz_core::{Action, Attempt, End, Fact, Failure, JobId, Log, Partition, RegistryEvent, Source, StageId, Work};
use tenaz_rabbit::{Backoff, Properties};

use super::Shop;
use super::actor::{Current, Done, JobActor, Joined};
use super::chunk::{Outgoing, run_chunk};
use super::strand::Strand;
use super::{reading, tasks};
use crate::Error;
use crate::cluster::results::kind;
use crate::job::guarded;

impl JobActor {
    /// Does it, in order. `current` is the message that the first action is about.
    pub(super) fn act(&mut self, actions: Vec<Action>, mut current: Option<Current>) {
        for action in actions {
            match action {
                Action::Take => self.take(current.take()),
                Action::Hold => {
                    if let Some(current) = current.take() {
                        let parts = self.held.entry((current.log, current.source, current.content)).or_default();
                        parts.insert(current.part, current.body);
                    }
                }
                Action::Drop => {
                    if current.take().is_some() {
                        self.shop.metrics.duplicates_dropped.inc();
                    }
                }
                Action::Read { log, from } => self.read(log, from),
                Action::Release { log } => self.release(log),
                Action::Complete { edge } => {
                    let shared = Arc::clone(&self.shared);
                    self.strand(Log::Broadcast).run(move || tasks::complete_broadcast(&shared, edge));
                }
                Action::TakeChunks { wave } => self.open_wave(wave),
                Action::Announce { source, by } => self.tell(Fact::Attempted { source, by }),
                Action::Exonerate { source } => self.tell(Fact::Exonerated { source }),
                Action::Run { work } => self.run_work(work),
                Action::Publish { work, message } => self.publish(work, message),
                Action::Ack { tag } => {
                    if let Some(delivered) = self.delivered.remove(&tag) {
                        // If the acknowledgement is lost, the chunk comes again, and its ids are known.
                        tokio::spawn(async move { delivered.acker.ack(delivered.tag).await });
                    }
                }
                Action::Forget { work } => {
                    self.outputs.remove(&work);
                    if let Work::Chunk(tag) = work {
                        self.delivered.remove(&tag);
                    }
                }
                Action::Conclude => self.conclude(),
                Action::ReportLost { table, chunks } => self.tell(Fact::Lost { table, chunks }),
                Action::Fail { failure } => {
                    let code = match failure {
                        Failure::Quarantined { .. } => "quarantined",
                        Failure::Contradiction(_) => "contradiction",
                    };
                    fail(&self.shop, &self.card.id, code, self.failure_text(&failure));
                }
            }
        }
    }

    pub(super) fn take_done(&mut self, done: Done) {
        match done {
            Done::Ran(work, Ok(messages)) => {
                if let Work::Chunk(_) = work {
                    self.shared.faults.after_chunks(self.shop.metrics.chunks.get());
                }
                let count = messages.len() as u32;
                self.outputs.insert(work, messages);
                self.handle(tenaz_core::Event::TaskFinished { work, messages: count });
            }
            Done::Took(Ok(early)) => early.into_iter().for_each(|message| self.hint(message)),
            Done::Confirmed(work, message) => self.handle(tenaz_core::Event::Confirmed { work, message }),
            Done::WaveReady(wave, epoch) => self.consume(wave, epoch),
            Done::Concluded(Ok(end)) => {
                self.announce_end(&end);
                self.end = Some(end);
            }
            Done::Ran(work, Err(error)) => {
                self.log_failed(work, &error);
                fail(&self.shop, &self.card.id, code_of(&error), error.to_string());
            }
            Done::Took(Err(error)) | Done::Concluded(Err(error)) | Done::Refused(error) => {
                fail(&self.shop, &self.card.id, code_of(&error), error.to_string())
            }
        }
    }

    /// Says of which work the job fails, in fields.
    fn log_failed(&self, work: Work, error: &Error) {
        let job = &self.card.id;
        match work {
            Work::Chunk(tag) => {
                let header = self.delivered.get(&tag).map(|delivered| &delivered.header);
                let table = header.map(|header| self.shared.table_name(header.table));
                tracing::warn!(%job, table, chunk = header.map(|header| header.number), %error, "a chunk has failed");
            }
            Work::Inner(stage, partition, _) => {
                tracing::warn!(%job, stage = stage.0, partition = partition.0, %error, "a task has failed");
            }
        }
    }

    pub(super) fn strand(&mut self, log: Log) -> Strand {
        let pool = &self.pool;
        self.strands.entry(log).or_insert_with(|| Strand::new(pool.clone())).clone()
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn read(&mut self, log: Log, from: u64) {
        let Some(session) = self.session.clone() else { return };
        let name = self.shop.link.names().log(&self.card.id, log);
        let (job, number) = (self.card.id.clone(), self.number());
        // Everybody reads broadcasts from the start: there is nothing that was taken over.
        let owned = matches!(log, Log::Partition(_) | Log::Results);
        let recovery = (owned && from == 0 && self.joined == Joined::UnderWay).then(|| {
            self.shop.metrics.replays.inc();
            reading::Recovery::begin(self.shop.metrics.recovery_seconds.clone())
        });
        tracing::debug!(%job, %log, from, replay = recovery.is_some(), "a log is read");
        let reading = reading::LogReading { job, name, log, from, number, recovery };
        self.readers.insert(log, reading::read(&session, reading, self.readings.clone()));
    }

    fn release(&mut self, log: Log) {
        self.readers.remove(&log);
        if log == Log::Results {
            self.end = None;
        }
        self.held.retain(|(of, _, _), _| *of != log);
        let shared = Arc::clone(&self.shared);
        self.strand(log).run(move || tasks::release(&shared, log));
    }

    fn take(&mut self, current: Option<Current>) {
        let Some(Current { log, source, content, part, body, permit }) = current else { return };
        let mut parts = self.held.remove(&(log, source, content)).unwrap_or_default();
        parts.insert(part, body);
        self.held.retain(|(of, from, _), _| (*of, *from) != (log, source));
        let (shared, done) = (Arc::clone(&self.shared), self.done.clone());
        self.strand(log).run(move || {
            let what = || format!("taking in {source} from log {log}");
            let took = guarded(what, || tasks::take(&shared, log, parts.into_values().collect()));
            drop(permit);
            // Most messages bring nothing new about: no need to wake the actor.
            if !matches!(&took, Ok(early) if early.is_empty()) {
                drop(done.send(Done::Took(took)));
            }
        });
    }

    /// Chunks are taken when the broadcasts they need are in place, not only read.
    fn open_wave(&mut self, wave: usize) {
        let Some(epoch) = self.session.as_ref().map(|session| session.epoch) else { return };
        let done = self.done.clone();
        self.strand(Log::Broadcast).run(move || drop(done.send(Done::WaveReady(wave, epoch))));
    }

    fn consume(&mut self, wave: usize, epoch: u64) {
        let Some(session) = self.session.clone().filter(|session| session.epoch == epoch) else { return };
        if self.draining {
            return;
        }
        let queue = self.shop.link.names().chunks(&self.card.id, wave);
        // Enough that no thread waits for the broker, few enough that chunks are where the idle workers are.
        let prefetch = (self.shop.settings.threads + 1).min(64) as u16;
        let number = self.number();
        let job = self.card.id.clone();
        let reader = reading::take_chunks(&session, job, queue, wave, prefetch, number, self.readings.clone());
        self.consumers.insert(wave, reader);
    }

    fn run_work(&mut self, work: Work) {
        match work {
            Work::Chunk(tag) => {
                let Some(delivered) = self.delivered.get_mut(&tag) else { return };
                let Some(body) = delivered.body.take() else { return };
                let table = self.shared.table_name(delivered.header.table).to_owned();
                let (number, file) = (delivered.header.number, delivered.header.file.clone());
                let (shared, done) = (Arc::clone(&self.shared), self.done.clone());
                self.pool.run(move || {
                    let what = || format!("chunk {number} of table {table} ({file})");
                    tracing::debug!(job = %shared.id, table, chunk = number, "a chunk is begun");
                    let ran = guarded(what, || {
                        shared.faults.before_chunk(&table, number);
                        run_chunk(&shared, body)
                    });
                    tracing::debug!(job = %shared.id, table, chunk = number, "a chunk is finished");
                    drop(done.send(Done::Ran(work, ran)));
                });
            }
            Work::Inner(stage, partition, by) => self.run_inner(stage, partition, by),
        }
    }

    /// The task's input is taken in the order of the partition's log, after the broadcasts; then it runs on its own.
    fn run_inner(&mut self, stage: StageId, partition: Partition, by: Attempt) {
        let work = Work::Inner(stage, partition, by);
        let (shared, done, pool) = (Arc::clone(&self.shared), self.done.clone(), self.pool.clone());
        let rows = self.strand(Log::Partition(partition));
        self.strand(Log::Broadcast).run(move || {
            rows.run(move || {
                let inputs = tasks::inputs(&shared, stage, partition);
                pool.run(move || {
                    let what = || Source::Task { stage, partition }.to_string();
                    tracing::debug!(job = %shared.id, stage = stage.0, partition = partition.0, "a task is begun");
                    let ran = guarded(what, || {
                        shared.faults.before_task();
                        tasks::run_task(&shared, stage, partition, inputs)
                    });
                    tracing::debug!(job = %shared.id, stage = stage.0, partition = partition.0, "a task is finished");
                    drop(done.send(Done::Ran(work, ran)));
                });
            });
        });
    }

    fn publish(&mut self, work: Work, message: u32) {
        let Some(session) = self.session.clone() else { return };
        let Some(outgoing) = self.outputs.get(&work).and_then(|all| all.get(message as usize)).cloned() else { return };
        let queue = self.shop.link.names().log(&self.card.id, outgoing.log);
        self.sent_bytes += outgoing.body.len() as u64;
        self.shop.metrics.bytes_out.inc_by(outgoing.body.len() as u64);
        let done = self.done.clone();
        self.spawn(async move {
            match send(&session, &queue, &outgoing).await {
                Ok(true) => drop(done.send(Done::Confirmed(work, message))),
                // The session is lost: on the next one the protocol says what to send again.
                Ok(false) => {}
                Err(error) => drop(done.send(Done::Refused(error.into()))),
            }
        });
    }

    /// Rows that are certain already. If this message is lost, the rows come with the finished task.
    fn hint(&mut self, outgoing: Outgoing) {
        let Some(session) = self.session.clone() else { return };
        let queue = self.shop.link.names().log(&self.card.id, outgoing.log);
        self.shop.metrics.bytes_out.inc_by(outgoing.body.len() as u64);
        self.spawn(async move { drop(send(&session, &queue, &outgoing).await) });
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

    fn conclude(&mut self) {
        // Told before, and perhaps lost.
        if let Some(end) = &self.end {
            return self.announce_end(end);
        }
        let closed = self
            .shop
            .book
            .view(&self.card.id, |view| view.facts.closed_tables().map(|(id, closed)| (id, closed.clone())).collect());
        let Some(closed) = closed else { return };
        let (shared, done) = (Arc::clone(&self.shared), self.done.clone());
        self.strand(Log::Results).run(move || {
            let concluded = guarded(|| "making the answers".to_owned(), || tasks::conclude(&shared, &closed));
            drop(done.send(Done::Concluded(concluded)));
        });
    }

    /// First the end of the results, then the end of the job: whoever knows that it has ended finds them complete.
    fn announce_end(&self, end: &ResultEnd) {
        let body = serde_json::to_vec(end).expect("the end is plain data");
        let (shop, id) = (Arc::clone(&self.shop), self.card.id.clone());
        let log = shop.link.names().log(&id, Log::Results);
        self.spawn(async move {
            let told = match shop.link.publish(&log, kind::END, body.into()).await {
                Ok(()) => shop.book.write(&RegistryEvent::Ended { id: id.clone(), end: End::Done }).await,
                Err(error) => Err(error),
            };
            match told {
                Ok(()) => tracing::info!(job = %id, "the job is done"),
                Err(error) => tracing::error!(job = %id, %error, "the end of the job could not be written down"),
            }
        });
    }

    fn failure_text(&self, failure: &Failure) -> String {
        match failure {
            Failure::Quarantined { task: Source::Chunk { table, number }, attempts } => {
                let name = self.shared.table_name(*table);
                let header = self.delivered.values().map(|delivered| &delivered.header);
                let place = header.filter(|header| (header.table, header.number) == (*table, *number));
                let place = place.map(|h| format!(" ({}, from line {})", h.file, h.line)).next().unwrap_or_default();
                format!(
                    "chunk {number} of table {name}{place} was begun {attempts} times and never finished: it seems to kill \
                     its worker; look at that part of the file, or give workers more memory"
                )
            }
            other => other.to_string(),
        }
    }
}

/// Sends a message in this session. False if the session is lost.
async fn send(session: &Session, queue: &str, message: &Outgoing) -> Result<bool, tenaz_cluster::Error> {
    let mut backoff = Backoff::new();
    let properties = Properties::of_kind(message.kind);
    while !session.is_lost() {
        match session.publish(queue, message.body.to_vec(), &properties).await {
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
pub(super) fn fail(shop: &Arc<Shop>, job: &JobId, code: &str, reason: String) {
    tracing::warn!(%job, code, reason, "the job fails");
    let (shop, id) = (Arc::clone(shop), job.clone());
    let end = End::Failed { code: code.to_owned(), reason };
    tokio::spawn(async move {
        if let Err(error) = shop.book.write(&RegistryEvent::Ended { id: id.clone(), end }).await {
            tracing::error!(job = %id, %error, "a failure could not be written down");
        }
    });
}

fn code_of(error: &Error) -> &'static str {
    match error {
        Error::Strict(_) => "bad_record",
        Error::Imbalance { .. } | Error::Miscounted { .. } => "imbalance",
        Error::Crashed { .. } => "crashed",
        Error::Temporary { .. } => "no_disk",
        Error::Cluster(_) => "bad_message",
        Error::Protocol(_) => "contradiction",
        _ => "task",
    }
}
