//! Cleaning up: jobs that nobody claims expire; jobs that have ended leave nothing behind.
//!
//! Every process runs one. For each job the member with the highest score acts; should two act, the second finds nothing
//! left to do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_core::{End, JobCard, JobId, RegistryEvent};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Book, Error, JobView, Link, Membership};

/// What only running jobs need is deleted this long after the end. A broker may crash a connection that begins to read a
/// stream just when it is deleted.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// How long things may stay.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A job whose upload is not complete, without a sign of its client.
    pub idle: Duration,
    /// The results of a job that has ended, without a sign of its client.
    pub results: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: Duration::from_secs(600), results: Duration::from_secs(600) }
    }
}

/// Cleans up after jobs.
#[derive(Debug)]
pub struct Janitor {
    link: Link,
    book: Arc<Book>,
    membership: Arc<Membership>,
    patience: Patience,
}

enum Chore {
    Expire(JobId),
    /// The job has ended: what only running jobs need goes at once.
    Trim(JobCard, End),
    /// Nobody wants its results any more.
    Remove(JobCard, End),
}

impl Chore {
    fn job(&self) -> &JobId {
        match self {
            Self::Expire(job) => job,
            Self::Trim(card, _) | Self::Remove(card, _) => &card.id,
        }
    }
}

impl Janitor {
    /// Starts cleaning up.
    pub fn start(link: &Link, book: &Arc<Book>, membership: &Arc<Membership>, patience: Patience) {
        let janitor = Self { link: link.clone(), book: Arc::clone(book), membership: Arc::clone(membership), patience };
        tokio::spawn(janitor.run());
    }

    async fn run(self) {
        let mut trimmed: BTreeSet<JobId> = BTreeSet::new();
        let mut changes = self.book.changes();
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
            let chores = self.chores(&trimmed);
            for chore in chores {
                if let Err(error) = self.act(&chore, &mut trimmed).await {
                    tracing::warn!(job = %chore.job(), %error, "cleaning up did not succeed; it will be tried again");
                }
            }
            let there: BTreeSet<JobId> = self.book.each(|view| view.card.id.clone()).into_iter().collect();
            trimmed.retain(|job| there.contains(job));
        }
    }

    fn chores(&self, trimmed: &BTreeSet<JobId>) -> Vec<Chore> {
        let me = self.membership.me();
        let mine = |job: &JobId| self.membership.everybody(|members| members.chore_owner(me, job)) == me;
        let chores = self.book.each(|view| if mine(&view.card.id) { self.chore(view, trimmed) } else { None });
        chores.into_iter().flatten().collect()
    }

    fn chore(&self, view: &JobView, trimmed: &BTreeSet<JobId>) -> Option<Chore> {
        let now = Instant::now();
        let id = &view.card.id;
        match (&view.end, view.ended) {
            (None, _) | (_, None) => {
                let idle = now.duration_since(view.active) > self.patience.idle;
                (idle && !is_uploaded(view)).then(|| Chore::Expire(id.clone()))
            }
            (Some(end), Some(ended)) => {
                if now.duration_since(ended.max(view.active)) > self.patience.results {
                    Some(Chore::Remove(view.card.clone(), end.clone()))
                } else {
                    // Everybody who reads the job's logs has heard of its end by then.
                    let is_due = now.duration_since(ended) >= TRIM_AFTER && !trimmed.contains(id);
                    is_due.then(|| Chore::Trim(view.card.clone(), end.clone()))
                }
            }
        }
    }

    async fn act(&self, chore: &Chore, trimmed: &mut BTreeSet<JobId>) -> Result<(), Error> {
        match chore {
            Chore::Expire(id) => {
                tracing::info!(job = %id, "the job expires: no client, and its upload is not complete");
                self.book.write(&RegistryEvent::Ended { id: id.clone(), end: End::Expired }).await
            }
            Chore::Trim(card, end) => {
                delete(&self.link, card, end, false).await?;
                trimmed.insert(card.id.clone());
                Ok(())
            }
            Chore::Remove(card, end) => {
                delete(&self.link, card, end, true).await?;
                self.book.write(&RegistryEvent::Removed { id: card.id.clone() }).await
            }
        }
    }
}

async fn delete(link: &Link, card: &JobCard, end: &End, all: bool) -> Result<(), Error> {
    crate::delete_job_objects(link, card, end, all).await
}

/// Whether everything the job needs from its client has arrived.
fn is_uploaded(view: &JobView) -> bool {
    view.spec.is_some() && view.facts.is_uploaded(view.card.tables.iter().copied())
}
