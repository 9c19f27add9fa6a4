//! What a client asks for, as text that every process of a cluster reads the same way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A workload as text: every process plans the same stages from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadText {
    /// Where the workload file came from, for error messages.
    pub file: String,
    /// Its text.
    pub toml: String,
    /// The SQL files that it names, by the names it uses.
    #[serde(default)]
    pub sql: BTreeMap<String, String>,
    /// What `now()` is for all processes: RFC 3339, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A file that the client means to send, so that a resumed upload can be told from one of other files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// The table.
    pub table: String,
    /// The file, relative to the data directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Digest of its beginning, its end and its size.
    #[serde(default)]
    pub sample: String,
}
