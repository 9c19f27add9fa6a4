//! From a directory to tables.

use std::path::{Path, PathBuf};

use tenaz_core::limits::MAX_TABLES;
use tenaz_csv::{Column, Header, Layout};
use tenaz_engine::{Role, Table, Workload};
use tenaz_source::FileFormat;

use crate::Error;
use crate::columns::{Columns, columns};
use crate::find::{Findings, Found, find};
use crate::grouping::{Group, groups};
use crate::limits::DIMENSION_BYTES;
use crate::names::Names;
use crate::reading::Reading;
use crate::sample::{Canonical, Sampled, sample};
use crate::unlabelled::Unlabelled;

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

/// The tables of a directory: one per folder whose files have the same columns, or nearly; at the top, one per file, or per
/// series of files that differ in digits only (`sales_01.csv`, `sales_02.csv`). `path` may also be a single file. What
/// `reading` does not say is guessed.
///
/// # Errors
/// There is nothing to infer from, or a file cannot be read. A file that is no CSV is left out with a note.
pub fn infer(path: &Path, reading: &Reading) -> Result<Inferred, Error> {
    let (dir, findings) = findings(path)?;
    if findings.files.is_empty() {
        return Err(match findings.notes {
            notes if notes.is_empty() => Error::NoFiles(dir),
            notes => Error::NothingUsable { dir, notes },
        });
    }
    let Findings { files, mut notes, hidden, .. } = findings;
    let groups = groups(files, &hidden, reading, &mut notes)?;
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
        tables.push(table(group, role, reading, &mut names, &mut notes)?);
    }
    let workload =
        Workload { name: workload_name(&dir), title: String::new(), tables, queries: Vec::new(), time: None };
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

fn table(
    group: &Group,
    role: Role,
    reading: &Reading,
    names: &mut Names,
    notes: &mut Vec<String>,
) -> Result<Table, Error> {
    let name = names.give(&group.wanted_name, "t").or_else(|| names.give("table_1", "t"));
    let name = name.expect("a name of letters is always given");
    let files: Vec<&Found> = group.files.iter().collect();
    let dialect = &group.shape.dialect;
    let mut format = FileFormat {
        encoding: reading.encoding,
        dialect: dialect.clone(),
        has_header: group.shape.header.is_some() && !group.shape.names_in_comment,
        columns_by_name: group.by_name.clone(),
        drop_repeated_headers: group.shape.repeats_header,
        drop_footnotes: reading.footnotes.unwrap_or(group.shape.footnote.is_some()),
        lenient: reading.lenient,
        ..FileFormat::default()
    };
    let given = group.by_name.as_ref().or(group.shape.header.as_ref());
    let width = group.by_name.as_ref().map_or(group.shape.columns, Vec::len);
    let header = if group.by_name.is_some() { group.by_name.as_deref() } else { group.shape.header_record.as_deref() };
    let canonical = Canonical {
        delimiter: dialect.canonical_delimiter(),
        has_header: format.has_header,
        columns: width,
        header,
        second_table: group.shape.second_table.as_deref(),
        keeps_totals: reading.totals == Some(false),
        keeps_footnotes: reading.footnotes == Some(false),
        nulls: &reading.nulls,
    };
    let Sampled { evidence, repeats_header, total, unlabelled, blank, footnote, .. } =
        sample(&files, &format, canonical)?;
    format.drop_repeated_headers |= repeats_header;
    format.drop_blank = reading.blank.unwrap_or(blank);
    if blank && reading.blank.is_none() {
        notes.push(format!("{name}: records without any value are left out (--blank keep reads them)"));
    }
    let footnote = group.shape.footnote.clone().or(footnote);
    format.drop_footnotes = reading.footnotes.unwrap_or(footnote.is_some());
    if let Some(text) = footnote.filter(|_| reading.footnotes.is_none()) {
        notes.push(format!("{name}: text below the table is left out: {text} (--footnotes keep rejects it)"));
    }
    format.drop_totals = reading.totals.unwrap_or(total.is_some());
    if let Some(total) = total.filter(|_| reading.totals.is_none()) {
        notes.push(format!(
            "{name}: the last record sums others up, and such records are left out: {total} (--totals keep reads them)"
        ));
    }
    match (unlabelled, reading.totals) {
        (None, _) | (_, Some(false)) => {}
        (Some(_), Some(true)) => format.drop_unlabelled = true,
        (Some(Unlabelled::Sum(text)), None) => {
            format.drop_unlabelled = true;
            notes.push(format!(
                "{name}: a record without a label is the sum of the others, and is left out: {text} (--totals keep reads it)"
            ));
        }
        (Some(Unlabelled::Doubtful(text)), None) => notes.push(format!(
            "{name}: only one record has no value in its first column, as lines of totals have: {text} (--totals skip leaves it out)"
        )),
    }
    let column_names = column_names(given.map_or(&[][..], Vec::as_slice), width);
    let names = given.map_or(&[][..], Vec::as_slice);
    let Columns { columns, values, trimmed } =
        columns(&name, column_names, names, &evidence, (dialect.delimiter, reading), notes);
    format.values = values;
    let header = match &group.shape.header {
        None => Header::Absent,
        _ if group.shape.names_in_comment => Header::Absent,
        _ if group.by_name.is_some() => Header::Skip,
        Some(given) => {
            let agree = given.len() == columns.len()
                && given.iter().zip(&columns).all(|(given, column)| given.to_lowercase() == column.name);
            if agree { Header::Check } else { Header::Skip }
        }
    };
    if let Some(given) = &group.shape.header
        && group.by_name.is_none()
        && given.len() != columns.len()
    {
        let fields = if columns.len() == 1 { "1 field".to_owned() } else { format!("{} fields", columns.len()) };
        notes.push(format!(
            "{}: the header has {} names, but the records have {fields}; names may belong to a neighbouring column: look before you rely on them",
            group.files[0].name(),
            given.len()
        ));
    }
    let labels = labels(&columns, given.map_or(&[][..], Vec::as_slice));
    let layout = Layout { columns, delimiter: dialect.canonical_delimiter(), header };
    let table = Table::new(name, group.patterns.clone(), role, layout);
    Ok(Table { format, labels, trimmed, ..table })
}

/// The names of the columns: those of the header as far as they go, then `c7`, `c8`.
fn column_names(given: &[String], columns: usize) -> Vec<String> {
    let mut names = Names::default();
    let name = |column: usize| {
        let given = given.get(column).and_then(|name| names.give(name, "c"));
        given.or_else(|| names.give(&format!("c{}", column + 1), "c")).expect("a name of letters is always given")
    };
    (0..columns).map(name).collect()
}

/// The names in the header, where they are not the columns' names, each once: of several equal names the later ones have numbers.
fn labels(columns: &[Column], given: &[String]) -> Vec<Option<String>> {
    let label = |(index, column): (usize, &Column)| {
        let label: String = given.get(index)?.trim().replace(char::is_control, " ");
        let is_taken = given[..index].iter().any(|earlier| earlier.trim().to_lowercase() == label.to_lowercase());
        (label != column.name && !label.is_empty() && !is_taken).then_some(label)
    };
    columns.iter().enumerate().map(label).collect()
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
