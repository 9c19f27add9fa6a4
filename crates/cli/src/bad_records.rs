//! Bad records on the screen: the first few as they are, the others as a number.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::HumanCount;
use tenaz_runtime::RejectLine;

use crate::screen::{Screen, printable};

/// Bad records shown on the screen; all of them go to rejects.csv.
const SHOWN: u64 = 10;

/// Counts bad records and shows the first ones.
pub(crate) struct BadRecords<'a> {
    screen: &'a Screen,
    /// A strict run names the first bad record when it fails.
    strict: bool,
    count: AtomicU64,
}

impl<'a> BadRecords<'a> {
    pub(crate) fn new(screen: &'a Screen, strict: bool) -> Self {
        Self { screen, strict, count: AtomicU64::new(0) }
    }

    /// One more.
    pub(crate) fn show(&self, line: &RejectLine) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        if count < SHOWN && !self.strict && !self.screen.writes_records() {
            let text = format!("rejected: {}: {}: {}", line.place(), line.reason_with_column(), line.text);
            self.screen.say(&printable(&text));
        }
    }

    /// How many were not shown, and where they are.
    pub(crate) fn tell_rest(&self, in_directory: bool) {
        let count = self.count.load(Ordering::Relaxed);
        if count > SHOWN && !self.screen.writes_records() {
            let where_all =
                if in_directory { "rejects.csv has them all" } else { "--out DIR writes them all to rejects.csv" };
            self.screen.say(&format!("rejected: … and {} more; {where_all}", HumanCount(count - SHOWN)));
        }
    }
}
