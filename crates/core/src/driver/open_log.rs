//! A log that this worker reads: what was taken from it, and the order in which that happens.
//!
//! A partition that is lost and comes back is a new [`OpenLog`], filled from the start of the log. Steps that were made for
//! the old one find that it is gone: they can never take rows of the new one. (They once could, because work looked its
//! partition up by number when its turn came, and a job ended with half of its rows.)

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use super::{LogPart, RowEngine};
use crate::{QueryId, Source, StageId, Work};

/// Something that is done after all that was asked for before in the same log.
pub(super) enum Queued<R: RowEngine> {
    /// Rows are taken in. What stands behind waits until they are.
    Take { source: Source, parts: Vec<LogPart<R::Body>>, permit: R::Permit },
    /// A broadcast is completed. What stands behind waits until it is.
    Complete { edge: StageId },
    /// An inner task that needs broadcasts: it goes on in the queue of its partition.
    AfterBroadcasts { work: Work, sources: u64 },
    /// An inner task whose rows are all taken in.
    Task { work: Work, sources: u64 },
    /// Chunks of this wave may be taken: the broadcasts that they need are in place, not only read.
    OpenWave { wave: usize },
    /// An answer whose rows are all taken in.
    Answer { query: QueryId, conclusion: u64 },
    /// The end of the job.
    Conclude { conclusion: u64 },
}

/// A log from the moment this worker begins to read it until it releases it.
pub(super) struct OpenLog<R: RowEngine> {
    /// Tells this reading from every other.
    pub(super) opened: u64,
    rows: Arc<R::LogRows>,
    queue: VecDeque<Queued<R>>,
    /// Whether a step is under way that others must wait for.
    pub(super) busy: bool,
}

impl<R: RowEngine> OpenLog<R> {
    pub(super) fn new(opened: u64, rows: R::LogRows) -> Self {
        Self { opened, rows: Arc::new(rows), queue: VecDeque::new(), busy: false }
    }

    /// The rows, for a step that runs later.
    pub(super) fn rows(&self) -> Weak<R::LogRows> {
        Arc::downgrade(&self.rows)
    }

    /// How much waits here for its turn.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    pub(super) fn push(&mut self, queued: Queued<R>) {
        self.queue.push_back(queued);
    }

    /// The next whose turn it is; none while a step is under way that it must wait for.
    pub(super) fn next(&mut self) -> Option<Queued<R>> {
        if self.busy { None } else { self.queue.pop_front() }
    }

    /// Waves are opened anew with every connection.
    pub(super) fn drop_waves(&mut self) {
        self.queue.retain(|queued| !matches!(queued, Queued::OpenWave { .. }));
    }
}
