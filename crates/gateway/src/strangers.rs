//! Connections that have not shown yet whose they are.
//!
//! A stranger costs the buffer of one head and the time of `STRANGER_PATIENCE`. When all places are taken the oldest stranger
//! gives up its place: a client with a token shows it in its first request, and then keeps its place.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// What is known of the client of one connection. Requests carry it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Introduction {
    is_known: Arc<AtomicBool>,
    evicted: CancellationToken,
}

impl Introduction {
    /// The client has shown a token, or needs none.
    pub(crate) fn accept(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Waits until a stranger has had its time, or has to make room. Never ends for a client that is known by then.
    pub(crate) async fn unwelcome(&self, patience: Duration) {
        tokio::select! {
            () = tokio::time::sleep(patience) => {}
            () = self.evicted.cancelled() => {}
        }
        if self.is_known.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }
}

/// The connections without an introduction, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    waiting: Mutex<VecDeque<Introduction>>,
}

impl Strangers {
    /// Another connection.
    pub(crate) fn welcome(&self) -> Introduction {
        let stranger = Introduction::default();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        // An introduction that only this list still holds belongs to a connection that has ended.
        waiting.retain(|other| !other.is_known.load(Ordering::Relaxed) && Arc::strong_count(&other.is_known) > 1);
        waiting.push_back(stranger.clone());
        stranger
    }

    /// Asks the oldest stranger to leave. False: there is none.
    pub(crate) fn evict_oldest(&self) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(oldest) = waiting.pop_front() {
            if !oldest.is_known.load(Ordering::Relaxed) && Arc::strong_count(&oldest.is_known) > 1 {
                oldest.evicted.cancel();
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stranger_leaves_after_its_time_and_a_client_that_is_known_stays() {
        let (silent, known) = (Introduction::default(), Introduction::default());
        known.accept();
        let patience = Duration::from_millis(1);
        silent.unwelcome(patience).await;
        assert!(tokio::time::timeout(50 * patience, known.unwelcome(patience)).await.is_err());
    }

    #[tokio::test]
    async fn the_oldest_stranger_makes_room() {
        let strangers = Strangers::default();
        let (known, first, gone, second) =
            (strangers.welcome(), strangers.welcome(), strangers.welcome(), strangers.welcome());
        known.accept();
        drop(gone);
        let hour = Duration::from_secs(3600);
        assert!(strangers.evict_oldest());
        first.unwelcome(hour).await;
        assert!(tokio::time::timeout(Duration::from_millis(50), second.unwelcome(hour)).await.is_err());
        assert!(strangers.evict_oldest());
        assert!(!strangers.evict_oldest());
    }
}
