//! What the threads of a job share: what to do next, and whether to go on.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tenaz_core::{Partition, QueryId, StageId};

use crate::Error;
use crate::rejects::RejectLine;

/// What a thread may do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Run an inner task.
    Inner(StageId, Partition),
    /// Put an answer together.
    Answer(QueryId),
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
    /// Queries that have all their rows.
    answers: VecDeque<QueryId>,
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
            if let Some(query) = state.answers.pop_front() {
                state.busy += 1;
                return Work::Answer(query);
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

    /// Queries that have all their rows.
    pub(crate) fn answer(&self, queries: &[QueryId]) {
        if !queries.is_empty() {
            self.lock().answers.extend(queries);
            self.changed.notify_all();
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NO_NEEDS: BTreeMap<StageId, BTreeSet<StageId>> = BTreeMap::new();

    fn line(number: u64) -> RejectLine {
        let text = String::new;
        RejectLine { table: text(), file: text(), line: number, byte: 0, column: None, reason: text(), text: text() }
    }

    #[test]
    fn ready_tasks_come_before_chunks_so_that_rows_do_not_pile_up() {
        let scheduler = Scheduler::default();
        scheduler.add(Partition(2), &[StageId(1)], &NO_NEEDS);
        scheduler.answer(&[QueryId(4)]);
        assert_eq!(scheduler.next(), Work::Inner(StageId(1), Partition(2)));
        assert_eq!(scheduler.next(), Work::Answer(QueryId(4)));
        assert_eq!(scheduler.next(), Work::Chunk);
    }

    #[test]
    fn a_chunk_waits_for_the_broadcasts_of_its_table() {
        let scheduler = Scheduler::default();
        scheduler.next_chunk_needs(&BTreeSet::from([StageId(0), StageId(1)]));
        scheduler.broadcast_complete(&[StageId(0)], &NO_NEEDS);
        // Nobody works and nothing is free: a thread may go home instead of waiting for ever.
        assert_eq!(scheduler.next(), Work::Nothing);
        scheduler.broadcast_complete(&[StageId(1)], &NO_NEEDS);
        assert_eq!(scheduler.next(), Work::Chunk);
    }

    #[test]
    fn a_task_waits_for_all_its_broadcasts_and_is_given_once() {
        let needs = BTreeMap::from([(StageId(5), BTreeSet::from([StageId(0), StageId(1)]))]);
        let scheduler = Scheduler::default();
        scheduler.files_read();
        scheduler.add(Partition(0), &[StageId(5)], &needs);
        scheduler.broadcast_complete(&[StageId(0)], &needs);
        assert_eq!(scheduler.next(), Work::Nothing);
        scheduler.broadcast_complete(&[StageId(1)], &needs);
        assert_eq!(scheduler.next(), Work::Inner(StageId(5), Partition(0)));
        scheduler.finished();
        assert_eq!(scheduler.next(), Work::Nothing);
    }

    #[test]
    fn a_waiting_thread_gets_what_a_working_one_makes_ready() {
        let scheduler = Scheduler::default();
        assert_eq!(scheduler.next(), Work::Chunk);
        scheduler.files_read();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| scheduler.next());
            scheduler.add(Partition(1), &[StageId(4)], &NO_NEEDS);
            scheduler.finished();
            assert!(matches!(waiting.join(), Ok(Work::Inner(StageId(4), Partition(1)))));
        });
        scheduler.finished();
        assert_eq!(scheduler.next(), Work::Nothing);
    }

    #[test]
    fn a_failure_sends_everybody_home_and_the_first_one_stays() {
        let scheduler = Scheduler::default();
        assert_eq!(scheduler.next(), Work::Chunk);
        scheduler.fail(Error::Stopped);
        scheduler.fail(Error::NoDirectory("later".into()));
        assert_eq!(scheduler.next(), Work::Nothing);
        assert!(matches!(scheduler.into_error(), Some(Error::Stopped)));
    }

    #[test]
    fn of_several_bad_records_the_first_of_the_data_is_named_whoever_came_first() {
        let scheduler = Scheduler::default();
        scheduler.reject((1, 7), line(70));
        scheduler.reject((1, 3), line(30));
        scheduler.reject((2, 0), line(90));
        assert_eq!(scheduler.next(), Work::Nothing);
        assert!(matches!(scheduler.into_error(), Some(Error::Strict(first)) if first.line == 30));
    }
}
