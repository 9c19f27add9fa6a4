//! Which supervisor leads: the bully's choice, a majority's leave, and a fence for whoever missed it.
//!
//! ```text
//!            quiet period over                 no answer                majority of grants
//!  Joining ───────────────────▶ Asking ────────────────────▶ Campaigning ─────────────────▶ Leading
//!     ▲                          ▲  │ a higher one is alive     │ not in time                 │ │
//!     │ Woken                    │  ▼                           ▼                             │ │
//!     │ (from everywhere)       Waiting ◀─────────────────────────────── no majority of acks ─┘ │
//!     │                       silence ▲                                                         │
//!     │                          │    └── granted somebody a term                               │
//!                           Following ◀──────────── Beat of a term not below what was promised ─┘
//! ```
//!
//! **Who stands.** Whoever misses the leader asks the higher ids first, and stands only if none of them answers: the highest
//! healthy one leads. It gives way [`limits::MAX_DEFERRALS`] times in a row, so that one that answers and never gets to lead
//! does not keep the others from it.
//!
//! **Who leads.** A candidate with the grants of a majority of the *configured* supervisors, and only as long as a majority
//! acknowledges its beats. A voter that hears a leader refuses everybody else, so one that returns, or keeps crashing and
//! returning, joins as a follower, however high its id. For the same reason a life begins with a quiet period in which it
//! neither stands, nor answers, nor votes.
//!
//! **Why nothing is on disk.** A voter that restarts has forgotten what it granted, and might help a second candidate into
//! office. That candidate is in another [`Term`], because a term names the one life that may lead in it. What a forgotten
//! grant can cost is order: a majority that forgot may elect a lower term than the one before. Then the [`Fence`] refuses
//! the lower one, says so, and [`Event::Fenced`] makes it stand again in a higher round. While fewer than a majority
//! forget, beats and refusals bring the others' rounds back to them.
//!
//! Time is the driver's: it says [`Event::Ticked`], and how fast only decides how soon a death is noticed.

mod candidate;
mod event;
mod leader;
mod term;
mod voter;

use std::collections::{BTreeMap, BTreeSet};

use crate::{MemberId, SupervisorId, limits};

pub use event::{Action, Event, Message};
pub use term::{Fence, Term};

/// How long to wait for what, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pace {
    silence: u32,
}

impl Pace {
    /// A leader that is not heard for so many ticks is missed. At least 1; 6 or more leave room for lost messages.
    pub fn of_silence(ticks: u32) -> Self {
        Self { silence: ticks.max(1) }
    }

    /// A leader that has not heard of a majority for so long steps down: before the others miss it.
    fn lease(self) -> u64 {
        u64::from(self.silence - self.silence / 3)
    }

    /// How long to wait for the answers of the others.
    fn answer(self) -> u32 {
        (self.silence / 3).max(1)
    }
}

/// One supervisor's part in the election.
///
/// ```
/// use tenaz_core::{Election, ElectionAction, ElectionEvent, MemberId, Pace, SupervisorId, Term};
///
/// let me = SupervisorId(1);
/// let mut alone = Election::new(me, MemberId(7), [me], Pace::of_silence(2));
/// assert_eq!(alone.handle(ElectionEvent::Ticked), vec![], "perhaps there is a leader");
/// let term = Term { round: 1, leader: me, life: MemberId(7) };
/// assert_eq!(alone.handle(ElectionEvent::Ticked), vec![ElectionAction::BecomeLeader { term }]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Election {
    me: SupervisorId,
    life: MemberId,
    peers: BTreeSet<SupervisorId>,
    pace: Pace,
    /// The highest round heard of.
    round: u64,
    /// The highest term granted to, or followed as that of, anybody. No lower one is granted or followed in this life.
    promised: Option<Term>,
    suspected: BTreeSet<SupervisorId>,
    /// How often in a row it has left it to a higher one.
    deferrals: u32,
    role: Role,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Role {
    /// Knows nothing yet, or no longer.
    Joining { left: u32 },
    /// Hears a leader.
    Following { term: Term, number: u64, left: u32 },
    /// Leaves it to somebody else, for a while.
    Waiting { left: u32 },
    /// Has asked the higher ones.
    Asking { left: u32 },
    /// Has asked everybody for their grants. Its own goes without saying, and ends with the campaign.
    Campaigning { term: Term, grants: BTreeSet<SupervisorId>, ticks: u64 },
    /// Leads. Of every other, the number of the latest beat that it has acknowledged.
    Leading { term: Term, number: u64, acked: BTreeMap<SupervisorId, u64> },
}

