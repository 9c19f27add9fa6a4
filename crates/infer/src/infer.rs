//! From a directory to tables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenaz_core::limits::MAX_TABLES;
use tenaz_csv::{Header, Layout};
use tenaz_engine::limits::MAX_COLUMNS;
use tenaz_engine::{Role, Table, Workload};

use crate::Error;
use crate::find::{Findings, Found, find};
use crate::limits::{DIMENSION_BYTES, MANY_FILES, PROBE_BYTES, SMALL_PROBE_BYTES};
use crate::names::Names;
use crate::probe::{Probe, Shape, probe};
use crate::sample::sample;

/// Tables without queries, and how they came about.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// The directory that the tables' files are relative to.
    pub dir: PathBuf,
    /// The tables.
    pub workload: Workload,
    /// Where each table's records are, in the order of the tables.
    pub sources: Vec<Source>,
    /// What the user should know: files left out, headers that do not fit.
    pub notes: Vec<String>,
}

/// The files of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// How many.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
}

/// Files that make a table.
struct Group {
    wanted_name: String,
    patterns: Vec<String>,
    files: Vec<Found>,
    shape: Shape,
}

/// The tables of a directory: one per CSV file at the top, and one per folder of files of the same shape. `path` may also be a
/// single CSV file.
///
/// # Errors
/// There is nothing to infer from, or a file cannot be read. A file that is empty or no CSV is left out with a note.
pub fn infer(path: &Path) -> Result<Inferred, Error> {
    let (dir, findings) = findings(path)?;
    if findings.files.is_empty() {
        return Err(match findings.notes {
            notes if notes.is_empty() => Error::NoFiles(dir),
            notes => Error::NothingUsable { dir, notes },
        });
    }
    let Findings { files, mut notes, hidden } = findings;
    let groups = groups(files, &hidden, &mut notes)?;
    if groups.is_empty() {
        return Err(Error::NothingUsable { dir, notes });
    }
    if groups.len() > MAX_TABLES {
        return Err(Error::TooMany { dir, what: "tables", limit: MAX_TABLES });
    }
    let sources: Vec<Source> = groups
        .iter()
        .map(|group| Source { files: group.files.len(), bytes: group.files.iter().map(|f| f.bytes).sum() })
        .collect();
    let roles = roles(&sources);
    let mut names = Names::default();
    let mut tables = Vec::new();
    for (group, role) in groups.iter().zip(roles) {
        tables.push(table(group, role, &mut names, &mut notes)?);
    }
    let workload = Workload { name: workload_name(&dir), title: String::new(), tables, queries: Vec::new() };
    Ok(Inferred { dir, workload, sources, notes })
}

fn findings(path: &Path) -> Result<(PathBuf, Findings), Error> {
    if path.is_dir() {
        return Ok((path.to_owned(), find(path)?));
    }
    let (Some(file), Ok(metadata)) = (path.file_name().and_then(|f| f.to_str()), std::fs::metadata(path)) else {
        return Err(Error::NoDirectory(path.to_owned()));
    };
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    let found = Found { folder: String::new(), file: file.to_owned(), path: path.to_owned(), bytes: metadata.len() };
    Ok((dir.to_owned(), Findings { files: vec![found], ..Findings::default() }))
}

/// Looks at every file and puts those together that make a table.
fn groups(files: Vec<Found>, hidden: &[String], notes: &mut Vec<String>) -> Result<Vec<Group>, Error> {
    let bytes = if files.len() > MANY_FILES { SMALL_PROBE_BYTES } else { PROBE_BYTES };
    let mut folders: BTreeMap<String, Vec<(Found, Shape)>> = BTreeMap::new();
    let mut listed: Vec<String> = hidden.to_vec();
    for found in files {
        match probe(&found, bytes)? {
            Probe::Shape(shape) if shape.columns > MAX_COLUMNS => {
                notes.push(format!(
                    "{} is left out: it has {} columns, and the limit is {MAX_COLUMNS}",
                    found.name(),
                    shape.columns
                ));
                listed.push(found.folder);
            }
            Probe::Shape(shape) => folders.entry(found.folder.clone()).or_default().push((found, shape)),
            Probe::Empty => notes.push(format!("{} is left out: it is empty", found.name())),
            Probe::Unusable(reason) => {
                notes.push(format!("{} is left out: {reason}", found.name()));
                listed.push(found.folder);
            }
        }
    }
    let mut groups = Vec::new();
    for (folder, files) in folders {
        let first = &files[0].1;
        if !folder.is_empty() && files.iter().all(|(_, shape)| is_same(first, shape)) {
            groups.push(folder_group(&folder, files, listed.contains(&folder)));
        } else {
            groups.extend(files.into_iter().map(file_group));
        }
    }
    Ok(groups)
}

