//! The upkeep of jobs: when a job expires, when what it has on the broker is deleted, when it is written into the registry again.
//!
//! ```text
//!            no sign of life for `idle`, upload incomplete            1 s           no sign of a client for `results`
//!  open job ──────────────────────────────────────────▶ Expire   ended ──▶ Trim ──────────────────────────────▶ Remove
//! ```
//!
//! Every process runs one. For each job the member whose turn it is acts; should two act, the second finds nothing left to do.

use std::collections::BTreeMap;

use crate::limits::{
    CHORE_AGAIN_MS, MENTION_TURN_MS, MENTIONS_PER_SECOND, STOOD_STILL_MS, TRIM_AFTER_MS, URGENT_TURN_MS,
};
use crate::{JobId, MentionUrgency};

/// How long jobs may stay that show no sign of life, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpkeepPatience {
    /// A job whose upload is not complete.
    pub idle_ms: u64,
    /// The results of a job that has ended.
    pub results_ms: u64,
}

/// What a process observes of a job when it looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSigns {
    /// The job.
    pub job: JobId,
    /// Whether it has ended.
    pub ended: bool,
    /// Whether everything that it needs from its client has arrived.
    pub uploaded: bool,
    /// When its control log last said something: receipts of chunks, facts, signs of its client.
    pub heard_ms: u64,
    /// Chunks that were delivered to members and not acknowledged, and tasks that they have begun, as far as they have said.
    pub under_way: u64,
    /// A number that changes when the job advances.
    pub progress: u64,
    /// How soon it is to be written into the registry again ([`Registry::due`](crate::Registry::due)). None: not yet.
    pub mention: Option<MentionUrgency>,
    /// How many members come before this one ([`Members::chore_turn`](crate::Members::chore_turn)).
    pub turn: usize,
}

/// Something to be done about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chore {
    /// No client came back in time: the job ends.
    Expire(JobId),
    /// The job has ended: what only running jobs need is deleted.
    Trim(JobId),
    /// Nobody wants its results any more: everything is deleted.
    Remove(JobId),
    /// The job is written into the registry again.
    Mention(JobId),
}

impl Chore {
    /// The job.
    pub fn job(&self) -> &JobId {
        match self {
            Self::Expire(job) | Self::Trim(job) | Self::Remove(job) | Self::Mention(job) => job,
        }
    }
}

/// What one process does for the upkeep of all jobs.
///
/// The driver calls [`Upkeep::look`] with all jobs at least once a second while it is connected to the broker, does what it says, and tells with
/// [`Upkeep::trimmed`] what has succeeded. Everything else shows in the next look.
#[derive(Debug, Clone)]
pub struct Upkeep {
    patience: UpkeepPatience,
    jobs: BTreeMap<JobId, WatchedJob>,
    mentions: MentionBudget,
    looked_ms: Option<u64>,
}

/// What is remembered of a job.
#[derive(Debug, Clone)]
struct WatchedJob {
    alive_ms: u64,
    progress: u64,
    ended_ms: Option<u64>,
    trimmed: bool,
    /// The last chore that was ordered, other than to mention it, and when.
    ordered: Option<(Chore, u64)>,
    /// Since when it has been due to be mentioned.
    due_ms: Option<u64>,
    /// Since when that has been urgent.
    urgent_ms: Option<u64>,
    mentioned_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default)]
struct MentionBudget {
    second: u64,
    used: u32,
}

impl Upkeep {
    /// Nothing is known yet. Jobs count as alive when they are first seen.
    pub fn new(patience: UpkeepPatience) -> Self {
        Self { patience, jobs: BTreeMap::new(), mentions: MentionBudget::default(), looked_ms: None }
    }

    /// What there is to be done, given these signs of all jobs.
    ///
    /// A process that has not looked for a while was stopped, or cut off from the broker. What it knows is old: jobs may have shown
    /// signs of life that it has not read yet, so all of them count as alive.
    pub fn look(&mut self, now_ms: u64, signs: &[JobSigns]) -> Vec<Chore> {
        let stood_still = self.looked_ms.is_some_and(|looked| now_ms.saturating_sub(looked) > STOOD_STILL_MS);
        self.looked_ms = Some(now_ms);
        if stood_still {
            self.jobs.values_mut().for_each(|job| job.alive_ms = now_ms);
        }
        let mut before = std::mem::take(&mut self.jobs);
        let mut chores = Vec::new();
        for sign in signs {
            let mut job = before.remove(&sign.job).unwrap_or_else(|| WatchedJob::new(now_ms, sign));
            job.observe(now_ms, sign);
            match job.chore(now_ms, sign, &self.patience) {
                Some(chore) => chores.push(chore),
                None if job.is_mentioned_now(now_ms, sign, &mut self.mentions) => {
                    chores.push(Chore::Mention(sign.job.clone()));
                }
                None => {}
            }
            self.jobs.insert(sign.job.clone(), job);
        }
        chores
    }

