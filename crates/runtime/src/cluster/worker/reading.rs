//! Queues and logs, read by tasks that hand their messages to the job's actor.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use tenaz_cluster::limits::READ_AHEAD;
use tenaz_cluster::{LogMessage, Session, read_log};
use tenaz_core::{JobId, Log};
use tenaz_rabbit::{Acker, Backoff, Consumer, Delivery};
use tenaz_vitals::Histogram;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;

/// Messages of one log that may wait to be taken in.
const WAITING_MESSAGES: usize = 32;

/// A log that was read from its start and has brought nothing new for this long has been read to its end. (There is no way
/// to ask for the end of a stream that does no harm to one that is about to go.)
const QUIET: Duration = Duration::from_millis(250);

/// The time it takes to read a log that was somebody else's, from its start to its end. Told when the end is found, or
/// when nobody needs to read on.
pub(super) struct Recovery {
    began: Instant,
    latest: Option<Instant>,
    seconds: Histogram,
}

impl Recovery {
    pub(super) fn begin(seconds: Histogram) -> Self {
        Self { began: Instant::now(), latest: None, seconds }
    }

    /// Another message was handed over.
    fn read_one(&mut self) {
        self.latest = Some(Instant::now());
    }

    /// How much longer to wait for a message before this is the end. A log in which nothing was yet has no end.
    fn patience(&self) -> Duration {
        self.latest.map_or(Duration::MAX, |_| QUIET)
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        if let Some(latest) = self.latest {
            self.seconds.observe((latest - self.began).as_secs_f64());
        }
    }
}

/// The next message; ends the recovery when the log is quiet.
async fn next(messages: &mut mpsc::Receiver<LogMessage>, recovery: &mut Option<Recovery>) -> Option<LogMessage> {
    let patience = recovery.as_ref().map_or(Duration::MAX, Recovery::patience);
    if patience < Duration::MAX {
        match tokio::time::timeout(patience, messages.recv()).await {
            Ok(message) => return message,
            Err(_) => *recovery = None,
        }
    }
    messages.recv().await
}

/// Something read for a job.
pub(super) enum Reading {
    /// A message of a log, by the reading it came from. The permit lets the next one come.
    Message(Log, u64, LogMessage, OwnedSemaphorePermit),
    /// A chunk of a work queue.
    Chunk(usize, u64, Delivery, Acker),
    /// Nothing more will come of this reading, and why.
    Ended(Feed, u64, String),
}

/// Where something is read for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Feed {
    /// A log.
    Log(Log),
    /// The work queue of a wave.
    Chunks(usize),
}

impl std::fmt::Display for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log(log) => write!(f, "log {log}"),
            Self::Chunks(wave) => write!(f, "work queue {wave}"),
        }
    }
}

/// Starts a task that reads. However it ends, even by a panic, the actor is told: a job whose log is not read any more would
/// wait in silence.
fn start(
    feed: Feed,
    number: u64,
    taker: mpsc::Sender<Reading>,
    reading: impl Future<Output = String> + Send + 'static,
) -> Reader {
    let task = tokio::spawn(async move {
        let ended = AssertUnwindSafe(reading).catch_unwind().await;
        let reason = ended.unwrap_or_else(|_| "its reader crashed".to_owned());
        // If the actor is gone, so is the job.
        let _ = taker.send(Reading::Ended(feed, number, reason)).await;
    });
    Reader { task: task.abort_handle() }
}

/// A task that is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    task: AbortHandle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Which reading of which log.
pub(super) struct LogReading {
    /// The log's name on the broker.
    pub(super) name: String,
    pub(super) log: Log,
    pub(super) from: u64,
    pub(super) number: u64,
    /// Told how long it took, where it is another's log.
    pub(super) recovery: Option<Recovery>,
}

