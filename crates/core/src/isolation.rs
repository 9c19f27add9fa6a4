//! What the jobs of one worker may begin beside each other: a suspect runs alone in its process.
//!
//! ```text
//!             a part waits with a suspect,           nothing runs,
//!             and all have been Shared               and all are Held
//!    Shared ───────────────────────────▶ Draining ──────────────────▶ Alone (one part, one suspect)
//!      ▲                                    │ no suspect any more                │ it has come to its end
//!      └────────────────────────────────────┴────────────────────────────────────┘
//! ```
//!
//! A task that kills its process takes along whatever else runs there, of whichever job. What was begun often and never came to
//! an end is therefore tried while nothing else runs in the process: only so its end, or the death of the process, says
//! something of it. Parts take turns, and between two suspects all others go on with what is harmless.

use std::collections::BTreeMap;

/// What a part of a worker in a job may begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clearance {
    /// Whatever is not suspected.
    #[default]
    Shared,
    /// Nothing.
    Held,
    /// One suspect.
    Alone,
}

/// What a part has begun, and waits to begin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Chunks and tasks that are announced or run. If the process dies, they may be to blame.
    pub begun: usize,
    /// Whether a suspect waits to be tried.
    pub has_suspect: bool,
    /// What the part was told last.
    pub clearance: Clearance,
}

/// The parts of one process, by keys that are never used again.
///
/// Each part [`join`](Self::join)s before it begins anything, [`report`](Self::report)s after whatever may have changed its
/// [`Exposure`], and [`leave`](Self::leave)s when nothing of it runs any more. What others have to be told comes back and must reach
/// them in this order.
#[derive(Debug, Clone)]
pub struct Isolation<K> {
    parts: BTreeMap<K, Exposure>,
    phase: Phase<K>,
    /// The part that was alone last.
    last: Option<K>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase<K> {
    Shared,
    Draining(K),
    Alone(K),
}

impl<K> Default for Isolation<K> {
    fn default() -> Self {
        Self { parts: BTreeMap::new(), phase: Phase::Shared, last: None }
    }
}

impl<K: Copy + Ord> Isolation<K> {
    /// A part comes. Returns what it may begin.
    pub fn join(&mut self, part: K) -> Clearance {
        let clearance = match self.phase {
            Phase::Shared => Clearance::Shared,
            Phase::Draining(_) | Phase::Alone(_) => Clearance::Held,
        };
        self.parts.insert(part, Exposure { clearance, ..Exposure::default() });
        clearance
    }

    /// A part says what it has begun. Returns who is to be told what.
    pub fn report(&mut self, part: K, exposure: Exposure) -> Vec<(K, Clearance)> {
        match self.parts.get_mut(&part) {
            Some(known) => *known = exposure,
            None => return Vec::new(),
        }
        self.decide()
    }

    /// Nothing of a part runs any more. Returns who is to be told what.
    pub fn leave(&mut self, part: K) -> Vec<(K, Clearance)> {
        self.parts.remove(&part);
        self.decide()
    }

    fn decide(&mut self) -> Vec<(K, Clearance)> {
        match self.phase {
            Phase::Shared => match self.next_suspect() {
                Some(part) if self.all_have(Clearance::Shared) => {
                    self.phase = Phase::Draining(part);
                    self.tell_all(Clearance::Held)
                }
                _ => Vec::new(),
            },
            Phase::Draining(part) if !self.parts.get(&part).is_some_and(|exposure| exposure.has_suspect) => {
                self.share()
            }
            Phase::Draining(part) => {
                let nothing_runs = self.parts.values().all(|exposure| exposure.begun == 0);
                if !nothing_runs || !self.all_have(Clearance::Held) {
                    return Vec::new();
                }
                self.phase = Phase::Alone(part);
                self.last = Some(part);
                vec![(part, Clearance::Alone)]
            }
            Phase::Alone(part) => match self.parts.get(&part) {
                Some(exposure) if exposure.clearance != Clearance::Alone || exposure.begun > 0 => Vec::new(),
                _ => self.share(),
            },
        }
    }

    fn share(&mut self) -> Vec<(K, Clearance)> {
        self.phase = Phase::Shared;
        self.tell_all(Clearance::Shared)
    }

