//! Places for whole files: how many are received at a time, as [`tenaz_core::FilePlaces`] decides.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tenaz_cluster::JobView;
use tenaz_core::{FullQueue, TableId};
use tokio::sync::Notify;

use crate::app::{App, Job, gone};
use crate::problem::{Code, Problem};

/// The places of a gateway.
#[derive(Debug)]
pub(crate) struct FilePlaces {
    state: Mutex<tenaz_core::FilePlaces>,
    /// Told whenever a place is free again.
    freed: Notify,
}

/// What a file takes up, until this is dropped.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    places: &'a FilePlaces,
    held: Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    Receiving,
    Parked,
    Nothing,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        match self.held {
            Held::Receiving => self.places.lock().leave(),
            Held::Parked => self.places.lock().leave_parked(),
            Held::Nothing => {}
        }
        self.places.freed.notify_one();
    }
}

impl FilePlaces {
    pub(crate) fn new(count: usize) -> Self {
        Self { state: Mutex::new(tenaz_core::FilePlaces::new(count)), freed: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, tenaz_core::FilePlaces> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a file, if one is free.
    pub(crate) fn take(&self) -> Result<Place<'_>, Problem> {
        let mut state = self.lock();
        match state.enter() {
            true => Ok(Place { places: self, held: Held::Receiving }),
            false => {
                let text = format!("{} files are on their way: send this one later", state.count());
                Err(Problem::new(Code::Busy, text))
            }
        }
    }
}

impl Place<'_> {
    /// The file's work queue is full.
    fn full(&mut self, waits_for_tables: bool) -> FullQueue {
        let decided = self.places.lock().full(waits_for_tables);
        self.held = match decided {
            FullQueue::Keep => return decided,
            FullQueue::Park => Held::Parked,
            FullQueue::SendBack => Held::Nothing,
        };
        self.places.freed.notify_one();
        decided
    }

    /// Gets its place back.
    async fn unpark(&mut self) {
        loop {
            let freed = self.places.freed.notified();
            if self.places.lock().unpark() {
                self.held = Held::Receiving;
                // Another place may be free for another parked file.
                return self.places.freed.notify_one();
            }
            freed.await;
        }
    }
}

/// Holds the place of a file of `table`, and gives it up while the file waits for other tables. `full` tells that a chunk of
/// the file has found its work queue full. Ends only when the file cannot be received any further.
pub(crate) async fn hold_place(app: &App, job: &Job, table: TableId, mut place: Place<'_>, full: &Notify) -> Problem {
    let others = job.planned.topology.waits_for(table);
    let missing = |view: &JobView| -> Vec<TableId> {
        others.iter().copied().filter(|other| !view.facts.is_uploaded([*other])).collect()
    };
    loop {
        full.notified().await;
        let Some(waits_for) = app.book.view(job.id(), missing) else { return gone(job.id()) };
        match place.full(!waits_for.is_empty()) {
            FullQueue::Keep => continue,
            FullQueue::SendBack => return too_many(app, job, table, &waits_for),
            FullQueue::Park => {}
        }
        let complete = |view: &JobView| missing(view).is_empty().then_some(());
        if app.book.wait(job.id(), complete).await.is_none() {
            return gone(job.id());
        }
        place.unpark().await;
    }
}

fn too_many(app: &App, job: &Job, table: TableId, waits_for: &[TableId]) -> Problem {
    let names: Vec<&str> = waits_for.iter().map(|&table| job.planned.table_name(table)).collect();
    let text = format!(
        "table {} waits for {}, and {} files wait already: send {} first, then this file again",
        job.planned.table_name(table),
        names.join(", "),
        app.files.lock().count(),
        names.join(", ")
    );
    Problem::new(Code::Busy, text).with("job", job.id().as_str())
}
