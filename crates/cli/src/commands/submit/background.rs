//! Work that waits for a gateway, without keeping Ctrl-C waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use tenaz_client::limits::TICK;
use tenaz_client::{Error, Gateways};

/// Work on a thread of its own. Dropped, it goes on until the process ends.
pub(super) struct Background<T> {
    thread: JoinHandle<Result<T>>,
    succeeded: Arc<AtomicBool>,
}

impl<T: Send + 'static> Background<T> {
    pub(super) fn start(work: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        let succeeded = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&succeeded);
        let thread = std::thread::spawn(move || {
            let done = work();
            mark.store(done.is_ok(), Ordering::Release);
            done
        });
        Self { thread, succeeded }
    }

    /// Whether nothing more comes of it.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Whether it has come to a good end.
    pub(super) fn has_succeeded(&self) -> bool {
        self.succeeded.load(Ordering::Acquire)
    }

    /// The work's outcome, unless the user stops us first.
    pub(super) fn wait(self, gateways: &Gateways) -> Result<T> {
        while !self.thread.is_finished() {
            if gateways.is_stopping() {
                return Err(Error::Stopped.into());
            }
            std::thread::sleep(TICK / 5);
        }
        self.thread.join().unwrap_or_else(|_| Err(anyhow!(Error::Fault("a thread of the client crashed".to_owned()))))
    }
}
