//! When to start a process again: at once, then ever later, and not without end.

use std::collections::VecDeque;

/// How processes are watched and started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperPolicy {
    /// A process that makes no progress for so long is hung.
    pub hang_after_ms: u64,
    /// A process that is not ready so long after its start is ended: the start has failed.
    pub start_within_ms: u64,
    /// The wait before the second restart in a row, which doubles with each that follows. The first is immediate.
    pub backoff_ms: u64,
    /// The longest wait.
    pub backoff_cap_ms: u64,
    /// A process that was ready for so long is healthy: the next restart is a first one again.
    pub healthy_after_ms: u64,
    /// So many lives in a row that never got ready: given up.
    pub failed_starts: u32,
    /// Restarts of one process within the window. One more, and it is given up.
    pub per_process: usize,
    /// Restarts of all processes within the window. Further ones are held back until the window allows them.
    pub per_cluster: usize,
    /// The length of the window.
    pub window_ms: u64,
}

impl Default for KeeperPolicy {
    fn default() -> Self {
        Self {
            hang_after_ms: 3_000,
            start_within_ms: 60_000,
            backoff_ms: 500,
            backoff_cap_ms: 30_000,
            healthy_after_ms: 10_000,
            failed_starts: 5,
            per_process: 30,
            per_cluster: 150,
            window_ms: 600_000,
        }
    }
}

impl KeeperPolicy {
    /// How long to wait before a restart when there were `before` restarts in a row. The dice spread processes that died
    /// together over the second half of the wait.
    pub(super) fn delay_ms(&self, before: u32, dice: u64) -> u64 {
        let Some(doublings) = before.checked_sub(1) else { return 0 };
        let factor = 1u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let whole = self.backoff_ms.saturating_mul(factor).min(self.backoff_cap_ms);
        let half = whole / 2;
        half + dice % (whole - half + 1)
    }
}

/// The restarts of one process that still count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Restarts {
    at_ms: VecDeque<u64>,
}

impl Restarts {
    /// What the records say. A clock that was set must not keep a restart in the window for ever.
    pub(super) fn recorded(at_ms: &[u64], now_ms: u64) -> Self {
        let mut at_ms: Vec<_> = at_ms.iter().map(|&at| at.min(now_ms)).collect();
        at_ms.sort_unstable();
        Self { at_ms: at_ms.into() }
    }

    pub(super) fn push(&mut self, now_ms: u64) {
        self.at_ms.push_back(now_ms);
    }

    /// The latest restart has not happened after all.
    pub(super) fn pop(&mut self) {
        self.at_ms.pop_back();
    }

    /// Those within the window that ends now.
    pub(super) fn within(&self, window_ms: u64, now_ms: u64) -> impl Iterator<Item = u64> {
        self.at_ms.iter().copied().filter(move |at| at.saturating_add(window_ms) > now_ms)
    }
}

/// When there is room for one more, if there is none now: `at_ms` are the times of all that count.
pub(super) fn room_at(at_ms: impl Iterator<Item = u64>, limit: usize, window_ms: u64) -> Option<u64> {
    let mut at_ms: Vec<_> = at_ms.collect();
    let over = (at_ms.len() + 1).checked_sub(limit).filter(|&over| over > 0)?;
    at_ms.sort_unstable();
    // With a limit of nothing there never is.
    Some(at_ms.get(over - 1).map_or(u64::MAX, |at| at.saturating_add(window_ms)))
}

/// A number that depends on everything given and looks like nothing else: the same for the same input, on any machine.
pub(super) fn dice(seed: u64, name: &str, number: u64) -> u64 {
    let mut state = seed ^ number.rotate_left(32);
    for byte in name.bytes() {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // The finaliser of splitmix64.
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_the_others_come_ever_later_up_to_the_cap() {
        let policy = KeeperPolicy::default();
        assert_eq!(policy.delay_ms(0, 7), 0);
        for before in 1..200 {
            let whole = (500u64 << (before - 1).min(20)).min(30_000);
            for number in 0..20 {
                let delay = policy.delay_ms(before, dice(1, "worker-1", number));
                assert!((whole / 2..=whole).contains(&delay), "{before}: {delay}");
            }
        }
    }

    #[test]
    fn jitter_depends_on_the_seed_the_name_and_the_life() {
        let all = [dice(1, "worker-1", 1), dice(2, "worker-1", 1), dice(1, "worker-2", 1), dice(1, "worker-1", 2)];
        assert!(all.iter().enumerate().all(|(i, a)| all[..i].iter().all(|b| a != b)), "{all:?}");
        assert_eq!(all[0], dice(1, "worker-1", 1));
    }

    #[test]
    fn there_is_room_when_the_oldest_leaves_the_window() {
        let restarts = Restarts::recorded(&[500, 100, 900], 1_000);
        let room = |limit, now| room_at(restarts.within(1_000, now), limit, 1_000);
        assert_eq!(room(4, 1_000), None);
        assert_eq!(room(3, 1_000), Some(1_100));
        assert_eq!(room(3, 1_100), None);
        assert_eq!(room(2, 1_000), Some(1_500));
        assert_eq!(room(0, 1_000), Some(u64::MAX));
    }

    #[test]
    fn a_restart_from_the_future_counts_as_one_of_now() {
        assert_eq!(room_at(Restarts::recorded(&[u64::MAX], 50).within(10, 50), 1, 10), Some(60));
    }
}
