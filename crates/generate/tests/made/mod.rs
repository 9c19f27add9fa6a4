//! A data set made in a temporary directory, and ways to look at it.
#![allow(dead_code, unreachable_pub, reason = "every test file uses its own share of this")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tenaz_generate::{Dataset, Options, Written, generate};

pub struct Made {
    pub dir: tempfile::TempDir,
    pub written: Written,
}

impl Made {
    pub fn new(dataset: Dataset, scale: f64, seed: u64, threads: usize) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = Options { scale, seed, threads };
        let written = generate(dataset, dir.path(), &options, &|_| {}).expect("generate");
        Self { dir, written }
    }

    /// Every file below the directory by its relative path.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.dir.path(), self.dir.path(), &mut files);
        files
    }

    /// The records of one file, header checked against `header`; every record has `fields` fields.
    pub fn records(&self, name: &str, header: &str, fields: usize) -> Vec<csv::StringRecord> {
        let path = self.dir.path().join(name);
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_path(&path).expect("the file exists");
        let mut records: Vec<_> = reader.records().collect::<Result<_, _>>().expect("valid CSV and UTF-8");
        let first = records.remove(0);
        assert_eq!(first.iter().collect::<Vec<_>>().join(","), header, "{name}");
        for record in &records {
            assert_eq!(record.len(), fields, "{name}: {record:?}");
        }
        records
    }
}

fn collect(root: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            files.insert(path.strip_prefix(root).expect("below root").to_owned(), fs::read(&path).expect("read"));
        }
    }
}
