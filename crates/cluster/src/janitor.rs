//! Cleaning up: what [`Upkeep`] decides, done on the broker.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tenaz_core::{Chore, End, JobCard, JobId, JobSigns, RegistryEvent, Upkeep, UpkeepPatience};
use tokio::time::{MissedTickBehavior, interval};

use crate::{Book, Error, JobView, Link, Membership};

/// How long things may stay.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A job whose upload is not complete, without a sign of its client and with nothing under way.
    pub idle: Duration,
    /// The results of a job that has ended, without a sign of its client.
    pub results: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { idle: Duration::from_secs(600), results: Duration::from_secs(600) }
    }
}

impl From<Patience> for UpkeepPatience {
    fn from(patience: Patience) -> Self {
        Self { idle_ms: millis(patience.idle), results_ms: millis(patience.results) }
    }
}

/// Cleans up after jobs.
#[derive(Debug)]
pub struct Janitor {
    link: Link,
    book: Arc<Book>,
    membership: Arc<Membership>,
    started: Instant,
}

impl Janitor {
    /// Starts cleaning up.
    pub fn start(link: &Link, book: &Arc<Book>, membership: &Arc<Membership>, patience: Patience) {
        let (book, membership) = (Arc::clone(book), Arc::clone(membership));
        let janitor = Self { link: link.clone(), book, membership, started: Instant::now() };
        tokio::spawn(janitor.run(Upkeep::new(patience.into())));
    }

    async fn run(self, mut upkeep: Upkeep) {
        let mut changes = self.book.changes();
        let mut tick = interval(Duration::from_secs(1));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
            // What is known is getting old, and what was ordered now would be done when it is wrong.
            if self.link.trouble().is_some() {
                continue;
            }
            for chore in upkeep.look(millis(self.started.elapsed()), &self.signs()) {
                match self.act(&chore).await {
                    Ok(()) => {
                        if let Chore::Trim(job) = &chore {
                            upkeep.trimmed(job);
                        }
                    }
                    Err(error) => {
                        tracing::warn!(job = %chore.job(), %error, "cleaning up did not succeed; it will be tried again");
                    }
                }
            }
        }
    }

    fn signs(&self) -> Vec<JobSigns> {
        let (me, due, activity) = (self.membership.me(), self.book.due_mentions(), self.membership.activity());
        self.book.each(|view| {
            let job = &view.card.id;
            let activity = activity.get(job).copied().unwrap_or_default();
            JobSigns {
                job: job.clone(),
                ended: view.end.is_some(),
                uploaded: is_uploaded(view),
                heard_ms: millis(view.active.saturating_duration_since(self.started)),
                under_way: activity.under_way,
                progress: activity.steps,
                mention: due.get(job).copied(),
                turn: self.membership.everybody(|members| members.chore_turn(me, job)),
            }
        })
    }

    async fn act(&self, chore: &Chore) -> Result<(), Error> {
        match chore {
            Chore::Expire(id) => {
                tracing::info!(job = %id, "the job expires: no client, and its upload is not complete");
                self.book.write(&RegistryEvent::Ended { id: id.clone(), end: End::Expired }).await
            }
            Chore::Mention(id) => {
                tracing::debug!(job = %id, "the job is written into the registry again");
                self.book.mention(id).await
            }
            Chore::Trim(id) => match self.ended(id) {
                Some((card, end)) => crate::delete_job_objects(&self.link, &card, &end, false).await,
                None => Ok(()),
            },
            Chore::Remove(id) => match self.ended(id) {
                Some((card, end)) => {
                    crate::delete_job_objects(&self.link, &card, &end, true).await?;
                    self.book.write(&RegistryEvent::Removed { id: id.clone() }).await
                }
                None => Ok(()),
            },
        }
    }

    fn ended(&self, job: &JobId) -> Option<(JobCard, End)> {
        self.book.view(job, |view| Some((view.card.clone(), view.end.clone()?))).flatten()
    }
}

/// Whether everything the job needs from its client has arrived.
fn is_uploaded(view: &JobView) -> bool {
    view.spec.is_some() && view.facts.is_uploaded(view.card.tables.iter().copied())
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
