//! The real binary, run as a user runs it.
#![allow(clippy::unwrap_used, dead_code, unreachable_pub)]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// What a finished process left.
#[derive(Debug)]
pub struct Finished {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
}

impl Finished {
    pub fn new(output: Output) -> Self {
        let err = String::from_utf8(output.stderr).unwrap();
        Self { code: output.status.code(), out: output.stdout, err }
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.out).unwrap()
    }

    #[track_caller]
    pub fn must(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", String::from_utf8_lossy(&self.out), self.err);
        self
    }

    /// Exactly one sentence for the user, maybe with the line of SQL it is about, and no dump of the program's insides.
    #[track_caller]
    pub fn says(self, parts: &[&str]) -> Self {
        let line = self.err.trim_end();
        let one_line = line.lines().skip(1).all(|more| more.starts_with("  ") && more.contains(" | "));
        assert!(line.starts_with("tenaz: ") && one_line, "not one sentence: {line}");
        for part in parts {
            assert!(line.contains(part), "{part:?} is not in: {line}");
        }
        for dump in ["Os {", "Error(", "panicked", "RUST_BACKTRACE"] {
            assert!(!line.contains(dump), "a debug dump: {line}");
        }
        self
    }
}

/// The program with a clean environment and nothing to read.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
    command.args(args).stdin(Stdio::null());
    for name in [
        "TENAZ_DATA",
        "TENAZ_FORMAT",
        "TENAZ_THREADS",
        "TENAZ_MEMORY",
        "TENAZ_CHUNK_SIZE",
        "TENAZ_PARTITIONS",
        "TENAZ_GATEWAY",
        "TENAZ_TOKEN",
        "TENAZ_PATIENCE",
        "COLUMNS",
    ] {
        command.env_remove(name);
    }
    // How a command ends that rejects much is for the tests of `exports`; here bad records are wanted.
    command.env("TENAZ_ACCEPT_REJECTS", "true");
    command
}

/// Runs the program to its end.
pub fn tenaz<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Finished {
    Finished::new(command(args).output().unwrap())
}

/// `tenaz run coffee --data DATA --out OUT` and more.
pub fn run_coffee(data: &Path, out: &Path, more: &[&str]) -> Finished {
    let mut command = command(["run", "coffee", "--data"]);
    command.arg(data).arg("--out").arg(out).args(more);
    Finished::new(command.output().unwrap())
}

/// Every file below a directory, hidden ones included, by its relative path.
pub fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            found.extend(files(&path).into_iter().map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            found.insert(name, fs::read(&path).unwrap());
        }
    }
    found
}

/// `summary.json` of a result directory.
pub fn summary(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap()
}

/// Generated coffee data.
pub fn generated(dir: &Path, scale: &str, seed: &str) {
    let mut command = command(["generate", "coffee", "--scale", scale, "--seed", seed, "--out"]);
    Finished::new(command.arg(dir).output().unwrap()).must(0);
}
