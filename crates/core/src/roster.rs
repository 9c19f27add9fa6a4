//! The members as one process hears of them: who is alive, what they have under way, and whose silence counts.

use std::collections::BTreeMap;

use crate::{Announcement, JobId, MemberId, Members};

/// A heartbeat, as far as it decides something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifeSign {
    /// The member that sends it.
    pub member: MemberId,
    /// Whether that is a worker.
    pub is_worker: bool,
    /// What it does.
    pub said: Announcement,
    /// Chunks that were delivered to it and not acknowledged, and tasks that it has begun, per job.
    pub under_way: BTreeMap<JobId, u64>,
    /// Whether it is about to go.
    pub leaving: bool,
    /// A member that it has found gone.
    pub gone: Option<MemberId>,
}

/// The members that one process believes to be alive, with whatever else (`S`) it keeps of their last heartbeats.
#[derive(Debug, Clone)]
pub struct Roster<S> {
    me: MemberId,
    everybody: Members,
    workers: Members,
    heard: BTreeMap<MemberId, Heard<S>>,
    /// When silence was last looked at.
    looked_ms: u64,
}

#[derive(Debug, Clone)]
struct Heard<S> {
    said: Announcement,
    under_way: BTreeMap<JobId, u64>,
    kept: S,
}

impl<S> Roster<S> {
    /// Nobody is known yet.
    pub fn new(me: MemberId) -> Self {
        Self { me, everybody: Members::default(), workers: Members::default(), heard: BTreeMap::new(), looked_ms: 0 }
    }

    /// All members.
    pub fn everybody(&self) -> &Members {
        &self.everybody
    }

    /// The workers among them.
    pub fn workers(&self) -> &Members {
        &self.workers
    }

    /// What is kept of the last heartbeats of members believed alive.
    pub fn kept(&self) -> impl Iterator<Item = &S> {
        self.heard.values().map(|heard| &heard.kept)
    }

    /// What members believed alive have under way for a job.
    pub fn under_way(&self, job: &JobId) -> u64 {
        let counts = self.heard.values().filter_map(|heard| heard.under_way.get(job));
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// A heartbeat has come. True if somebody came or went, or does something else than before.
    pub fn heard(&mut self, sign: LifeSign, kept: S, now_ms: u64) -> bool {
        let LifeSign { member, is_worker, said, under_way, leaving, gone } = sign;
        if member == self.me {
            return false;
        }
        let mut is_news = gone.is_some_and(|gone| gone != self.me && self.lost(gone));
        if leaving {
            is_news |= self.everybody.left(member, now_ms);
            self.workers.left(member, now_ms);
            self.heard.remove(&member);
            return is_news;
        }
        is_news |= self.everybody.heard(member, Announcement::default(), now_ms);
        is_news |= !self.heard.get(&member).is_some_and(|heard| heard.said == said);
        if is_worker {
            self.workers.heard(member, said.clone(), now_ms);
        }
        if self.everybody.is_alive(member) {
            self.heard.insert(member, Heard { said, under_way, kept });
        }
        is_news
    }

    /// A member seems to be gone: believed until it speaks again. True if it was believed alive.
    pub fn lost(&mut self, member: MemberId) -> bool {
        self.workers.lost(member);
        self.heard.remove(&member);
        self.everybody.lost(member)
    }

    /// Time has passed: members silent for `silence_ms` are believed dead, until they speak again. Returns them.
    ///
    /// To be called at least every quarter of `silence_ms`: if this process itself stood still (stopped, or held by the
    /// broker), it could not hear anybody, and nobody's silence counts.
    pub fn expire(&mut self, now_ms: u64, silence_ms: u64) -> Vec<MemberId> {
        let stood_still = now_ms.saturating_sub(self.looked_ms) > silence_ms / 2;
        self.looked_ms = now_ms;
        if stood_still {
            self.forgive(now_ms);
            return Vec::new();
        }
        let silent = self.everybody.expire(now_ms, silence_ms);
        self.workers.expire(now_ms, silence_ms);
        silent.iter().for_each(|member| drop(self.heard.remove(member)));
        silent
    }

    /// Nobody could be heard for a while, and that was not their fault.
    pub fn forgive(&mut self, now_ms: u64) {
        self.everybody.forgive(now_ms);
        self.workers.forgive(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(member: u64) -> LifeSign {
        LifeSign {
            member: MemberId(member),
            is_worker: member < 10,
            said: Announcement::default(),
            under_way: BTreeMap::from([(JobId::from_bytes([1; 8]), 2)]),
            leaving: false,
            gone: None,
        }
    }

    fn roster() -> Roster<()> {
        let mut roster = Roster::new(MemberId(1));
        assert!(roster.heard(sign(2), (), 0) && roster.heard(sign(3), (), 0) && roster.heard(sign(10), (), 0));
        assert!(!roster.heard(sign(3), (), 1), "it says what it said before");
        assert!(!roster.heard(sign(1), (), 1), "its own voice");
        roster
    }

    #[test]
    fn what_is_under_way_goes_with_its_member() {
        let (mut roster, job) = (roster(), JobId::from_bytes([1; 8]));
        assert_eq!((roster.under_way(&job), roster.workers().alive().count()), (6, 2));
        assert!(roster.heard(LifeSign { leaving: true, ..sign(2) }, (), 2));
        assert!(roster.heard(LifeSign { gone: Some(MemberId(3)), ..sign(10) }, (), 2));
        assert_eq!((roster.under_way(&job), roster.workers().alive().count()), (2, 0));
        assert!(roster.heard(sign(3), (), 3) && !roster.everybody().is_alive(MemberId(2)));
        roster.heard(sign(2), (), 3);
        assert_eq!(roster.under_way(&job), 4, "who left does not come back, who seemed lost does");
    }

    #[test]
    fn nobodys_silence_counts_where_this_process_stood_still() {
        let mut roster = roster();
        assert_eq!(roster.expire(100, 100), [], "it looks for the first time");
        assert_eq!(roster.expire(150, 100), []);
        assert_eq!(roster.expire(190, 100), []);
        roster.heard(sign(3), (), 200);
        assert_eq!(roster.expire(201, 100), [MemberId(2), MemberId(10)]);
    }
}
