//! A job that this worker cannot serve: planned by another build, planned differently here, or too much for this process.
//!
//! It owns nothing of the job, because others do not count it as a candidate. If there is nobody else, somebody must say
//! so, or the job would wait for ever: the workers that see it and cannot help do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_cluster::Control;
use tenaz_core::{Classified, FaultClass, JobCard, UnservedAction, UnservedJob};
use tokio::task::JoinSet;

use super::Shop;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why this worker cannot serve a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unable {
    /// Its card names another build.
    OtherBuild,
    /// The plan made here is not the one that its card names.
    OtherPlan,
    /// This process could not do its work, for this reason.
    StandsBack(String),
}

impl Classified for Unable {
    fn class(&self) -> FaultClass {
        match self {
            // Other workers can serve the job, or these when there is room again.
            Self::OtherBuild | Self::StandsBack(_) => FaultClass::Process,
            Self::OtherPlan => FaultClass::Bug,
        }
    }
}

/// Looks on until the job has ended, or for so long, and ends the job if no worker that can serve it comes.
pub(super) async fn look_on(shop: &Arc<Shop>, card: &JobCard, why: &Unable, at_most: Option<Duration>) {
    tracing::warn!(job = %card.id, build = %card.build, own = %shop.build, ?why, "the job cannot be served here");
    if *why != Unable::OtherBuild {
        shop.board.refuse(&card.id, reason(shop, card, why).into());
        shop.membership.beat_now();
    }
    let (mut unserved, started) = (UnservedJob::default(), Instant::now());
    let now_ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let Some(mut changes) = shop.book.changes_of(&card.id) else { return };
    let mut look = tokio::time::interval(LOOK_EVERY);
    // Ends with this look: nobody waits for the answer any more.
    let mut asking = JoinSet::new();
    let is_long_enough = || at_most.is_some_and(|at_most| started.elapsed() >= at_most);
    while !is_long_enough() && shop.book.view(&card.id, |view| view.end.is_none()).unwrap_or(false) {
        tokio::select! {
            () = shop.stop.cancelled() => break,
            changed = changes.changed() => if changed.is_err() { break },
            Some(answer) = asking.join_next() => match answer {
                Ok(Ok(())) => unserved.answered(now_ms()),
                wrong => tracing::warn!(job = %card.id, ?wrong, "a control log cannot be marked"),
            },
            _ = look.tick() => {
                let able = shop.membership.workers(|workers| workers.able(&card.id, &card.build));
                match unserved.look(able, now_ms()) {
                    Some(UnservedAction::AskBroker) => {
                        let (shop, job) = (Arc::clone(shop), card.id.clone());
                        asking.spawn(async move { shop.book.tell(&job, &Control::Mark(0)).await });
                    }
                    Some(UnservedAction::GiveUp) => {
                        super::act::fail(shop, &card.id, "unserved", why.class(), reason(shop, card, why));
                        break;
                    }
                    None => {}
                }
            }
        }
    }
    shop.board.forget(&card.id);
}

fn reason(shop: &Shop, card: &JobCard, why: &Unable) -> String {
    match why {
        Unable::OtherBuild => format!(
            "no worker of the job's build ({}) is alive, and those that are run another one ({}): start workers of the \
             build that the job's gateway runs, or submit the job to a gateway of theirs",
            card.build, shop.build
        ),
        Unable::OtherPlan => format!(
            "the workers plan this job differently from its gateway, though all run build {}: this is a fault in tenaz",
            card.build
        ),
        Unable::StandsBack(reason) => {
            format!("no worker can do the job's work; what stands in the way of the last one: {reason}")
        }
    }
}
