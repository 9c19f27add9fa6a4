//! The election as a model to be searched exhaustively.
//!
//! Time is not modelled: whoever has a clock may tick at any moment, or not for ever, which covers slow clocks and pauses. A
//! message that was sent may arrive at any later moment, as often as it likes, or never, which covers loss, duplication,
//! reordering and every partition. A restart forgets everything but the supervisor's id, and may follow a crash at any
//! distance, as a supervisor that is down does what a silent one does. Only the numbers of ticks, restarts, pauses that are
//! noticed, hints and rounds are bounded.

use std::collections::BTreeSet;

use stateright::{Model, Property};
use tenaz_core::{
    Election, ElectionAction as Action, ElectionEvent as Event, ElectionMessage as Message, Fence, Pace, Term,
};

use crate::world::{Envelope, World, id, life, newborn, node};

/// How much may happen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Budget {
    /// Ticks of each; no bound if there is none.
    pub(crate) ticks: Option<Vec<u8>>,
    pub(crate) restarts: u8,
    pub(crate) wakes: u8,
    pub(crate) hints: u8,
}

/// What is wrong with the supervisors, on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// A term is a mere number.
    BareTerm,
    /// A term names the supervisor, but not its life.
    TermWithoutLife,
    /// A voter grants whatever it is asked for.
    GrantsEverything,
    /// A candidate counts grants, not voters.
    CountsGrants,
    /// A fence that lets everything through.
    NoFence,
}

/// The checked system.
pub(crate) struct Supervisors {
    pub(crate) count: usize,
    pub(crate) pace: Pace,
    pub(crate) max_round: u64,
    pub(crate) max_beat: u64,
    /// Whether the higher ones are asked and answer. If not, those messages are lost.
    pub(crate) talk: bool,
    pub(crate) budget: Budget,
    pub(crate) flaw: Flaw,
    /// Whether orders go to an executor.
    pub(crate) orders: bool,
    /// Whether every state must recover within so many ticks once the faults stop.
    pub(crate) recovery: Option<usize>,
    /// Whether all but the highest begin after their quiet period.
    pub(crate) awake: bool,
    /// Whether a tick is as many as it takes for something to happen.
    pub(crate) leap: bool,
}

/// Where everything stands, and what must not be forgotten to judge it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    nodes: Vec<Election>,
    lives: Vec<u64>,
    /// All that was sent and may still matter, in order.
    sent: Vec<Envelope>,
    /// The highest term granted or acknowledged by the present life of each.
    promised: Vec<Option<Term>>,
    /// Who has granted the terms that somebody stands for.
    granted: BTreeSet<(Term, usize)>,
    led: BTreeSet<(Term, usize, u64)>,
    fence: Fence,
    budget: Budget,
    promise_broken: bool,
    minority_led: bool,
    went_back: bool,
    fenced_off: bool,
}

/// What may happen next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Deliver(Envelope),
    /// One voter's grant, taken for another's.
    Miscount(Envelope, usize),
    Tick(usize),
    Restart(usize),
    Wake(usize),
    Suspect(usize, usize),
    Execute(Term, usize),
}

impl Supervisors {
    fn happen(&self, state: &mut State, at: usize, event: Event) {
        let mut actions = state.nodes[at].handle(event);
        if self.leap && event == Event::Ticked {
            for _ in 0..20 {
                if actions.iter().any(|action| self.matters(action)) {
                    break;
                }
                actions = state.nodes[at].handle(event);
            }
        }
        for action in actions {
            match action {
                Action::Send { to, message } if self.matters(&action) => self.send(state, at, node(to), message),
                Action::BecomeLeader { term } => {
                    state.led.insert((term, at, state.lives[at]));
                    let voters = state.granted.iter().filter(|(granted, _)| *granted == term).count();
                    state.minority_led |= (voters + 1) * 2 <= self.count;
                }
                _ => {}
            }
        }
        self.prune(state);
    }

    /// Whether an action is more than the bully's talk, which never decides who may lead.
    fn matters(&self, action: &Action) -> bool {
        let talk = matches!(action, Action::Send { message: Message::Ask { .. } | Message::Alive { .. }, .. });
        self.talk || !talk
    }

    fn send(&self, state: &mut State, from: usize, to: usize, message: Message) {
        let message = match message {
            Message::Refuse { term, .. } if self.flaw == Flaw::GrantsEverything => Message::Grant { term },
            message => message,
        };
        if let Message::Grant { term } | Message::Ack { term, .. } = message {
            state.promise_broken |= state.promised[from] > Some(term);
            state.promised[from] = state.promised[from].max(Some(term));
        }
        if let Message::Grant { term } = message {
            state.granted.insert((term, from));
        }
        let envelope = Envelope { from, to, message };
        if let Err(place) = state.sent.binary_search(&envelope) {
            state.sent.insert(place, envelope);
        }
    }

    /// Forgets answers about a term that the receiver neither stands for nor leads in any more: nobody takes up a term
    /// again, so they would be ignored for ever (but for ending a suspicion, which any other message does, too).
    fn prune(&self, state: &mut State) {
        let State { sent, granted, nodes, .. } = state;
        let current = |node: &Election, term| node.standing() == Some(term) || node.leading() == Some(term);
        sent.retain(|envelope| match envelope.message {
            Message::Grant { term } | Message::Refuse { term, .. } | Message::Ack { term, .. } => {
                current(&nodes[envelope.to], term)
            }
            _ => true,
        });
        granted.retain(|(term, _)| nodes[node(term.leader)].standing() == Some(*term));
    }

