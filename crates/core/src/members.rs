//! Who is alive, and who does what. Wrong beliefs cost time, never an answer: two owners are harmless.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{BuildId, JobId, MemberId, Partition};

/// What a worker does for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The partitions it owns.
    pub partitions: BTreeSet<Partition>,
    /// Whether it gathers the results.
    pub results: bool,
}

/// What a member says of itself with a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The code that it runs.
    pub build: BuildId,
    /// What it does, per job.
    pub claims: BTreeMap<JobId, Claim>,
    /// Jobs that it cannot serve although it runs their build.
    pub refused: BTreeSet<JobId>,
}

impl Announcement {
    /// Whether the member can work on a job that was planned by `build`.
    fn can_serve(&self, job: &JobId, build: &BuildId) -> bool {
        self.build == *build && !self.refused.contains(job)
    }
}

/// The members that this process believes to be alive.
#[derive(Debug, Clone, Default)]
pub struct Members {
    alive: BTreeMap<MemberId, Known>,
    /// Members that are gone for good: a late heartbeat must not bring them back. With when they went.
    gone: BTreeMap<MemberId, u64>,
}

#[derive(Debug, Clone)]
struct Known {
    heard_ms: u64,
    said: Announcement,
}

impl Members {
    /// A heartbeat. True if the member was not known before.
    pub fn heard(&mut self, member: MemberId, said: Announcement, now_ms: u64) -> bool {
        if self.gone.contains_key(&member) {
            return false;
        }
        self.alive.insert(member, Known { heard_ms: now_ms, said }).is_none()
    }

    /// A member has left, or its queue is gone and so is its connection. True if it was believed alive.
    pub fn left(&mut self, member: MemberId, now_ms: u64) -> bool {
        self.gone.insert(member, now_ms);
        self.alive.remove(&member).is_some()
    }

    /// A member seems to be gone: believed until it speaks again. True if it was believed alive.
    pub fn lost(&mut self, member: MemberId) -> bool {
        self.alive.remove(&member).is_some()
    }

    /// Nobody could be heard for a while, and that was not their fault: all silence up to now is forgiven.
    pub fn forgive(&mut self, now_ms: u64) {
        self.alive.values_mut().for_each(|known| known.heard_ms = now_ms);
    }

    /// Time has passed: members silent for `silence_ms` are believed dead, but a sign of life brings them back. Returns
    /// them.
    pub fn expire(&mut self, now_ms: u64, silence_ms: u64) -> Vec<MemberId> {
        let silent = self.alive.iter().filter(|(_, known)| now_ms.saturating_sub(known.heard_ms) > silence_ms);
        let silent: Vec<MemberId> = silent.map(|(&member, _)| member).collect();
        silent.iter().for_each(|member| {
            self.alive.remove(member);
        });
        self.gone.retain(|_, went_ms| now_ms.saturating_sub(*went_ms) <= silence_ms.saturating_mul(10));
        silent
    }

    /// The members believed alive.
    pub fn alive(&self) -> impl Iterator<Item = MemberId> + '_ {
        self.alive.keys().copied()
    }

    /// Whether a member is believed alive.
    pub fn is_alive(&self, member: MemberId) -> bool {
        self.alive.contains_key(&member)
    }

    /// The members after `me` in a ring of all: whom to look after. At most `count`.
    pub fn successors(&self, me: MemberId, count: usize) -> Vec<MemberId> {
        let after = self.alive.keys().copied().filter(|&member| member > me);
        let before = self.alive.keys().copied().filter(|&member| member < me);
        after.chain(before).take(count).collect()
    }

    /// How many members can work on a job that was planned by `build`.
    pub fn able(&self, job: &JobId, build: &BuildId) -> usize {
        self.alive.values().filter(|known| known.said.can_serve(job, build)).count()
    }

    /// What `me`, which can serve the job, should own of it, given what it owns now.
    ///
    /// Only members that can serve the job are candidates: what another build would make of a partition is none of this
    /// job's business, and a partition that it owned would never get on.
    ///
    /// A partition that somebody alive works on stays there (of several the one with the highest score), because moving it
    /// means reading its log again. A partition without a worker goes to the member with the highest score: rendezvous
    /// hashing, so that everybody comes to the same conclusion and a death moves nothing but the dead member's part.
    pub fn assign(&self, me: MemberId, job: &JobId, build: &BuildId, partitions: u16, mine: &Claim) -> Claim {
        let claims: Vec<(MemberId, Option<&Claim>)> = self
            .alive
            .iter()
            .filter(|(member, known)| **member != me && known.said.can_serve(job, build))
            .map(|(&member, known)| (member, known.said.claims.get(job)))
            .chain(std::iter::once((me, Some(mine))))
            .collect();
        let is_mine = |slot: u32, holds: &dyn Fn(&Claim) -> bool| {
            let claimed = claims.iter().any(|(_, claim)| claim.is_some_and(holds));
            let candidates = claims.iter().filter(|(_, claim)| !claimed || claim.is_some_and(holds));
            candidates.map(|(member, _)| *member).max_by_key(|&member| score(job, slot, member)) == Some(me)
        };
        let owned = (0..partitions).map(Partition).filter(|p| is_mine(u32::from(p.0), &|c| c.partitions.contains(p)));
        Claim { partitions: owned.collect(), results: is_mine(u32::MAX, &|c| c.results) }
    }

    /// How many members come before `me` when a job's chores (expiry, cleaning up) are to be done. Zero: `me` does them. Any
    /// member will do and one suffices, so a wrong belief costs nothing.
    pub fn chore_turn(&self, me: MemberId, job: &JobId) -> usize {
        let slot = u32::MAX - 1;
        let mine = score(job, slot, me);
        self.alive().filter(|&member| member != me && score(job, slot, member) > mine).count()
    }
}