impl Election {
    /// A supervisor that has just started. `life` must never have been used before; `configured` are all supervisors.
    pub fn new(
        me: SupervisorId,
        life: MemberId,
        configured: impl IntoIterator<Item = SupervisorId>,
        pace: Pace,
    ) -> Self {
        let mut election = Self {
            me,
            life,
            peers: configured.into_iter().filter(|&peer| peer != me).collect(),
            pace,
            round: 0,
            promised: None,
            suspected: BTreeSet::new(),
            deferrals: 0,
            role: Role::Waiting { left: 0 },
        };
        election.role = Role::Joining { left: election.patience() };
        election
    }

    /// What happened, and what to do about it, in this order.
    pub fn handle(&mut self, event: Event) -> Vec<Action> {
        let mut actions = Vec::new();
        match event {
            Event::Ticked => self.tick(&mut actions),
            Event::Arrived { from, message } => self.receive(from, message, &mut actions),
            Event::PeerSuspected(peer) => self.suspect(peer, &mut actions),
            Event::PeerHeard(peer) => {
                self.suspected.remove(&peer);
            }
            Event::Woken => {
                self.step_down(&mut actions);
                self.role = Role::Joining { left: self.patience() };
            }
            Event::Fenced(term) => self.fenced(term, &mut actions),
        }
        actions
    }

    /// The term in which this supervisor leads, if it does.
    pub fn leading(&self) -> Option<Term> {
        match self.role {
            Role::Leading { term, .. } => Some(term),
            _ => None,
        }
    }

    /// The term for which this supervisor asks the others' leave, if it does.
    pub fn standing(&self) -> Option<Term> {
        match self.role {
            Role::Campaigning { term, .. } => Some(term),
            _ => None,
        }
    }

    /// The term of the leader it knows, be it itself or another.
    pub fn leader(&self) -> Option<Term> {
        match self.role {
            Role::Leading { term, .. } | Role::Following { term, .. } => Some(term),
            _ => None,
        }
    }

    fn tick(&mut self, actions: &mut Vec<Action>) {
        match &mut self.role {
            Role::Joining { left } | Role::Waiting { left } | Role::Following { left, .. } => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.ask(actions);
                }
            }
            Role::Asking { left } => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.campaign(actions);
                }
            }
            Role::Campaigning { ticks, .. } => {
                *ticks += 1;
                if *ticks >= u64::from(self.pace.answer()) {
                    self.role = Role::Waiting { left: self.patience() };
                }
            }
            Role::Leading { .. } => self.beat(actions),
        }
    }

    fn receive(&mut self, from: SupervisorId, message: Message, actions: &mut Vec<Action>) {
        if !self.peers.contains(&from) || message.round() > limits::MAX_ROUND {
            return;
        }
        self.suspected.remove(&from);
        // Answers tell something new only to the one that still stands or leads in the term they are about.
        if !matches!(message, Message::Grant { .. } | Message::Refuse { .. } | Message::Ack { .. }) {
            self.round = self.round.max(message.round());
        }
        match message {
            Message::Ask { .. } => self.asked(from, actions),
            Message::Alive { .. } => self.outranked(from),
            Message::Campaign { term } if term.leader == from => self.vote(term, actions),
            Message::Grant { term } => self.granted(from, term, actions),
            Message::Refuse { term, because } => self.refused(term, because, actions),
            Message::Beat { term, number } if term.leader == from => self.follow(term, number, actions),
            Message::Ack { term, number } => self.acked(from, term, number),
            Message::Campaign { .. } | Message::Beat { .. } => {}
        }
    }

    /// Stops leading, if it does.
    fn step_down(&mut self, actions: &mut Vec<Action>) {
        if let Role::Leading { term, .. } = self.role {
            actions.push(Action::StepDown { term });
            self.role = Role::Waiting { left: self.patience() };
        }
    }

    /// How long to wait for a leader. The higher the id the shorter, so that the one that should win begins, and so that
    /// two do not stand against each other for ever.
    fn patience(&self) -> u32 {
        let higher = self.peers.iter().filter(|&&peer| peer > self.me).count();
        self.pace.silence.saturating_add(u32::try_from(higher).unwrap_or(u32::MAX))
    }

    /// How many others it takes, with itself, for a majority.
    fn others_needed(&self) -> usize {
        self.peers.len().div_ceil(2)
    }

    fn send_all(&self, message: Message, actions: &mut Vec<Action>) {
        actions.extend(self.peers.iter().map(|&to| Action::Send { to, message }));
    }
}
