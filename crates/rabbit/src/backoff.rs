//! How long to wait before the next attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Exponential backoff from 50 ms to 2 s, with jitter, so that a restarted broker is not met by everyone at once.
///
/// ```
/// let mut backoff = tenaz_rabbit::Backoff::new();
/// let first = backoff.next_delay();
/// assert!(first <= std::time::Duration::from_millis(50));
/// backoff.reset(); // after a success
/// ```
#[derive(Debug, Clone, Default)]
pub struct Backoff {
    attempts: u32,
}

impl Backoff {
    /// Starts with the shortest delay.
    pub fn new() -> Self {
        Self::default()
    }

    /// The delay before the next attempt: between half of the current step and all of it.
    pub fn next_delay(&mut self) -> Duration {
        let delay = jittered(step(self.attempts), fastrand::u64(..));
        self.attempts = self.attempts.saturating_add(1);
        delay
    }

    /// Forgets past failures.
    pub fn reset(&mut self) {
        self.attempts = 0;
    }
}

fn step(attempts: u32) -> Duration {
    // 2^6 * 50 ms is already above the longest delay.
    (FIRST * 2u32.pow(attempts.min(6))).min(LONGEST)
}

fn jittered(step: Duration, random: u64) -> Duration {
    let half = step / 2;
    half + half.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_double_up_to_two_seconds() {
        let steps: Vec<u128> = (0..8).map(|attempt| step(attempt).as_millis()).collect();
        assert_eq!(steps, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
    }

    #[test]
    fn jitter_stays_between_half_and_whole() {
        assert_eq!(jittered(FIRST, 0), FIRST / 2);
        assert!(jittered(FIRST, u64::MAX) <= FIRST);
        let mut backoff = Backoff::new();
        for _ in 0..100 {
            assert!(backoff.next_delay() <= LONGEST);
        }
        backoff.reset();
        assert!(backoff.next_delay() <= FIRST);
    }
}
