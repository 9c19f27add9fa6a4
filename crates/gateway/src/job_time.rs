//! Jobs that take longer than they may are ended.

use std::time::Duration;

use tenaz_cluster::JobView;
use tenaz_core::{BoundedText, End, FaultClass, RegistryEvent};
use tenaz_words::{rfc3339, unix_ms};

use crate::app::Shared;

/// Time between two looks at how old jobs are.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Ends jobs whose time is over, until the gateway closes. Every gateway does it: the first end counts.
pub(crate) async fn end_late_jobs(app: Shared) {
    let limit = app.limits.job_time;
    loop {
        tokio::select! {
            () = app.ending.closing.cancelled() => return,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let now_ms = unix_ms();
        let late = |view: &JobView| {
            let is_late = view.end.is_none() && now_ms.saturating_sub(view.card.created_ms) > limit.as_millis() as u64;
            is_late.then(|| (view.card.id.clone(), view.card.created_ms))
        };
        for (id, created_ms) in app.book.each(late).into_iter().flatten() {
            let reason = format!(
                "the job was created at {} and has taken longer than the limit job-time of {} s; ask for less at a time, or let an \
                 operator raise it: tenaz gateway --limit job-time=…",
                rfc3339(created_ms),
                limit.as_secs_f64()
            );
            let end = End::Failed {
                code: "job_time".to_owned(),
                reason: BoundedText::from(reason),
                class: FaultClass::Query,
            };
            tracing::warn!(job = %id, "the job's time is over");
            if let Err(error) = app.book.write(&RegistryEvent::Ended { id: id.clone(), end }).await {
                tracing::error!(job = %id, %error, "a job whose time is over could not be ended");
            }
        }
    }
}
