//! What systemd is told of a unit with `Type=notify`: that it is ready, that it ends, and, with `WatchdogSec=`, that it still turns.
//! Without systemd nothing is told.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use sd_notify::NotifyState;

use crate::error::Error;
use crate::health::Readiness;
use crate::vitals::Shared;

/// The process does what it is there for.
pub(crate) fn tell_ready() {
    tell(NotifyState::Ready);
}

/// The process has been told to end, and ends.
pub(crate) fn tell_stopping() {
    tell(NotifyState::Stopping);
}

fn tell(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::debug!(%error, "systemd could not be told");
    }
}

/// A thread that tells systemd that the process turns, as long as its pulse moves. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts it, if systemd waits for such words.
    pub(crate) fn start(shared: Arc<Shared>) -> Result<Option<Self>, Error> {
        let Some(limit) = sd_notify::watchdog_enabled() else { return Ok(None) };
        let (end, ended) = channel();
        // A word may get lost, and a pulse may be read in the moment before it moves.
        let every = limit / 4;
        let watch = move || {
            let mut seen = 0;
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let pulse = shared.pulse();
                // What is not ready yet, or not any more, has no loops that must turn.
                if pulse != seen || shared.readiness() != Readiness::Ready {
                    seen = pulse;
                    tell(NotifyState::Watchdog);
                }
            }
        };
        let thread = thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map_err(Error::Sending)?;
        Ok(Some(Self { end: Some(end), thread: Some(thread) }))
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It waits for nothing but the end that was just given.
            let _ = thread.join();
        }
    }
}