    /// [`Chore::Trim`] has succeeded.
    pub fn trimmed(&mut self, job: &JobId) {
        if let Some(job) = self.jobs.get_mut(job) {
            job.trimmed = true;
        }
    }
}

impl WatchedJob {
    fn new(now_ms: u64, sign: &JobSigns) -> Self {
        Self {
            alive_ms: now_ms,
            progress: sign.progress,
            ended_ms: None,
            trimmed: false,
            ordered: None,
            due_ms: None,
            urgent_ms: None,
            mentioned_ms: None,
        }
    }

    fn observe(&mut self, now_ms: u64, sign: &JobSigns) {
        self.alive_ms = self.alive_ms.max(sign.heard_ms);
        // A job that is being worked on lives, though its client may have gone and its control log may be silent.
        if !sign.ended && (sign.under_way > 0 || sign.progress != self.progress) {
            self.alive_ms = now_ms;
        }
        self.progress = sign.progress;
        match sign.ended {
            true => drop(self.ended_ms.get_or_insert(now_ms)),
            false => self.ended_ms = None,
        }
        match sign.mention {
            Some(_) => drop(self.due_ms.get_or_insert(now_ms)),
            None => (self.due_ms, self.mentioned_ms) = (None, None),
        }
        match sign.mention {
            Some(MentionUrgency::Urgent) => drop(self.urgent_ms.get_or_insert(now_ms)),
            _ => self.urgent_ms = None,
        }
    }

    fn chore(&mut self, now_ms: u64, sign: &JobSigns, patience: &UpkeepPatience) -> Option<Chore> {
        let since = |then_ms: u64| now_ms.saturating_sub(then_ms);
        let job = sign.job.clone();
        let chore = match self.ended_ms {
            None => (since(self.alive_ms) > patience.idle_ms && !sign.uploaded).then_some(Chore::Expire(job)),
            Some(ended) if since(ended.max(self.alive_ms)) > patience.results_ms => Some(Chore::Remove(job)),
            Some(ended) => (since(ended) >= TRIM_AFTER_MS && !self.trimmed).then_some(Chore::Trim(job)),
        };
        let chore = chore.filter(|_| sign.turn == 0)?;
        if matches!(&self.ordered, Some((ordered, at)) if *ordered == chore && since(*at) < CHORE_AGAIN_MS) {
            return None;
        }
        self.ordered = Some((chore.clone(), now_ms));
        Some(chore)
    }

    /// The first member writes it at once, each other one only when all before it have had their time, which is shorter when it
    /// is urgent. What was written and has not been read yet is not written again for a while.
    fn is_mentioned_now(&mut self, now_ms: u64, sign: &JobSigns, budget: &mut MentionBudget) -> bool {
        let Some(due_ms) = self.due_ms else { return false };
        let after_turns =
            |since_ms: u64, turn_ms: u64| since_ms.saturating_add((sign.turn as u64).saturating_mul(turn_ms));
        let urgent_ms = self.urgent_ms.map_or(u64::MAX, |urgent_ms| after_turns(urgent_ms, URGENT_TURN_MS));
        let turn_ms = after_turns(due_ms, MENTION_TURN_MS).min(urgent_ms);
        let is_written = self.mentioned_ms.is_some_and(|at| now_ms.saturating_sub(at) < MENTION_TURN_MS);
        if now_ms < turn_ms || is_written || !budget.take(now_ms) {
            return false;
        }
        self.mentioned_ms = Some(now_ms);
        true
    }
}

impl MentionBudget {
    fn take(&mut self, now_ms: u64) -> bool {
        let second = now_ms / 1000;
        if self.second != second {
            *self = Self { second, used: 0 };
        }
        self.used += 1;
        self.used <= MENTIONS_PER_SECOND
    }
}
