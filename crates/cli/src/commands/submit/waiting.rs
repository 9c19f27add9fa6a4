//! Why a job does not advance, said once.

use std::time::{Duration, Instant};

use tenaz_client::Glance;

use crate::screen::Screen;

/// What passes sooner is not worth a word.
const PASSING: Duration = Duration::from_secs(2);

/// What a job waits for, and since when.
#[derive(Default)]
pub(super) struct Waiting {
    why: Option<String>,
    since: Option<Instant>,
    said: bool,
}

impl Waiting {
    /// The reason, if there is one for more than a moment. Where there are no bars, it is said in a line.
    pub(super) fn look(&mut self, glance: &Glance, screen: &Screen) -> Option<&str> {
        let why = reason(glance);
        if why != self.why {
            *self = Self { since: why.as_ref().map(|_| Instant::now()), why, said: false };
        }
        let lasting = self.since.is_some_and(|since| since.elapsed() >= PASSING);
        if lasting && !self.said && !screen.shows_progress() {
            screen.say(&format!("waiting: {}", self.why.as_deref().unwrap_or_default()));
            self.said = true;
        }
        self.why.as_deref().filter(|_| lasting)
    }
}

/// A gateway's trouble comes first. That the upload goes on is no reason to worry.
fn reason(glance: &Glance) -> Option<String> {
    let told = || glance.job.as_ref()?.waiting_for.as_ref().filter(|told| told.code != "upload");
    glance.trouble.clone().or_else(|| told().map(|told| told.text.clone()))
}
