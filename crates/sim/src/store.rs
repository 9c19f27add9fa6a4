//! The rows a worker has taken from one log.

use std::collections::BTreeMap;

use tenaz_core::{Source, StageId};

use crate::rows::{Message, Row};

/// The rows of one log, in the order in which they arrived, and the parts that are kept aside.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogState {
    taken: Vec<Message>,
    held: BTreeMap<(Source, u64), BTreeMap<u32, Message>>,
}

impl LogState {
    /// Keeps a part aside.
    pub(crate) fn hold(&mut self, message: Message) {
        let header = message.header;
        self.held.entry((header.source, header.content)).or_default().insert(header.part, message);
    }

    /// Takes a message in, with all parts held of the same output. False if a part is missing.
    pub(crate) fn take(&mut self, message: Message) -> bool {
        let header = message.header;
        self.hold(message);
        let parts = self.held.remove(&(header.source, header.content)).unwrap_or_default();
        self.held.retain(|(source, _), _| *source != header.source);
        let is_whole = parts.len() as u32 == header.parts;
        self.taken.extend(parts.into_values());
        is_whole
    }

    /// A mistake on purpose: parts held of any content are as good as those of the right one. True if all are there.
    pub(crate) fn take_mixed(&mut self, message: Message) -> bool {
        let header = message.header;
        self.hold(message);
        let same_source = self.held.range((header.source, 0)..=(header.source, u64::MAX));
        let mixed: BTreeMap<u32, Message> = same_source.flat_map(|(_, parts)| parts.clone()).collect();
        let is_whole = mixed.len() as u32 >= header.parts;
        if is_whole {
            self.held.retain(|(source, _), _| *source != header.source);
            self.taken.extend(mixed.into_values());
        }
        is_whole
    }

    /// The rows taken, each with its edge.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (StageId, Row)> + '_ {
        self.taken.iter().flat_map(|message| message.rows.iter().copied())
    }

    /// The rows of one edge.
    pub(crate) fn rows_of(&self, edge: StageId) -> Vec<Row> {
        self.rows().filter(|(stage, _)| *stage == edge).map(|(_, row)| row).collect()
    }

    /// The accounts of chunks.
    pub(crate) fn accounts(&self) -> impl Iterator<Item = (Source, u64)> + '_ {
        self.taken.iter().filter_map(|message| message.records.map(|records| (message.header.source, records)))
    }
}
