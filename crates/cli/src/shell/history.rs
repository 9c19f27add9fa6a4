//! Lines that were typed, also in earlier sessions.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Lines that are kept.
const MAX_LINES: usize = 1_000;

/// The lines, the last one last.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: Vec<String>,
    file: Option<PathBuf>,
}

impl History {
    /// That of `TENAZ_HISTORY` (empty: none is kept), or of the user's state directory.
    pub(super) fn of_user() -> Self {
        let path = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let file = match std::env::var_os("TENAZ_HISTORY") {
            Some(file) if file.is_empty() => None,
            Some(file) => Some(PathBuf::from(file)),
            None => {
                let state = path("XDG_STATE_HOME").or_else(|| path("HOME").map(|home| home.join(".local/state")));
                state.map(|state| state.join("tenaz/history"))
            }
        };
        Self::of_file(file)
    }

    fn of_file(file: Option<PathBuf>) -> Self {
        let text = file.as_ref().and_then(|file| fs::read_to_string(file).ok()).unwrap_or_default();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.drain(..lines.len().saturating_sub(MAX_LINES));
        if let (Some(file), true) = (&file, text.lines().count() > 2 * MAX_LINES) {
            // A history that cannot be shortened is only long.
            let _ = fs::write(file, lines.join("\n") + "\n");
        }
        Self { lines, file }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn line(&self, index: usize) -> Option<&str> {
        self.lines.get(index).map(String::as_str)
    }

    /// A line was typed. A shell without a history file still remembers it.
    pub(super) fn add(&mut self, line: &str) {
        if line.trim().is_empty() || self.lines.last().is_some_and(|last| last == line) {
            return;
        }
        self.lines.push(line.to_owned());
        if let Some(mut file) = self.file.as_deref().and_then(open) {
            let _ = writeln!(file, "{line}");
        }
    }
}

/// The file to append to, which nobody else may read: questions hold names and numbers.
fn open(path: &Path) -> Option<File> {
    fs::create_dir_all(path.parent()?).ok()?;
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_there_in_the_next_session_each_once_in_a_row() {
        let dir = tempfile::tempdir().unwrap();
        let file = Some(dir.path().join("new/history"));
        let mut history = History::of_file(file.clone());
        ["a;", "a;", " ", "b;"].iter().for_each(|line| history.add(line));
        assert_eq!(History::of_file(file).lines, ["a;", "b;"]);
        let mut without = History::of_file(None);
        without.add("c;");
        assert_eq!((without.len(), without.line(0)), (1, Some("c;")));
    }
}
