//! Work queues that a broker has lost, or that confirm nothing any more, are made anew.
//!
//! (m) A lone RabbitMQ 3.10.8 that is killed within a second or two of a queue's declaration may come back with a queue that
//! takes messages and never confirms one. Deleted and declared again it works. What was in it is found missing by the
//! workers, and sent again by the client; a chunk that comes twice counts once. So a queue may be made anew at any time, by
//! several gateways, and by mistake: that costs time and changes no answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenaz_cluster::{Session, declare_chunks, delete_chunks};
use tenaz_core::JobCard;
use tenaz_rabbit::Error;

use crate::app::{Job, Shared};

/// Queues that have not confirmed a message, and over which connection.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    silent: Mutex<HashMap<String, u64>>,
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
    }

    /// The queue has not confirmed a message over a connection. True: nor over an earlier one, and nothing since.
    fn unconfirmed(&self, queue: &str, epoch: u64) -> bool {
        epoch > *self.lock().entry(queue.to_owned()).or_insert(epoch)
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
}
