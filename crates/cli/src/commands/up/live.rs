//! What a cluster does, as it does it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tenaz_core::ProcessName;
use tenaz_supervisor::status::Status;
use tokio_util::sync::CancellationToken;

use super::Started;
use super::happenings::{Happenings, sentence};
use crate::commands::status;
use crate::screen::Screen;

const LOOK_EVERY: Duration = Duration::from_millis(250);
/// So long without any supervisor, and they are started again.
const UNWATCHED_FOR: Duration = Duration::from_secs(2);

/// A line that changes while something is awaited; nothing where progress is not shown.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    pub(super) fn new(screen: &Screen, what: &str) -> Self {
        let target = if screen.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}").expect("the template is valid"));
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    pub(super) fn say(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Why there is nothing more to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    /// This process was told to stop.
    Stopped,
    /// Somebody else has taken the cluster down.
    TakenDown,
}

/// Shows what happens, and on a terminal a line for every process, until told to stop or nothing is left.
pub(super) async fn show(started: &Started, screen: &Screen, stop: &CancellationToken) -> Over {
    let (home, config) = (&started.home, &started.config);
    let mut unwatched_since = None;
    let mut happenings = Happenings::from_now(home.events_path());
    let bars = screen.shows_progress().then(MultiProgress::new);
    screen.use_bars(bars.clone());
    let mut lines: BTreeMap<ProcessName, ProgressBar> = BTreeMap::new();
    let over = loop {
        tokio::select! {
            () = stop.cancelled() => break Over::Stopped,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        let is_closed = home.is_closed();
        if is_closed && home.running().is_empty() {
            break Over::TakenDown;
        }
        let now = status::ask(home, config).await;
        // They revive each other, unless all of them die at once.
        if is_closed || now.as_ref().is_ok_and(|now| now.seen_by.is_some()) || started.is_watched() {
            unwatched_since = None;
        } else if unwatched_since.get_or_insert_with(Instant::now).elapsed() > UNWATCHED_FOR {
            if let Err(error) = started.revive_supervisors().await {
                screen.say(&format!("! {error:#}"));
            }
            unwatched_since = None;
        }
        for event in happenings.news() {
            if let Some(text) = sentence(&event) {
                screen.say(&text);
            }
        }
        if let (Some(bars), Ok(now)) = (&bars, &now) {
            draw(bars, &mut lines, now);
        }
    };
    for line in lines.values() {
        line.finish_and_clear();
    }
    screen.use_bars(None);
    over
}

fn draw(bars: &MultiProgress, lines: &mut BTreeMap<ProcessName, ProgressBar>, now: &Status) {
    for process in &now.processes {
        let line = lines.entry(process.name.clone()).or_insert_with(|| {
            let line = bars.add(ProgressBar::new_spinner());
            line.set_style(ProgressStyle::with_template("{prefix:14} {wide_msg}").expect("the template is valid"));
            line.set_prefix(process.name.to_string());
            line
        });
        let leads = if status::leader(now).as_ref() == Some(&process.name) { ", leads" } else { "" };
        line.set_message(format!("{}{leads}", status::in_words(process)));
    }
}
