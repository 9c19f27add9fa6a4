//! The pulse: a number that moves on while every loop of a process turns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::limits::BEAT_EVERY;

/// The pulse of one loop: a process has one for each loop that must turn. When the loop ends, it is dropped.
///
/// The loop beats it every time around, at least every 250 ms or so, also when there is nothing to do. Clones are the
/// same pulse. As long as one that is held does not beat, the process's pulse stands still, however busy others are.
#[derive(Debug, Clone)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// The loop has turned. Costs no more than adding one.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Beats while `work` goes on, from the same task: it may wait for anything, but when it blocks its thread, the
    /// pulse stands still.
    pub async fn during<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        loop {
            self.beat();
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep(BEAT_EVERY) => {}
            }
        }
    }
}

/// All pulses of a process.
#[derive(Debug, Default)]
pub(crate) struct Pulses(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The process's pulse.
    total: u64,
    /// Each loop's pulse, and what it was when the process's moved on last.
    loops: Vec<(Weak<AtomicU64>, u64)>,
}

impl Pulses {
    /// A new one to be watched.
    pub(crate) fn add(&self) -> Pulse {
        // One ahead of what was seen: a loop that begins just now does not hold up the others.
        let counter = Arc::new(AtomicU64::new(1));
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.loops.push((Arc::downgrade(&counter), 0));
        Pulse(counter)
    }

    /// The process's pulse: it moves on when all loops have beaten since it last did.
    pub(crate) fn read(&self) -> u64 {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        let mut turned = true;
        state.loops.retain(|(counter, seen)| {
            let now = counter.upgrade().map(|counter| counter.load(Ordering::Relaxed));
            turned &= now != Some(*seen);
            now.is_some()
        });
        if turned && !state.loops.is_empty() {
            for (counter, seen) in &mut state.loops {
                *seen = counter.upgrade().map_or(*seen, |counter| counter.load(Ordering::Relaxed));
            }
            state.total += 1;
        }
        state.total
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_moves_on_while_a_task_waits_and_not_while_it_blocks() {
        let pulses = Pulses::default();
        let pulse = pulses.add();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let waiting = pulse.during(async {
            let _ = ended.await;
            // Blocks: whoever reads now and again sees no beat in between.
            pulses.read();
            let at = pulses.read();
            std::thread::sleep(BEAT_EVERY * 2);
            assert_eq!(pulses.read(), at);
        });
        let watching = async {
            let start = pulses.read();
            while pulses.read() < start + 3 {
                tokio::time::sleep(BEAT_EVERY / 10).await;
            }
            let _ = end.send(());
        };
        tokio::join!(waiting, watching);
    }

    #[test]
    fn it_moves_on_when_all_loops_have_turned() {
        let pulses = Pulses::default();
        assert_eq!(pulses.read(), 0, "nothing turns");
        let first = pulses.add();
        assert_eq!(pulses.read(), 1);
        assert_eq!(pulses.read(), 1, "not since");
        first.beat();
        first.clone().beat();
        assert_eq!(pulses.read(), 2);
        let second = pulses.add();
        first.beat();
        assert_eq!(pulses.read(), 3, "a loop that begins holds nobody up");
        first.beat();
        assert_eq!(pulses.read(), 3, "the second stands");
        assert_eq!(pulses.read(), 3);
        second.beat();
        assert_eq!(pulses.read(), 4);
        first.beat();
        drop(second);
        assert_eq!(pulses.read(), 5, "a loop that has ended holds nobody up");
        drop(first);
        assert_eq!(pulses.read(), 5, "nothing turns");
    }
}
