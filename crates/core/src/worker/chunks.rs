//! Chunks: from delivery to acknowledgement.

use std::collections::BTreeSet;

use super::{Action, Attempt, JobWorker, Tag, Work};
use crate::{Clearance, Source};

/// A chunk that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkWork {
    pub(super) source: Source,
    pub(super) state: ChunkState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Fresh from the queue, waiting until something may be begun.
    Held,
    /// Waiting until it may be announced.
    Waiting,
    /// Waiting to read our own announcement back.
    Announced(Attempt),
    /// Fresh from the queue, or announced before.
    Running,
    /// Messages that the broker has not confirmed.
    Publishing(BTreeSet<u32>),
}

impl JobWorker {
    pub(super) fn open_ready_waves(&mut self, actions: &mut Vec<Action>) {
        if !self.connected {
            return;
        }
        for (index, wave) in self.waves.iter().enumerate() {
            if wave.needs.is_subset(&self.complete_broadcasts) && self.open_waves.insert(index) {
                actions.push(Action::TakeChunks { wave: index });
            }
        }
    }

    /// A chunk that somebody had before may be the one that kills: the attempt is written down before it is made.
    pub(super) fn chunk_delivered(&mut self, tag: Tag, source: Source, redelivered: bool, actions: &mut Vec<Action>) {
        if redelivered {
            self.chunks.insert(tag, ChunkWork { source, state: ChunkState::Waiting });
            self.announce_next(actions);
        } else {
            self.chunks.insert(tag, ChunkWork { source, state: ChunkState::Held });
            self.begin_held(actions);
        }
    }

    /// Begins the chunks that nobody had before, if anything may be begun.
    pub(super) fn begin_held(&mut self, actions: &mut Vec<Action>) {
        self.is_exposure_stale = true;
        if self.clearance != Clearance::Shared {
            return;
        }
        for (&tag, chunk) in self.chunks.iter_mut().filter(|(_, chunk)| chunk.state == ChunkState::Held) {
            chunk.state = ChunkState::Running;
            actions.push(Action::Run { work: Work::Chunk(tag), sources: 0 });
        }
    }

    pub(super) fn finished(&mut self, work: Work, messages: u32, actions: &mut Vec<Action>) {
        let source = match work {
            Work::Chunk(tag) => match self.chunks.get_mut(&tag) {
                Some(chunk) => {
                    chunk.state = ChunkState::Publishing((0..messages).collect());
                    chunk.source
                }
                None => return actions.push(Action::Forget { work }),
            },
            Work::Inner(stage, partition, by) => {
                if !self.inner_finished(stage, partition, by, messages) {
                    return actions.push(Action::Forget { work });
                }
                Source::Task { stage, partition }
            }
        };
        self.exonerate(source, actions);
        if self.connected {
            actions.extend((0..messages).map(|message| Action::Publish { work, message }));
        }
        self.settle(work, actions);
        self.announce_next(actions);
    }

    pub(super) fn confirmed(&mut self, work: Work, message: u32, actions: &mut Vec<Action>) {
        match work {
            Work::Chunk(tag) => {
                if let Some(ChunkWork { state: ChunkState::Publishing(open), .. }) = self.chunks.get_mut(&tag) {
                    open.remove(&message);
                }
            }
            Work::Inner(stage, partition, by) => self.inner_confirmed(stage, partition, by, message),
        }
        self.settle(work, actions);
    }

    /// Outputs before acknowledgement: an input is released only when everything derived from it is confirmed.
    fn settle(&mut self, work: Work, actions: &mut Vec<Action>) {
        match work {
            Work::Chunk(tag) => {
                let safe = self
                    .chunks
                    .get(&tag)
                    .is_some_and(|chunk| matches!(&chunk.state, ChunkState::Publishing(open) if open.is_empty()));
                if safe {
                    self.chunks.remove(&tag);
                    actions.push(Action::Ack { tag });
                    actions.push(Action::Forget { work });
                }
            }
            Work::Inner(stage, partition, _) => self.settle_inner(stage, partition, actions),
        }
    }
}
