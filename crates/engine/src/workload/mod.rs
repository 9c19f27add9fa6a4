//! Workloads: tables (CSV layouts) and queries (SQL), bundled or the user's own.

mod bundled;
mod check;
mod file;
mod format;
mod kind;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tenaz_core::WorkloadText;
use tenaz_csv::{Header, Layout};
use tenaz_source::{Dialect, FileFormat};

use crate::limits::MAX_SQL_BYTES;
use crate::{Error, JobTime, NoTime};
use tenaz_words::nearest;

pub use kind::{KindError, parse_kind};

/// What a table is for the planner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Large: read chunk by chunk, joined where its rows are.
    Fact,
    /// Small: loaded first and given to everybody who scans.
    Dimension,
}

/// A table: where its records are and what they look like.
#[derive(Debug, Clone)]
pub struct Table {
    /// The name SQL uses.
    pub name: String,
    /// Path patterns relative to the data directory.
    pub files: Vec<String>,
    /// Fact or dimension.
    pub role: Role,
    /// The shape of a record.
    pub layout: Arc<Layout>,
    /// How the files are written.
    pub format: FileFormat,
    /// The names of the columns as answers show them, where a header writes them otherwise (`ProductType`, `Order Date`).
    pub labels: Vec<Option<String>>,
    /// Columns of decimals whose values have unlike numbers of digits: answers show them without zeros at their end.
    pub trimmed: Vec<bool>,
}

impl Table {
    /// A table whose files are canonical CSV, as the layout says.
    pub fn new(name: String, files: Vec<String>, role: Role, layout: Layout) -> Self {
        let format = FileFormat {
            dialect: Dialect::with_delimiter(layout.delimiter),
            has_header: layout.header != Header::Absent,
            ..FileFormat::default()
        };
        Self { name, files, role, layout: Arc::new(layout), format, labels: Vec::new(), trimmed: Vec::new() }
    }

    /// How answers show a column: under which name, if that is another, and whether without zeros at the end.
    pub(crate) fn shown(&self, column: &str) -> Option<(Option<&str>, bool)> {
        let place = self.layout.columns.iter().position(|known| known.name == column)?;
        let label = self.labels.get(place).and_then(Option::as_deref);
        Some((label, self.trimmed.get(place).copied().unwrap_or(false)))
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct Query {
    /// Short name; result files are called after it.
    pub name: String,
    /// What it asks, for people.
    pub title: String,
    /// Where the SQL came from, for error messages.
    pub origin: String,
    /// The SQL text.
    pub sql: String,
    /// Whether the order of the rows is part of the answer. `None`: as the SQL says.
    pub ordered: Option<bool>,
}

/// A set of tables and queries.
#[derive(Debug, Clone)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub title: String,
    /// The tables.
    pub tables: Vec<Table>,
    /// The queries.
    pub queries: Vec<Query>,
    /// What `now()` is. Whoever makes a job fixes it, unless the workload file does (`now = "2025-06-30"`); without it nothing that
    /// asks for the time can be planned.
    pub time: Option<JobTime>,
}

/// The names of the workloads in the binary.
pub fn bundled_names() -> Vec<&'static str> {
    bundled::BUNDLED.iter().map(|b| b.name).collect()
}

impl Workload {
    /// A bundled workload by name, or a workload file by path (or by the folder that holds `workload.toml`).
    pub fn load(name_or_path: &str) -> Result<Self, Error> {
        if let Some(found) = bundled::BUNDLED.iter().find(|b| b.name == name_or_path) {
            return Self::bundled(found);
        }
        let path = Path::new(name_or_path);
        if path.is_dir() {
            return Self::from_file(&path.join("workload.toml"));
        }
        let looks_like_a_path = name_or_path.contains(['/', '\\', '.']);
        if path.exists() || looks_like_a_path {
            return Self::from_file(path);
        }
        Err(Error::UnknownWorkload { name: name_or_path.to_owned(), known: bundled_names().join(", ") })
    }

