//! The CSV files of a data directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::limits::{MAX_DEPTH, MAX_FILES};

/// A file, before anybody looked inside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Found {
    /// Its folder and its name, relative to the data directory, with `/` between parts; the folder is empty at the top.
    pub(crate) folder: String,
    pub(crate) file: String,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

impl Found {
    /// The path relative to the data directory.
    pub(crate) fn name(&self) -> String {
        if self.folder.is_empty() { self.file.clone() } else { format!("{}/{}", self.folder, self.file) }
    }

    /// The file's name without its ending.
    pub(crate) fn stem(&self) -> &str {
        self.file.rsplit_once('.').map_or(self.file.as_str(), |(stem, _)| stem)
    }

    /// The ending of the file's name, as it is written there.
    pub(crate) fn ending(&self) -> &str {
        self.file.rsplit_once('.').map_or("", |(_, ending)| ending)
    }
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The files by folder and name.
    pub(crate) files: Vec<Found>,
    /// Files with the right ending that are left out, and why.
    pub(crate) notes: Vec<String>,
    /// Folders with hidden files of the right ending, which a pattern would match.
    pub(crate) hidden: Vec<String>,
}

/// All CSV files of the directory and of its folders, without hidden ones.
pub(crate) fn find(dir: &Path) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    walk(dir, dir, "", 0, &mut findings)?;
    findings.files.sort();
    Ok(findings)
}

fn walk(root: &Path, dir: &Path, folder: &str, depth: usize, findings: &mut Findings) -> Result<(), Error> {
    let unreadable = |source| Error::Unreadable { path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let file = entry.file_name();
        let Some(file) = file.to_str().map(str::to_owned) else {
            if is_csv(&file.to_string_lossy()) {
                findings.notes.push(format!("{} is left out: its name is not UTF-8", path.display()));
            }
            continue;
        };
        let hidden = file.starts_with('.');
        // A link that leads nowhere is no file.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_dir() && !hidden && depth < MAX_DEPTH && !is_link(&entry) {
            let below = if folder.is_empty() { file } else { format!("{folder}/{file}") };
            walk(root, &path, &below, depth + 1, findings)?;
        } else if metadata.is_file() && is_csv(&file) {
            if hidden {
                findings.hidden.push(folder.to_owned());
                continue;
            }
            findings.files.push(Found { folder: folder.to_owned(), file, path, bytes: metadata.len() });
            if findings.files.len() > MAX_FILES {
                return Err(Error::TooMany { dir: root.to_owned(), what: "CSV files", limit: MAX_FILES });
            }
        }
    }
    Ok(())
}

/// A link to a folder could lead in circles.
fn is_link(entry: &fs::DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_symlink())
}

pub(crate) fn is_csv(file: &str) -> bool {
    file.rsplit_once('.')
        .is_some_and(|(_, ending)| ending.eq_ignore_ascii_case("csv") || ending.eq_ignore_ascii_case("tsv"))
}
