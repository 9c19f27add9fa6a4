//! The files of a data directory, by table.

use std::path::{Path, PathBuf};

use tenaz_engine::{JobPlan, Workload};

use crate::Error;
use crate::limits::MAX_FILES;

/// One file of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// The path to open.
    pub path: PathBuf,
    /// The path as reports name it: relative to the data directory.
    pub name: String,
    /// Its size when it was found.
    pub bytes: u64,
}

impl DataFile {
    /// The columns whose value stands in the path: `year=2025/month=03/sales.csv` has a year and a month.
    pub fn constants(&self) -> Vec<(String, String)> {
        let folders = self.name.rsplit_once('/').map_or("", |(folders, _)| folders);
        let parts = folders.split('/').filter_map(|part| part.split_once('='));
        parts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }
}

/// The files of every table that a job reads; other tables have none.
#[derive(Debug, Clone, Default)]
pub struct DataSet {
    tables: Vec<Vec<DataFile>>,
}

impl DataSet {
    /// Finds the files of the tables that `plan` reads. Files are taken in the order of their names.
    pub fn find(dir: &Path, workload: &Workload, plan: &JobPlan) -> Result<Self, Error> {
        if !dir.is_dir() {
            return Err(Error::NoDirectory(dir.to_owned()));
        }
        let mut tables = vec![Vec::new(); workload.tables.len()];
        for scan in &plan.scans {
            let index = usize::from(scan.table.0);
            let table = &workload.tables[index];
            let mut files = Vec::new();
            for pattern in &table.files {
                files.extend(matching(dir, pattern)?);
            }
            files.sort_by(|a: &DataFile, b| a.name.cmp(&b.name));
            files.dedup();
            if files.is_empty() {
                let patterns = table.files.join(" or ");
                return Err(Error::NoFiles { table: table.name.clone(), dir: dir.to_owned(), patterns });
            }
            if files.len() > MAX_FILES {
                return Err(Error::TooManyFiles { table: table.name.clone(), found: files.len(), limit: MAX_FILES });
            }
            tables[index] = files;
        }
        Ok(Self { tables })
    }

    /// The files of one table.
    pub fn files(&self, table: usize) -> &[DataFile] {
        &self.tables[table]
    }

    /// The bytes of one table.
    pub fn table_bytes(&self, table: usize) -> u64 {
        self.tables[table].iter().map(|f| f.bytes).sum()
    }

    /// The bytes of all tables.
    pub fn bytes(&self) -> u64 {
        (0..self.tables.len()).map(|table| self.table_bytes(table)).sum()
    }
}

fn matching(dir: &Path, pattern: &str) -> Result<Vec<DataFile>, Error> {
    let root = glob::Pattern::escape(&dir.to_string_lossy());
    let full = format!("{root}/{pattern}");
    let paths = glob::glob(&full).expect("the pattern was checked when the workload was read");
    let mut files = Vec::new();
    for path in paths {
        let path = path.map_err(|e| Error::Unreadable { path: e.path().to_owned(), source: e.into() })?;
        let unreadable = |source| Error::Unreadable { path: path.clone(), source };
        let metadata = std::fs::metadata(&path).map_err(unreadable)?;
        if metadata.is_file() {
            let name = path.strip_prefix(dir).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(DataFile { name, bytes: metadata.len(), path });
        } else if is_named_like_a_file(pattern) {
            return Err(Error::NotAFile { what: if metadata.is_dir() { "a directory" } else { "no file" }, path });
        }
    }
    Ok(files)
}

/// Whether what matches the pattern is expected to be a file: `*.csv` matches nothing else that should be passed over.
fn is_named_like_a_file(pattern: &str) -> bool {
    pattern.rsplit('/').next().is_some_and(|name| name.contains('.'))
}