    /// The workload of this text, without reading any file.
    pub fn from_text(text: &WorkloadText) -> Result<Self, Error> {
        let mut workload = check::parse(&text.file, &text.toml, &|name| {
            text.sql.get(name).cloned().ok_or_else(|| std::io::Error::from(std::io::ErrorKind::NotFound))
        })?;
        if let Some(now) = &text.now {
            let cure = "send another \"now\" with the workload".to_owned();
            let wrong = |problem| Error::Workload { file: text.file.clone(), line: 1, problem, cure };
            workload.time = Some(now.parse().map_err(|error: NoTime| wrong(error.to_string()))?);
        }
        Ok(workload)
    }

    /// The same, with the text of all its files, from which any other process can make the same workload.
    pub fn load_with_text(name_or_path: &str) -> Result<(Self, WorkloadText), Error> {
        let sql = std::cell::RefCell::new(BTreeMap::new());
        let keep = |name: &str, text: String| {
            sql.borrow_mut().insert(name.to_owned(), text.clone());
            text
        };
        if let Some(found) = bundled::BUNDLED.iter().find(|b| b.name == name_or_path) {
            let file = format!("{}/workload.toml", found.name);
            let workload = check::parse(&file, found.toml, &|name| found.read(name).map(|text| keep(name, text)))?;
            return Ok((
                workload,
                WorkloadText { file, toml: found.toml.to_owned(), sql: sql.into_inner(), now: None },
            ));
        }
        // Whatever is wrong with the name is said by `load`.
        let workload = Self::load(name_or_path)?;
        let path = Path::new(name_or_path);
        let path = if path.is_dir() { path.join("workload.toml") } else { path.to_owned() };
        let file = path.display().to_string();
        let toml = read_limited(&path).map_err(|source| Error::Unreadable { path: file.clone(), source })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        check::parse(&file, &toml, &|name| read_limited(&folder.join(name)).map(|text| keep(name, text)))?;
        Ok((workload, WorkloadText { file, toml, sql: sql.into_inner(), now: None }))
    }

    fn bundled(found: &bundled::Bundled) -> Result<Self, Error> {
        let file = format!("{}/workload.toml", found.name);
        check::parse(&file, found.toml, &|name| found.read(name))
    }

    fn from_file(path: &Path) -> Result<Self, Error> {
        let text =
            read_limited(path).map_err(|source| Error::Unreadable { path: path.display().to_string(), source })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        check::parse(&path.display().to_string(), &text, &|name| read_limited(&folder.join(name)))
    }

    /// A workload from text, with a way to read the SQL files it names.
    pub fn parse(file: &str, text: &str, read_sql: &dyn Fn(&str) -> std::io::Result<String>) -> Result<Self, Error> {
        check::parse(file, text, read_sql)
    }

    /// The workload with only the queries named, in the order named. No names: all queries.
    pub fn select(mut self, names: &[String]) -> Result<Self, Error> {
        if names.is_empty() {
            return Ok(self);
        }
        let mut chosen: Vec<Query> = Vec::new();
        for name in names {
            let Some(query) = self.queries.iter().find(|q| q.name == *name) else {
                return Err(self.unknown_query(name));
            };
            if chosen.iter().all(|q| q.name != *name) {
                chosen.push(query.clone());
            }
        }
        self.queries = chosen;
        Ok(self)
    }

    fn unknown_query(&self, name: &str) -> Error {
        let names: Vec<&str> = self.queries.iter().map(|q| q.name.as_str()).collect();
        let hint = match nearest(name, names.iter().copied()).first() {
            Some(close) => format!("; did you mean {close}?"),
            None => String::new(),
        };
        Error::UnknownQuery { workload: self.name.clone(), name: name.to_owned(), hint, known: names.join(", ") }
    }
}

fn read_limited(path: &Path) -> std::io::Result<String> {
    let size = std::fs::metadata(path)?.len();
    if size > MAX_SQL_BYTES {
        let text = format!("it has {size} bytes, and the limit for such a file is {MAX_SQL_BYTES}");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    std::fs::read_to_string(path)
}
