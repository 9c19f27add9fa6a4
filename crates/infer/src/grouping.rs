//! Which files are one table.
//!
//! Files of a folder are, where they have the same columns; where columns differ but most are the same, they are found by name,
//! and what a file does not have is null there. Folders such as `year=2025/month=03` are no folders but columns. At the top of the
//! directory a series of files whose names differ in digits only is one table.

use std::collections::BTreeMap;

use tenaz_engine::limits::MAX_COLUMNS;

use crate::Error;
use crate::find::Found;
use crate::limits::{MANY_FILES, PROBE_BYTES, SMALL_PROBE_BYTES};
use crate::probe::{Probe, Shape, probe};
use crate::reading::Reading;

/// Files that make a table.
pub(crate) struct Group {
    pub(crate) wanted_name: String,
    pub(crate) patterns: Vec<String>,
    pub(crate) files: Vec<Found>,
    /// That of the first file.
    pub(crate) shape: Shape,
    /// The columns of all files by name, where they are not the same in all.
    pub(crate) by_name: Option<Vec<String>>,
    /// Not every file has all of them.
    pub(crate) lacks_columns: bool,
}

type Looked = (Found, Shape);

/// Looks at every file and puts those together that make a table.
pub(crate) fn groups(
    files: Vec<Found>,
    hidden: &[String],
    reading: &Reading,
    notes: &mut Vec<String>,
) -> Result<Vec<Group>, Error> {
    let bytes = if files.len() > MANY_FILES { SMALL_PROBE_BYTES } else { PROBE_BYTES };
    let mut series: BTreeMap<(String, Option<String>), Vec<Looked>> = BTreeMap::new();
    let mut listed: Vec<String> = hidden.to_vec();
    let mut empty = Vec::new();
    for found in files {
        match probe(&found, bytes, reading)? {
            Probe::Shape(shape) if shape.columns > MAX_COLUMNS => {
                let (name, columns) = (found.name(), shape.columns);
                notes.push(format!("{name} is left out: it has {columns} columns, and the limit is {MAX_COLUMNS}"));
                listed.push(found.folder);
            }
            Probe::Shape(shape) => {
                let folder = found.base_folder();
                let stem = folder.is_empty().then(|| without_digits(found.stem()));
                series.entry((folder, stem)).or_default().push((found, shape));
            }
            Probe::Empty => empty.push(found),
            Probe::Unusable(reason) => {
                notes.push(format!("{} is left out: {reason}", found.name()));
                listed.push(found.folder);
            }
        }
    }
    for found in empty {
        let folder = found.base_folder();
        let stem = folder.is_empty().then(|| without_digits(found.stem()));
        // One of several files: it has no records. Alone it is a table without any.
        if series.contains_key(&(folder.clone(), stem.clone())) {
            notes.push(format!("{} is empty: it adds no records", found.name()));
            continue;
        }
        notes.push(format!("{} is empty: a table without records, with one column", found.name()));
        series.insert((folder, stem), vec![(found, Shape::of_nothing())]);
    }
    let mut groups = Vec::new();
    for ((folder, stem), files) in series {
        let wanted_name = stem.as_deref().unwrap_or(&folder).trim_matches(['_', '-', ' ', '.']).to_owned();
        let is_pattern = stem.is_none() && files.iter().all(|(found, _)| found.folder == folder);
        groups.extend(tables_of(wanted_name, &folder, files, is_pattern && !listed.contains(&folder), reading, notes));
    }
    groups.sort_by(|one, other| one.files[0].cmp(&other.files[0]));
    for group in &groups {
        say(group, notes);
    }
    Ok(groups)
}

/// The name of a series: its file names without digits.
fn without_digits(stem: &str) -> String {
    let mut name = String::new();
    for c in stem.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }) {
        if c != '0' || !name.ends_with('0') {
            name.push(c);
        }
    }
    // Only a number at the end, perhaps of several parts, makes a series.
    let base = name.trim_end_matches(['0', '_', '-', '.', ' ']);
    if base.is_empty() || base == name { stem.to_owned() } else { base.to_owned() }
}

/// One table if the files allow it, or one for each.
fn tables_of(
    wanted_name: String,
    folder: &str,
    files: Vec<Looked>,
    is_pattern: bool,
    reading: &Reading,
    notes: &mut Vec<String>,
) -> Vec<Group> {
    let constants: Vec<String> = files[0].0.constants().into_iter().map(|(name, _)| name).collect();
    let first = &files[0].1;
    let alone = files.len() == 1 && constants.is_empty() && folder.is_empty();
    let apart = reading.union == Some(false) || !files.iter().all(|(_, shape)| shape.dialect == first.dialect);
    if alone || (apart && files.len() > 1) {
        if files.len() > 1 && !folder.is_empty() {
            notes.push(format!(
                "the {} files of {folder} are a table each: they are written in different ways",
                files.len()
            ));
        }
        return files.into_iter().map(file_group).collect();
    }
    if constants.is_empty() && files.iter().all(|(_, shape)| is_same(first, shape)) {
        return vec![series_group(wanted_name, folder, files, is_pattern, None)];
    }
    match common_columns(&files, &constants, reading.union == Some(true)) {
        Some(columns) => vec![series_group(wanted_name, folder, files, is_pattern, Some(columns))],
        None => {
            if !folder.is_empty() {
                let what = "their columns differ (--union makes one table of them)";
                notes.push(format!("the {} files of {folder} are a table each: {what}", files.len()));
            }
            files.into_iter().map(file_group).collect()
        }
    }
}

