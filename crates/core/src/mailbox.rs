//! A log's reader: messages in parts become whole outputs, each output counts once.
//!
//! ```text
//!  header ──▶ source seen? ──yes──▶ Drop
//!                │ no
//!                ▼
//!           all parts in? ──no──▶ Hold (the caller keeps the part aside)
//!                │ yes
//!                ▼
//!           Inbox::receive ──▶ Take (the held parts and this one enter the state, in order)
//! ```

use std::collections::BTreeMap;

use crate::{Header, Inbox, IntervalSet, Received, Source};

/// What to do with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The output is complete with this part: it may touch the state now.
    Take,
    /// Parts are missing: keep this one aside.
    Hold,
    /// Seen before, or not a message at all.
    Drop,
}

/// The state of one log that is being read.
#[derive(Debug, Clone)]
pub struct Mailbox {
    inbox: Inbox,
    held: BTreeMap<(Source, u64), IntervalSet>,
    next_offset: u64,
}

impl Mailbox {
    /// Nothing read yet.
    pub fn new(inbox: Inbox) -> Self {
        Self { inbox, held: BTreeMap::new(), next_offset: 0 }
    }

    /// Takes note of the message at `offset`.
    ///
    /// Only its identity decides. An offset below the last one read proves nothing: a log that has lost its end in a power
    /// cut uses the same offsets again, for other messages.
    pub fn receive(&mut self, offset: u64, header: Header) -> Verdict {
        self.next_offset = offset + 1;
        let Header { source, content, part, parts, lineage: _ } = header;
        if part >= parts || self.inbox.has(source) {
            return Verdict::Drop;
        }
        if parts > 1 {
            let held = self.held.entry((source, content)).or_default();
            if !held.insert(u64::from(part)) {
                return Verdict::Drop;
            }
            if held.len() < u64::from(parts) {
                return Verdict::Hold;
            }
        }
        self.held.retain(|(other, _), _| *other != source);
        match self.inbox.receive(source) {
            Received::New => Verdict::Take,
            Received::Duplicate => Verdict::Drop,
        }
    }

    /// The offset to read from after a lost connection.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// What has arrived and what is missing.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// For promises and ready stages.
    pub fn inbox_mut(&mut self) -> &mut Inbox {
        &mut self.inbox
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lineage, Partition, Route, StageShape, TableId, TaskSet, Topology};

    fn mailbox() -> Mailbox {
        let leaf = StageShape {
            tasks: TaskSet::PerChunk(TableId(0)),
            reads: vec![],
            broadcasts: vec![],
            route: Route::One(Partition(0)),
        };
        let topology = Topology::new(1, 1, vec![leaf]).expect("a valid topology");
        Mailbox::new(Inbox::of_partition(&topology, Partition(0)))
    }

    fn part(number: u64, content: u64, part: u32, parts: u32) -> Header {
        let lineage = Lineage::default();
        Header { source: Source::Chunk { table: TableId(0), number }, content, part, parts, lineage }
    }

    #[test]
    fn parts_of_different_contents_never_mix() {
        let mut mailbox = mailbox();
        assert_eq!(mailbox.receive(0, part(0, 7, 0, 2)), Verdict::Hold);
        assert_eq!(mailbox.receive(1, part(0, 8, 1, 2)), Verdict::Hold);
        assert_eq!(mailbox.receive(2, part(0, 7, 0, 2)), Verdict::Drop);
        assert_eq!(mailbox.receive(3, part(0, 8, 0, 2)), Verdict::Take);
        assert_eq!(mailbox.receive(4, part(0, 7, 1, 2)), Verdict::Drop);
        assert!(mailbox.held.is_empty());
    }

    #[test]
    fn what_was_read_before_is_dropped_and_what_took_its_place_in_a_shortened_log_is_not() {
        let mut mailbox = mailbox();
        assert_eq!(mailbox.receive(4, part(0, 1, 0, 1)), Verdict::Take);
        assert_eq!(mailbox.next_offset(), 5);
        assert_eq!(mailbox.receive(4, part(0, 1, 0, 1)), Verdict::Drop);
        assert_eq!(mailbox.receive(3, part(1, 1, 0, 1)), Verdict::Take);
        assert_eq!(mailbox.next_offset(), 4);
    }

    #[test]
    fn a_part_beyond_the_last_is_no_message() {
        assert_eq!(mailbox().receive(0, part(0, 1, 2, 2)), Verdict::Drop);
    }
}
