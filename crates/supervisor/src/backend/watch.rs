//! Notices at once when a process ends, whoever started it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::kernel::{PidFd, Vitality, vitality};
use crate::records::Life;

/// The processes whose end is waited for.
#[derive(Debug, Default, Clone)]
pub(super) struct Watch {
    lives: Arc<Mutex<HashSet<(u32, u64)>>>,
    changed: Arc<Notify>,
}

impl Watch {
    /// Whether this process is being watched, which it is only after its mark was compared.
    pub(super) fn has(&self, life: Life) -> bool {
        self.lives().contains(&(life.pid, life.start_ticks))
    }

    /// Watches a process until it ends. `settle` is then called on a thread that may block, before the process is reaped if
    /// it is our child: so the ending is written down before the kernel forgets it.
    pub(super) fn follow(&self, life: Life, settle: impl FnOnce() + Send + 'static) {
        let Some(pidfd) = PidFd::open(life.pid) else { return self.changed.notify_one() };
        if vitality(life.pid, life.start_ticks) == Vitality::Gone {
            return self.changed.notify_one();
        }
        if !self.lives().insert((life.pid, life.start_ticks)) {
            return;
        }
        let watch = self.clone();
        tokio::spawn(async move {
            let ended = pidfd.ended().await;
            watch.lives().remove(&(life.pid, life.start_ticks));
            watch.changed.notify_one();
            match ended {
                Ok(pidfd) => {
                    let settled = tokio::task::spawn_blocking(move || {
                        settle();
                        pidfd.reap();
                    });
                    // Only a panic could be lost here, and the next look at the process makes up for it.
                    let _ = settled.await;
                    watch.changed.notify_one();
                }
                Err(error) => tracing::warn!(%error, pid = life.pid, "a process cannot be watched"),
            }
        });
    }

    /// Returns when a process has ended since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn lives(&self) -> MutexGuard<'_, HashSet<(u32, u64)>> {
        self.lives.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
