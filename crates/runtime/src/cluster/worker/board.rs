//! What the worker says of itself with each heartbeat.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tenaz_cluster::{Beat, JobProgress};
use tenaz_core::{Claim, JobId};

#[derive(Debug, Default)]
struct Said {
    claims: BTreeMap<JobId, Claim>,
    progress: BTreeMap<JobId, JobProgress>,
}

/// Claims and progress of all jobs.
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

    pub(super) fn forget(&self, job: &JobId) {
        let mut said = self.lock();
        said.claims.remove(job);
        said.progress.remove(job);
    }
}
