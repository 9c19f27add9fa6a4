//! The tables of the data directory and of the files that were dropped.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use tenaz_engine::{Query, Table, Workload, bundled_names};
use tenaz_infer::{Error, Inferred, Reading, Source, infer, overrule};

use crate::problem::Problem;
use crate::server::Shared;

/// Where tables come from, and what was found there when it was last looked at.
#[derive(Debug)]
pub(crate) struct Tables {
    data: Option<PathBuf>,
    dropped: PathBuf,
    reading: Reading,
    types: Vec<String>,
    found: Mutex<Arc<Found>>,
}

/// What was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The tables, without questions, and the directory that their files are relative to.
    pub(crate) inferred: Inferred,
    /// The tables that come from dropped files.
    dropped: BTreeSet<String>,
    /// Why the data directory has no tables, if it has none.
    pub(crate) trouble: Option<String>,
}

impl Tables {
    pub(crate) fn new(data: Option<PathBuf>, dropped: PathBuf, reading: Reading, types: Vec<String>) -> Self {
        let nothing = Found { inferred: nothing(&dropped), dropped: BTreeSet::new(), trouble: None };
        Self { data, dropped, reading, types, found: Mutex::new(Arc::new(nothing)) }
    }

    /// What was found last.
    pub(crate) fn found(&self) -> Arc<Found> {
        Arc::clone(&self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks again.
    pub(crate) fn look(&self) {
        let found = Arc::new(self.find());
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The directory that holds the files of a workload: the data directory or that of dropped files.
    pub(crate) fn dir_of(&self, workload: &Workload) -> Option<PathBuf> {
        let dirs = self.data.iter().chain(std::iter::once(&self.dropped));
        dirs.filter(|dir| dir.is_dir()).find(|dir| fits(workload, dir)).cloned()
    }

    fn find(&self) -> Found {
        let mut trouble = None;
        let mut of_data = self.data.as_deref().and_then(|data| match infer(data, &self.reading) {
            Ok(inferred) => Some(inferred),
            Err(error) => {
                trouble = Some(error.to_string());
                None
            }
        });
        if let Some(inferred) = &mut of_data {
            for list in &self.types {
                if let Err(error) = overrule(&mut inferred.workload, list) {
                    trouble = Some(error.to_string());
                }
            }
        }
        let of_dropped = match infer(&self.dropped, &Reading::default()) {
            Ok(inferred) => Some(inferred),
            Err(Error::NoFiles(_)) => None,
            Err(Error::NothingUsable { notes, .. }) => {
                trouble = Some(notes.join("; "));
                None
            }
            Err(error) => {
                trouble = Some(error.to_string());
                None
            }
        };
        let (inferred, dropped) = merged(of_data, of_dropped, &self.dropped);
        Found { inferred, dropped, trouble }
    }
}

fn nothing(dir: &Path) -> Inferred {
    let workload =
        Workload { name: "page".to_owned(), title: String::new(), tables: Vec::new(), queries: Vec::new(), time: None };
    Inferred { dir: dir.to_owned(), workload, sources: Vec::new(), notes: Vec::new() }
}

/// Tables of both directories, with files named from the root where there are two. A dropped table whose name is taken gets
/// another one.
fn merged(data: Option<Inferred>, dropped: Option<Inferred>, dir: &Path) -> (Inferred, BTreeSet<String>) {
    let names = |inferred: &Inferred| inferred.workload.tables.iter().map(|table| table.name.clone()).collect();
    match (data, dropped) {
        (None, None) => (nothing(dir), BTreeSet::new()),
        (Some(data), None) => (data, BTreeSet::new()),
        (None, Some(dropped)) => {
            let all = names(&dropped);
            (dropped, all)
        }
        (Some(data), Some(dropped)) => {
            let mut taken: BTreeSet<String> = names(&data);
            let mut all = from_root(data);
            let mut added = from_root(dropped);
            let mut new = BTreeSet::new();
            for table in &mut added.workload.tables {
                let name = free_name(&table.name, &taken);
                table.name.clone_from(&name);
                taken.insert(name.clone());
                new.insert(name);
            }
            all.workload.tables.extend(added.workload.tables);
            all.sources.extend(added.sources);
            all.notes.extend(added.notes);
            (all, new)
        }
    }
}

fn free_name(wanted: &str, taken: &BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{wanted}_{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or_default()
}

/// The same tables with their files named from the root of the file system.
fn from_root(inferred: Inferred) -> Inferred {
    let dir = inferred.dir.canonicalize().unwrap_or_else(|_| inferred.dir.clone());
    let above = glob::Pattern::escape(dir.to_string_lossy().trim_start_matches('/'));
    let named = |table: Table| {
        let files = table.files.iter().map(|pattern| format!("{above}/{pattern}")).collect();
        Table { files, ..table }
    };
    let mut workload = inferred.workload;
    workload.tables = workload.tables.into_iter().map(named).collect();
    Inferred { dir: PathBuf::from("/"), workload, ..inferred }
}

/// `GET /v1/tables`
pub(crate) async fn list(State(local): State<Shared>) -> Json<Value> {
    Json(describe(&local))
}

/// `POST /v1/tables`: looks at the files again.
pub(crate) async fn look(State(local): State<Shared>) -> Result<Json<Value>, Problem> {
    let looking = tokio::task::spawn_blocking(move || {
        local.tables.look();
        describe(&local)
    });
    looking.await.map(Json).map_err(Problem::internal)
}

fn describe(local: &Shared) -> Value {
    let found = local.tables.found();
    let inferred = &found.inferred;
    let tables = inferred.workload.tables.iter().zip(&inferred.sources);
    let tables: Vec<Value> = tables.map(|(table, source)| describe_table(table, source, &found)).collect();
    json!({
        "data": local.tables.data.as_ref().map(|data| data.display().to_string()),
        "tables": tables,
        "notes": inferred.notes,
        "trouble": found.trouble,
        "workloads": workloads(&local.tables),
    })
}

fn describe_table(table: &Table, source: &Source, found: &Found) -> Value {
    let columns = table.layout.columns.iter().enumerate().map(|(place, column)| {
        let header = table.labels.get(place).and_then(Option::as_deref).unwrap_or(&column.name);
        json!({"name": column.name, "type": column.kind.to_string(), "header": header})
    });
    let files: Vec<&str> = table.files.iter().map(|file| file.rsplit('/').next().unwrap_or(file)).collect();
    json!({
        "name": table.name,
        "files": if found.dropped.contains(&table.name) { json!(files) } else { json!(table.files) },
        "file_count": source.files,
        "bytes": source.bytes,
        "dropped": found.dropped.contains(&table.name),
        "columns": columns.collect::<Vec<Value>>(),
    })
}

/// The bundled workloads, with those first whose files are here.
fn workloads(tables: &Tables) -> Vec<Value> {
    let describe = |name: &str| {
        let workload = Workload::load(name).ok()?;
        let queries: Vec<Value> = workload.queries.iter().map(describe_query).collect();
        let fits = tables.dir_of(&workload).is_some();
        Some((fits, json!({"name": name, "title": workload.title, "fits": fits, "queries": queries})))
    };
    let mut found: Vec<(bool, Value)> = bundled_names().into_iter().filter_map(describe).collect();
    found.sort_by_key(|(fits, _)| !fits);
    found.into_iter().map(|(_, workload)| workload).collect()
}

fn describe_query(query: &Query) -> Value {
    json!({"name": query.name, "title": query.title, "sql": query.sql})
}

/// Whether there are files for every table of the workload.
fn fits(workload: &Workload, dir: &Path) -> bool {
    let root = glob::Pattern::escape(&dir.to_string_lossy());
    let is_there =
        |pattern: &String| glob::glob(&format!("{root}/{pattern}")).is_ok_and(|mut paths| paths.next().is_some());
    workload.tables.iter().all(|table| table.files.iter().any(is_there))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_table_stands_beside_one_of_the_same_name() {
        let (data, dropped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::write(data.path().join("orders.csv"), "id,n\n1,2\n").unwrap();
        std::fs::write(dropped.path().join("orders.csv"), "id,n\n1,2\n").unwrap();
        let tables =
            Tables::new(Some(data.path().to_owned()), dropped.path().to_owned(), Reading::default(), Vec::new());
        tables.look();
        let found = tables.found();
        let names: Vec<&str> = found.inferred.workload.tables.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["orders", "orders_2"]);
        assert_eq!(found.dropped, BTreeSet::from(["orders_2".to_owned()]));
        assert!(found.trouble.is_none());
        std::fs::remove_file(dropped.path().join("orders.csv")).unwrap();
        tables.look();
        assert_eq!(tables.found().inferred.dir, data.path());
    }

    #[test]
    fn a_directory_without_tables_is_told_and_dropped_files_are_taken_all_the_same() {
        let dropped = tempfile::tempdir().unwrap();
        let tables = Tables::new(Some("/nowhere/at/all".into()), dropped.path().to_owned(), Reading::default(), vec![]);
        std::fs::write(dropped.path().join("a.csv"), "x\n1\n").unwrap();
        tables.look();
        let found = tables.found();
        assert!(found.trouble.as_deref().unwrap().contains("/nowhere/at/all"));
        assert_eq!(found.inferred.workload.tables.len(), 1);
    }
}
