//! Attempts: what may kill a worker is written down before it is begun.
//!
//! ```text
//!  waiting ──(no other announcement under way, and cleared for it)──▶ announced ──(read back)──▶ running ──▶ finished
//!                                                                        │                                   │
//!                                                      begun too often? ─┴▶ Fail       begun before? Exonerate ┘
//! ```
//!
//! A task that kills its worker takes along whatever else runs there, and all of it is begun again elsewhere. To blame the
//! right one, a worker announces one task at a time, so that it knows what all others know before it announces the next,
//! and it tries a suspect when nothing else runs in its process, of whichever job ([`Isolation`](crate::Isolation)). What comes to
//! its end is no suspect any more, whoever tried it before.

use std::collections::BTreeSet;

use super::chunks::{ChunkState, ChunkWork};
use super::{Action, Attempt, Failure, JobWorker, Tag, Work};
use crate::limits::{MAX_CHUNK_ATTEMPTS, MAX_TASK_ATTEMPTS, PATIENCE, SUSPECT_ATTEMPTS};
use crate::{Clearance, Exposure, MemberId, Partition, Source, StageId};

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
        Attempt { member: self.me, number: self.attempts_made, alone: false }
    }

    /// Announces one of those that wait, if that is possible now.
    pub(super) fn announce_next(&mut self, actions: &mut Vec<Action>) {
        self.is_exposure_stale = true;
        if !self.connected || self.has_announced() {
            return;
        }
        let Some(next) = self.next_candidate() else { return };
        let alone = self.clearance == Clearance::Alone;
        self.has_tried |= alone;
        let by = match next {
            Candidate::Chunk(tag, _) => {
                let by = Attempt { alone, ..self.next_attempt() };
                self.chunks.entry(tag).and_modify(|chunk| chunk.state = ChunkState::Announced(by));
                by
            }
            Candidate::Inner(stage, partition) => {
                let Some(work) = self.inner.get_mut(&(stage, partition)) else { return };
                work.announce(alone);
                work.by
            }
        };
        actions.push(Action::Announce { source: next.source(), by });
    }

    /// Whatever is harmless beside others; one suspect alone.
    fn next_candidate(&self) -> Option<Candidate> {
        match self.clearance {
            Clearance::Shared => self.candidates().find(|&candidate| !self.is_suspect(candidate)),
            Clearance::Alone if !self.has_tried => self.candidates().find(|&candidate| self.is_suspect(candidate)),
            Clearance::Alone | Clearance::Held => None,
        }
    }

    /// What may be begun has changed.
    pub(super) fn cleared(&mut self, clearance: Clearance, actions: &mut Vec<Action>) {
        self.clearance = clearance;
        self.has_tried = false;
        self.begin_held(actions);
        self.announce_next(actions);
    }

    pub(super) fn find_exposure(&self) -> Exposure {
        let has_suspect = self.connected && self.candidates().any(|candidate| self.is_suspect(candidate));
        Exposure { begun: self.begun(), has_suspect, clearance: self.clearance }
    }

    fn is_suspect(&self, candidate: Candidate) -> bool {
        self.attempts.get(&candidate.source()).is_some_and(|attempts| attempts.len() >= SUSPECT_ATTEMPTS)
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

    /// How many chunks and tasks are announced or run.
    fn begun(&self) -> usize {
        let is_begun = |chunk: &&ChunkWork| matches!(chunk.state, ChunkState::Announced(_) | ChunkState::Running);
        let inner = self.inner.values().filter(|work| work.is_announced() || work.is_running());
        self.chunks.values().filter(is_begun).count() + inner.count()
    }

    /// When our own announcement comes back from the log, all earlier ones have been read, too. If they make it a suspect that was
    /// announced beside others, it waits until it may run alone. What has killed whoever tried it alone fails the job.
    pub(super) fn attempted(&mut self, source: Source, by: Attempt, actions: &mut Vec<Action>) {
        self.is_exposure_stale = true;
        let attempts = self.attempts.entry(source).or_default();
        attempts.insert(by);
        let is_suspect = attempts.len() > SUSPECT_ATTEMPTS;
        let alone = attempts.iter().filter(|attempt| attempt.alone);
        let members: BTreeSet<MemberId> = alone.clone().map(|attempt| attempt.member).collect();
        let (alone, members) = (alone.count(), members.len());
        if by.member != self.me {
            return;
        }
        let limit = match source {
            Source::Chunk { .. } => MAX_CHUNK_ATTEMPTS,
            Source::Task { .. } => MAX_TASK_ATTEMPTS,
        };
        let is_convicted = by.alone && (members + SUSPECT_ATTEMPTS > limit || alone > limit * PATIENCE);
        let must_wait = is_suspect && !by.alone;
        let work = match source {
            Source::Chunk { .. } => {
                let mut chunks = self.chunks.iter_mut();
                chunks.find(|(_, chunk)| chunk.state == ChunkState::Announced(by)).map(|(&tag, chunk)| {
                    chunk.state = if must_wait { ChunkState::Waiting } else { ChunkState::Running };
                    Work::Chunk(tag)
                })
            }
            Source::Task { stage, partition } => self.begin_inner(stage, partition, by, must_wait),
        };
        match work {
            None => {}
            Some(_) if is_convicted => {
                // Those that made it a suspect, and those alone but for this one.
                self.fail(Failure::Quarantined { task: source, attempts: SUSPECT_ATTEMPTS + alone - 1 }, actions);
            }
            Some(_) if must_wait => self.announce_next(actions),
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