fn is_same(one: &Shape, other: &Shape) -> bool {
    let names = |shape: &Shape| {
        shape.header.as_ref().map(|names| names.iter().map(|name| name.to_lowercase()).collect::<Vec<_>>())
    };
    one.delimiter == other.delimiter && one.columns == other.columns && names(one) == names(other)
}

/// A folder as one table. `listed`: a pattern would match too much, so the files are listed.
fn folder_group(folder: &str, files: Vec<(Found, Shape)>, listed: bool) -> Group {
    let shape = files[0].1.clone();
    let files: Vec<Found> = files.into_iter().map(|(found, _)| found).collect();
    let patterns = if listed {
        files.iter().map(|found| glob::Pattern::escape(&found.name())).collect()
    } else {
        let mut endings: Vec<&str> = files.iter().map(Found::ending).collect();
        endings.sort_unstable();
        endings.dedup();
        endings.into_iter().map(|ending| format!("{}/*.{ending}", glob::Pattern::escape(folder))).collect()
    };
    Group { wanted_name: folder.to_owned(), patterns, files, shape }
}

fn file_group((found, shape): (Found, Shape)) -> Group {
    let stem = found.stem();
    let wanted_name = if found.folder.is_empty() { stem.to_owned() } else { format!("{}_{stem}", found.folder) };
    Group { wanted_name, patterns: vec![glob::Pattern::escape(&found.name())], files: vec![found], shape }
}

fn table(group: &Group, role: Role, names: &mut Names, notes: &mut Vec<String>) -> Result<Table, Error> {
    let name = names.give(&group.wanted_name, "t").or_else(|| names.give("table_1", "t"));
    let name = name.expect("a name of letters is always given");
    let files: Vec<&Found> = group.files.iter().collect();
    let evidence = sample(&files, &group.shape)?;
    let columns: Vec<_> =
        evidence.iter().zip(column_names(&group.shape)).map(|(evidence, name)| evidence.column(name)).collect();
    let header = match &group.shape.header {
        None => Header::Absent,
        Some(given) => {
            let agree = given.len() == columns.len()
                && given.iter().zip(&columns).all(|(given, column)| given.to_lowercase() == column.name);
            if agree { Header::Check } else { Header::Skip }
        }
    };
    if let Some(given) = &group.shape.header
        && given.len() != columns.len()
    {
        let fields = if columns.len() == 1 { "1 field".to_owned() } else { format!("{} fields", columns.len()) };
        notes.push(format!(
            "{}: the header has {} names, but the records have {fields}; names may belong to a neighbouring column: look before you rely on them",
            group.files[0].name(),
            given.len()
        ));
    }
    let layout = Layout { columns, delimiter: group.shape.delimiter, header };
    Ok(Table { name, files: group.patterns.clone(), role, layout: Arc::new(layout) })
}

/// The names of the columns: those of the header as far as they go, then `c7`, `c8`.
fn column_names(shape: &Shape) -> Vec<String> {
    let mut names = Names::default();
    let given = shape.header.as_deref().unwrap_or_default();
    let name = |column: usize| {
        let given = given.get(column).and_then(|name| names.give(name, "c"));
        given.or_else(|| names.give(&format!("c{}", column + 1), "c")).expect("a name of letters is always given")
    };
    (0..shape.columns).map(name).collect()
}

/// Small tables are dimensions, but never the largest.
fn roles(sources: &[Source]) -> Vec<Role> {
    let largest = (0..sources.len()).rev().max_by_key(|&index| sources[index].bytes);
    let role = |(index, source): (usize, &Source)| {
        if source.bytes <= DIMENSION_BYTES && Some(index) != largest { Role::Dimension } else { Role::Fact }
    };
    sources.iter().enumerate().map(role).collect()
}

/// The directory's name, or `data`.
fn workload_name(dir: &Path) -> String {
    let full = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let name = full.file_name().and_then(|name| name.to_str()).and_then(|name| Names::default().give(name, "data"));
    name.unwrap_or_else(|| "data".to_owned())
}
