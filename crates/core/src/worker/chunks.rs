//! Chunks: from delivery to acknowledgement.

use std::collections::BTreeSet;

use super::{Action, Attempt, Failure, JobWorker, Tag, Work};
use crate::Source;
use crate::limits::{MAX_CHUNK_ATTEMPTS, MAX_TASK_ATTEMPTS};

/// A chunk that was delivered and not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChunkWork {
    pub(super) source: Source,
    pub(super) state: ChunkState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ChunkState {
    /// Waiting to read our own announcement back.
    Announced(Attempt),
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

    /// A chunk that somebody had before may be the one that kills: the attempt is written down before it is made. When
    /// our own announcement comes back from the log, all earlier ones have been read, too.
    pub(super) fn chunk_delivered(&mut self, tag: Tag, source: Source, redelivered: bool, actions: &mut Vec<Action>) {
        let state = if redelivered {
            let by = self.next_attempt();
            actions.push(Action::Announce { source, by });
            ChunkState::Announced(by)
        } else {
            actions.push(Action::Run { work: Work::Chunk(tag) });
            ChunkState::Running
        };
        self.chunks.insert(tag, ChunkWork { source, state });
    }

    pub(super) fn next_attempt(&mut self) -> Attempt {
        self.attempts_made += 1;
        Attempt { member: self.me, number: self.attempts_made }
    }

    pub(super) fn attempted(&mut self, source: Source, by: Attempt, actions: &mut Vec<Action>) {
        let attempts = self.attempts.entry(source).or_default();
        attempts.insert(by);
        let attempts = attempts.len();
        if by.member != self.me {
            return;
        }
        let limit = match source {
            Source::Chunk { .. } => MAX_CHUNK_ATTEMPTS,
            Source::Task { .. } => MAX_TASK_ATTEMPTS,
        };
        let work = match source {
            Source::Chunk { .. } => {
                let mut chunks = self.chunks.iter_mut();
                chunks.find(|(_, chunk)| chunk.state == ChunkState::Announced(by)).map(|(&tag, chunk)| {
                    chunk.state = ChunkState::Running;
                    Work::Chunk(tag)
                })
            }
            Source::Task { stage, partition } => self.begin_inner(stage, partition, by),
        };
        match work {
            None => {}
            Some(_) if attempts > limit => {
                self.fail(Failure::Quarantined { task: source, attempts: attempts - 1 }, actions);
            }
            Some(work) => actions.push(Action::Run { work }),
        }
    }

    pub(super) fn finished(&mut self, work: Work, messages: u32, actions: &mut Vec<Action>) {
        match work {
            Work::Chunk(tag) => match self.chunks.get_mut(&tag) {
                Some(chunk) => chunk.state = ChunkState::Publishing((0..messages).collect()),
                None => return actions.push(Action::Forget { work }),
            },
            Work::Inner(stage, partition, by) => {
                if !self.inner_finished(stage, partition, by, messages) {
                    return actions.push(Action::Forget { work });
                }
            }
        }
        if self.connected {
            actions.extend((0..messages).map(|message| Action::Publish { work, message }));
        }
        self.settle(work, actions);
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
