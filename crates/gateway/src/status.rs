//! How many jobs and chunks there are, for metrics.

use std::sync::Arc;
use std::time::Duration;

use tenaz_api::JobState;

use crate::app::{App, Shared};
use crate::state::summarize;

/// How often they are counted for heartbeats. Scrapers get fresh numbers.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// Counts now and then, until the gateway ends.
pub(crate) async fn count_jobs(app: Shared) {
    let closing = app.ending.closing.clone();
    let app = Arc::downgrade(&app);
    while let Some(app) = app.upgrade() {
        count_jobs_now(&app);
        drop(app);
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep(COUNT_EVERY) => {}
        }
    }
}

/// Counts jobs by state, and the chunks of open jobs that were taken in and not worked off.
pub(crate) fn count_jobs_now(app: &App) {
    let jobs = app.book.each(|view| {
        let received = view.card.tables.iter().map(|&table| view.facts.uploaded(table).len()).sum::<u64>();
        (summarize(view), view.card.id.clone(), received)
    });
    app.metrics.set_jobs(|state| jobs.iter().filter(|(of, _, _)| of.as_str() == state).count());
    let open = jobs.iter().filter(|(state, _, _)| matches!(state, JobState::Uploading | JobState::Processing));
    let waiting = open.map(|(_, job, received)| {
        let done = app.membership.progress(job).map_or(0, |progress| progress.chunks);
        received.saturating_sub(done)
    });
    app.metrics.queue_depth.set(i64::try_from(waiting.sum::<u64>()).unwrap_or(i64::MAX));
}