    fn tell_all(&self, clearance: Clearance) -> Vec<(K, Clearance)> {
        self.parts.keys().map(|&part| (part, clearance)).collect()
    }

    fn all_have(&self, clearance: Clearance) -> bool {
        self.parts.values().all(|exposure| exposure.clearance == clearance)
    }

    /// The part whose suspect is tried next: the one after the last.
    fn next_suspect(&self) -> Option<K> {
        let mut waiting = self.parts.iter().filter(|(_, exposure)| exposure.has_suspect).map(|(&part, _)| part);
        let first = waiting.clone().next();
        waiting.find(|&part| self.last.is_none_or(|last| part > last)).or(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Clearance::{Alone, Held, Shared};

    fn exposure(begun: usize, has_suspect: bool, clearance: Clearance) -> Exposure {
        Exposure { begun, has_suspect, clearance }
    }

    fn two_parts() -> Isolation<u64> {
        let mut isolation = Isolation::default();
        assert_eq!((isolation.join(1), isolation.join(2)), (Shared, Shared));
        isolation
    }

    #[test]
    fn a_suspect_begins_when_nothing_of_any_job_runs_and_nothing_begins_beside_it() {
        let mut isolation = two_parts();
        assert_eq!(isolation.report(2, exposure(1, false, Shared)), vec![]);
        assert_eq!(isolation.report(1, exposure(0, true, Shared)), vec![(1, Held), (2, Held)]);
        assert_eq!(isolation.report(1, exposure(0, true, Held)), vec![]);
        assert_eq!(isolation.report(2, exposure(2, false, Shared)), vec![], "begun before it heard of that");
        assert_eq!(isolation.report(2, exposure(0, false, Shared)), vec![], "it may begin something before it hears");
        assert_eq!(isolation.report(2, exposure(1, false, Held)), vec![], "something runs");
        assert_eq!(isolation.report(2, exposure(0, false, Held)), vec![(1, Alone)]);
        assert_eq!(isolation.join(3), Held);
        assert_eq!(isolation.report(1, exposure(0, true, Held)), vec![], "it has not heard of it");
        assert_eq!(isolation.report(1, exposure(1, false, Alone)), vec![]);
        let all_go_on = vec![(1, Shared), (2, Shared), (3, Shared)];
        assert_eq!(isolation.report(1, exposure(0, false, Alone)), all_go_on, "it has come to its end");
    }

    #[test]
    fn parts_take_turns_and_all_go_on_between_two_suspects() {
        let mut isolation = two_parts();
        isolation.report(2, exposure(0, true, Shared));
        isolation.report(1, exposure(0, true, Held));
        assert_eq!(isolation.report(2, exposure(0, true, Held)), vec![(2, Alone)]);
        isolation.report(2, exposure(1, true, Alone));
        assert_eq!(isolation.report(2, exposure(0, true, Alone)), vec![(1, Shared), (2, Shared)]);
        assert_eq!(isolation.report(2, exposure(0, true, Shared)), vec![], "the other has not gone on yet");
        assert_eq!(isolation.report(1, exposure(1, true, Shared)), vec![(1, Held), (2, Held)]);
        isolation.report(2, exposure(0, true, Held));
        assert_eq!(isolation.report(1, exposure(0, true, Held)), vec![(1, Alone)], "the one whose turn it was not");
    }

    #[test]
    fn nobody_waits_for_a_part_that_leaves_or_a_suspect_that_is_none_any_more() {
        let mut isolation = two_parts();
        isolation.report(2, exposure(1, false, Shared));
        isolation.report(1, exposure(0, true, Shared));
        isolation.report(1, exposure(0, true, Held));
        let mut exonerated = isolation.clone();
        assert_eq!(exonerated.report(1, exposure(0, false, Held)), vec![(1, Shared), (2, Shared)]);
        assert_eq!(isolation.leave(2), vec![(1, Alone)]);
        assert_eq!(isolation.join(4), Held);
        assert_eq!(isolation.leave(1), vec![(4, Shared)]);
        assert_eq!(isolation.report(1, exposure(3, true, Alone)), vec![], "what is said by one that has left");
    }
}
