//! A job that this worker cannot serve: planned by another build, planned differently here, or too much for this process.
//!
//! It owns nothing of the job, because others do not count it as a candidate. If there is nobody else, somebody must say
//! so, or the job would wait for ever: the workers that see it and cannot help do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_cluster::Control;
use tenaz_core::{Classified, FaultClass, JobCard, StageId, UnservedAction, UnservedJob};
use tokio::task::JoinSet;

use super::Shop;
use crate::Error;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Why this worker cannot serve a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unable {
    /// Its card names another build.
    OtherBuild,
    /// The plan made here is not the one that its card names.
    OtherPlan,
    /// This process could not do its work.
    StandsBack(StandBack),
}

/// Why a process could not do a job's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StandBack {
    pub(super) reason: String,
    /// The stage that needs more memory than there is.
    pub(super) short_of_memory: Option<StageId>,
    /// Stages for which no worker has had enough of it before.
    pub(super) given_up: BTreeSet<StageId>,
}

impl StandBack {
    pub(super) fn new(error: &Error, given_up: BTreeSet<StageId>) -> Self {
        let short_of_memory = match error {
            Error::TooLittleMemory { stage, .. } => Some(*stage),
            _ => None,
        };
        Self { reason: error.to_string(), short_of_memory, given_up }
    }
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

/// Looks on until the job has ended, or for so long, and ends the job if no worker that can serve it comes. If that is because of
/// the memory that one stage needs, it is not the job that has to be given up but the questions behind the stage, which is
/// returned: this worker may go on without them.
pub(super) async fn look_on(
    shop: &Arc<Shop>,
    card: &JobCard,
    why: &Unable,
    at_most: Option<Duration>,
) -> Option<StageId> {
    tracing::warn!(job = %card.id, build = %card.build, own = %shop.build, ?why, "the job cannot be served here");
    if *why != Unable::OtherBuild {
        shop.board.refuse(&card.id, reason(shop, card, why).into());
        shop.membership.beat_now();
    }
    let (mut unserved, started) = (UnservedJob::default(), Instant::now());
    let now_ms = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let mut changes = shop.book.changes_of(&card.id)?;
    let mut given_up = None;
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
                        given_up = why.short_of_memory();
                        if let Some(stage) = given_up {
                            tracing::warn!(job = %card.id, stage = stage.0, "no worker has memory for a stage: its questions fail");
                            break;
                        }
                        super::act::fail(shop, &card.id, "unserved", why.class(), reason(shop, card, why));
                        break;
                    }
                    None => {}
                }
            }
        }
    }
    shop.board.forget(&card.id);
    given_up
}

impl Unable {
    fn short_of_memory(&self) -> Option<StageId> {
        match self {
            Self::StandsBack(back) => back.short_of_memory,
            Self::OtherBuild | Self::OtherPlan => None,
        }
    }
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
        Unable::StandsBack(StandBack { reason, .. }) => {
            format!("no worker can do the job's work; what stands in the way of the last one: {reason}")
        }
    }
}
