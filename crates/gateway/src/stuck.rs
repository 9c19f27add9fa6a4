//! Work queues that a broker has lost, or that confirm nothing any more, are made anew.
//!
//! (m) A lone RabbitMQ 3.10.8 that is killed within a second or two of a queue's declaration may come back with a queue that
//! takes messages and never confirms one. Deleted and declared again it works. What was in it is found missing by the
//! workers, and sent again by the client; a chunk that comes twice counts once. So a queue may be made anew at any time, by
//! several gateways, and by mistake: that costs time and changes no answer.
//!
//! A connection may be stuck, too. (m) A channel of 3.10.8 whose first message to a queue comes just after the node of the
//! queue's leader has died refuses that message and all after it as if the queue were full, for ever, though another node
//! leads by then. So a queue that refuses although nothing waits in it is tried over another connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenaz_cluster::{Session, declare_chunks, delete_chunks};
use tenaz_core::JobCard;
use tenaz_rabbit::Error;

use crate::app::{Job, Shared};

/// A connection over which a queue has refused messages for this long, although nothing waits in it, is given up.
const REFUSING: Duration = Duration::from_secs(2);

/// Queues that seem not to work.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    /// Those that have not confirmed a message, and over which connection.
    silent: Mutex<HashMap<String, u64>>,
    /// Those that refuse messages although nothing waits in them, over which connection, and since when.
    refusing: Mutex<HashMap<String, (u64, Instant)>>,
    mending: tokio::sync::Mutex<()>,
}

impl Stuck {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue works.
    pub(crate) fn confirmed(&self, queue: &str) {
        let mut silent = self.lock();
        if !silent.is_empty() {
            silent.remove(queue);
        }
        drop(silent);
        self.is_full(queue);
    }

    /// The queue refuses messages for good reason, or none.
    fn is_full(&self, queue: &str) {
        let mut refusing = self.refusing.lock().unwrap_or_else(PoisonError::into_inner);
        if !refusing.is_empty() {
            refusing.remove(queue);
        }
    }

    /// The queue has refused a message over a connection although it is empty. Since when it does.
    fn refused(&self, queue: &str, epoch: u64) -> Instant {
        let mut refusing = self.refusing.lock().unwrap_or_else(PoisonError::into_inner);
        let (of, since) = refusing.entry(queue.to_owned()).or_insert_with(|| (epoch, Instant::now()));
        if *of != epoch {
            (*of, *since) = (epoch, Instant::now());
        }
        *since
    }

    /// The queue has not confirmed a message over a connection. True: nor over an earlier one, and nothing since.
    fn unconfirmed(&self, queue: &str, epoch: u64) -> bool {
        epoch > *self.lock().entry(queue.to_owned()).or_insert(epoch)
    }
}

/// The queue has refused a message as if it were full. If it is not, the connection is to blame.
pub(crate) async fn doubt(app: &Shared, session: &Session, queue: &str) {
    match session.reading.queue_depth(queue).await {
        Ok(Some(0)) if app.stuck.refused(queue, session.epoch).elapsed() < REFUSING => {}
        Ok(Some(0)) => {
            tracing::warn!(queue, "an empty queue refuses messages");
            session.give_up("an empty queue refuses messages");
        }
        _ => app.stuck.is_full(queue),
    }
}

/// Makes a wave's work queue anew if this error, met while publishing to it, shows that it needs that.
pub(crate) async fn mend(app: &Shared, job: &Job, wave: usize, session: &Session, error: &Error) {
    let queue = match error {
        Error::Unconfirmed { target, .. } if app.stuck.unconfirmed(target, session.epoch) => target.clone(),
        // Only if it is really gone: a broker that is just starting has no queue yet, either.
        Error::Unroutable { target } if matches!(session.reading.queue_depth(target).await, Ok(None)) => target.clone(),
        _ => return,
    };
    let is_silent = matches!(error, Error::Unconfirmed { .. });
    let (app, card) = (Arc::clone(app), job.card.clone());
    // Not to be left half done when the request ends.
    let mending = tokio::spawn(async move {
        let _one = app.stuck.mending.lock().await;
        let is_still_silent = app.stuck.lock().contains_key(&queue);
        if is_silent && !is_still_silent {
            return;
        }
        tracing::warn!(job = %card.id, queue, is_silent, "a work queue is made anew");
        if let Err(error) = make_anew(&app, &card, wave, is_silent).await {
            tracing::warn!(job = %card.id, queue, %error, "a work queue could not be made anew");
        }
        app.stuck.confirmed(&queue);
    });
    // A panic in there is told where it happens.
    let _ = mending.await;
}

async fn make_anew(app: &Shared, card: &JobCard, wave: usize, delete_first: bool) -> Result<(), tenaz_cluster::Error> {
    if delete_first {
        delete_chunks(&app.link, card, wave).await?;
    }
    if app.check_open(&card.id).is_ok() {
        declare_chunks(&app.link, card, wave).await?;
    }
    // Whoever cleans up after an ended job may have been here before.
    if app.check_open(&card.id).is_err() {
        delete_chunks(&app.link, card, wave).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_stuck_when_two_connections_in_a_row_heard_nothing_of_it() {
        let stuck = Stuck::default();
        assert!(!stuck.unconfirmed("a", 3), "the first time");
        assert!(!stuck.unconfirmed("a", 3), "another message over the same connection");
        assert!(!stuck.unconfirmed("b", 4), "another queue");
        assert!(stuck.unconfirmed("a", 4));
        stuck.confirmed("a");
        assert!(!stuck.unconfirmed("a", 5), "it has worked since");
        assert!(stuck.unconfirmed("b", 5));
    }

    #[test]
    fn a_queue_refuses_since_the_first_time_over_the_same_connection_unless_it_takes_something() {
        let stuck = Stuck::default();
        let first = stuck.refused("a", 3);
        assert_eq!(stuck.refused("a", 3), first);
        let next = stuck.refused("a", 4);
        assert!(next > first);
        stuck.confirmed("b");
        assert_eq!(stuck.refused("a", 4), next);
        stuck.confirmed("a");
        assert!(stuck.refused("a", 4) > next);
    }
}
