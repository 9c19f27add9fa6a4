//! Queues and logs, read by tasks that hand their messages to the job's actor.

use std::sync::Arc;

use tenaz_cluster::limits::READ_AHEAD;
use tenaz_cluster::{LogMessage, Session, read_log};
use tenaz_core::Log;
use tenaz_rabbit::{Acker, Backoff, Consumer, Delivery};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::AbortHandle;

/// Messages of one log that may wait to be taken in.
const WAITING_MESSAGES: usize = 32;

/// Something read for a job.
pub(super) enum Reading {
    /// A message of a log, by the reading it came from. The permit lets the next one come.
    Message(Log, u64, LogMessage, OwnedSemaphorePermit),
    /// A chunk of a work queue.
    Chunk(usize, u64, Delivery, Acker),
}

/// A task that is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Reader {
    /// Tells this reading of a log from an earlier one.
    pub(super) number: u64,
    task: AbortHandle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a log from `from` on.
pub(super) fn read(
    session: &Arc<Session>,
    name: String,
    log: Log,
    from: u64,
    number: u64,
    taker: mpsc::Sender<Reading>,
) -> Reader {
    let session = Arc::clone(session);
    let task = tokio::spawn(async move {
        let room = Arc::new(Semaphore::new(WAITING_MESSAGES));
        let (sender, mut messages) = mpsc::channel(READ_AHEAD);
        let reading = read_log(&session, &name, from, &sender);
        let handing = async {
            while let Some(message) = messages.recv().await {
                let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
                if taker.send(Reading::Message(log, number, message, permit)).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            ended = reading => if let Err(error) = ended {
                tracing::debug!(log = name, %error, "a log is not read any more");
            },
            () = handing => {}
        }
    });
    Reader { number, task: task.abort_handle() }
}

/// Takes chunks from a work queue.
pub(super) fn take_chunks(
    session: &Arc<Session>,
    queue: String,
    wave: usize,
    prefetch: u16,
    number: u64,
    taker: mpsc::Sender<Reading>,
) -> Reader {
    let session = Arc::clone(session);
    let task = tokio::spawn(async move {
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
                                    return;
                                }
                            }
                            Err(error) => break error,
                        }
                    }
                }
            };
            session.met(&error);
            tracing::debug!(queue, %error, "chunks cannot be taken right now");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    });
    Reader { number, task: task.abort_handle() }
}
