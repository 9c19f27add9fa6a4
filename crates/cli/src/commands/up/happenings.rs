//! What happens in a cluster, as lines for people: read from its `events.ndjson` as it grows.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// Reads on where it has stopped reading.
#[derive(Debug)]
pub(crate) struct Happenings {
    path: PathBuf,
    read: u64,
    rest: Vec<u8>,
}

impl Happenings {
    /// What happens from now on.
    pub(crate) fn from_now(path: PathBuf) -> Self {
        let read = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self { path, read, rest: Vec::new() }
    }

    /// All that stands there, and what happens from now on.
    pub(crate) fn from_start(path: PathBuf) -> Self {
        Self { path, read: 0, rest: Vec::new() }
    }

    /// What has happened since the last call.
    pub(crate) fn news(&mut self) -> Vec<Value> {
        let mut text = std::mem::take(&mut self.rest);
        if std::fs::metadata(&self.path).is_ok_and(|found| found.len() < self.read) {
            // A new file was begun.
            self.read = 0;
        }
        let grown = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut text)
        });
        self.read += grown.unwrap_or(0) as u64;
        // The last line may be half written.
        let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.rest = text.split_off(end);
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }
}

/// One thing that happened, in a sentence; `None` if it is nothing for people.
pub(crate) fn sentence(event: &Value) -> Option<String> {
    let text = |field: &str| event[field].as_str().unwrap_or_default();
    let name = text("name");
    let because = match text("because") {
        "" => String::new(),
        because => format!(" ({because})"),
    };
    let life = event["incarnation"].as_u64().map_or(String::new(), |life| format!(", life {life}"));
    Some(match text("event") {
        "started" => {
            let pid = event["pid"].as_u64().map_or(String::new(), |pid| format!(", pid {pid}"));
            format!("+ {name} started{life}{pid}{because}")
        }
        "ended" => format!("- {name} ended{life}: {}", text("ending")),
        "killed" => format!("! {name} killed{because}"),
        "given_up" => format!("! {name} given up: {}", text("reason")),
        "elected" => format!("* supervisor-{} leads, term {}", event["supervisor"], event["term"]["round"]),
        "stepped_down" => format!("* supervisor-{} leads no longer", event["supervisor"]),
        "refused" if event["result"]["fenced"].is_object() => {
            format!("! an order of a former leader for {name} was refused")
        }
        "refused" => format!("! an order for {name} came too late"),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_line_is_read_once_and_only_when_it_is_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        writeln!(file, "{{\"event\":\"old\"}}").unwrap();
        let mut happenings = Happenings::from_now(file.path().to_owned());
        write!(file, "{{\"event\":\"started\",\"name\":\"worker-1\",\"incarnation\":2,\"pid\":7}}\n{{\"event\":")
            .unwrap();
        let news = happenings.news();
        assert_eq!(news.len(), 1);
        assert_eq!(sentence(&news[0]).unwrap(), "+ worker-1 started, life 2, pid 7");
        assert!(happenings.news().is_empty());
        writeln!(file, "\"ended\",\"name\":\"worker-1\",\"ending\":\"signal 9\"}}").unwrap();
        assert_eq!(sentence(&happenings.news()[0]).unwrap(), "- worker-1 ended: signal 9");
    }
}
