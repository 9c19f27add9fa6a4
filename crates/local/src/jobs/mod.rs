//! Jobs of the embedded engine: asked, watched, stopped, looked into.

mod events;
mod job;
mod kept_answer;
mod question;
mod requests;
mod results;

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use tenaz_runtime::Options;

pub(crate) use events::events;
pub(crate) use job::Job;
pub(crate) use requests::{cancel, check, create, forget, list, state};
pub(crate) use results::{download, rejects, results};

use crate::limits::{KEPT_ANSWERS, KEPT_JOBS, RUNNING_JOBS};

/// All jobs, oldest first.
#[derive(Debug)]
pub(crate) struct Jobs {
    list: Mutex<Vec<Arc<Job>>>,
    options: Options,
    places: Places,
}

impl Jobs {
    pub(crate) fn new(options: Options) -> Self {
        Self { list: Mutex::default(), options, places: Places::default() }
    }

    /// Working threads of a job.
    pub(crate) fn threads(&self) -> usize {
        self.options.threads
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<Job>> {
        self.all().into_iter().find(|job| job.id == id)
    }

    pub(crate) fn all(&self) -> Vec<Arc<Job>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those that have not ended.
    pub(crate) fn running(&self) -> Vec<Arc<Job>> {
        self.all().into_iter().filter(|job| !job.has_ended()).collect()
    }

    pub(crate) fn stop_all(&self) {
        self.running().iter().for_each(|job| job.stop());
    }

    /// Begins a job on a thread of its own. It waits there for its turn.
    fn begin(self: &Arc<Self>, job: Arc<Job>) -> std::io::Result<()> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&job));
        self.forget_old();
        let jobs = Arc::clone(self);
        let thread = std::thread::Builder::new().name(format!("job-{}", job.id));
        let begun = thread.spawn({
            let job = Arc::clone(&job);
            move || {
                let _place = jobs.places.take();
                job.run(&jobs.options);
            }
        });
        begun.map(drop).inspect_err(|error| job.fail(&error.to_string()))
    }

    fn remove(&self, id: &str) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).retain(|job| job.id != id);
    }

    /// The answers of older jobs take memory and disk, and go; what was asked is remembered for longer.
    fn forget_old(&self) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<Arc<Job>> = list.iter().filter(|job| job.has_ended()).cloned().collect();
        ended.iter().rev().skip(KEPT_ANSWERS).for_each(|job| job.drop_answers());
        let surplus = list.len().saturating_sub(KEPT_JOBS);
        let mut dropped = 0;
        list.retain(|job| {
            let goes = dropped < surplus && job.has_ended();
            dropped += usize::from(goes);
            !goes
        });
    }
}

/// Places for jobs that run.
#[derive(Debug, Default)]
struct Places {
    taken: Mutex<usize>,
    freed: Condvar,
}

/// A place that is given back when it is dropped.
struct Place<'a>(&'a Places);

impl Places {
    fn take(&self) -> Place<'_> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken =
            self.freed.wait_while(taken, |taken| *taken >= RUNNING_JOBS).unwrap_or_else(PoisonError::into_inner);
        *taken += 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.freed.notify_one();
    }
}
