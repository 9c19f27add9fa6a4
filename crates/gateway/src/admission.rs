//! Whether the cluster can take another job.

use tenaz_cluster::limits::RESERVED_CHANNELS;
use tenaz_cluster::{JobView, channels_of};
use tenaz_core::JobCard;
use tokio::time::timeout;

use crate::app::{App, broker_away};
use crate::auth::Tenant;
use crate::problem::{Code, Problem};

/// The control log of a job that has ended is read until the job is removed.
const CHANNELS_OF_ENDED: usize = 1;

/// Refuses a job that could not be worked on, with the reason.
pub(crate) async fn admit(app: &App, tenant: &Tenant, data_bytes: u64, partitions: u16) -> Result<(), Problem> {
    if usize::from(partitions) > app.limits.partitions {
        let text = format!(
            "{partitions} partitions are more than the limit partitions of {} per job: ask for fewer",
            app.limits.partitions
        );
        return Err(Problem::new(Code::TooLarge, text));
    }
    if data_bytes > app.limits.data_bytes {
        let text = format!(
            "{data_bytes} bytes are more than the limit data-bytes of {} per job: send less at a time",
            app.limits.data_bytes
        );
        return Err(Problem::new(Code::TooLarge, text));
    }
    check_counts(app, tenant)?;
    if timeout(app.limits.broker_wait, app.link.session()).await.is_err() {
        return Err(broker_away(&app.link.trouble().unwrap_or_else(|| "the broker does not answer".to_owned())));
    }
    if app.link.is_blocked() {
        let text = "the broker takes no more messages until memory or disk is freed: new jobs must wait";
        return Err(Problem::new(Code::BrokerAlarm, text));
    }
    if timeout(app.limits.worker_wait, a_worker(app)).await.is_err() {
        return Err(Problem::new(Code::NoWorkers, "no worker is alive: start one with tenaz worker --broker URL"));
    }
    Ok(())
}

/// Refuses a job whose logs a single surviving worker could not read beside those of the other jobs, with the reason. Such a
/// job, or another one, would wait for a channel until the others have ended.
pub(crate) async fn admit_channels(app: &App, card: &JobCard) -> Result<(), Problem> {
    let session = app.within(app.link.session()).await?;
    let limit = session.reading.max_channels().saturating_sub(RESERVED_CHANNELS);
    let used = app.book.each(|view| if view.end.is_none() { channels_of(&view.card) } else { CHANNELS_OF_ENDED });
    check_channels(channels_of(card), used.into_iter().sum(), limit)
}

fn check_channels(needed: usize, used: usize, limit: usize) -> Result<(), Problem> {
    if needed > limit {
        let text = format!(
            "the job needs {needed} channels of the broker, and a worker can have {limit}: use fewer partitions, or raise \
             channel_max in rabbitmq.conf"
        );
        return Err(Problem::new(Code::TooLarge, text));
    }
    if used + needed > limit {
        let text = format!(
            "the job needs {needed} channels of the broker, other jobs use {used}, and a worker can have {limit}: try again \
             when some have ended, use fewer partitions, or raise channel_max in rabbitmq.conf"
        );
        return Err(Problem::new(Code::TooManyJobs, text));
    }
    Ok(())
}

async fn a_worker(app: &App) {
    let mut changes = app.membership.changes();
    while app.membership.worker_count() == 0 {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn check_counts(app: &App, tenant: &Tenant) -> Result<(), Problem> {
    let is_mine = |view: &JobView| (view.end.is_none(), tenant.owns(&view.card));
    let jobs = app.book.each(is_mine);
    let open = jobs.iter().filter(|(open, _)| *open).count();
    let mine = jobs.iter().filter(|(open, mine)| *open && *mine).count();
    let limits = &app.limits;
    let full = |what: String| Err(Problem::new(Code::TooManyJobs, what));
    if mine >= limits.open_jobs_per_tenant {
        return full(format!(
            "{mine} jobs of yours are open, and the limit open-jobs-per-tenant is {}: finish or cancel one",
            limits.open_jobs_per_tenant
        ));
    }
    if open >= limits.open_jobs {
        return full(format!(
            "{open} jobs of all tenants are open, and the limit open-jobs is {}: try again later",
            limits.open_jobs
        ));
    }
    let kept = jobs.iter().filter(|(_, mine)| *mine).count();
    if kept >= limits.jobs_per_tenant {
        return full(format!(
            "{kept} jobs of yours are kept, and the limit jobs-per-tenant is {}: delete some that have ended",
            limits.jobs_per_tenant
        ));
    }
    if jobs.len() >= limits.jobs {
        return full(format!(
            "{} jobs of all tenants are kept, and the limit jobs is {}: delete some that have ended",
            jobs.len(),
            limits.jobs
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_refused_that_no_worker_could_read() {
        assert!(check_channels(100, 900, 1000).is_ok());
        let later = check_channels(101, 900, 1000).expect_err("no room now");
        assert_eq!(later.code(), Code::TooManyJobs);
        assert!(later.detail().contains("101") && later.detail().contains("900"), "{}", later.detail());
        assert_eq!(check_channels(1001, 0, 1000).expect_err("never").code(), Code::TooLarge);
    }
}
