//! For how long a work queue has confirmed nothing, added up over all gateways that waited for it.
//!
//! A gateway may live for a few seconds only, and so may its connection. What it has seen of a silent queue is written into the
//! job's control log ([`Fact::QueueSilent`](crate::Fact::QueueSilent)) while it waits, so that the next one goes on counting where
//! it died.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::MemberId;
use crate::limits::{MAX_SILENCE_WITNESSES, SILENT_QUEUE_MS};

/// One connection of one gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Witness {
    /// The gateway.
    pub member: MemberId,
    /// Its connection, counted from its start.
    pub epoch: u64,
}

/// What is known of a queue's silence.
///
/// It is counted in rounds: a round ends when the queue was made anew, or was looked into in vain. What a slow witness says of
/// an earlier round does not count any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueSilence {
    round: u32,
    witnesses: BTreeMap<Witness, u64>,
}

impl QueueSilence {
    /// The round that is being counted.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Takes in that a message of this witness has waited so long for its confirm. Of one witness the longest wait counts.
    pub fn note(&mut self, round: u32, by: Witness, ms: u64) {
        self.begin(round);
        let has_room = self.witnesses.len() < MAX_SILENCE_WITNESSES || self.witnesses.contains_key(&by);
        if round == self.round && has_room {
            let known = self.witnesses.entry(by).or_default();
            *known = ms.max(*known);
        }
    }

    /// Begins this round, unless it or a later one has begun: nothing is held against the queue.
    pub fn begin(&mut self, round: u32) {
        if round > self.round {
            *self = Self { round, witnesses: BTreeMap::new() };
        }
    }

    /// Takes in what another has counted.
    pub fn merge(&mut self, other: &Self) {
        self.begin(other.round);
        other.witnesses.iter().for_each(|(&by, &ms)| self.note(other.round, by, ms));
    }

    /// Whether the queue was silent for long enough to be looked into. One connection may be to blame itself, so it takes two.
    pub fn is_long(&self) -> bool {
        self.witnesses.len() >= 2 && self.total_ms() >= SILENT_QUEUE_MS
    }

    /// The waits of all witnesses together.
    pub fn total_ms(&self) -> u64 {
        self.witnesses.values().sum()
    }

    /// Whether nobody has waited in vain in this round.
    pub fn is_empty(&self) -> bool {
        self.witnesses.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witness(member: u64, epoch: u64) -> Witness {
        Witness { member: MemberId(member), epoch }
    }

    #[test]
    fn waits_of_several_connections_add_up_and_one_alone_is_never_enough() {
        let mut silence = QueueSilence::default();
        silence.note(0, witness(1, 1), 10 * SILENT_QUEUE_MS);
        assert!(!silence.is_long());
        let mut silence = QueueSilence::default();
        for ms in [1000, 3000, 2000] {
            silence.note(0, witness(1, 1), ms);
        }
        silence.note(0, witness(1, 2), SILENT_QUEUE_MS - 3001);
        assert!(!silence.is_long(), "of each witness the longest wait counts: {silence:?}");
        silence.note(0, witness(2, 1), 1);
        assert!(silence.is_long());
    }

    #[test]
    fn what_is_said_of_an_earlier_round_does_not_count() {
        let mut silence = QueueSilence::default();
        silence.note(0, witness(1, 1), SILENT_QUEUE_MS);
        silence.begin(1);
        silence.note(0, witness(2, 1), SILENT_QUEUE_MS);
        assert_eq!((silence.is_empty(), silence.round()), (true, 1));
        silence.begin(1);
        silence.note(1, witness(1, 1), 5);
        silence.begin(1);
        assert!(!silence.is_empty(), "a round begins once");
        let mut late = QueueSilence::default();
        late.note(0, witness(3, 3), 7);
        late.merge(&silence);
        assert_eq!(late, silence);
    }

    #[test]
    fn no_more_than_so_many_witnesses_are_remembered() {
        let mut silence = QueueSilence::default();
        for number in 0..3 * MAX_SILENCE_WITNESSES as u64 {
            silence.note(0, witness(number, 1), 1000);
        }
        assert_eq!(silence.witnesses.len(), MAX_SILENCE_WITNESSES);
        assert!(silence.is_long());
    }
}