/// The score of a member for a slot of a job: the same in every process and version.
fn score(job: &JobId, slot: u32, member: MemberId) -> (u64, MemberId) {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let bytes = job.as_str().bytes().chain(slot.to_be_bytes()).chain(member.0.to_be_bytes());
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    // FNV alone changes the upper bits too little with the last bytes.
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    (hash, member)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job() -> JobId {
        JobId::from_bytes([7; 8])
    }

    fn claiming(claim: &Claim) -> Announcement {
        Announcement { claims: BTreeMap::from([(job(), claim.clone())]), ..Announcement::default() }
    }

    #[test]
    fn members_that_cannot_serve_a_job_own_nothing_of_it() {
        let (ours, other) = (BuildId::new("ours"), BuildId::new("other"));
        let of = |build: &BuildId| Announcement { build: build.clone(), ..Announcement::default() };
        let mut members = Members::default();
        members.heard(MemberId(1), of(&ours), 0);
        members.heard(MemberId(2), of(&ours), 0);
        members.heard(MemberId(3), of(&other), 0);
        let owned = |members: &Members, me| members.assign(me, &job(), &ours, 64, &Claim::default());
        let all = |members: &Members, owners: &[u64]| {
            let claims: Vec<Claim> = owners.iter().map(|&id| owned(members, MemberId(id))).collect();
            assert_eq!(claims.iter().map(|claim| claim.partitions.len()).sum::<usize>(), 64);
            assert_eq!(claims.iter().filter(|claim| claim.results).count(), 1);
        };
        assert_eq!(members.able(&job(), &ours), 2);
        all(&members, &[1, 2]);
        // A member of the right build makes another plan, and what it claimed before goes to the others.
        let refuses = Announcement { refused: BTreeSet::from([job()]), ..of(&ours) };
        members.heard(MemberId(2), refuses, 1);
        assert_eq!(members.able(&job(), &ours), 1);
        all(&members, &[1]);
        assert_eq!(members.able(&job(), &BuildId::new("none")), 0);
    }

    fn everybody(ids: &[u64]) -> Members {
        let mut members = Members::default();
        ids.iter().for_each(|&id| {
            members.heard(MemberId(id), Announcement::default(), 0);
        });
        members
    }

    #[test]
    fn all_members_together_own_everything_once() {
        let ids: Vec<u64> = (1..=5).collect();
        let members = everybody(&ids);
        let claims: Vec<Claim> = ids
            .iter()
            .map(|&id| members.assign(MemberId(id), &job(), &BuildId::default(), 64, &Claim::default()))
            .collect();
        let owners = |p| claims.iter().filter(|c| c.partitions.contains(&Partition(p))).count();
        assert!((0..64).all(|p| owners(p) == 1));
        assert_eq!(claims.iter().filter(|c| c.results).count(), 1);
        assert!(claims.iter().all(|c| c.partitions.len() > 3), "shared roughly evenly: {claims:?}");
    }

    #[test]
    fn the_chores_of_a_job_have_one_owner_and_an_order_of_deputies() {
        let ids: Vec<u64> = (1..=5).collect();
        let members = everybody(&ids);
        let mut turns: Vec<usize> = ids.iter().map(|&id| members.chore_turn(MemberId(id), &job())).collect();
        turns.sort_unstable();
        assert_eq!(turns, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_newcomer_takes_nothing_that_somebody_works_on_and_a_death_moves_only_the_dead_ones_part() {
        let mut members = everybody(&[1, 2]);
        let first = members.assign(MemberId(1), &job(), &BuildId::default(), 16, &Claim::default());
        let second = members.assign(MemberId(2), &job(), &BuildId::default(), 16, &Claim::default());
        members.heard(MemberId(1), claiming(&first), 1);
        members.heard(MemberId(2), claiming(&second), 1);
        members.heard(MemberId(3), Announcement::default(), 1);
        assert_eq!(members.assign(MemberId(3), &job(), &BuildId::default(), 16, &Claim::default()), Claim::default());
        assert_eq!(members.assign(MemberId(1), &job(), &BuildId::default(), 16, &first), first);
        members.left(MemberId(2), 2);
        let kept = members.assign(MemberId(1), &job(), &BuildId::default(), 16, &first);
        let taken = members.assign(MemberId(3), &job(), &BuildId::default(), 16, &Claim::default());
        assert!(kept.partitions.is_superset(&first.partitions));
        let all: BTreeSet<Partition> = kept.partitions.union(&taken.partitions).copied().collect();
        assert_eq!(all.len(), 16);
        assert_eq!(kept.partitions.len() + taken.partitions.len(), 16);
    }

    #[test]
    fn a_late_heartbeat_does_not_raise_the_dead_but_a_silent_member_may_speak_again() {
        let mut members = everybody(&[1, 2]);
        assert!(members.left(MemberId(1), 5));
        assert!(!members.heard(MemberId(1), Announcement::default(), 6));
        assert!(!members.is_alive(MemberId(1)));
        assert_eq!(members.expire(4_000, 3_000), vec![MemberId(2)]);
        assert!(members.heard(MemberId(2), Announcement::default(), 4_001));
    }

    #[test]
    fn everybody_is_looked_after_by_somebody() {
        let members = everybody(&[1, 2, 3]);
        assert_eq!(members.successors(MemberId(2), 2), vec![MemberId(3), MemberId(1)]);
        assert_eq!(everybody(&[2]).successors(MemberId(2), 2), vec![]);
    }
}
