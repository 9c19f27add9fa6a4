//! Without a leader, the supervisors of a machine revive each other: else the survivors could never become a majority again.
//!
//! It is the one thing that is done without a term, and it is harmless: a supervisor changes nothing by being there.

use std::time::Instant;

use tenaz_core::{Incarnation, Keeper, KeeperAction, KeeperEvent, OrderFailure, ProcessName, ProcessRole};

use super::{Done, Driver, looks};
use crate::executor::OrderResult;
use crate::limits::REVIVE_AFTER;

/// Decides when to revive, by the same rules as a leader would.
pub(super) struct Reviver {
    keeper: Keeper,
}

impl Driver {
    pub(super) fn revive_tick(&mut self) {
        if self.election.leader().is_some() {
            (self.leaderless_since, self.reviver) = (None, None);
            return;
        }
        let since = *self.leaderless_since.get_or_insert_with(Instant::now);
        if since.elapsed() < REVIVE_AFTER * (1 + self.rank()) {
            return;
        }
        if self.reviver.is_none() {
            let here = self.config.supervisors.iter().filter(|other| other.machine == self.me.machine);
            let others = here.filter(|other| other.id != self.me.id);
            let others: Vec<_> = others.map(|other| (other.name(), ProcessRole::Supervisor)).collect();
            let keeper = Keeper::new(self.policy, u64::from(self.me.id.0), others, self.clock.now_ms());
            self.reviver = Some(Reviver { keeper });
            let seen: Vec<_> = self.looks.here().iter().map(looks::seen).collect();
            self.revive_seen(&seen);
        }
        self.revive_tell(KeeperEvent::Ticked);
    }

    /// How many lower supervisors of this machine live: they go first.
    fn rank(&self) -> u32 {
        let lower = self.config.supervisors.iter().filter(|other| other.id < self.me.id);
        let lives = |name: ProcessName| {
            self.looks.here().iter().any(|process| process.found.name == name && process.found.is_running())
        };
        u32::try_from(lower.filter(|other| lives(other.name())).count()).unwrap_or(u32::MAX)
    }

    pub(super) fn revive_seen(&mut self, seen: &[KeeperEvent]) {
        for event in seen {
            let other = matches!(event, KeeperEvent::Seen { name, role, .. }
                if *role == ProcessRole::Supervisor && *name != self.me.name());
            if other && self.reviver.is_some() {
                self.revive_tell(event.clone());
            }
        }
    }

    fn revive_tell(&mut self, event: KeeperEvent) {
        let now_ms = self.clock.now_ms();
        let Some(reviver) = &mut self.reviver else { return };
        for action in reviver.keeper.handle(event, now_ms) {
            match action {
                KeeperAction::Start { name, incarnation, .. } => self.revive(name, incarnation),
                // To judge, to kill and to give up is for a leader.
                KeeperAction::Probe { .. } | KeeperAction::Kill { .. } | KeeperAction::GiveUp { .. } => {}
            }
        }
    }

    fn revive(&mut self, name: ProcessName, incarnation: Incarnation) {
        let Some(id) = self.config.supervisors.iter().find(|other| other.name() == name).map(|other| other.id) else {
            return;
        };
        tracing::info!(supervisor = %id, "nobody leads: a supervisor of this machine is revived");
        let (executor, done) = (self.executor.clone(), self.done.clone());
        self.tasks.spawn(async move {
            let result = executor.revive_supervisor(id).await;
            let _ = done.send(Done::Revived { name, incarnation, result });
        });
    }

    pub(super) fn on_revived(&mut self, name: ProcessName, incarnation: Incarnation, result: OrderResult) {
        let failed = match result {
            OrderResult::Done => None,
            OrderResult::Failed(reason) => Some((OrderFailure::Failed, reason)),
            OrderResult::Obstructed(cause, reason) => Some((OrderFailure::Obstructed(cause), reason)),
            OrderResult::OutOfDate(reason) => Some((OrderFailure::NotTried, reason)),
            OrderResult::Closed => return self.revive_tell(KeeperEvent::Closed),
            OrderResult::Fenced(_) => Some((OrderFailure::NotTried, "it needs no term".to_owned())),
        };
        if let Some((failure, reason)) = failed {
            self.revive_tell(KeeperEvent::OrderFailed { name, incarnation, failure, reason });
        }
        let here = self.me.machine.clone();
        self.looks.now(&here);
        self.look_where_due();
    }
}
