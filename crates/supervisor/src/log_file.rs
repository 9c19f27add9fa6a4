//! What a process writes: one file for all its lives, a headline before each.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tenaz_core::{Incarnation, ProcessName};

use crate::error::Error;
use crate::limits::{LOG_TAIL_BYTES, MAX_LINE_CHARS, MAX_LOG_BYTES};
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
