//! What a process writes: one file for all its lives, a headline before each.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tenaz_core::{Incarnation, ProcessName};

use crate::error::Error;
use crate::limits::{LOG_TAIL_BYTES, MAX_LINE_CHARS, MAX_LOG_BYTES};
use crate::lock::FileLock;
use tenaz_words::{rfc3339, unix_ms};

/// Opens the file for another life. A large one is put aside first; the one put aside before it is lost.
pub(crate) fn open(path: &Path, name: &ProcessName, incarnation: Incarnation) -> Result<File, Error> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() >= MAX_LOG_BYTES) {
        let aside = path.with_extension("log.1");
        std::fs::rename(path, aside).map_err(Error::file("put aside", path))?;
    }
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create(true).mode(0o600).open(path).map_err(Error::file("open", path))?;
    let head = format!("{}{}\n", headline(name, incarnation), rfc3339(unix_ms()));
    file.write_all(head.as_bytes()).map_err(Error::file("write", path))?;
    Ok(file)
}

/// Puts aside what a running process has written, once it is large: into a copy, because the process has the file open and goes on
/// in it. What it writes between the copy and the cut, far less than a millisecond, is lost. Of several supervisors one does it.
pub(crate) fn rotate(path: &Path, limit: u64) -> Result<bool, Error> {
    let is_large = || std::fs::metadata(path).is_ok_and(|found| found.len() >= limit);
    if !is_large() {
        return Ok(false);
    }
    let Some(_lock) = FileLock::attempt(&path.with_extension("log.lock"))? else { return Ok(false) };
    // Another supervisor may have been faster.
    if !is_large() {
        return Ok(false);
    }
    let (fresh, aside) = (path.with_extension("log.new"), path.with_extension("log.1"));
    let mut copy = OpenOptions::new();
    let mut copy =
        copy.write(true).create(true).truncate(true).mode(0o600).open(&fresh).map_err(Error::file("write", &fresh))?;
    let mut log = OpenOptions::new().read(true).write(true).open(path).map_err(Error::file("open", path))?;
    let length = log.metadata().map_err(Error::file("read", path))?.len();
    // Of a log that grew faster than it was looked at the end is kept.
    log.seek(SeekFrom::Start(length.saturating_sub(2 * limit))).map_err(Error::file("read", path))?;
    std::io::copy(&mut log, &mut copy).map_err(Error::file("put aside", path))?;
    log.set_len(0).map_err(Error::file("cut", path))?;
    std::fs::rename(&fresh, &aside).map_err(Error::file("put aside", path))?;
    Ok(true)
}

/// Puts aside all logs of a directory that are large.
pub(crate) fn rotate_all(dir: &Path) {
    let logs = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    for log in logs.filter(|path| path.extension().is_some_and(|extension| extension == "log")) {
        if let Err(error) = rotate(&log, MAX_LOG_BYTES) {
            tracing::warn!(%error, "a log grows on");
        }
    }
}

fn headline(name: &ProcessName, incarnation: Incarnation) -> String {
    format!("--- {name} incarnation {incarnation} --- ")
}

/// The last lines of the latest life, oldest first, long ones cut. Empty if there is nothing to read.
pub(crate) fn last_lines(path: &Path, name: &ProcessName, lines: usize) -> Vec<String> {
    let Ok(text) = tail(path) else { return Vec::new() };
    let head = format!("--- {name} incarnation ");
    let mut found: Vec<&str> = text.lines().rev().take_while(|line| !line.starts_with(&head)).take(lines).collect();
    found.reverse();
    found.into_iter().map(|line| line.chars().take(MAX_LINE_CHARS).collect()).collect()
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(LOG_TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line is cut somewhere.
    Ok(if skipped == 0 { text } else { text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned()) })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_of_the_latest_life_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker-1.log");
        let name: ProcessName = "worker-1".parse().unwrap();
        assert!(last_lines(&path, &name, 5).is_empty());
        writeln!(open(&path, &name, Incarnation(1)).unwrap(), "old").unwrap();
        assert_eq!(last_lines(&path, &name, 5), ["old"]);
        let mut file = open(&path, &name, Incarnation(2)).unwrap();
        assert!(last_lines(&path, &name, 5).is_empty());
        writeln!(file, "a\n{}\nc\u{e9}", "b".repeat(2000)).unwrap();
        assert_eq!(last_lines(&path, &name, 2), ["b".repeat(MAX_LINE_CHARS), "c\u{e9}".to_owned()]);
    }

    #[test]
    fn a_log_that_grows_is_put_aside_while_its_process_writes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker-1.log");
        let name: ProcessName = "worker-1".parse().unwrap();
        let mut writer = open(&path, &name, Incarnation(1)).unwrap();
        writeln!(writer, "{}", "x".repeat(1000)).unwrap();
        assert!(!rotate(&path, 4096).unwrap());
        for _ in 0..100 {
            writeln!(writer, "{}", "y".repeat(1000)).unwrap();
        }
        assert!(rotate(&path, 4096).unwrap());
        writeln!(writer, "after").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "after\n", "no hole before it");
        assert_eq!(last_lines(&path, &name, 5), ["after"]);
        let aside = std::fs::metadata(dir.path().join("worker-1.log.1")).unwrap().len();
        assert_eq!(aside, 2 * 4096);
        // Two lives of a log that is written without end never have more than a bound.
        for _ in 0..50 {
            writeln!(writer, "{}", "z".repeat(1000)).unwrap();
            rotate(&path, 4096).unwrap();
            let all: u64 =
                std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
            assert!(all < 4 * 4096, "{all}");
        }
    }

    #[test]
    fn a_large_log_is_put_aside_at_a_start() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("worker-1.log");
        let name: ProcessName = "worker-1".parse().unwrap();
        open(&path, &name, Incarnation(1)).unwrap().set_len(MAX_LOG_BYTES).unwrap();
        open(&path, &name, Incarnation(2)).unwrap();
        assert_eq!(std::fs::metadata(dir.path().join("worker-1.log.1")).unwrap().len(), MAX_LOG_BYTES);
        assert!(std::fs::metadata(&path).unwrap().len() < 100);
    }
}
