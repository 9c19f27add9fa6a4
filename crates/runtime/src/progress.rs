//! Counters that anybody may look at while a job runs.

use std::sync::atomic::{AtomicBool, AtomicU64};

use tenaz_engine::StopFlag;

/// How far a job is.
#[derive(Debug, Default)]
pub struct Progress {
    tables: Vec<TableProgress>,
    stop: StopFlag,
}

/// How far the reading of one table is.
#[derive(Debug, Default)]
pub struct TableProgress {
    /// Bytes worked on.
    pub bytes: AtomicU64,
    /// Records worked on.
    pub records: AtomicU64,
    /// Records rejected.
    pub rejected: AtomicU64,
    /// Whether the table has been read to its end.
    pub done: AtomicBool,
}

impl Progress {
    /// Counters for `tables` tables.
    pub fn new(tables: usize) -> Self {
        Self { tables: (0..tables).map(|_| TableProgress::default()).collect(), stop: StopFlag::default() }
    }

    /// One table's counters.
    pub fn table(&self, table: usize) -> &TableProgress {
        &self.tables[table]
    }

    /// Asks the job to stop. It ends with [`crate::Error::Stopped`], and the tasks at hand with it.
    pub fn stop(&self) {
        self.stop.stop();
    }

    /// Whether somebody asked the job to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_set()
    }

    /// What tasks look at to know whether to end.
    pub(crate) fn stop_flag(&self) -> &StopFlag {
        &self.stop
    }
}
