//! Chunks against their receipts, and against each other: all rows of a chunk must be made of the same bytes, those that the
//! control log tells of.
//!
//! Whoever works on a chunk sends something to every log that waits for it. So the owner of a log that has rows of one version
//! gets to see the other one, too, and can name the chunk. What slips through (the receipt and the other version come after the
//! end) is found by [`LineageCheck`](crate::LineageCheck), which knows sums only.

use std::collections::BTreeMap;

use crate::limits::UNRECEIPTED_CHUNKS;
use crate::{ChunkDigest, Error, JobFacts, TableId};

/// Chunks with rows in some log whose receipts this worker has not read: a gateway writes the receipt after the chunk is in its
/// queue, and dies in between now and then.
#[derive(Debug, Default)]
pub(super) struct Unreceipted(BTreeMap<(TableId, u64), ChunkDigest>);

impl Unreceipted {
    /// Rows of this chunk stand in a log.
    ///
    /// # Errors
    /// Names the chunk if other bytes are known under its number.
    pub(super) fn arrived(&mut self, chunk: (TableId, u64), now: ChunkDigest, facts: &JobFacts) -> Result<(), Error> {
        self.check_one(chunk, now, facts)?;
        let (table, number) = chunk;
        let is_new = facts.digest(table, number).is_none() && self.0.insert(chunk, now).is_none();
        if is_new && self.0.len().is_multiple_of(UNRECEIPTED_CHUNKS) { self.check(facts) } else { Ok(()) }
    }

    /// Whether a chunk of these bytes agrees with its receipt, and with what has arrived of it.
    ///
    /// # Errors
    /// Names the chunk if other bytes are known under its number.
    pub(super) fn check_one(&self, chunk: (TableId, u64), now: ChunkDigest, facts: &JobFacts) -> Result<(), Error> {
        let (table, number) = chunk;
        match self.0.get(&chunk) {
            Some(&before) if before != now => Err(Error::ChunkChanged { table, number, before, now }),
            _ => facts.check_digest(table, number, now),
        }
    }

    /// Looks for their receipts, and forgets those that agree.
    pub(super) fn check(&mut self, facts: &JobFacts) -> Result<(), Error> {
        for (&(table, number), &digest) in &self.0 {
            facts.check_digest(table, number, digest)?;
        }
        self.0.retain(|&(table, number), _| facts.digest(table, number).is_none());
        Ok(())
    }

    /// The results log is read anew, or by another worker.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::{Fact, Promise};

    const TABLE: TableId = TableId(0);

    fn receipt(number: u64, digest: u64) -> Fact {
        let chunks = Promise::runs([(number, number + 1)]);
        Fact::Uploaded { table: TABLE, chunks, digests: vec![ChunkDigest(digest)] }
    }

    fn changed(number: u64, before: u64, now: u64) -> Result<(), Error> {
        Err(Error::ChunkChanged { table: TABLE, number, before: ChunkDigest(before), now: ChunkDigest(now) })
    }

    #[test]
    fn chunks_wait_for_their_receipts_and_are_compared_then() {
        let mut facts = JobFacts::default();
        let mut unreceipted = Unreceipted::default();
        for number in 0..3 {
            assert_eq!(unreceipted.arrived((TABLE, number), ChunkDigest(number), &facts), Ok(()));
        }
        assert_eq!(facts.apply(0, &receipt(1, 1)), Ok(true));
        assert_eq!(unreceipted.check(&facts), Ok(()));
        assert_eq!(unreceipted.0.len(), 2);
        assert_eq!(facts.apply(1, &receipt(2, 7)), Ok(true));
        assert_eq!(unreceipted.check(&facts), changed(2, 7, 2));
    }

    #[test]
    fn two_versions_are_found_out_where_they_meet_also_without_a_receipt() {
        let mut facts = JobFacts::default();
        let mut unreceipted = Unreceipted::default();
        assert_eq!(unreceipted.arrived((TABLE, 0), ChunkDigest(1), &facts), Ok(()));
        assert_eq!(unreceipted.arrived((TABLE, 0), ChunkDigest(1), &facts), Ok(()), "in another log");
        assert_eq!(unreceipted.arrived((TABLE, 0), ChunkDigest(2), &facts), changed(0, 1, 2));
        assert_eq!(unreceipted.check_one((TABLE, 0), ChunkDigest(2), &facts), changed(0, 1, 2));
        // The version that came later has a receipt: what was there before is not forgotten.
        assert_eq!(facts.apply(0, &receipt(0, 2)), Ok(true));
        assert_eq!(unreceipted.arrived((TABLE, 0), ChunkDigest(2), &facts), changed(0, 1, 2));
    }
}
