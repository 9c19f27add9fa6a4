//! Faults on purpose: so that tests can prove what happens when a worker is slow, panics, or dies of a chunk.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether an actor of this process has panicked on purpose.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// What goes wrong on purpose in a worker. Nothing, unless somebody asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    /// Every task takes this much longer.
    pub slow: Duration,
    /// The process aborts when it begins this chunk: (table, number).
    pub abort: Option<(String, u64)>,
    /// The process aborts when it plans this workload.
    pub abort_plan: Option<String>,
    /// The task panics when it begins this chunk.
    pub panic: Option<(String, u64)>,
    /// After so many chunks the job's actor blocks its thread for ever.
    pub hang: Option<u64>,
    /// When so many chunks are finished, the job's actor panics, once.
    pub panic_actor: Option<u64>,
    /// The build that the worker says it is.
    pub build: Option<String>,
    /// The digest that the worker finds for the plan of every job.
    pub plan: Option<String>,
}

impl Faults {
    pub(super) fn before_chunk(&self, table: &str, number: u64) {
        std::thread::sleep(self.slow);
        let is = |fault: &Option<(String, u64)>| fault.as_ref().is_some_and(|(t, n)| t == table && *n == number);
        if is(&self.abort) {
            std::process::abort();
        }
        assert!(!is(&self.panic), "a panic on purpose");
    }

    pub(super) fn after_chunks(&self, chunks: u64) {
        if self.hang.is_some_and(|hang| chunks >= hang) {
            tracing::warn!(chunks, "hanging on purpose");
            loop {
                std::thread::park();
            }
        }
        // Threads may have finished more than that by the time the actor looks.
        if self.panic_actor.is_some_and(|wanted| chunks >= wanted) && !PANICKED.swap(true, Ordering::Relaxed) {
            panic!("a panic of the actor on purpose");
        }
    }

    pub(super) fn before_plan(&self, workload: &str) {
        if self.abort_plan.as_deref() == Some(workload) {
            std::process::abort();
        }
    }

    pub(super) fn before_task(&self) {
        std::thread::sleep(self.slow);
    }
}

impl FromStr for Faults {
    type Err = String;

    /// Reads `slow=50` (milliseconds), `abort=table:number`, `abort-plan=workload`, `panic=table:number`, `hang=chunks`, `panic-actor=chunks`,
    /// `build=digest`, `plan=digest`, separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut faults = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let wrong = || {
                format!(
                    "{part:?} is no fault: write slow=MS, abort=TABLE:CHUNK, abort-plan=WORKLOAD, panic=TABLE:CHUNK, hang=CHUNKS, panic-actor=CHUNKS, build=DIGEST or plan=DIGEST"
                )
            };
            let (what, value) = part.split_once('=').ok_or_else(wrong)?;
            let chunk = || {
                let (table, number) = value.split_once(':')?;
                Some((table.to_owned(), number.parse().ok()?))
            };
            match what {
                "slow" => faults.slow = Duration::from_millis(value.parse().map_err(|_| wrong())?),
                "abort" => faults.abort = Some(chunk().ok_or_else(wrong)?),
                "abort-plan" => faults.abort_plan = Some(value.to_owned()),
                "hang" => faults.hang = Some(value.parse().map_err(|_| wrong())?),
                "panic-actor" => faults.panic_actor = Some(value.parse().map_err(|_| wrong())?),
                "plan" => faults.plan = Some(value.to_owned()),
                "build" => faults.build = Some(value.to_owned()),
                "panic" => faults.panic = Some(chunk().ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_from_text() {
        let faults: Faults = "slow=50,abort=items:3,hang=7".parse().expect("faults");
        assert_eq!(faults.hang, Some(7));
        assert_eq!(faults.slow, Duration::from_millis(50));
        assert_eq!(faults.abort, Some(("items".to_owned(), 3)));
        assert!("slow".parse::<Faults>().is_err());
        assert!("abort=items".parse::<Faults>().is_err());
    }
}
