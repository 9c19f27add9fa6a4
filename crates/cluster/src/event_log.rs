//! What has happened in the cluster: a bounded stream that any process may write to and every gateway reads.
//!
//! Several processes may see the same thing. Each event has a key that follows from what it tells of, so that whoever reads the
//! stream takes the first and drops the others. The stream is an account, not state: nothing is decided by it.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use tenaz_api::ClusterEvent;
use tokio::sync::{mpsc, watch};

use crate::limits::{KEPT_EVENTS, READ_AHEAD};
use crate::log::{Followed, follow_log};
use crate::{Error, Link};

/// An event as it travels.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    key: String,
    event: ClusterEvent,
}

#[derive(Debug, Default)]
struct Kept {
    /// The latest events, oldest first, each with its place in the stream.
    events: VecDeque<(u64, String, ClusterEvent)>,
    keys: BTreeSet<String>,
}

impl Kept {
    fn take(&mut self, offset: u64, written: Written) {
        if !self.keys.insert(written.key.clone()) {
            return;
        }
        self.events.push_back((offset, written.key, written.event));
        while self.events.len() > KEPT_EVENTS {
            if let Some((_, key, _)) = self.events.pop_front() {
                self.keys.remove(&key);
            }
        }
    }
}

/// The stream as one process has read it.
#[derive(Debug)]
pub struct EventLog {
    link: Link,
    kept: Mutex<Kept>,
    changed: watch::Sender<u64>,
}

impl EventLog {
    /// Begins to read.
    pub fn open(link: &Link) -> Arc<Self> {
        let (changed, _) = watch::channel(0);
        let log = Arc::new(Self { link: link.clone(), kept: Mutex::default(), changed });
        let (sender, receiver) = mpsc::channel(READ_AHEAD);
        tokio::spawn(follow_log(link.clone(), link.names().events(), sender));
        tokio::spawn(Arc::clone(&log).read(receiver));
        log
    }

    async fn read(self: Arc<Self>, mut messages: mpsc::Receiver<Followed>) {
        while let Some(followed) = messages.recv().await {
            match followed {
                Followed::Anew => *self.lock() = Kept::default(),
                Followed::Message(message) => match serde_json::from_slice(&message.body) {
                    Ok(written) => self.lock().take(message.offset, written),
                    Err(error) => tracing::debug!(offset = message.offset, %error, "an event cannot be read"),
                },
            }
            self.changed.send_modify(|version| *version += 1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event, unless it is known.
    ///
    /// # Errors
    /// The broker refuses it for good.
    pub async fn append(&self, key: String, event: ClusterEvent) -> Result<(), Error> {
        if self.lock().keys.contains(&key) {
            return Ok(());
        }
        let body = serde_json::to_vec(&Written { key, event }).expect("events are plain data");
        self.link.publish(&self.link.names().events(), "event", body.into()).await
    }

    /// The events behind a place in the stream, each with its own place; without one, all that are kept.
    pub fn after(&self, offset: Option<u64>) -> Vec<(u64, ClusterEvent)> {
        let kept = self.lock();
        let is_new = |(at, _, _): &&(u64, String, ClusterEvent)| offset.is_none_or(|offset| *at > offset);
        kept.events.iter().filter(is_new).map(|(at, _, event)| (*at, event.clone())).collect()
    }

    /// The place of the latest event.
    pub fn latest(&self) -> Option<u64> {
        self.lock().events.back().map(|(at, _, _)| *at)
    }

    /// Changes whenever there is something new.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use tenaz_api::ClusterEventKind;

    use super::*;

    fn written(key: &str) -> Written {
        Written { key: key.to_owned(), event: ClusterEvent::new(ClusterEventKind::Joined, 0) }
    }

    #[test]
    fn what_several_have_seen_is_told_once_and_old_events_are_forgotten() {
        let mut kept = Kept::default();
        kept.take(0, written("a"));
        kept.take(1, written("a"));
        assert_eq!(kept.events.len(), 1);
        (0..KEPT_EVENTS as u64).for_each(|n| kept.take(n + 2, written(&n.to_string())));
        assert_eq!((kept.events.len(), kept.keys.len()), (KEPT_EVENTS, KEPT_EVENTS));
        assert_eq!(kept.events.front().map(|(at, _, _)| *at), Some(2));
    }
}