fn lower(names: &[String]) -> Vec<String> {
    names.iter().map(|name| name.trim().to_lowercase()).collect()
}

fn is_same(one: &Shape, other: &Shape) -> bool {
    one.columns == other.columns && one.header.as_deref().map(lower) == other.header.as_deref().map(lower)
}

/// Whether two files have the same columns, in any order.
fn same_names(one: &Shape, other: &Shape) -> bool {
    let sorted = |shape: &Shape| {
        let mut names = shape.header.as_deref().map(lower).unwrap_or_default();
        names.sort_unstable();
        names
    };
    sorted(one) == sorted(other)
}

/// The columns of all files by name, if every file shares most of its columns with the others (or must, because the user says so).
fn common_columns(files: &[Looked], constants: &[String], must: bool) -> Option<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    for (index, (_, shape)) in files.iter().enumerate() {
        let header = shape.header.as_ref().filter(|_| !shape.names_in_comment)?;
        let known = lower(&all);
        let names = lower(header);
        // Columns are found by their names, so these must be unlike.
        let mut unlike = names.clone();
        unlike.sort_unstable();
        unlike.dedup();
        if unlike.len() != names.len() || names.iter().any(String::is_empty) {
            return None;
        }
        let shared = names.iter().filter(|name| known.contains(name)).count();
        if index > 0 && !must && shared * 3 < 2 * names.len().min(known.len()) {
            return None;
        }
        let new = header.iter().filter(|name| !known.contains(&name.trim().to_lowercase()));
        all.extend(new.cloned());
    }
    let known = lower(&all);
    all.extend(constants.iter().filter(|name| !known.contains(&name.to_lowercase())).cloned());
    Some(all)
}

/// A series of files as one table. `is_pattern`: a pattern matches just these files.
fn series_group(
    wanted_name: String,
    folder: &str,
    files: Vec<Looked>,
    is_pattern: bool,
    by_name: Option<Vec<String>>,
) -> Group {
    let mut shape = files[0].1.clone();
    let lacks_columns =
        files.iter().any(|(_, other)| other.columns != files[0].1.columns || !same_names(&shape, other));
    shape.repeats_header = files.iter().any(|(_, shape)| shape.repeats_header);
    shape.footnote = files.iter().find_map(|(_, shape)| shape.footnote.clone());
    for (_, other) in &files[1..] {
        let new: Vec<String> = other.said.iter().filter(|said| !shape.said.contains(said)).cloned().collect();
        shape.said.extend(new);
    }
    let files: Vec<Found> = files.into_iter().map(|(found, _)| found).collect();
    let patterns = if is_pattern {
        let mut endings: Vec<&str> = files.iter().map(Found::ending).collect();
        endings.sort_unstable();
        endings.dedup();
        endings.into_iter().map(|ending| format!("{}/*.{ending}", glob::Pattern::escape(folder))).collect()
    } else {
        files.iter().map(|found| glob::Pattern::escape(&found.name())).collect()
    };
    Group { wanted_name, patterns, files, shape, by_name, lacks_columns }
}

fn file_group((found, shape): Looked) -> Group {
    let (stem, folder) = (found.stem(), found.base_folder());
    let wanted_name = if folder.is_empty() { stem.to_owned() } else { format!("{folder}_{stem}") };
    Group {
        wanted_name,
        patterns: vec![glob::Pattern::escape(&found.name())],
        files: vec![found],
        shape,
        by_name: None,
        lacks_columns: false,
    }
}

/// What was guessed about a table, one line each.
fn say(group: &Group, notes: &mut Vec<String>) {
    let first = group.files[0].name();
    let whose =
        if group.files.len() == 1 { first } else { format!("{} ({} files)", group.wanted_name, group.files.len()) };
    notes.extend(group.shape.said.iter().map(|said| format!("{whose}: {said}")));
    if let (Some(columns), true, true) = (&group.by_name, group.files.len() > 1, group.lacks_columns) {
        let what = "not every file has all of them, and what a file does not have is null there (--apart makes a table of each)";
        notes.push(format!("{whose}: one table with {} columns by name; {what}", columns.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_their_last_number_are_a_series() {
        assert_eq!(without_digits("sales_2025-01"), "sales");
        assert_eq!(without_digits("sales_2025_01_31"), "sales");
        assert_eq!(without_digits("t1"), "t");
        assert_eq!(without_digits("2024"), "2024");
        assert_eq!(without_digits("q1_report"), "q1_report");
        assert_eq!(without_digits("orders"), "orders");
    }
}
