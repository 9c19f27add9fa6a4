//! Standing: first the higher ones are asked whether they live, then everybody for their leave.

use std::collections::BTreeSet;

use super::{Action, Election, Message, Role, Term};
use crate::{SupervisorId, limits};

impl Election {
    /// There is no leader: asks the higher ones to see to it.
    pub(super) fn ask(&mut self, actions: &mut Vec<Action>) {
        let higher: Vec<_> = self.peers.difference(&self.suspected).copied().filter(|&peer| peer > self.me).collect();
        if higher.is_empty() || self.deferrals >= limits::MAX_DEFERRALS {
            return self.campaign(actions);
        }
        let message = Message::Ask { round: self.round };
        actions.extend(higher.into_iter().map(|to| Action::Send { to, message }));
        self.role = Role::Asking { left: self.pace.answer() };
    }

    /// A lower one misses the leader.
    pub(super) fn asked(&self, from: SupervisorId, actions: &mut Vec<Action>) {
        let message = match self.role {
            // It might be gone again before it could lead: the others are not to wait for it.
            Role::Joining { .. } => return,
            Role::Leading { term, number, .. } => Message::Beat { term, number },
            _ if from < self.me => Message::Alive { round: self.round },
            _ => return,
        };
        actions.push(Action::Send { to: from, message });
    }

    /// A higher one sees to it.
    pub(super) fn outranked(&mut self, by: SupervisorId) {
        if matches!(self.role, Role::Asking { .. }) && by > self.me {
            self.deferrals += 1;
            self.role = Role::Waiting { left: self.patience() };
        }
    }

    /// Asks everybody for leave to lead, in a term that nobody has ever heard of.
    pub(super) fn campaign(&mut self, actions: &mut Vec<Action>) {
        if self.round >= limits::MAX_ROUND {
            return;
        }
        self.round += 1;
        self.deferrals = 0;
        let term = Term { round: self.round, leader: self.me, life: self.life };
        self.role = Role::Campaigning { term, grants: BTreeSet::new(), ticks: 0 };
        self.send_all(Message::Campaign { term }, actions);
        self.lead_if_granted(actions);
    }

    /// Somebody would follow.
    pub(super) fn granted(&mut self, by: SupervisorId, granted: Term, actions: &mut Vec<Action>) {
        if let Role::Campaigning { term, grants, .. } = &mut self.role
            && *term == granted
        {
            grants.insert(by);
            self.lead_if_granted(actions);
        }
    }

    fn lead_if_granted(&mut self, actions: &mut Vec<Action>) {
        if let Role::Campaigning { term, grants, ticks } = &self.role
            && grants.len() >= self.others_needed()
        {
            let (term, granted, number) = (*term, grants.clone(), *ticks);
            self.lead(term, &granted, number, actions);
        }
    }

    /// A hint that somebody is gone: whoever waits for it need not.
    pub(super) fn suspect(&mut self, peer: SupervisorId, actions: &mut Vec<Action>) {
        if !self.peers.contains(&peer) {
            return;
        }
        self.suspected.insert(peer);
        match self.role {
            Role::Following { term, .. } if term.leader == peer => self.ask(actions),
            Role::Asking { .. } if self.peers.iter().all(|p| *p < self.me || self.suspected.contains(p)) => {
                self.campaign(actions);
            }
            _ => {}
        }
    }
}
