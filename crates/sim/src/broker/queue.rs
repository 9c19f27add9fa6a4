//! A work queue of the model: messages keep their place, also when they come back.

use std::collections::BTreeMap;

use super::ChunkCopy;

/// A chunk in a queue.
#[derive(Debug, Clone)]
pub(super) struct Queued {
    pub(super) chunk: ChunkCopy,
    pub(super) redelivered: bool,
    /// When it was delivered, where it is.
    pub(super) delivered_at: u64,
}

/// Whether a queue does what queues do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum QueueHealth {
    #[default]
    Working,
    /// It takes messages, holds none, and confirms nothing.
    Dead,
    /// It is not there.
    Gone,
}

/// A work queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    pub(super) ready: BTreeMap<u64, Queued>,
    pub(super) unacked: BTreeMap<u64, Queued>,
    next_place: u64,
    pub(super) health: QueueHealth,
    /// Chunks that were ever stored in it.
    pub(super) stored: u64,
}

impl Queue {
    /// Appends a chunk.
    pub(super) fn push(&mut self, chunk: ChunkCopy) {
        self.ready.insert(self.next_place, Queued { chunk, redelivered: false, delivered_at: 0 });
        self.next_place += 1;
        self.stored += 1;
    }

    /// The queue is deleted and declared again.
    pub(super) fn make_anew(&mut self) {
        *self = Self { next_place: self.next_place, ..Self::default() };
    }
}
