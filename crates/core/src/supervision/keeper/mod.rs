//! Keeps the processes of a cluster alive: what the leading supervisor decides.
//!
//! One value for all processes. It believes the back-end about what runs and what has ended, and heartbeats and probes about
//! what still works. A new leader begins with an empty one, and gives everybody a fresh period: what it has not heard
//! yet is no sign of anything.

mod event;
mod kept;
mod standing;
mod vital;

use std::collections::BTreeMap;

use super::restarts::room_at;
use super::{Incarnation, KeeperPolicy, ProcessName, ProcessRole};
pub use event::{KeeperAction, KeeperEvent, OrderFailure, Past, ProcessState, Standing, Streak, Trouble};
use kept::{Hold, Kept, Phase, Rules};

/// Decides when processes are started, ended and given up.
///
/// ```
/// use tenaz_core::{Incarnation, Keeper, KeeperAction, KeeperEvent, KeeperPolicy, Past, ProcessName, ProcessRole};
///
/// let name = ProcessName::numbered(ProcessRole::Worker, 1);
/// let mut keeper = Keeper::new(KeeperPolicy::default(), 7, [(name.clone(), ProcessRole::Worker)], 0);
/// let role = ProcessRole::Worker;
/// let seen = KeeperEvent::Seen { name: name.clone(), role, running: None, ended: None, past: Past::default() };
/// let actions = keeper.handle(seen, 10);
/// assert!(matches!(&actions[..], [KeeperAction::Start { incarnation: Incarnation(1), .. }]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    policy: KeeperPolicy,
    seed: u64,
    /// By role and name: brokers come before those who need them.
    kept: BTreeMap<(ProcessRole, ProcessName), Kept>,
    now_ms: u64,
    began_ms: u64,
    ticked_ms: u64,
    closed: bool,
}

impl Keeper {
    /// Begins to keep these processes. The seed makes the waits of different clusters differ. Times are milliseconds of any
    /// clock that goes on in the records, that is, of Unix; should it go back, time stands still for a while.
    pub fn new(
        policy: KeeperPolicy,
        seed: u64,
        processes: impl IntoIterator<Item = (ProcessName, ProcessRole)>,
        now_ms: u64,
    ) -> Self {
        let kept = |(name, role): (ProcessName, ProcessRole)| ((role, name.clone()), Kept::new(name, role));
        let kept = processes.into_iter().map(kept).collect();
        Self { policy, seed, kept, now_ms, began_ms: now_ms, ticked_ms: now_ms, closed: false }
    }

    /// What happened, and what to do about it, in this order. Processes that are seen are kept from then on, even if nobody
    /// had named them before (Docker and systemd know by themselves what they have).
    pub fn handle(&mut self, event: KeeperEvent, now_ms: u64) -> Vec<KeeperAction> {
        self.now_ms = self.now_ms.max(now_ms);
        let now_ms = self.now_ms;
        let mut actions = Vec::new();
        match event {
            KeeperEvent::Seen { name, role, running, ended, past } => {
                let known = self.kept.values().any(|kept| kept.name == name);
                if !known {
                    self.kept.insert((role, name.clone()), Kept::new(name.clone(), role));
                }
                self.with(&name, |kept, rules| kept.see(running, ended, &past, rules));
            }
            KeeperEvent::Heard { name, incarnation, ready, draining, pulse } => {
                self.with(&name, |kept, rules| {
                    if let Some(vital) = kept.vital_mut(incarnation) {
                        vital.heard(ready, draining, pulse, rules.policy, now_ms);
                    }
                });
            }
            KeeperEvent::Probed { name, incarnation, pulse } => {
                self.with(&name, |kept, _| {
                    if let Some(vital) = kept.vital_mut(incarnation) {
                        vital.probed(pulse, now_ms);
                    }
                });
            }
            KeeperEvent::OrderFailed { name, incarnation, failure, reason } => {
                self.with(&name, |kept, rules| kept.failed(incarnation, failure, &reason, rules));
            }
            KeeperEvent::Ticked => self.tick(&mut actions),
            KeeperEvent::Closed => self.closed = true,
        }
        self.act(&mut actions);
        actions
    }

    fn with(&mut self, name: &ProcessName, change: impl FnOnce(&mut Kept, &Rules<'_>)) {
        let rules = Rules { policy: &self.policy, seed: self.seed, now_ms: self.now_ms };
        if let Some(kept) = self.kept.values_mut().find(|kept| kept.name == *name) {
            change(kept, &rules);
        }
    }

    fn tick(&mut self, actions: &mut Vec<KeeperAction>) {
        // Whoever was asleep has heard nothing, and that says nothing about the others.
        let asleep = self.now_ms - self.ticked_ms >= (self.policy.hang_after_ms / 3).max(1);
        self.ticked_ms = self.now_ms;
        if asleep {
            self.kept.values_mut().for_each(|kept| kept.freshen(self.now_ms));
        }
        if self.closed {
            return;
        }
        let rules = Rules { policy: &self.policy, seed: self.seed, now_ms: self.now_ms };
        self.kept.values_mut().for_each(|kept| kept.judge(&rules, actions));
    }

    fn act(&mut self, actions: &mut Vec<KeeperAction>) {
        if self.closed {
            return;
        }
        let due = self.kept.iter().filter(|(_, kept)| kept.is_due(&self.policy, self.now_ms));
        let due: Vec<_> = due.map(|(key, _)| key.clone()).collect();
        for key in due {
            let hold = self.hold(&key.0, self.kept[&key].is_first_start());
            let rules = Rules { policy: &self.policy, seed: self.seed, now_ms: self.now_ms };
            if let Some(kept) = self.kept.get_mut(&key) {
                kept.act(hold.as_ref(), &rules, actions);
            }
        }
    }

    /// What is in the way of a start of a process of this role.
    fn hold(&self, role: &ProcessRole, first: bool) -> Option<Hold> {
        if self.closed {
            return Some(Hold::Closed);
        }
        if matches!(role, ProcessRole::Worker | ProcessRole::Gateway) {
            let brokers = self.kept.values().filter(|kept| kept.role == ProcessRole::Broker);
            if let Some(broker) = brokers.into_iter().find(|kept| !kept.is_ready()) {
                return Some(Hold::Broker(broker.name.clone()));
            }
        }
        if first {
            return None;
        }
        let new = self.now_ms - self.began_ms < self.policy.hang_after_ms;
        if new && self.kept.values().any(|kept| kept.seen_ms.is_none()) {
            return Some(Hold::Unseen);
        }
        let window_ms = self.policy.window_ms;
        let all = self.kept.values().flat_map(|kept| kept.restarts.within(window_ms, self.now_ms));
        room_at(all, self.policy.per_cluster, window_ms).map(Hold::Budget)
    }

    /// The life of a process that was seen to run, if one was.
    pub fn running(&self, name: &ProcessName) -> Option<Incarnation> {
        let kept = self.kept.values().find(|kept| kept.name == *name)?;
        match kept.phase {
            Phase::Running { life, .. } => Some(life),
            _ => None,
        }
    }
}
