//! Progress bars, on a terminal only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanCount, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tenaz_client::Glance;
use tenaz_engine::JobPlan;
use tenaz_runtime::{DataSet, Progress};

use crate::messages::Message;
use crate::screen::Screen;

/// A bar over bytes; invisible where progress is not shown.
pub(crate) fn bytes_bar(screen: &Screen, name: String, bytes: u64) -> ProgressBar {
    let target = if screen.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(Some(bytes), target);
    bar.set_style(style());
    bar.set_prefix(name);
    bar
}

fn style() -> ProgressStyle {
    let template = "{prefix:18} {wide_bar} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12}  {eta:>4} left  {msg}";
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("━━─")
}

/// A table whose turn has not come has no speed and no end in sight.
fn waiting_style() -> ProgressStyle {
    let template = "{prefix:18} {wide_bar} {bytes:>10}/{total_bytes:10}      waiting";
    ProgressStyle::with_template(template).expect("the template is valid").progress_chars("━━─")
}

/// Runs `work` while drawing a bar per table, and passes a signal on to the job.
pub(crate) fn while_watching<T>(
    screen: &Screen,
    plan: &JobPlan,
    data: &DataSet,
    progress: &Progress,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> T,
) -> T {
    let bars = screen.shows_progress().then(MultiProgress::new);
    let lines: Vec<(usize, ProgressBar)> = match &bars {
        None => Vec::new(),
        Some(bars) => plan.scans.iter().map(|scan| table_bar(bars, plan, data, usize::from(scan.table.0))).collect(),
    };
    screen.use_bars(bars.clone());
    let total_bytes = plan.scans.iter().map(|scan| data.table_bytes(usize::from(scan.table.0))).sum();
    let mut records = ProgressRecords::new(screen, Some(total_bytes));
    records.tell(|| (0, 0));
    let (finished, waiting) = std::sync::mpsc::channel::<()>();
    let done = std::thread::scope(|scope| {
        let lines = &lines;
        scope.spawn(move || {
            let tick = Duration::from_millis(50);
            while waiting.recv_timeout(tick) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                if stop.load(Ordering::Relaxed) || screen.is_reader_gone() {
                    progress.stop();
                }
                records.tell(|| done_so_far(plan, progress));
                lines.iter().for_each(|(table, bar)| draw(progress, *table, bar));
            }
        });
        let done = work();
        drop(finished);
        done
    });
    screen.use_bars(None);
    for (_, bar) in &lines {
        bar.finish_and_clear();
    }
    done
}

/// Bytes and records of all tables that were worked on.
fn done_so_far(plan: &JobPlan, progress: &Progress) -> (u64, u64) {
    let tables = plan.scans.iter().map(|scan| progress.table(usize::from(scan.table.0)));
    tables.fold((0, 0), |(bytes, records), counters| {
        let (more_bytes, more_records) = (&counters.bytes, &counters.records);
        (bytes + more_bytes.load(Ordering::Relaxed), records + more_records.load(Ordering::Relaxed))
    })
}

/// Progress as records for programs, now and then. A job whose records nobody reads any more is noticed by them, too.
struct ProgressRecords<'a> {
    screen: &'a Screen,
    total_bytes: Option<u64>,
    told: Option<Instant>,
}

impl<'a> ProgressRecords<'a> {
    const EVERY: Duration = Duration::from_millis(200);

    fn new(screen: &'a Screen, total_bytes: Option<u64>) -> Self {
        Self { screen, total_bytes, told: None }
    }

    /// Tells bytes and records, if it is time.
    fn tell(&mut self, done: impl FnOnce() -> (u64, u64)) {
        if !self.screen.writes_records() || self.told.is_some_and(|told| told.elapsed() < Self::EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let (bytes, records) = done();
        self.screen.record(&Message::Progress { bytes, total_bytes: self.total_bytes, records });
    }
}

fn table_bar(bars: &MultiProgress, plan: &JobPlan, data: &DataSet, table: usize) -> (usize, ProgressBar) {
    let bar = bars.add(ProgressBar::new(data.table_bytes(table)));
    bar.set_style(waiting_style());
    bar.set_prefix(plan.tables[table].clone());
    (table, bar)
}

fn draw(progress: &Progress, table: usize, bar: &ProgressBar) {
    let counters = progress.table(table);
    let before = bar.position();
    bar.set_position(counters.bytes.load(Ordering::Relaxed));
    if before == 0 && bar.position() > 0 {
        bar.set_style(style());
    }
    let records = counters.records.load(Ordering::Relaxed);
    let seconds = bar.elapsed().as_secs_f64();
    if counters.done.load(Ordering::Relaxed) {
        if !bar.is_finished() {
            bar.abandon_with_message(format!("{} records", HumanCount(records)));
        }
    } else if records > 0 && seconds > 0.0 {
        bar.set_message(format!("{} records/s", HumanCount((records as f64 / seconds) as u64)));
    } else {
        // The clock of a table starts with its first record.
        bar.reset_elapsed();
    }
}

/// Two bars for a job on a cluster: what was sent, and what was worked on.
pub(crate) struct JobBars<'a> {
    screen: &'a Screen,
    sent: ProgressBar,
    worked: ProgressBar,
    records: ProgressRecords<'a>,
}

impl<'a> JobBars<'a> {
    /// The bars of a job over so many bytes; invisible where progress is not shown.
    pub(crate) fn new(screen: &'a Screen, bytes: u64) -> Self {
        let target = if screen.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bars = MultiProgress::with_draw_target(target);
        let bar = |name: &'static str| {
            let bar = bars.add(ProgressBar::new(bytes));
            bar.set_style(style());
            bar.set_prefix(name);
            bar
        };
        let (sent, worked) = (bar("sent"), bar("processed"));
        screen.use_bars(screen.shows_progress().then_some(bars));
        Self { screen, sent, worked, records: ProgressRecords::new(screen, Some(bytes)) }
    }

    /// Shows how things are, and why they do not advance.
    pub(crate) fn draw(&mut self, glance: &Glance, waiting: Option<&str>) {
        self.sent.set_position(glance.sent_bytes);
        self.records.tell(|| glance.job.as_ref().map_or((0, 0), |job| (job.progress.bytes, job.progress.records)));
        let Some(job) = &glance.job else { return };
        self.worked.set_position(job.progress.bytes);
        let records = HumanCount(job.progress.records);
        self.worked.set_message(match waiting {
            Some(why) => format!("waiting: {why}"),
            None => format!("{records} records"),
        });
    }
}

impl Drop for JobBars<'_> {
    fn drop(&mut self) {
        self.screen.use_bars(None);
        self.sent.finish_and_clear();
        self.worked.finish_and_clear();
    }
}
