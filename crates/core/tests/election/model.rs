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
    /// Ticks, by supervisor.
    pub(crate) ticks: Vec<u8>,
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
    pub(crate) budget: Budget,
    pub(crate) flaw: Flaw,
    /// Whether orders go to an executor.
    pub(crate) orders: bool,
    /// Whether every state must recover within so many ticks once the faults stop.
    pub(crate) recovery: Option<usize>,
    /// Whether a tick is as many as it takes for something to happen.
    pub(crate) leap: bool,
}

/// Where everything stands, and what must not be forgotten to judge it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    nodes: Vec<Election>,
    lives: Vec<u64>,
    sent: BTreeSet<(u64, Envelope)>,
    led: BTreeSet<(Term, usize, u64)>,
    fence: Fence,
    budget: Budget,
    promise_broken: bool,
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
    fn happen(&self, state: &mut State, at: usize, event: Event) -> bool {
        let mut actions = state.nodes[at].handle(event);
        if self.leap && event == Event::Ticked {
            for _ in 0..20 {
                if !actions.is_empty() {
                    break;
                }
                actions = state.nodes[at].handle(event);
            }
        }
        for action in &actions {
            match *action {
                Action::Send { to, message } => self.send(state, at, node(to), message),
                Action::BecomeLeader { term } => {
                    state.led.insert((term, at, state.lives[at]));
                }
                Action::StepDown { .. } | Action::Follow { .. } => {}
            }
        }
        !actions.is_empty()
    }

    fn send(&self, state: &mut State, from: usize, to: usize, message: Message) {
        let message = match message {
            Message::Refuse { term, .. } if self.flaw == Flaw::GrantsEverything => Message::Grant { term },
            message => message,
        };
        let life = state.lives[from];
        if let Message::Grant { term } | Message::Ack { term, .. } = message {
            let broken = state.sent.iter().any(|(sender, envelope)| {
                let promised = match envelope.message {
                    Message::Grant { term } | Message::Ack { term, .. } => Some(term),
                    _ => None,
                };
                (*sender, envelope.from) == (life, from) && promised > Some(term)
            });
            state.promise_broken |= broken;
        }
        state.sent.insert((life, Envelope { from, to, message }));
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

    fn every_leader_has_a_majority(&self, state: &State) -> bool {
        state.led.iter().all(|&(term, ..)| {
            let grant = Message::Grant { term };
            let voters: BTreeSet<_> = state.sent.iter().filter(|(_, e)| e.message == grant).map(|(_, e)| e.from).collect();
            (voters.len() + 1) * 2 > self.count
        })
    }

    fn all_recover(&self, state: &State) -> bool {
        let Some(within) = self.recovery else { return true };
        let world = |down: Option<usize>, late: bool| {
            let mut world = World::of(state.nodes.clone(), self.pace);
            world.fence = state.fence.clone();
            world.down.extend(down);
            if late {
                world.in_flight.extend(state.sent.iter().map(|(_, envelope)| envelope.clone()));
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
            nodes: (0..self.count).map(|node| newborn(node, self.count, 0, self.pace)).collect(),
            lives: vec![0; self.count],
            sent: BTreeSet::new(),
            led: BTreeSet::new(),
            fence: Fence::default(),
            budget: self.budget.clone(),
            promise_broken: false,
            went_back: false,
            fenced_off: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        let others = |at: usize| (0..self.count).filter(move |&other| other != at);
        for (_, envelope) in &state.sent {
            steps.push(Step::Deliver(envelope.clone()));
            if self.flaw == Flaw::CountsGrants && matches!(envelope.message, Message::Grant { .. }) {
                steps.extend(others(envelope.to).map(|voter| Step::Miscount(envelope.clone(), voter)));
            }
        }
        for at in 0..self.count {
            if state.budget.ticks[at] > 0 {
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
        let mut state = before.clone();
        match step {
            Step::Deliver(Envelope { from, to, message }) => {
                self.happen(&mut state, to, Event::Arrived { from: id(from), message });
            }
            Step::Miscount(Envelope { to, message, .. }, from) => {
                self.happen(&mut state, to, Event::Arrived { from: id(from), message });
            }
            Step::Tick(at) => {
                state.budget.ticks[at] -= 1;
                self.happen(&mut state, at, Event::Ticked);
            }
            Step::Restart(at) => {
                state.budget.restarts -= 1;
                state.lives[at] += 1;
                state.nodes[at] = newborn(at, self.count, state.lives[at], self.pace);
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
        state.sent.iter().all(|(_, envelope)| envelope.message.round() <= self.max_round)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one leader per term", Self::one_leader_per_term),
            Property::always("every leader has a majority", Self::every_leader_has_a_majority),
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
