//! A chunk on its way into the cluster: when a gateway may say that it has it.
//!
//! ```text
//!  begin ──┬─ known ─▶ Duplicate                                         ┌─ other bytes have a receipt ─▶ Conflict
//!          ├─ other bytes under its number ─▶ Conflict                   │
//!          └─ Offer ── stored ─▶ WriteReceipt ── receipt_written ────────┴─▶ Accepted
//!              ▲   └─ full ─▶ SendBack, after a while, where the client can come back
//!              └────┘
//! ```
//!
//! What is in doubt is offered again: a chunk that comes twice counts once.

use crate::{ChunkDigest, Error, JobFacts, TableId};

/// What a gateway does next with a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntakeStep {
    /// Put it into its work queue.
    Offer,
    /// It is there, confirmed: write its receipt.
    WriteReceipt,
    /// Tell the client that the cluster has it.
    Accepted,
    /// Tell the client that the cluster had it before.
    Duplicate,
    /// Its work queue is full: the client is to come back.
    SendBack,
    /// The cluster has, or had, other bytes under its number.
    Conflict(Error),
}

/// One chunk that a client has sent.
#[derive(Debug, Clone)]
pub struct ChunkIntake {
    table: TableId,
    number: u64,
    digest: ChunkDigest,
    /// When the client is sent back at the latest, if it can come back.
    until_ms: Option<u64>,
}

impl ChunkIntake {
    /// A chunk has come. `until_ms`: until when a full work queue is waited for.
    pub fn begin(
        table: TableId,
        number: u64,
        digest: ChunkDigest,
        until_ms: Option<u64>,
        facts: &JobFacts,
    ) -> (Self, IntakeStep) {
        let intake = Self { table, number, digest, until_ms };
        let step = match intake.conflict(facts) {
            Some(conflict) => conflict,
            None if facts.uploaded(table).contains(number) => IntakeStep::Duplicate,
            None => IntakeStep::Offer,
        };
        (intake, step)
    }

    /// The broker has confirmed it.
    pub fn stored(&self) -> IntakeStep {
        IntakeStep::WriteReceipt
    }

    /// Its work queue is full.
    pub fn full(&self, now_ms: u64) -> IntakeStep {
        match self.until_ms {
            Some(until_ms) if now_ms >= until_ms => IntakeStep::SendBack,
            _ => IntakeStep::Offer,
        }
    }

    /// The broker has confirmed its receipt, and the control log was read that far. Another gateway may have taken other bytes
    /// at the same moment: then both are in the work queue.
    pub fn receipt_written(&self, facts: &JobFacts) -> IntakeStep {
        self.conflict(facts).unwrap_or(IntakeStep::Accepted)
    }

    fn conflict(&self, facts: &JobFacts) -> Option<IntakeStep> {
        facts.check_digest(self.table, self.number, self.digest).err().map(IntakeStep::Conflict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fact, Promise};

    const TABLE: TableId = TableId(0);

    fn known(digest: u64) -> JobFacts {
        let mut facts = JobFacts::default();
        let chunks = Promise::runs([(3, 4)]);
        facts.apply(0, &Fact::Uploaded { table: TABLE, chunks, digests: vec![ChunkDigest(digest)] }).expect("a fact");
        facts
    }

    fn begin(facts: &JobFacts) -> (ChunkIntake, IntakeStep) {
        ChunkIntake::begin(TABLE, 3, ChunkDigest(7), Some(100), facts)
    }

    #[test]
    fn a_chunk_is_accepted_when_it_and_its_receipt_are_stored() {
        let (intake, first) = begin(&JobFacts::default());
        assert_eq!((first, intake.stored()), (IntakeStep::Offer, IntakeStep::WriteReceipt));
        assert_eq!(intake.receipt_written(&known(7)), IntakeStep::Accepted);
        assert_eq!(begin(&known(7)).1, IntakeStep::Duplicate);
    }

    #[test]
    fn other_bytes_are_refused_at_the_door_and_found_out_behind_it() {
        let (before, now) = (ChunkDigest(8), ChunkDigest(7));
        let conflict = IntakeStep::Conflict(Error::ChunkChanged { table: TABLE, number: 3, before, now });
        assert_eq!(begin(&known(8)).1, conflict);
        assert_eq!(begin(&JobFacts::default()).0.receipt_written(&known(8)), conflict);
    }

    #[test]
    fn a_full_queue_is_waited_for_until_the_client_is_sent_back() {
        let (intake, _) = begin(&JobFacts::default());
        assert_eq!((intake.full(99), intake.full(100)), (IntakeStep::Offer, IntakeStep::SendBack));
        let (patient, _) = ChunkIntake::begin(TABLE, 3, ChunkDigest(7), None, &JobFacts::default());
        assert_eq!(patient.full(u64::MAX), IntakeStep::Offer);
    }
}
