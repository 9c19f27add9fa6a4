//! Ctrl-C: the first one asks the work to stop, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// A shell is open: no SIGINT ends it, however many come while a question is stopping.
static SHELL_IS_OPEN: AtomicBool = AtomicBool::new(false);

/// A flag that the first SIGINT or SIGTERM sets, as long as this lives: the shell goes on when a question was stopped.
pub(crate) struct StopSignal {
    flag: Arc<AtomicBool>,
    actions: Vec<SigId>,
}

impl StopSignal {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let mut signal = Self { flag: Arc::default(), actions: Vec::new() };
        for number in [SIGINT, SIGTERM] {
            if number != SIGINT || !SHELL_IS_OPEN.load(Ordering::Relaxed) {
                let end = signal_hook::flag::register_conditional_shutdown(number, 130, Arc::clone(&signal.flag))?;
                signal.actions.push(end);
            }
            signal.actions.push(signal_hook::flag::register(number, Arc::clone(&signal.flag))?);
        }
        Ok(signal)
    }

    /// From now on a SIGINT ends questions only. Between two of them it does nothing.
    pub(crate) fn of_shell() -> anyhow::Result<Self> {
        SHELL_IS_OPEN.store(true, Ordering::Relaxed);
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
