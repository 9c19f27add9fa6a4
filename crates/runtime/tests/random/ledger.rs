//! What has been searched, so that a long search may take several sessions: a line per search, which grows with it.
//!
//! ```text
//! # commit   seeds            queries  differences
//! 39c79e0b   100001..101250     10000            0
//! ```

use std::fs;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# What scripts/random-sql --ledger has covered. A seed makes 8 queries; with another generator it makes others.
# commit       seeds                queries  differences
";

/// A line of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    commit: String,
    first: u64,
    /// One more than the last.
    end: u64,
    queries: u64,
    differences: u64,
}

impl Entry {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let commit = words.next()?.to_owned();
        let (first, end) = words.next()?.split_once("..")?;
        let mut number = || words.next()?.parse().ok();
        let (queries, differences) = (number()?, number()?);
        Some(Self { commit, first: first.parse().ok()?, end: end.parse().ok()?, queries, differences })
    }

    fn line(&self) -> String {
        let seeds = format!("{}..{}", self.first, self.end);
        format!("{:<14} {seeds:<20} {:>7} {:>12}\n", self.commit, self.queries, self.differences)
    }
}

/// The file, and how much of it is of earlier searches.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    /// The code that is searched.
    commit: String,
    earlier: Vec<Entry>,
}

impl Ledger {
    pub fn open(path: PathBuf) -> Self {
        let commit = std::env::var("TENAZ_RANDOM_SQL_COMMIT").unwrap_or_else(|_| "unknown".to_owned());
        let earlier = entries(&path);
        Self { path, commit, earlier }
    }

    /// The first seed that no search has had.
    pub fn next_seed(&self) -> u64 {
        self.earlier.iter().map(|entry| entry.end).max().unwrap_or(1)
    }

    /// Queries of all searches until now.
    pub fn queries(&self) -> u64 {
        self.earlier.iter().map(|entry| entry.queries).sum()
    }

    /// Writes down that these seeds have been searched. It takes the place of what this search has written before.
    pub fn write(&self, first: u64, end: u64, queries: u64, differences: u64) {
        let own = Entry { commit: self.commit.clone(), first, end, queries, differences };
        let lines: String = self.earlier.iter().chain([&own]).map(Entry::line).collect();
        let new = self.path.with_extension("new");
        fs::write(&new, format!("{HEAD}{lines}")).and_then(|()| fs::rename(&new, &self.path)).expect("the ledger");
    }
}

fn entries(path: &Path) -> Vec<Entry> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| Entry::parse(line).unwrap_or_else(|| panic!("no line of a ledger: {line:?}"))).collect()
}

/// The seeds that are done, of which some end before others that began earlier.
#[derive(Debug)]
pub struct Done {
    /// All before it are done.
    next: u64,
    behind: std::collections::BTreeSet<u64>,
}

impl Done {
    pub fn from(first: u64) -> Self {
        Self { next: first, behind: std::collections::BTreeSet::new() }
    }

    pub fn add(&mut self, seed: u64) {
        self.behind.insert(seed);
        while self.behind.remove(&self.next) {
            self.next += 1;
        }
    }

    /// One more than the last of the seeds that are done without a gap.
    pub fn end(&self) -> u64 {
        self.next
    }
}
