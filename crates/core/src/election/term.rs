//! A term belongs to one life of one supervisor, by construction; and the fence that keeps old terms out.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{MemberId, SupervisorId, limits};

/// One try of one life of one supervisor to lead.
///
/// Nothing has to be remembered to keep a term from being used twice. A life counts its rounds up in memory; another life
/// of the same supervisor has another [`MemberId`], drawn when it started; another supervisor has another id. So two
/// leaders in one term cannot be written down, whatever was forgotten, and no disk is asked.
///
/// Later fields only break ties: the higher round wins, then the higher id, as with the bully.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Term {
    /// Higher than every round that this life had heard of.
    pub round: u64,
    /// Who wants to lead.
    pub leader: SupervisorId,
    /// In which of its lives.
    pub life: MemberId,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.round, self.leader, self.life)
    }
}

/// Whether no honest count of rounds gets from one to the other: a forged order must not keep everybody else out for ever.
fn is_leap(from: u64, to: u64) -> bool {
    to > limits::MAX_ROUND || to.saturating_sub(from) > limits::MAX_ROUND_LEAP
}

/// Kept by whoever executes a leader's orders: an order of an older term than one already seen is refused.
///
/// ```
/// use tenaz_core::{Fence, MemberId, SupervisorId, Term};
///
/// let term = |round| Term { round, leader: SupervisorId(1), life: MemberId(7) };
/// let mut fence = Fence::default();
/// assert_eq!(fence.admit(term(2)), Ok(()));
/// assert_eq!(fence.admit(term(1)), Err(term(2)), "the refusal names the term that the leader must exceed");
/// assert_eq!(fence.admit(term(2)), Ok(()));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    highest: Option<Term>,
}

impl Fence {
    /// Whether an order of this term may be executed. If not, the error is the highest term seen: tell the sender, whose
    /// driver passes it on as [`super::Event::Fenced`].
    pub fn admit(&mut self, term: Term) -> Result<(), Term> {
        match self.highest {
            Some(highest) if term < highest || is_leap(highest.round, term.round) => Err(highest),
            None if term.round > limits::MAX_ROUND => Err(Term { round: 0, ..term }),
            _ => {
                self.highest = Some(term);
                Ok(())
            }
        }
    }

    /// The highest term seen.
    pub fn highest(&self) -> Option<Term> {
        self.highest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(round: u64) -> Term {
        Term { round, leader: SupervisorId(1), life: MemberId(7) }
    }

    #[test]
    fn a_forged_order_with_the_largest_term_fences_nobody_out() {
        let mut fence = Fence::default();
        assert!(fence.admit(term(u64::MAX)).is_err(), "not even as the first one");
        assert_eq!(fence.highest(), None);
        assert_eq!(fence.admit(term(5)), Ok(()));
        for forged in [u64::MAX, limits::MAX_ROUND + 1, limits::MAX_ROUND, 6 + limits::MAX_ROUND_LEAP] {
            assert_eq!(fence.admit(term(forged)), Err(term(5)), "{forged}");
        }
        assert_eq!(fence.admit(term(6)), Ok(()), "the next leader is obeyed");
        assert_eq!(fence.admit(term(6 + limits::MAX_ROUND_LEAP)), Ok(()));
    }
}