/// Reads a log.
pub(super) fn read(session: &Arc<Session>, reading: LogReading, taker: mpsc::Sender<Reading>) -> Reader {
    let LogReading { name, log, from, number, mut recovery } = reading;
    let session = Arc::clone(session);
    let told = taker.clone();
    start(Feed::Log(log), number, told, async move {
        let room = Arc::new(Semaphore::new(WAITING_MESSAGES));
        let (sender, mut messages) = mpsc::channel(READ_AHEAD);
        let reading = read_log(&session, &name, from, &sender);
        let handing = async {
            while let Some(message) = next(&mut messages, &mut recovery).await {
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                if taker.send(Reading::Message(log, number, message, permit)).await.is_err() {
                    return;
                }
                if let Some(recovery) = &mut recovery {
                    recovery.read_one();
                }
            }
        };
        tokio::select! {
            ended = reading => ended.err().map_or_else(String::new, |error| error.to_string()),
            () = handing => String::new(),
        }
    })
}

/// Takes chunks from a work queue.
pub(super) fn take_chunks(
    session: &Arc<Session>,
    job: JobId,
    queue: String,
    wave: usize,
    prefetch: u16,
    number: u64,
    taker: mpsc::Sender<Reading>,
) -> Reader {
    let session = Arc::clone(session);
    let told = taker.clone();
    start(Feed::Chunks(wave), number, told, async move {
        let mut backoff = Backoff::new();
        while !session.is_lost() {
            let error = match Consumer::open(&session.reading, &queue, prefetch).await {
                Err(error) => error,
                Ok(mut consumer) => {
                    let acker = consumer.acker();
                    loop {
                        match consumer.next().await {
                            Ok(delivery) => {
                                backoff.reset();
                                let chunk = Reading::Chunk(wave, number, delivery, acker.clone());
                                if taker.send(chunk).await.is_err() {
                                    return String::new();
                                }
                            }
                            Err(error) => break error,
                        }
                    }
                }
            };
            session.met(&error);
            // A queue that is not there may be one that is just being made anew.
            if !error.is_temporary() && !matches!(error, tenaz_rabbit::Error::NotFound { .. }) {
                return error.to_string();
            }
            tracing::debug!(%job, wave, %error, "chunks cannot be taken right now");
            tokio::time::sleep(backoff.next_delay()).await;
        }
        "the connection to the broker was lost".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use tenaz_core::ProcessRole;
    use tenaz_vitals::Vitals;

    use super::*;

    /// How many recoveries were told.
    fn count(vitals: &Vitals) -> u64 {
        let text = vitals.metrics().encode();
        let line = text.lines().find_map(|line| line.strip_prefix("tenaz_recovery_seconds_count "));
        line.and_then(|count| count.parse().ok()).expect("a count")
    }

    fn message(offset: u64) -> LogMessage {
        LogMessage { offset, kind: String::new(), body: Vec::new() }
    }

    #[tokio::test]
    async fn a_recovery_ends_when_the_log_is_quiet() {
        let vitals = Vitals::alone(ProcessRole::Worker).expect("vitals");
        let seconds = vitals.metrics().worker().recovery_seconds;
        let (sender, mut messages) = mpsc::channel(8);
        let mut recovery = Some(Recovery::begin(seconds));
        for offset in 0..3 {
            sender.send(message(offset)).await.expect("room");
            assert_eq!(next(&mut messages, &mut recovery).await.map(|m| m.offset), Some(offset));
            recovery.as_mut().expect("it goes on").read_one();
        }
        assert_eq!(count(&vitals), 0);
        let late = tokio::spawn(async move {
            tokio::time::sleep(QUIET * 2).await;
            sender.send(message(3)).await
        });
        assert_eq!(
            next(&mut messages, &mut recovery).await.map(|m| m.offset),
            Some(3),
            "what comes later is read, too"
        );
        assert!(recovery.is_none());
        assert_eq!(count(&vitals), 1);
        assert!(late.await.is_ok());
    }

    #[tokio::test]
    async fn a_log_without_messages_needs_no_recovery() {
        let vitals = Vitals::alone(ProcessRole::Worker).expect("vitals");
        drop(Recovery::begin(vitals.metrics().worker().recovery_seconds));
        assert_eq!(count(&vitals), 0);
    }
}
