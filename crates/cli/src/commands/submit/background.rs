//! Work that waits for a gateway, without keeping Ctrl-C waiting.

use std::thread::JoinHandle;

use anyhow::{Result, anyhow};
use tenaz_client::limits::TICK;
use tenaz_client::{Error, Gateways};

/// Work on a thread of its own. Dropped, it goes on until the process ends.
pub(super) struct Background<T>(JoinHandle<Result<T>>);

impl<T: Send + 'static> Background<T> {
    pub(super) fn start(work: impl FnOnce() -> Result<T> + Send + 'static) -> Self {
        Self(std::thread::spawn(work))
    }

    /// The work's outcome, unless the user stops us first.
    pub(super) fn wait(self, gateways: &Gateways) -> Result<T> {
        while !self.0.is_finished() {
            if gateways.is_stopping() {
                return Err(Error::Stopped.into());
            }
            std::thread::sleep(TICK / 5);
        }
        self.0.join().unwrap_or_else(|_| Err(anyhow!(Error::Fault("a thread of the client crashed".to_owned()))))
    }
}
