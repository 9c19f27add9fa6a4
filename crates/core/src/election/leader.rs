//! Leading: as long as a majority acknowledges, and no longer.

use std::collections::BTreeSet;

use super::{Action, Election, Message, Role, Term};
use crate::SupervisorId;

impl Election {
    /// A majority has granted the term. Beats are counted from the campaign on, which the grants acknowledge.
    pub(super) fn lead(&mut self, term: Term, by: &BTreeSet<SupervisorId>, number: u64, actions: &mut Vec<Action>) {
        self.promised = Some(term);
        self.role = Role::Leading { term, number, acked: by.iter().map(|&peer| (peer, 0)).collect() };
        actions.push(Action::BecomeLeader { term });
        self.send_all(Message::Beat { term, number }, actions);
    }

    /// A tick of a leader: its lease runs from when the latest beat that a majority acknowledged was *sent*.
    pub(super) fn beat(&mut self, actions: &mut Vec<Action>) {
        let (needed, lease) = (self.others_needed(), self.pace.lease());
        let Role::Leading { term, number, acked } = &mut self.role else { return };
        *number += 1;
        let fresh = acked.values().filter(|&&beat| number.saturating_sub(beat) <= lease).count();
        let message = Message::Beat { term: *term, number: *number };
        if fresh >= needed {
            self.send_all(message, actions);
        } else {
            self.step_down(actions);
        }
    }

    /// Somebody follows.
    pub(super) fn acked(&mut self, by: SupervisorId, of: Term, beat: u64) {
        if let Role::Leading { term, number, acked } = &mut self.role
            && *term == of
            && beat <= *number
        {
            let latest = acked.entry(by).or_insert(beat);
            *latest = beat.max(*latest);
        }
    }

    /// Somebody has promised not to follow this term. If it is the one led, that will not get better by itself.
    pub(super) fn refused(&mut self, refused: Term, because: Term, actions: &mut Vec<Action>) {
        if self.standing().or(self.leading()) == Some(refused) {
            self.round = self.round.max(because.round);
        }
        if self.leading() == Some(refused) && because > refused {
            self.renew(actions);
        }
    }

    /// An executor has seen a higher term: that of another leader, or one that a majority has forgotten.
    pub(super) fn fenced(&mut self, because: Term, actions: &mut Vec<Action>) {
        if because.round > crate::limits::MAX_ROUND {
            return;
        }
        self.round = self.round.max(because.round);
        if self.leading().is_some_and(|term| term < because) {
            self.renew(actions);
        }
    }

    /// Gives the term up and stands again, in a higher one. Those who follow are free to grant it.
    fn renew(&mut self, actions: &mut Vec<Action>) {
        self.step_down(actions);
        self.campaign(actions);
    }
}
