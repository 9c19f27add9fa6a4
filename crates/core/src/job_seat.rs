//! A worker's seat in a job: what it owns of it, and whether the job's silence means something.

use crate::{BuildId, Claim, JobCard, JobId, MemberId, Members, StallSigns, StallVerdict, StallWatch};

/// What one worker owns of one job, and how long it has heard nothing of it.
///
/// The shell calls [`assign`](Self::assign) whenever it knows something new of the workers, [`heard`](Self::heard) whenever
/// something arrives for the job, and [`judge`](Self::judge) every now and then while [`is_due`](Self::is_due).
#[derive(Debug, Clone)]
pub struct JobSeat {
    me: MemberId,
    job: JobId,
    build: BuildId,
    partitions: u16,
    claim: Claim,
    watch: StallWatch,
    is_left: bool,
}

impl JobSeat {
    /// A worker that owns nothing of the job yet.
    pub fn new(me: MemberId, card: &JobCard, now_ms: u64) -> Self {
        Self {
            me,
            job: card.id.clone(),
            build: card.build.clone(),
            partitions: card.partitions,
            claim: Claim::default(),
            watch: StallWatch::new(now_ms),
            is_left: false,
        }
    }

    /// What the worker owns now.
    pub fn claim(&self) -> &Claim {
        &self.claim
    }

    /// What the worker owns from now on, given who is alive, if that has changed. What was just acquired has not been read yet:
    /// nothing of it may be called lost.
    pub fn assign(&mut self, workers: &Members, now_ms: u64) -> Option<Claim> {
        if self.is_left {
            return None;
        }
        let claim = workers.assign(self.me, &self.job, &self.build, self.partitions, &self.claim);
        if claim == self.claim {
            return None;
        }
        self.heard(now_ms);
        self.claim.clone_from(&claim);
        Some(claim)
    }

    /// The worker leaves the job to others: it owns nothing from now on, and what it had goes to them.
    pub fn leave(&mut self) {
        self.is_left = true;
        self.claim = Claim::default();
    }

    /// Something has arrived, or the connection is new: nothing needs to be suspected for a while.
    pub fn heard(&mut self, now_ms: u64) {
        self.watch.heard(now_ms);
    }

    /// Whether nothing has arrived for so long that the signs are worth a look.
    pub fn is_due(&self, now_ms: u64) -> bool {
        !self.is_left && self.watch.is_due(now_ms)
    }

    /// For how long nothing may arrive.
    pub fn patience_ms(&self) -> u64 {
        self.watch.patience_ms()
    }

    /// What the signs mean.
    pub fn judge(&mut self, signs: &StallSigns, now_ms: u64) -> StallVerdict {
        self.watch.judge(signs, now_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Announcement;
    use crate::limits::STALL_MS;

    fn card() -> JobCard {
        JobCard {
            id: JobId::from_bytes([1; 8]),
            tenant: String::new(),
            workload: String::new(),
            partitions: 8,
            waves: 1,
            tables: Default::default(),
            spec_digest: String::new(),
            build: BuildId::default(),
            plan_digest: String::new(),
            created_ms: 0,
        }
    }

    #[test]
    fn what_was_just_acquired_is_not_missed_at_once() {
        let mut seat = JobSeat::new(MemberId(1), &card(), 0);
        let mut workers = Members::default();
        workers.heard(MemberId(2), Announcement::default(), 0);
        let first = seat.assign(&workers, 0).expect("a part of it");
        assert!(first.partitions.len() < 8);
        assert_eq!(seat.assign(&workers, 5), None, "nothing has changed");
        workers.left(MemberId(2), STALL_MS);
        assert!(seat.is_due(STALL_MS));
        assert_eq!(seat.assign(&workers, STALL_MS).map(|claim| claim.partitions.len()), Some(8));
        assert!(!seat.is_due(STALL_MS));
    }

    #[test]
    fn whoever_leaves_owns_and_suspects_nothing() {
        let mut seat = JobSeat::new(MemberId(1), &card(), 0);
        seat.assign(&Members::default(), 0).expect("all of it");
        seat.leave();
        assert_eq!(seat.assign(&Members::default(), 1), None);
        assert_eq!(seat.claim(), &Claim::default());
        assert!(!seat.is_due(10 * STALL_MS));
    }
}
