//! Voting and following: never below what was promised, and never against a leader that is heard.

use super::{Action, Election, Message, Role, Term};

impl Election {
    /// Somebody wants to lead.
    pub(super) fn vote(&mut self, term: Term, actions: &mut Vec<Action>) {
        let message = match self.objection(term) {
            Objection::Mute => return,
            Objection::Because(because) => Message::Refuse { term, because },
            Objection::None => {
                self.promised = Some(term);
                self.role = Role::Waiting { left: self.patience() };
                Message::Grant { term }
            }
        };
        actions.push(Action::Send { to: term.leader, message });
    }

    /// Why somebody may not lead in this term.
    fn objection(&self, term: Term) -> Objection {
        if let Some(promised) = self.promised.filter(|&promised| term < promised) {
            return Objection::Because(promised);
        }
        match self.role {
            Role::Joining { .. } => Objection::Mute,
            Role::Leading { term: led, .. } => Objection::Because(led),
            Role::Following { term: heard, .. } if heard == term => Objection::Mute,
            // The one that is followed may ask for another term: it has given up this one.
            Role::Following { term: heard, .. } if heard.leader != term.leader => Objection::Because(heard),
            Role::Campaigning { term: mine, .. } if term < mine => Objection::Because(mine),
            _ => Objection::None,
        }
    }

    /// Somebody leads.
    pub(super) fn follow(&mut self, term: Term, number: u64, actions: &mut Vec<Action>) {
        // Its own campaign does not count: it gives that up, and nobody else can win it.
        if let Some(because) = self.promised.filter(|&promised| term < promised) {
            return self.correct(term, because, actions);
        }
        let known = match self.role {
            Role::Following { term: known, number: heard, .. } if known == term && heard >= number => return,
            Role::Following { term: known, .. } => Some(known),
            _ => None,
        };
        self.step_down(actions);
        self.promised = Some(term);
        self.deferrals = 0;
        self.role = Role::Following { term, number, left: self.patience() };
        if known != Some(term) {
            actions.push(Action::Follow { term });
        }
        actions.push(Action::Send { to: term.leader, message: Message::Ack { term, number } });
    }

    /// Tells a leader that its term is over, unless there is another whose beats will do that.
    fn correct(&self, term: Term, because: Term, actions: &mut Vec<Action>) {
        let message = match self.role {
            Role::Following { .. } => return,
            Role::Leading { term, number, .. } => Message::Beat { term, number },
            _ => Message::Refuse { term, because },
        };
        actions.push(Action::Send { to: term.leader, message });
    }
}

enum Objection {
    None,
    /// None of its business, for now.
    Mute,
    Because(Term),
}
