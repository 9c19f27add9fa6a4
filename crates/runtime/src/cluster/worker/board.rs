//! What the worker says of itself with each heartbeat.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenaz_cluster::{Beat, JobProgress};
use tenaz_core::{BoundedText, Claim, JobId};

#[derive(Debug, Default)]
struct Said {
    claims: BTreeMap<JobId, Claim>,
    progress: BTreeMap<JobId, JobProgress>,
    refused: BTreeMap<JobId, BoundedText>,
    under_way: BTreeMap<JobId, u64>,
}

/// Claims, progress and work under way of all jobs.
#[derive(Debug, Default)]
pub(super) struct Board {
    said: Mutex<Said>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn fill(&self, beat: &mut Beat) {
        let said = self.lock();
        beat.claims.clone_from(&said.claims);
        beat.progress.clone_from(&said.progress);
        beat.refused.clone_from(&said.refused);
        beat.under_way.clone_from(&said.under_way);
    }

    pub(super) fn claim(&self, job: &JobId, claim: Claim) {
        let mut said = self.lock();
        if !claim.results {
            said.progress.remove(job);
        }
        said.claims.insert(job.clone(), claim);
    }

    pub(super) fn progress(&self, job: &JobId, add: impl FnOnce(&mut JobProgress)) {
        add(self.lock().progress.entry(job.clone()).or_default());
    }

    /// This worker cannot serve the job, though it runs its build, for this reason.
    pub(super) fn refuse(&self, job: &JobId, reason: BoundedText) {
        self.lock().refused.insert(job.clone(), reason);
    }

    pub(super) fn under_way(&self, job: &JobId, count: u64) {
        self.lock().under_way.insert(job.clone(), count);
    }

    pub(super) fn forget(&self, job: &JobId) {
        let mut said = self.lock();
        said.refused.remove(job);
        said.claims.remove(job);
        said.progress.remove(job);
        said.under_way.remove(job);
    }
}
