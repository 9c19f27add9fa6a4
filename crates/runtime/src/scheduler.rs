//! What the threads of a job share: what to do next, and whether to go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tenaz_core::{Partition, StageId};

use crate::Error;
use crate::rejects::RejectLine;

/// What a thread may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Run an inner task.
    Inner(StageId, Partition),
    /// Cut the next chunk and work on it.
    Chunk,
    /// Go home.
    Nothing,
}

/// The shared state of the threads.
#[derive(Debug, Default)]
pub(crate) struct Scheduler {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: VecDeque<(StageId, Partition)>,
    /// Inner tasks whose partition is complete but whose broadcasts are not.
    held: Vec<(StageId, Partition)>,
    broadcasts: BTreeSet<StageId>,
    files_read: bool,
    busy: usize,
    /// Broadcasts that the next chunk needs.
    chunk_needs: BTreeSet<StageId>,
    error: Option<Error>,
    first_reject: Option<((usize, u64), RejectLine)>,
    stopping: bool,
}

impl State {
    fn chunk_is_free(&self) -> bool {
        !self.files_read && self.chunk_needs.is_subset(&self.broadcasts)
    }
}

impl Scheduler {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for work. Whoever takes some must call [`Scheduler::finished`] afterwards.
    pub(crate) fn next(&self) -> Work {
        let mut state = self.lock();
        loop {
            if state.stopping {
                return Work::Nothing;
            }
            if let Some((stage, partition)) = state.ready.pop_front() {
                state.busy += 1;
                return Work::Inner(stage, partition);
            }
            if state.chunk_is_free() {
                state.busy += 1;
                return Work::Chunk;
            }
            if state.busy == 0 {
                // Nobody works, so nothing new can become ready.
                return Work::Nothing;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The work taken is done, with what it brought.
    pub(crate) fn finished(&self) {
        self.lock().busy -= 1;
        self.changed.notify_all();
    }

    /// Tasks whose partition's input is complete; `needs` tells which broadcasts a stage waits for.
    pub(crate) fn add(&self, partition: Partition, stages: &[StageId], needs: &BTreeMap<StageId, BTreeSet<StageId>>) {
        if stages.is_empty() {
            return;
        }
        let mut state = self.lock();
        for &stage in stages {
            let free = needs.get(&stage).is_none_or(|needs| needs.is_subset(&state.broadcasts));
            if free {
                state.ready.push_back((stage, partition));
            } else {
                state.held.push((stage, partition));
            }
        }
        self.changed.notify_all();
    }

    /// A broadcast is complete.
    pub(crate) fn broadcast_complete(&self, edges: &[StageId], needs: &BTreeMap<StageId, BTreeSet<StageId>>) {
        let mut state = self.lock();
        state.broadcasts.extend(edges);
        let held = std::mem::take(&mut state.held);
        for (stage, partition) in held {
            if needs.get(&stage).is_none_or(|needs| needs.is_subset(&state.broadcasts)) {
                state.ready.push_back((stage, partition));
            } else {
                state.held.push((stage, partition));
            }
        }
        self.changed.notify_all();
    }

    /// The next chunk belongs to a table whose leaf stages need these broadcasts.
    pub(crate) fn next_chunk_needs(&self, needs: &BTreeSet<StageId>) {
        self.lock().chunk_needs.clone_from(needs);
        self.changed.notify_all();
    }

    /// All files have been read.
    pub(crate) fn files_read(&self) {
        self.lock().files_read = true;
        self.changed.notify_all();
    }

    /// The job has failed. The first error stays.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        state.error.get_or_insert(error);
        state.stopping = true;
        self.changed.notify_all();
    }

    /// A strict job met a bad record. Chunks are cut in order, so those before this one are all being worked on: the
    /// first bad record of the data is among what the threads still finish.
    pub(crate) fn reject(&self, place: (usize, u64), line: RejectLine) {
        let mut state = self.lock();
        if state.first_reject.as_ref().is_none_or(|(first, _)| place < *first) {
            state.first_reject = Some((place, line));
        }
        state.stopping = true;
        self.changed.notify_all();
    }

    /// The reason to fail, after all threads have gone home.
    pub(crate) fn into_error(self) -> Option<Error> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reject = state.first_reject.map(|(_, line)| Error::Strict(Box::new(line)));
        state.error.or(reject)
    }
}
