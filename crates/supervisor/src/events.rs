//! `events.ndjson`: one line per thing that happened, for people and for tests.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::limits::MAX_EVENTS_BYTES;
use tenaz_words::{rfc3339, unix_ms};

/// Appends `{"at":…,"event":…, fields…}`. It is an account, not state: if it cannot be written, work goes on.
pub(crate) fn append(path: &Path, event: &str, fields: Value) {
    let mut line = Map::new();
    line.insert("at".to_owned(), json!(rfc3339(unix_ms())));
    line.insert("event".to_owned(), json!(event));
    if let Value::Object(fields) = fields {
        line.extend(fields);
    }
    // One write, so that lines of several processes do not mix.
    let text = format!("{}\n", Value::Object(line));
    if let Err(error) = write(path, text.as_bytes()) {
        tracing::warn!(path = %path.display(), %error, "an event cannot be written");
    }
}

fn write(path: &Path, line: &[u8]) -> std::io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| found.len() >= MAX_EVENTS_BYTES) {
        std::fs::rename(path, path.with_extension("ndjson.1"))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(line)
}
