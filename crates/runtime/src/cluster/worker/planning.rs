//! Planning a job: written down before it is begun, so that a plan that kills is not planned again by every worker that comes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenaz_cluster::{Control, JobSpec};
use tenaz_core::limits::MAX_PLAN_ATTEMPTS;
use tenaz_core::{Classified, Fact, FaultClass, JobCard, StageId};

use super::Shop;
use super::engine::ClusterEngine;
use super::unserved::StandBack;
use crate::limits::{PLAN_LISTEN, PLAN_NOTE};

/// What became of the plan.
pub(super) enum Planning {
    /// It is there.
    Done(Arc<ClusterEngine>),
    /// This process cannot plan it, for this reason.
    StandsBack(StandBack),
    /// The job has failed, or nobody wants it any more.
    Over,
}

/// Plans the job; for the stages in `given_up` no worker has enough memory. Fails the job if too many have died of planning it.
pub(super) async fn plan(
    shop: &Arc<Shop>,
    card: &JobCard,
    spec: Arc<JobSpec>,
    given_up: BTreeSet<StageId>,
) -> Planning {
    if is_deadly(shop, card).await {
        let text = format!(
            "planning the job has killed {MAX_PLAN_ATTEMPTS} workers, one after the other: make its questions smaller, or submit them one \
             by one to find the one that kills"
        );
        super::act::fail(shop, &card.id, "plan_kills", FaultClass::Query, text);
        return Planning::Over;
    }
    let by = shop.membership.me();
    if !is_noted(shop, card, Fact::PlanBegun { by }).await {
        let reason = "it could not be written down that the job is going to be planned".to_owned();
        return Planning::StandsBack(StandBack { reason, short_of_memory: None, given_up });
    }
    let planned = {
        let (shop, id, given_up) = (Arc::clone(shop), card.id.clone(), given_up.clone());
        tokio::task::spawn_blocking(move || ClusterEngine::plan(&id, &spec, &shop, given_up)).await
    };
    // A note that gets lost makes one of the dead of a worker that leaves later: five of them are needed.
    let ended = is_noted(shop, card, Fact::PlanEnded { by }).await;
    tracing::debug!(job = %card.id, ended, "the job is planned");
    match planned {
        Ok(Ok(engine)) => Planning::Done(Arc::new(engine)),
        Ok(Err(error)) if error.class() == FaultClass::Process => {
            Planning::StandsBack(StandBack::new(&error, given_up))
        }
        Ok(Err(error)) => {
            super::act::fail(shop, &card.id, "plan", error.class(), error.to_string());
            Planning::Over
        }
        Err(panic) => {
            let text = format!("planning crashed: {panic}");
            super::act::fail(shop, &card.id, "crashed", FaultClass::Bug, text);
            Planning::Over
        }
    }
}

/// Whether too many have begun to plan the job and are gone. Those whose heartbeats this process has not heard yet are waited for.
async fn is_deadly(shop: &Shop, card: &JobCard) -> bool {
    let too_many = || {
        let lost = |view: &tenaz_cluster::JobView| {
            shop.membership.everybody(|members| view.facts.planners_lost(|member| members.is_alive(member)))
        };
        shop.book.view(&card.id, lost).unwrap_or_default() >= MAX_PLAN_ATTEMPTS
    };
    if !too_many() {
        return false;
    }
    tokio::time::sleep(PLAN_LISTEN).await;
    too_many()
}

/// Writes a fact down, and waits until it is confirmed.
async fn is_noted(shop: &Shop, card: &JobCard, fact: Fact) -> bool {
    let note = Control::Fact(fact);
    let deadline = tokio::time::Instant::now() + PLAN_NOTE;
    loop {
        match tokio::time::timeout_at(deadline, shop.book.tell(&card.id, &note)).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) if error.class() == FaultClass::Broker && tokio::time::Instant::now() < deadline => {
                tracing::debug!(%error, "a note is written again");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            _ => return false,
        }
    }
}
