//! `run/NAME.json`: what is remembered of a process. History and a cache: whether it runs, the kernel knows.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole, Streak};

use crate::census::Member;
use crate::error::Error;
use crate::limits::{MAX_HISTORY, MAX_RECORD_BYTES};
use tenaz_words::unix_ms;

/// What is remembered of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Its latest life; 0 if it was never started.
    pub incarnation: Incarnation,
    /// The process of that life, once it was started.
    pub life: Option<Life>,
    /// How that life ended, when it has.
    pub ended: Option<Ending>,
    /// What was before.
    #[serde(default)]
    pub history: History,
}

/// A process of this machine, named for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// Its process id.
    pub pid: u32,
    /// When it was started, in the kernel's ticks.
    pub start_ticks: u64,
}

impl Life {
    pub(crate) fn of(member: &Member) -> Self {
        Self { pid: member.pid, start_ticks: member.start_ticks }
    }
}

/// What happened to a process: recent things, bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The latest starts, oldest first.
    pub starts_unix_ms: Vec<u64>,
    /// How often it was started again, since the cluster was brought up.
    pub restarts: u64,
    /// What was counted when its latest life was started.
    #[serde(default)]
    pub streak: Streak,
    /// The latest endings, oldest first.
    pub endings: Vec<PastEnding>,
    /// Set when nobody will start it any more.
    pub given_up: Option<GivenUp>,
}

/// How a life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastEnding {
    /// Which life.
    pub incarnation: Incarnation,
    /// How.
    pub ending: Ending,
    /// When that was noticed.
    pub at_unix_ms: u64,
}

/// Why a process is not started any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// The reason, for people.
    pub reason: String,
    /// Since when.
    pub at_unix_ms: u64,
    /// What its latest life wrote last.
    pub last_lines: Vec<String>,
}

impl Record {
    /// Of a process that was never started.
    pub fn new(name: ProcessName, role: ProcessRole) -> Self {
        Self { name, role, incarnation: Incarnation(0), life: None, ended: None, history: History::default() }
    }

    /// The process of the latest life, unless it is known to have ended.
    pub fn living(&self) -> Option<Life> {
        self.life.filter(|_| self.ended.is_none())
    }

    /// A life begins (or begins to be known).
    pub(crate) fn begin(&mut self, incarnation: Incarnation, life: Option<Life>, at_unix_ms: u64) {
        if !self.history.starts_unix_ms.is_empty() {
            self.history.restarts += 1;
        }
        self.history.starts_unix_ms.push(at_unix_ms);
        keep_latest(&mut self.history.starts_unix_ms);
        self.history.given_up = None;
        (self.incarnation, self.life, self.ended) = (incarnation, life, None);
    }

    /// A life has ended. `true` if that is news: not known before, or known without the manner.
    pub(crate) fn end(&mut self, incarnation: Incarnation, ending: Ending) -> bool {
        if incarnation == self.incarnation && (self.ended.is_none() || self.ended == Some(Ending::Unknown)) {
            self.ended = Some(ending);
        }
        let endings = &mut self.history.endings;
        match endings.iter_mut().find(|past| past.incarnation == incarnation) {
            Some(past) if past.ending == Ending::Unknown && ending != Ending::Unknown => past.ending = ending,
            Some(_) => return false,
            None => endings.push(PastEnding { incarnation, ending, at_unix_ms: unix_ms() }),
        }
        keep_latest(endings);
        true
    }
}

fn keep_latest<T>(list: &mut Vec<T>) {
    list.drain(..list.len().saturating_sub(MAX_HISTORY));
}

/// The records of a cluster's directory. Whoever writes holds the directory's lock.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    run: PathBuf,
}

impl Records {
    pub(crate) fn new(run: PathBuf) -> Self {
        Self { run }
    }

    /// `None` if there is none, or if it is damaged: then the census tells whether the process runs.
    pub(crate) fn read(&self, name: &ProcessName) -> Option<Record> {
        let path = self.path(name);
        let record: Option<Record> = read_json(&path);
        record.filter(|record| record.name == *name)
    }

    /// The same, or an empty one.
    pub(crate) fn read_or_new(&self, name: &ProcessName, role: ProcessRole) -> Record {
        self.read(name).unwrap_or_else(|| Record::new(name.clone(), role))
    }

