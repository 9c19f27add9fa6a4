//! The actors of a worker's open jobs: one each, started again if it panics or has stood back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tenaz_core::{FaultClass, JobCard, JobId};
use tokio::task::{Id, JoinError, JoinSet};

use super::Shop;
use super::actor::{JobActor, Joined, Parting};
use super::unserved::{StandBack, Unable, look_on};
use crate::limits::{MAX_ACTOR_PANICS, STAND_BACK};

/// One actor per open job.
#[derive(Default)]
pub(super) struct Actors {
    running: JoinSet<Parting>,
    /// Which job a running actor works on.
    jobs: BTreeMap<JobId, ActorLife>,
    ids: BTreeMap<Id, JobId>,
}

/// What is known of the actors of one job.
struct ActorLife {
    card: JobCard,
    /// How often an actor of this job was begun.
    lives: u32,
    /// How often one has panicked.
    panics: u32,
}

impl Actors {
    /// Starts the actor of a job, unless it has had one.
    pub(super) fn begin(&mut self, shop: &Arc<Shop>, card: JobCard, joined: Joined) {
        if !self.jobs.contains_key(&card.id) {
            let (job, life) = (card.id.clone(), ActorLife { card, lives: 0, panics: 0 });
            self.jobs.insert(job.clone(), life);
            self.spawn(shop, &job, joined, None);
        }
    }

    /// Forgets jobs that are not among these.
    pub(super) fn forget_others(&mut self, there: &BTreeSet<JobId>) {
        let running: BTreeSet<&JobId> = self.ids.values().collect();
        self.jobs.retain(|job, _| there.contains(job) || running.contains(job));
    }

    /// Starts an actor, after it has stood back for a while if there is a reason. It has a pulse of its own: one that blocks
    /// its thread is seen, however well the others work.
    fn spawn(&mut self, shop: &Arc<Shop>, job: &JobId, joined: Joined, stood_back: Option<StandBack>) {
        let Some(life) = self.jobs.get_mut(job) else { return };
        let (card, number) = (life.card.clone(), life.lives);
        life.lives += 1;
        let (shop, pulse) = (Arc::clone(shop), shop.vitals.pulse());
        let handle = self.running.spawn(async move {
            let work = async move {
                let mut given_up = BTreeSet::new();
                if let Some(back) = stood_back {
                    given_up.clone_from(&back.given_up);
                    let unable = Unable::StandsBack(back);
                    given_up.extend(look_on(&shop, &card, &unable, Some(STAND_BACK)).await);
                }
                JobActor::run(shop, card, joined, number, given_up).await
            };
            pulse.during(work).await
        });
        self.ids.insert(handle.id(), job.clone());
    }

    /// Waits until an actor ends. One that has panicked is started again: what it knew, the logs know, too. A job whose
    /// actors panic again and again fails. One that has stood back looks on for a while before it tries again. Never returns
    /// while none is running.
    pub(super) async fn mind(&mut self, shop: &Arc<Shop>) {
        let Some(ended) = self.running.join_next_with_id().await else { return std::future::pending().await };
        let (id, ended) = match ended {
            Ok((id, parting)) => (id, Ok(parting)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(job) = self.ids.remove(&id) else { return };
        match ended {
            Ok(Parting::Over) => {}
            Ok(Parting::StoodBack(reason)) => self.spawn(shop, &job, Joined::UnderWay, Some(reason)),
            Err(error) if error.is_panic() => self.revive(shop, &job, &error),
            Err(_) => {}
        }
    }

    fn revive(&mut self, shop: &Arc<Shop>, job: &JobId, panic: &JoinError) {
        let Some(life) = self.jobs.get_mut(job) else { return };
        life.panics += 1;
        tracing::error!(%job, %panic, panics = life.panics, "a job's actor has panicked");
        if life.panics > MAX_ACTOR_PANICS {
            let text =
                format!("a worker's part in the job crashed {} times: {panic}; this is a fault in tenaz", life.panics);
            return super::act::fail(shop, job, "crashed", FaultClass::Bug, text);
        }
        self.spawn(shop, job, Joined::UnderWay, None);
    }

    /// Waits for all of them.
    pub(super) async fn finish(mut self) {
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a job's actor ended badly");
            }
        }
    }
}
