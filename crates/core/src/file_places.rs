//! Places for whole files: how many a gateway receives at a time.
//!
//! ```text
//!          enter                 its queue is full, and another table is missing
//!  refused ◀─── none ── Receiving ───────────────────────────────────────────────▶ Parked ── too many ──▶ sent back
//!                          ▲                                                         │
//!                          └───────────────── all other tables are there ────────────┘
//! ```
//!
//! A file that has a place takes memory and a thread. Its chunks go into a work queue, which is full when workers do not keep
//! up, or when they cannot begin because another table is not there yet ([`Topology::waits_for`](crate::Topology::waits_for)). So
//! no file keeps a place while it waits for another table: otherwise files could hold all places, and the table that they wait
//! for would find none. A file that is receiving waits for workers only, so every place is free again some time, and a parked
//! file gets its place back. Parked files keep what they have read in memory, so there may be no more of them than places.

/// How many files have a place, and how many are parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilePlaces {
    count: usize,
    receiving: usize,
    parked: usize,
}

/// What becomes of a file whose work queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullQueue {
    /// It keeps its place: the workers are behind, and will catch up.
    Keep,
    /// It has given its place up, and must ask for one again ([`FilePlaces::unpark`]) when the other tables are there.
    Park,
    /// It has given its place up, and cannot be kept: the client is to send it again later.
    SendBack,
}

impl FilePlaces {
    /// So many free places.
    pub fn new(count: usize) -> Self {
        Self { count, receiving: 0, parked: 0 }
    }

    /// How many places there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// A place for a file that has just come. False if none is free.
    pub fn enter(&mut self) -> bool {
        let is_free = self.receiving < self.count;
        self.receiving += usize::from(is_free);
        is_free
    }

    /// The work queue of a file that has a place is full. `waits_for_tables`: whether tables that its chunks wait for are missing.
    pub fn full(&mut self, waits_for_tables: bool) -> FullQueue {
        if !waits_for_tables {
            return FullQueue::Keep;
        }
        self.leave();
        if self.parked >= self.count {
            return FullQueue::SendBack;
        }
        self.parked += 1;
        FullQueue::Park
    }

    /// A place for a parked file whose other tables are there. False if none is free: it stays parked.
    pub fn unpark(&mut self) -> bool {
        let is_free = self.enter();
        self.parked -= usize::from(is_free);
        is_free
    }

    /// A file that has a place is done, or given up.
    pub fn leave(&mut self) {
        self.receiving = self.receiving.saturating_sub(1);
    }

    /// A parked file is given up.
    pub fn leave_parked(&mut self) {
        self.parked = self.parked.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_waits_for_a_table_leaves_room_for_it() {
        let mut places = FilePlaces::new(2);
        assert!(places.enter() && places.enter() && !places.enter());
        assert_eq!(places.full(false), FullQueue::Keep);
        assert!(!places.enter());
        assert_eq!((places.full(true), places.full(true)), (FullQueue::Park, FullQueue::Park));
        assert!(places.enter() && places.enter(), "room for two others");
        assert_eq!(places.full(true), FullQueue::SendBack, "two are parked already");
        assert!(places.unpark() && !places.unpark());
        places.leave();
        assert!(places.unpark());
        places.leave_parked();
        assert_eq!(places, FilePlaces { count: 2, receiving: 2, parked: 0 });
    }
}