    /// Nobody is given up any more, and restarts are counted from here. Incarnations go on.
    pub(crate) fn begin_anew(&self) -> Result<(), Error> {
        let files = std::fs::read_dir(&self.run).map_err(Error::file("read", &self.run))?;
        for path in files.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".json"));
            // Other files are there, too.
            let record = name.and_then(|name| name.parse().ok()).and_then(|name| self.read(&name));
            if let Some(mut record) = record {
                let history = &mut record.history;
                (history.restarts, history.streak, history.given_up) = (0, Streak::default(), None);
                history.starts_unix_ms.clear();
                self.write(&record)?;
            }
        }
        Ok(())
    }

    pub(crate) fn write(&self, record: &Record) -> Result<(), Error> {
        write_json(&self.path(&record.name), record)
    }

    fn path(&self, name: &ProcessName) -> PathBuf {
        self.run.join(format!("{name}.json"))
    }
}

/// A small file of ours. What cannot be read is not there; damage is told.
pub(crate) fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Option<T> {
    let mut text = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_RECORD_BYTES).read_to_end(&mut text).ok()?;
    let parsed = serde_json::from_slice(&text);
    parsed.inspect_err(|error| tracing::warn!(path = %path.display(), %error, "this file is damaged: ignored")).ok()
}

/// Replaces a file as a whole: a reader sees the old one or the new one.
pub(crate) fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|error| Error::file("write", path)(error.into()))?;
    write_whole(path, &text)
}

/// The same for any text. Only the user can read it.
pub(crate) fn write_whole(path: &Path, text: &[u8]) -> Result<(), Error> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let write = || {
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text)?;
        file.persist(path).map_err(|error| error.error)
    };
    write().map(drop).map_err(Error::file("write", path))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn worker() -> Record {
        Record::new("worker-1".parse().unwrap(), ProcessRole::Worker)
    }

    #[test]
    fn an_ending_is_counted_once_and_corrected_when_it_becomes_known() {
        let mut record = worker();
        record.begin(Incarnation(1), Some(Life { pid: 1, start_ticks: 2 }), 10);
        assert!(record.living().is_some());
        assert!(record.end(Incarnation(1), Ending::Unknown));
        assert!(!record.end(Incarnation(1), Ending::Unknown));
        record.begin(Incarnation(2), Some(Life { pid: 3, start_ticks: 4 }), 20);
        assert!(record.end(Incarnation(1), Ending::Exited(75)), "the parent comes late");
        assert!(!record.end(Incarnation(1), Ending::Unknown));
        assert_eq!((record.ended, record.history.restarts), (None, 1));
        assert_eq!(record.history.endings.len(), 1);
        assert_eq!(record.history.endings[0].ending, Ending::Exited(75));
    }

    #[test]
    fn history_is_bounded() {
        let mut record = worker();
        for life in 1..=1000 {
            record.begin(Incarnation(life), None, life);
            record.end(Incarnation(life), Ending::Exited(1));
        }
        assert_eq!((record.history.starts_unix_ms.len(), record.history.endings.len()), (MAX_HISTORY, MAX_HISTORY));
        assert_eq!((record.history.restarts, record.history.endings[0].incarnation), (999, Incarnation(937)));
        assert!(serde_json::to_vec(&record).unwrap().len() < MAX_RECORD_BYTES as usize / 2);
    }

    #[test]
    fn a_cluster_that_is_brought_up_again_holds_nothing_against_anybody() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().to_owned());
        std::fs::write(dir.path().join("fence.json"), "{}").unwrap();
        let mut record = worker();
        record.begin(Incarnation(1), None, 10);
        record.begin(Incarnation(2), None, 20);
        record.end(Incarnation(2), Ending::Exited(3));
        record.history.streak.failed_starts = 2;
        record.history.given_up = Some(GivenUp { reason: "x".to_owned(), at_unix_ms: 1, last_lines: vec![] });
        records.write(&record).unwrap();
        records.begin_anew().unwrap();
        let mut again = records.read(&record.name).unwrap();
        assert_eq!((again.incarnation, again.ended), (Incarnation(2), Some(Ending::Exited(3))));
        assert_eq!(
            (again.history.restarts, again.history.streak, &again.history.given_up),
            (0, Streak::default(), &None)
        );
        again.begin(Incarnation(3), None, 30);
        assert_eq!(again.history.restarts, 0, "the first start is no restart");
    }

    #[test]
    fn a_damaged_record_is_no_record() {
        let dir = tempfile::tempdir().unwrap();
        let records = Records::new(dir.path().to_owned());
        let record = worker();
        records.write(&record).unwrap();
        assert_eq!(records.read(&record.name), Some(record.clone()));
        std::fs::write(dir.path().join("worker-1.json"), "{\"name\":").unwrap();
        assert_eq!(records.read(&record.name), None);
        assert_eq!(records.read(&"worker-2".parse().unwrap()), None);
    }
}
