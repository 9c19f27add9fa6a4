//! How each process stands, for people.

use super::super::{Incarnation, ProcessName};
use super::kept::{Hold, Kept, Phase};
use super::{Keeper, ProcessState, Standing};

impl Keeper {
    /// How a process stands. Nothing is known of one that is not kept.
    pub fn standing(&self, name: &ProcessName, now_ms: u64) -> Standing {
        let now_ms = now_ms.max(self.now_ms);
        let unknown = Standing { state: ProcessState::Unknown, wait_ms: None, detail: None };
        let Some(kept) = self.kept.values().find(|kept| kept.name == *name) else { return unknown };
        match &kept.phase {
            Phase::Unknown => unknown,
            Phase::GivenUp { reason, .. } => {
                Standing { state: ProcessState::GivenUp, wait_ms: None, detail: Some(reason.clone()) }
            }
            Phase::Down { .. } if self.closed => Standing { state: ProcessState::Stopped, ..unknown },
            _ if !kept.in_view(&self.policy, now_ms) => {
                Standing { detail: Some("nobody can look at it".to_owned()), ..unknown }
            }
            Phase::Starting { .. } => Standing { state: ProcessState::Starting, ..unknown },
            Phase::Running { life, killed, .. } => self.running_standing(kept, *life, killed.is_some(), now_ms),
            Phase::Down { due_ms, why, .. } if *due_ms > now_ms => {
                Standing { state: ProcessState::Waiting, wait_ms: Some(due_ms - now_ms), detail: Some(why.clone()) }
            }
            Phase::Down { .. } => self.held_standing(kept, now_ms),
        }
    }

    fn running_standing(&self, kept: &Kept, life: Incarnation, killed: bool, now_ms: u64) -> Standing {
        let state = match kept.vital_of(life) {
            _ if killed => ProcessState::Hung,
            None => ProcessState::Starting,
            Some(vital) if vital.is_draining() => ProcessState::Draining,
            Some(vital) if vital.was_ready && vital.is_quiet(&self.policy, now_ms) => ProcessState::Quiet,
            Some(vital) if vital.ready => ProcessState::Ready,
            Some(_) => ProcessState::Starting,
        };
        Standing { state, wait_ms: None, detail: None }
    }

    fn held_standing(&self, kept: &Kept, now_ms: u64) -> Standing {
        let (room_ms, detail) = match self.hold(&kept.role, kept.is_first_start()) {
            Some(Hold::Broker(broker)) => (None, format!("{broker} is not ready")),
            Some(Hold::Budget(at)) => {
                (Some(at), format!("the cluster has had its {} restarts for now", self.policy.per_cluster))
            }
            _ => match kept.over_budget(&self.policy, now_ms) {
                Some(at) => (Some(at), format!("it has had its {} restarts for now", self.policy.per_process)),
                None => (None, "about to be started".to_owned()),
            },
        };
        let wait_ms = room_ms.map(|at| at.saturating_sub(now_ms));
        Standing { state: ProcessState::Held, wait_ms, detail: Some(detail) }
    }
}
