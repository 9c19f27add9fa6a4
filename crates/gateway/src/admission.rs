//! Whether the cluster can take another job.

use tenaz_cluster::JobView;
use tokio::time::timeout;

use crate::app::{App, broker_away};
use crate::auth::Tenant;
use crate::problem::{Code, Problem};

/// Refuses a job that could not be worked on, with the reason.
pub(crate) async fn admit(app: &App, tenant: &Tenant, data_bytes: u64) -> Result<(), Problem> {
    if data_bytes > app.limits.data_bytes {
        let text = format!("{data_bytes} bytes are more than the limit of {} per job", app.limits.data_bytes);
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

async fn a_worker(app: &App) {
    let mut changes = app.membership.changes();
    while app.membership.worker_count() == 0 {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn check_counts(app: &App, tenant: &Tenant) -> Result<(), Problem> {
    let is_mine = |view: &JobView| (view.end.is_none(), view.card.tenant == tenant.0);
    let jobs = app.book.each(is_mine);
    let open = jobs.iter().filter(|(open, _)| *open).count();
    let mine = jobs.iter().filter(|(open, mine)| *open && *mine).count();
    let limits = &app.limits;
    let full = |what: String| Err(Problem::new(Code::TooManyJobs, what));
    if mine >= limits.open_jobs_per_tenant {
        return full(format!(
            "{mine} jobs of yours are open, and {} may be: finish or cancel one",
            limits.open_jobs_per_tenant
        ));
    }
    if open >= limits.open_jobs {
        return full(format!("{open} jobs are open, and {} may be: try again later", limits.open_jobs));
    }
    if jobs.len() >= limits.jobs {
        return full(format!("{} jobs are kept, and {} may be: delete some that have ended", jobs.len(), limits.jobs));
    }
    Ok(())
}
