//! Attempts: what may kill a worker is written down before it is begun.
//!
//! ```text
//!  waiting ──(no other announcement under way, no suspect about)──▶ announced ──(read back)──▶ running ──▶ finished
//!                                                                       │                                   │
//!                                                     begun too often? ─┴▶ Fail       begun before? Exonerate ┘
//! ```
//!
//! A task that kills its worker takes along whatever else runs there, and all of it is begun again elsewhere. To blame the
//! right one, a worker announces one task at a time, so that it knows what all others know before it announces the next,
//! and it tries a suspect alone. What comes to its end is no suspect any more, whoever tried it before.

use std::collections::BTreeSet;

use super::chunks::ChunkState;
use super::{Action, Attempt, Failure, JobWorker, Tag, Work};
use crate::limits::{MAX_CHUNK_ATTEMPTS, MAX_TASK_ATTEMPTS, PATIENCE, SUSPECT_ATTEMPTS};
use crate::{MemberId, Partition, Source, StageId};

/// Something that waits to be announced.
#[derive(Clone, Copy)]
enum Candidate {
    Chunk(Tag, Source),
    Inner(StageId, Partition),
}

impl Candidate {
    fn source(self) -> Source {
        match self {
            Self::Chunk(_, source) => source,
            Self::Inner(stage, partition) => Source::Task { stage, partition },
        }
    }
}

impl JobWorker {
    pub(super) fn next_attempt(&mut self) -> Attempt {
        self.attempts_made += 1;
        Attempt { member: self.me, number: self.attempts_made }
    }

    /// Announces one of those that wait, if that is possible now.
    pub(super) fn announce_next(&mut self, actions: &mut Vec<Action>) {
        if !self.connected || self.has_announced() {
            return;
        }
        let Some(next) = self.next_candidate() else { return };
        let by = match next {
            Candidate::Chunk(tag, _) => {
                let by = self.next_attempt();
                self.chunks.entry(tag).and_modify(|chunk| chunk.state = ChunkState::Announced(by));
                by
            }
            Candidate::Inner(stage, partition) => {
                let Some(work) = self.inner.get_mut(&(stage, partition)) else { return };
                work.announce();
                work.by
            }
        };
        actions.push(Action::Announce { source: next.source(), by });
    }

    /// Whatever is harmless while no suspect runs; a suspect while nothing runs.
    fn next_candidate(&self) -> Option<Candidate> {
        let running = self.announced_and_running();
        // Its own announcement is one of the attempts by now.
        if running.iter().any(|&source| self.attempts_of(source) > SUSPECT_ATTEMPTS) {
            return None;
        }
        let is_suspect = |candidate: &Candidate| self.attempts_of(candidate.source()) >= SUSPECT_ATTEMPTS;
        let harmless = self.candidates().find(|candidate| !is_suspect(candidate));
        harmless.or_else(|| self.candidates().next().filter(|_| running.is_empty()))
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let chunks = self.chunks.iter().filter(|(_, chunk)| chunk.state == ChunkState::Waiting);
        let inner = self.inner.iter().filter(|(_, work)| work.is_waiting());
        chunks
            .map(|(&tag, chunk)| Candidate::Chunk(tag, chunk.source))
            .chain(inner.map(|(&(stage, partition), _)| Candidate::Inner(stage, partition)))
    }

    fn has_announced(&self) -> bool {
        self.chunks.values().any(|chunk| matches!(chunk.state, ChunkState::Announced(_)))
            || self.inner.values().any(|work| work.is_announced())
    }

    fn announced_and_running(&self) -> Vec<Source> {
        let chunks = self.chunks.values().filter(|chunk| chunk.state == ChunkState::Running { announced: true });
        let inner = self.inner.iter().filter(|(_, work)| work.is_running());
        chunks
            .map(|chunk| chunk.source)
            .chain(inner.map(|(&(stage, partition), _)| Source::Task { stage, partition }))
            .collect()
    }

    fn attempts_of(&self, source: Source) -> usize {
        self.attempts.get(&source).map_or(0, |attempts| attempts.len())
    }

    /// When our own announcement comes back from the log, all earlier ones have been read, too.
    pub(super) fn attempted(&mut self, source: Source, by: Attempt, actions: &mut Vec<Action>) {
        let attempts = self.attempts.entry(source).or_default();
        attempts.insert(by);
        let members: BTreeSet<MemberId> = attempts.iter().map(|attempt| attempt.member).collect();
        let (attempts, members) = (attempts.len(), members.len());
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
                    chunk.state = ChunkState::Running { announced: true };
                    Work::Chunk(tag)
                })
            }
            Source::Task { stage, partition } => self.begin_inner(stage, partition, by),
        };
        match work {
            None => {}
            Some(_) if members > limit || attempts > limit * PATIENCE => {
                self.fail(Failure::Quarantined { task: source, attempts: attempts - 1 }, actions);
            }
            Some(work) => {
                actions.push(Action::Run { work, sources: self.sources_of(work) });
                self.announce_next(actions);
            }
        }
    }

    /// The task has come to its end here, so nobody died of it. Where somebody had tried it before, the others are told.
    pub(super) fn exonerate(&mut self, source: Source, actions: &mut Vec<Action>) {
        let attempts = self.attempts.remove(&source).map_or(0, |attempts| attempts.len());
        if attempts > 1 && self.connected {
            actions.push(Action::Exonerate { source });
        }
    }
}
