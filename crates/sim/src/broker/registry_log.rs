//! The log of the registry in the model: bounded, and its offsets are used again after a power cut.

use std::collections::VecDeque;

use tenaz_core::RegistryEvent;

/// The registry's log.
#[derive(Debug, Clone)]
pub(crate) struct RegistryLog {
    events: VecDeque<(RegistryEvent, u64)>,
    /// The offset of the first event that is left.
    first: u64,
    bytes: u64,
    kept_bytes: u64,
}

impl RegistryLog {
    /// An empty log that keeps so many bytes.
    pub(super) fn new(kept_bytes: u64) -> Self {
        Self { events: VecDeque::new(), first: 0, bytes: 0, kept_bytes }
    }

    /// Where a reader begins.
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// The offset after the last event.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    /// The event at an offset and its bytes, or the first one that is left.
    pub(crate) fn get(&self, offset: u64) -> Option<&(RegistryEvent, u64)> {
        self.events.get(offset.saturating_sub(self.first) as usize)
    }

    /// All that is left.
    pub(crate) fn events(&self) -> impl Iterator<Item = &RegistryEvent> {
        self.events.iter().map(|(event, _)| event)
    }

    pub(super) fn push(&mut self, event: RegistryEvent, bytes: u64) {
        self.events.push_back((event, bytes));
        self.bytes += bytes;
        while self.bytes > self.kept_bytes
            && let Some((_, bytes)) = self.events.pop_front()
        {
            self.first += 1;
            self.bytes -= bytes;
        }
    }

    pub(super) fn lose_tail(&mut self, count: usize) {
        for _ in 0..count {
            if let Some((_, bytes)) = self.events.pop_back() {
                self.bytes -= bytes;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }
}
