//! What one life shows of itself, and whether that is progress.

use super::super::{Incarnation, KeeperPolicy};
use super::Trouble;

/// Signs that nothing moves, before a process counts as hung: one could have been on its way while it moved.
const ENOUGH_SIGNS: u32 = 2;

/// What was heard of one life of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Vital {
    pub(super) incarnation: Incarnation,
    pub(super) ready: bool,
    ready_since_ms: Option<u64>,
    /// It was ready at some time.
    pub(super) was_ready: bool,
    /// It was ready for so long that whatever happens to it next is news.
    pub(super) healthy: bool,
    draining_since_ms: Option<u64>,
    pulse: Option<u64>,
    progress_ms: u64,
    heard_ms: u64,
    /// How often since the last progress it was seen that there is none, by heartbeats or else by probes.
    signs: u32,
    probe: Probe,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Probe {
    #[default]
    None,
    Sent(u64),
    Answered(u64),
}

impl Vital {
    pub(super) fn of(incarnation: Incarnation) -> Self {
        Self { incarnation, ..Self::default() }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.draining_since_ms.is_some()
    }

    pub(super) fn heard(&mut self, ready: bool, draining: bool, pulse: u64, policy: &KeeperPolicy, now_ms: u64) {
        self.heard_ms = now_ms;
        if self.probe != Probe::None {
            // It is heard again after all: what was silence is to be shown anew.
            (self.probe, self.signs) = (Probe::None, 0);
        }
        self.advance(pulse, now_ms);
        self.ready = ready;
        if ready {
            let since = *self.ready_since_ms.get_or_insert(now_ms);
            self.was_ready = true;
            self.healthy |= now_ms - since >= policy.healthy_after_ms;
        } else {
            self.ready_since_ms = None;
        }
        if draining {
            self.draining_since_ms.get_or_insert(now_ms);
        }
    }

    pub(super) fn probed(&mut self, pulse: Option<u64>, now_ms: u64) {
        // An answer counts whenever it comes; that there is none, only if it is still waited for.
        match (pulse, self.probe) {
            (Some(pulse), _) => {
                // None of its heartbeats ever came, so whether it is ready cannot be known: it lives, and that must do.
                self.was_ready |= self.pulse.is_none();
                self.advance(pulse, now_ms);
            }
            (None, Probe::Sent(_)) => self.signs += 1,
            (None, _) => return,
        }
        self.probe = Probe::Answered(now_ms);
    }

    fn advance(&mut self, pulse: u64, now_ms: u64) {
        if self.pulse.is_none_or(|known| pulse > known) {
            self.pulse = Some(pulse);
            self.progress_ms = now_ms;
            self.signs = 0;
        } else {
            self.signs += 1;
        }
    }

    /// Whoever judges has only just come, or was asleep: everything counts from now on.
    pub(super) fn freshen(&mut self, now_ms: u64) {
        self.progress_ms = now_ms;
        self.heard_ms = now_ms;
        self.signs = 0;
        self.probe = Probe::None;
    }

    /// Whether heartbeats fail to arrive.
    pub(super) fn is_quiet(&self, policy: &KeeperPolicy, now_ms: u64) -> bool {
        now_ms - self.heard_ms >= policy.hang_after_ms / 2
    }

    /// Whether to ask it, and if so, notes that it is being asked.
    pub(super) fn ask(&mut self, policy: &KeeperPolicy, now_ms: u64) -> bool {
        let due = match self.probe {
            Probe::None if self.is_quiet(policy, now_ms) => {
                // What its heartbeats showed may be over.
                self.signs = 0;
                true
            }
            Probe::None => false,
            Probe::Answered(at) => now_ms - at >= policy.hang_after_ms / 4,
            // The driver always answers; if it did not, the process must not be forgotten.
            Probe::Sent(at) if now_ms - at >= policy.hang_after_ms => {
                self.signs += 1;
                true
            }
            Probe::Sent(_) => false,
        };
        if due {
            self.probe = Probe::Sent(now_ms);
        }
        due
    }

    /// Whether it is hung. Lost heartbeats alone are no sign; and whoever is about to end need not show anything, for a
    /// while.
    pub(super) fn trouble(&self, policy: &KeeperPolicy, now_ms: u64) -> Option<Trouble> {
        let for_ms = now_ms - self.progress_ms;
        let finishing = self.draining_since_ms.is_some_and(|since| now_ms - since < policy.start_within_ms);
        if for_ms < policy.hang_after_ms || self.signs < ENOUGH_SIGNS || finishing {
            return None;
        }
        let quiet = self.is_quiet(policy, now_ms);
        Some(if quiet { Trouble::Silent { for_ms } } else { Trouble::Frozen { for_ms } })
    }
}