    fn first(&self, node: usize) -> Election {
        let mut first = newborn(node, self.count, 0, self.pace);
        if self.awake && node + 1 < self.count {
            // Until it asks the higher ones, who do not hear it.
            while first.handle(Event::Ticked).is_empty() {}
        }
        first
    }

    /// What the supervisors take for the term.
    fn view(&self, term: Term) -> Term {
        match self.flaw {
            Flaw::BareTerm => Term { leader: id(0), life: life(0, 0), ..term },
            Flaw::TermWithoutLife => Term { life: life(0, 0), ..term },
            _ => term,
        }
    }

    fn one_leader_per_term(&self, state: &State) -> bool {
        let terms: BTreeSet<Term> = state.led.iter().map(|&(term, ..)| self.view(term)).collect();
        terms.len() == state.led.len()
    }

    fn all_recover(&self, state: &State) -> bool {
        let Some(within) = self.recovery else { return true };
        let world = |down: Option<usize>, late: bool| {
            let mut world = World::of(state.nodes.clone(), self.pace);
            world.fence = state.fence.clone();
            world.down.extend(down);
            if late {
                world.in_flight.extend(state.sent.iter().copied());
            }
            world
        };
        let downs = std::iter::once(None).chain((0..self.count).map(Some));
        downs.flat_map(|down| [(down, false), (down, true)]).all(|(down, late)| {
            let mut world = world(down, late);
            world.settle();
            world.recovers(within).is_some()
        })
    }
}

impl Model for Supervisors {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            nodes: (0..self.count).map(|node| self.first(node)).collect(),
            lives: vec![0; self.count],
            sent: Vec::new(),
            promised: vec![None; self.count],
            granted: BTreeSet::new(),
            led: BTreeSet::new(),
            fence: Fence::default(),
            budget: self.budget.clone(),
            promise_broken: false,
            minority_led: false,
            went_back: false,
            fenced_off: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let others = |at: usize| (0..self.count).filter(move |&other| other != at);
        for &envelope in &state.sent {
            steps.push(Step::Deliver(envelope));
            if self.flaw == Flaw::CountsGrants && matches!(envelope.message, Message::Grant { .. }) {
                steps.extend(others(envelope.to).map(|voter| Step::Miscount(envelope, voter)));
            }
        }
        for at in 0..self.count {
            if state.budget.ticks.as_ref().is_none_or(|ticks| ticks[at] > 0) {
                steps.push(Step::Tick(at));
            }
            if state.budget.restarts > 0 {
                steps.push(Step::Restart(at));
            }
            if state.budget.wakes > 0 {
                steps.push(Step::Wake(at));
            }
            if state.budget.hints > 0 {
                steps.extend(others(at).map(|other| Step::Suspect(at, other)));
            }
        }
        if self.orders {
            steps.extend(state.led.iter().map(|&(term, at, _)| Step::Execute(term, at)));
        }
    }

    fn next_state(&self, before: &State, step: Step) -> Option<State> {
        if let Step::Deliver(Envelope { from, to, message }) = step {
            // Most arrivals are repetitions that change nothing: a cheap look first.
            let mut receiver = before.nodes[to].clone();
            let actions = receiver.handle(Event::Arrived { from: id(from), message });
            if actions.is_empty() && receiver == before.nodes[to] {
                return None;
            }
        }
        let mut state = before.clone();
        match step {
            Step::Deliver(Envelope { from, to, message }) => {
                self.happen(&mut state, to, Event::Arrived { from: id(from), message });
            }
            Step::Miscount(Envelope { to, message, .. }, from) => {
                self.happen(&mut state, to, Event::Arrived { from: id(from), message });
            }
            Step::Tick(at) => {
                if let Some(ticks) = &mut state.budget.ticks {
                    ticks[at] -= 1;
                }
                self.happen(&mut state, at, Event::Ticked);
            }
            Step::Restart(at) => {
                state.budget.restarts -= 1;
                state.lives[at] += 1;
                state.nodes[at] = newborn(at, self.count, state.lives[at], self.pace);
                state.promised[at] = None;
                self.prune(&mut state);
            }
            Step::Wake(at) => {
                state.budget.wakes -= 1;
                self.happen(&mut state, at, Event::Woken);
            }
            Step::Suspect(at, other) => {
                state.budget.hints -= 1;
                self.happen(&mut state, at, Event::PeerSuspected(id(other)));
            }
            Step::Execute(term, at) => {
                let last = state.fence.highest();
                let admitted = state.fence.admit(term);
                state.went_back |= (admitted.is_ok() || self.flaw == Flaw::NoFence) && Some(term) < last;
                if let Err(because) = admitted {
                    state.fenced_off = true;
                    self.happen(&mut state, at, Event::Fenced(because));
                }
            }
        }
        (state != *before).then_some(state)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.sent.iter().all(|envelope| match envelope.message {
            Message::Beat { term, number } => term.round <= self.max_round && number <= self.max_beat,
            message => message.round() <= self.max_round,
        })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one leader per term", Self::one_leader_per_term),
            Property::always("every leader has a majority", |_, state: &State| !state.minority_led),
            Property::always("a promise is kept for life", |_, state: &State| !state.promise_broken),
            Property::always("the fence never goes back", |_, state: &State| !state.went_back),
            Property::always("all recover when the faults stop", Self::all_recover),
            Property::sometimes("somebody leads", |_, state: &State| !state.led.is_empty()),
            Property::sometimes("two lead at a time, in different terms", |_, state: &State| {
                state.nodes.iter().filter(|node| node.leading().is_some()).count() > 1
            }),
            Property::sometimes("an old leader is fenced off", |_, state: &State| state.fenced_off),
        ]
    }
}
