//! A few supervisors and a network in lockstep time: what the fair schedule and the random simulation run in.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenaz_core::{
    Election, ElectionAction as Action, ElectionEvent as Event, ElectionMessage as Message, Fence, MemberId, Pace,
    SupervisorId, Term,
};

/// A message on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Envelope {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) message: Message,
}

/// Everybody's id. The first is the lowest.
pub(crate) fn ids(count: usize) -> impl Iterator<Item = SupervisorId> {
    (1..).map(SupervisorId).take(count)
}

pub(crate) fn id(node: usize) -> SupervisorId {
    ids(node + 1).last().expect("at least one")
}

pub(crate) fn node(id: SupervisorId) -> usize {
    usize::from(id.0) - 1
}

/// The number of a life. Later lives of some supervisors sort before earlier ones, as random numbers may.
pub(crate) fn life(node: usize, number: u64) -> MemberId {
    MemberId(if node.is_multiple_of(2) { 1_000 - number } else { 1_000 + number })
}

pub(crate) fn newborn(node: usize, count: usize, number: u64, pace: Pace) -> Election {
    Election::new(id(node), life(node, number), ids(count), pace)
}

/// Supervisors in lockstep.
pub(crate) struct World {
    pub(crate) nodes: Vec<Election>,
    pub(crate) down: BTreeSet<usize>,
    pub(crate) in_flight: VecDeque<Envelope>,
    /// Pairs that do not hear each other.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    /// Everybody who ever led, by term: a second one is a violation.
    pub(crate) led: BTreeMap<Term, usize>,
    pub(crate) fence: Fence,
    pub(crate) lives: u64,
    pace: Pace,
}

impl World {
    pub(crate) fn new(count: usize, pace: Pace) -> Self {
        Self::of((0..count).map(|node| newborn(node, count, 0, pace)).collect(), pace)
    }

    pub(crate) fn of(nodes: Vec<Election>, pace: Pace) -> Self {
        Self {
            nodes,
            down: BTreeSet::new(),
            in_flight: VecDeque::new(),
            cut: BTreeSet::new(),
            led: BTreeMap::new(),
            fence: Fence::default(),
            lives: 100,
            pace,
        }
    }

    pub(crate) fn happen(&mut self, node: usize, event: Event) {
        if self.down.contains(&node) {
            return;
        }
        for action in self.nodes[node].handle(event) {
            match action {
                Action::Send { to, message } => {
                    self.in_flight.push_back(Envelope { from: node, to: super::world::node(to), message });
                }
                Action::BecomeLeader { term } => {
                    let before = self.led.insert(term, node);
                    assert!(before.is_none(), "{term} is led twice");
                }
                Action::StepDown { .. } | Action::Follow { .. } => {}
            }
        }
    }

    pub(crate) fn restart(&mut self, node: usize) {
        self.lives += 1;
        self.nodes[node] = newborn(node, self.nodes.len(), self.lives, self.pace);
        self.down.remove(&node);
    }

    pub(crate) fn deliver(&mut self, Envelope { from, to, message }: Envelope) {
        if !self.cut.contains(&(from, to)) && !self.cut.contains(&(to, from)) {
            self.happen(to, Event::Arrived { from: id(from), message });
        }
    }

    /// Delivers all that is in flight, and all that this leads to.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            let Some(envelope) = self.in_flight.pop_front() else { return };
            self.deliver(envelope);
        }
        panic!("the supervisors never stop talking");
    }

    /// Everybody's clock ticks once, and every message arrives. Whoever leads gives an order.
    pub(crate) fn calm_tick(&mut self) {
        for node in 0..self.nodes.len() {
            self.happen(node, Event::Ticked);
            self.settle();
        }
        for node in 0..self.nodes.len() {
            self.order(node);
        }
        self.settle();
    }

    /// An order of this one, if it leads, goes to the executor.
    pub(crate) fn order(&mut self, node: usize) {
        let leading = self.nodes[node].leading().filter(|_| !self.down.contains(&node));
        if let Some(Err(because)) = leading.map(|term| self.fence.admit(term)) {
            self.happen(node, Event::Fenced(because));
        }
    }

    /// The term that somebody leads, that everybody who is up follows, and that the executor obeys.
    pub(crate) fn agreed(&self) -> Option<Term> {
        let mut up = (0..self.nodes.len()).filter(|node| !self.down.contains(node)).map(|node| &self.nodes[node]);
        let term = up.clone().find_map(Election::leading)?;
        let one = up.clone().filter(|node| node.leading().is_some()).count() == 1;
        (one && up.all(|node| node.leader() == Some(term)) && self.fence.highest() <= Some(term)).then_some(term)
    }

    /// Without further faults everybody agrees within so many ticks, and then stays so. Returns how many it took.
    pub(crate) fn recovers(&mut self, within: usize) -> Option<usize> {
        let took = (0..within).find(|_| {
            self.calm_tick();
            self.agreed().is_some()
        })?;
        let term = self.agreed();
        let stays = (0..12).all(|_| {
            self.calm_tick();
            self.agreed() == term
        });
        stays.then_some(took + 1)
    }
}
