//! The pulse: a number that moves on while every loop of a process turns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The pulse of one loop: a process has one for each loop that must turn. When the loop ends, it is dropped.
///
/// The loop beats it every time around, at least every 250 ms or so, also when there is nothing to do. Clones are the
/// same pulse. As long as one that is held does not beat, the process's pulse stands still, however busy others are.
#[derive(Debug, Clone)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// A pulse that nobody watches.
    pub fn unwatched() -> Self {
        Self(Arc::default())
    }

    /// The loop has turned. Costs no more than adding one.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
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
