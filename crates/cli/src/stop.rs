//! Ctrl-C: the first one asks the work to stop, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// A flag that the first SIGINT or SIGTERM sets, as long as this lives: the shell goes on when a question was stopped.
pub(crate) struct StopSignal {
    flag: Arc<AtomicBool>,
    actions: Vec<SigId>,
}

impl StopSignal {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut signal = Self { flag: Arc::default(), actions: Vec::new() };
        for number in [SIGINT, SIGTERM] {
            let end = signal_hook::flag::register_conditional_shutdown(number, 130, Arc::clone(&signal.flag))?;
            signal.actions.push(end);
            signal.actions.push(signal_hook::flag::register(number, Arc::clone(&signal.flag))?);
        }
        Ok(signal)
    }

    /// A SIGINT does nothing of its own, as long as this lives.
    pub(crate) fn ignored() -> anyhow::Result<Self> {
        let flag = Arc::default();
        let actions = vec![signal_hook::flag::register(SIGINT, Arc::clone(&flag))?];
        Ok(Self { flag, actions })
    }

    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }
}

impl Drop for StopSignal {
    fn drop(&mut self) {
        self.actions.drain(..).for_each(|action| {
            signal_hook::low_level::unregister(action);
        });
    }
}
