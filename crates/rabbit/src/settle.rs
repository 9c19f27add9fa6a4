//! Which confirm belongs to which outcome, given what lapin tells.
//!
//! The broker sends a returned message *before* its confirm. lapin queues the returned messages and hands the oldest to
//! whichever confirm completes next, so with several publishes in flight a confirm can carry the return of another.
//! Every message therefore carries a number of ours, and these rules decide, from batches of completions. A batch holds
//! everything that was complete at one moment; nothing in a later batch completed before something in an earlier one.
//!
//! ```text
//! nacked                                    -> refused (a returned message is never nacked)
//! acked, its return was carried by anyone   -> returned
//! acked, carried nothing                    -> confirmed: lapin's queue was empty, so no return of its own waits there
//! acked, carried the return of another      -> undecided: its own return may still wait in lapin's queue
//! undecided, a later batch has one that
//!            carried nothing                -> confirmed, for the same reason
//! ```
//!
//! While something is undecided the publisher sends a *flush*, a message to nowhere, whose confirm drains the queue.

use std::collections::HashSet;

/// The number that a publisher gives to each of its messages.
pub(crate) type Number = u64;

/// One confirm, as lapin reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) number: Number,
    pub(crate) acked: bool,
    /// The number in the returned message that came along, whosever it is.
    pub(crate) carried: Carried,
}

/// What a confirm carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carried {
    Nothing,
    Return(Number),
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Confirmed,
    Refused,
    Returned,
}

/// The rules above.
#[derive(Debug, Default)]
pub(crate) struct Settlement {
    returned: HashSet<Number>,
    undecided: Vec<Number>,
}

impl Settlement {
    /// Takes one batch and says what is now decided.
    pub(crate) fn settle(&mut self, batch: &[Completion]) -> Vec<(Number, Verdict)> {
        let mut decided = Vec::with_capacity(batch.len());
        let mut queue_was_empty = false;
        for completion in batch {
            match completion.carried {
                Carried::Return(number) => drop(self.returned.insert(number)),
                Carried::Nothing => queue_was_empty = true,
            }
        }
        for number in std::mem::take(&mut self.undecided) {
            if self.returned.remove(&number) {
                decided.push((number, Verdict::Returned));
            } else if queue_was_empty {
                decided.push((number, Verdict::Confirmed));
            } else {
                self.undecided.push(number);
            }
        }
        for &Completion { number, acked, carried } in batch {
            if !acked {
                decided.push((number, Verdict::Refused));
            } else if self.returned.remove(&number) {
                decided.push((number, Verdict::Returned));
            } else if carried == Carried::Nothing {
                decided.push((number, Verdict::Confirmed));
            } else {
                self.undecided.push(number);
            }
        }
        decided
    }

    /// Gives up on what is undecided: the channel is gone, and no more returns will come.
    pub(crate) fn abandon(&mut self) -> Vec<Number> {
        self.returned.clear();
        std::mem::take(&mut self.undecided)
    }

    /// Whether a flush has to be sent to get on.
    pub(crate) fn needs_flush(&self) -> bool {
        !self.undecided.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: Number, carried: Carried) -> Completion {
        Completion { number, acked: true, carried }
    }

    #[test]
    fn an_ack_without_a_return_is_a_confirm() {
        let mut settlement = Settlement::default();
        assert_eq!(settlement.settle(&[ack(1, Carried::Nothing)]), [(1, Verdict::Confirmed)]);
        assert!(!settlement.needs_flush());
    }

    #[test]
    fn a_nack_is_a_refusal_even_if_it_carries_the_return_of_another() {
        let mut settlement = Settlement::default();
        let nack = Completion { number: 1, acked: false, carried: Carried::Return(2) };
        assert_eq!(settlement.settle(&[nack]), [(1, Verdict::Refused)]);
        assert_eq!(settlement.settle(&[ack(2, Carried::Nothing)]), [(2, Verdict::Returned)]);
    }

    #[test]
    fn swapped_returns_of_one_batch_find_their_messages() {
        let mut settlement = Settlement::default();
        let batch = [ack(1, Carried::Return(2)), ack(2, Carried::Return(1))];
        assert_eq!(settlement.settle(&batch), [(1, Verdict::Returned), (2, Verdict::Returned)]);
    }

    #[test]
    fn a_carrier_waits_until_the_queue_is_known_to_be_empty() {
        let mut settlement = Settlement::default();
        // 1 was stored, but its confirm carries the return of 2; 3 of the same batch may have completed before it.
        let batch = [ack(1, Carried::Return(2)), ack(2, Carried::Return(9)), ack(3, Carried::Nothing)];
        assert_eq!(settlement.settle(&batch), [(2, Verdict::Returned), (3, Verdict::Confirmed)]);
        assert!(settlement.needs_flush());
        assert_eq!(settlement.settle(&[ack(4, Carried::Nothing)]), [(1, Verdict::Confirmed), (4, Verdict::Confirmed)]);
        assert!(!settlement.needs_flush());
    }

    #[test]
    fn a_late_return_reaches_an_undecided_message() {
        let mut settlement = Settlement::default();
        assert_eq!(settlement.settle(&[ack(2, Carried::Return(1))]), []);
        let flushed = settlement.settle(&[ack(7, Carried::Return(2))]);
        assert_eq!(flushed, [(2, Verdict::Returned)]);
        assert!(settlement.needs_flush(), "the flush itself carried something");
    }
}
