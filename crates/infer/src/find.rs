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

    /// The columns whose value stands in the path: `year=2025/month=03/sales.csv` has a year and a month.
    pub(crate) fn constants(&self) -> Vec<(String, String)> {
        let parts = self.folder.split('/').filter_map(|part| part.split_once('='));
        parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The folder without the parts that hold values.
    pub(crate) fn base_folder(&self) -> String {
        let parts: Vec<&str> = self.folder.split('/').filter(|part| !part.contains('=')).collect();
        parts.join("/")
    }

    /// The file's name without its endings.
    pub(crate) fn stem(&self) -> &str {
        let name = without_packing(&self.file);
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// The endings of the file's name, as they are written there: `csv`, `csv.gz`.
    pub(crate) fn ending(&self) -> &str {
        let stem = self.stem().len();
        self.file.get(stem + 1..).unwrap_or("")
    }

    /// Whether its name says that fields are separated by tabs.
    pub(crate) fn speaks_of_tabs(&self) -> bool {
        let ending = without_packing(&self.file).rsplit_once('.').map_or("", |(_, ending)| ending);
        ending.eq_ignore_ascii_case("tsv") || ending.eq_ignore_ascii_case("tab")
    }
}

/// Endings of compressed files.
const PACKINGS: [&str; 7] = ["gz", "zst", "zstd", "bz2", "xz", "lz4", "gzip"];

/// The name of the file inside a compressed one.
fn without_packing(file: &str) -> &str {
    match file.rsplit_once('.') {
        Some((name, ending)) if PACKINGS.iter().any(|packing| ending.eq_ignore_ascii_case(packing)) => name,
        _ => file,
    }
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The files by folder and name.
    pub(crate) files: Vec<Found>,
    /// Files with the right ending that are left out, and why.
    pub(crate) notes: Vec<String>,
    /// Files that may hold tables, but whose endings are others.
    pub(crate) passed_over: Vec<String>,
    /// Folders with hidden files of the right ending, which a pattern would match.
    pub(crate) hidden: Vec<String>,
}

/// All CSV files of the directory and of its folders, without hidden ones.
pub(crate) fn find(root: &Path) -> Result<Findings, Error> {
    let mut findings = Findings::default();
    walk(root, root, "", 0, &mut findings)?;
    findings.files.sort();
    findings.passed_over.sort();
    if let Some(first) = findings.passed_over.first() {
        const SHOWN: usize = 5;
        let (names, count) = (&findings.passed_over, findings.passed_over.len());
        let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
        let what = if count == 1 { "is" } else { "are" };
        findings.notes.push(format!(
            "{}{more} {what} not read: in a directory only .csv, .tsv, .tab and .psv files are (--data {} reads one file, or rename it)",
            names[..count.min(SHOWN)].join(", "),
            root.join(first).display(),
        ));
    }
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
        } else if metadata.is_file() && !hidden && may_hold_a_table(&file) {
            let name = if folder.is_empty() { file } else { format!("{folder}/{file}") };
            findings.passed_over.push(name);
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

/// Whether a file is looked at, by its name: `.csv`, `.tsv`, `.tab` or `.psv`, perhaps compressed.
pub(crate) fn is_csv(file: &str) -> bool {
    ends_with_any(file, &["csv", "tsv", "tab", "psv"])
}

/// Whether a file that is not looked at may hold a table, by its name.
fn may_hold_a_table(file: &str) -> bool {
    const ENDINGS: [&str; 14] =
        ["txt", "dat", "asc", "prn", "ssv", "dsv", "xls", "xlsx", "ods", "parquet", "json", "ndjson", "jsonl", "zip"];
    ends_with_any(file, &ENDINGS)
}

fn ends_with_any(file: &str, endings: &[&str]) -> bool {
    let inside = without_packing(file).rsplit_once('.');
    inside.is_some_and(|(_, ending)| endings.iter().any(|known| ending.eq_ignore_ascii_case(known)))
}
