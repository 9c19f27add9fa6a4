//! The manifest: which files a job is made of, so that nobody resumes it with others.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use sha2::{Digest, Sha256};
use tenaz_csv::Chunker;

use crate::api::FileEntry;
use crate::cut::{SourceFile, TableFiles, of_file, open};
use crate::limits::SAMPLE_BYTES;
use crate::{Error, limits};

/// The files of all tables, each with a sample of its content.
pub fn manifest(tables: &[TableFiles]) -> Result<Vec<FileEntry>, Error> {
    let mut entries = Vec::new();
    for table in tables {
        for file in &table.files {
            let (name, bytes, sample) = (file.name.clone(), file.bytes, sample(file)?);
            entries.push(FileEntry { table: table.name.clone(), name, bytes, sample });
        }
    }
    Ok(entries)
}

/// Whether the files here are those of the job, in the same order.
///
/// # Errors
/// Names the first file that differs.
pub fn check_manifest(job: &str, entries: &[FileEntry], tables: &[TableFiles]) -> Result<(), Error> {
    let differs =
        |file: &str, what: String| Err(Error::OtherFiles { job: job.to_owned(), file: file.to_owned(), what });
    for table in tables {
        let theirs: Vec<&FileEntry> = entries.iter().filter(|entry| entry.table == table.name).collect();
        if let Some(lost) = theirs.iter().find(|entry| table.files.iter().all(|file| file.name != entry.name)) {
            return differs(&lost.name, "is missing here".to_owned());
        }
        for file in &table.files {
            let Some(entry) = theirs.iter().find(|entry| entry.name == file.name) else {
                return differs(&file.name, format!("of table {} was not there when it began", table.name));
            };
            if entry.bytes != file.bytes {
                return differs(&file.name, format!("has {} bytes here and had {}", file.bytes, entry.bytes));
            }
            if entry.sample != sample(file)? {
                return differs(&file.name, "has the same size and another content here".to_owned());
            }
        }
    }
    Ok(())
}

/// Whether the first lines of all files are the headers that their tables ask for: before anything is sent.
pub fn check_headers(tables: &[TableFiles]) -> Result<(), Error> {
    for table in tables {
        for file in &table.files {
            let reader = open(file, &table.format)?.into_reader();
            let mut chunker = Chunker::new(reader, &table.layout, limits::MIN_CHUNK_BYTES);
            chunker.next_chunk().map_err(|source| of_file(file, source))?;
        }
    }
    Ok(())
}

/// SHA-256 over the first and the last bytes of a file, and its size.
fn sample(file: &SourceFile) -> Result<String, Error> {
    let digest = || {
        let mut open = File::open(&file.path)?;
        let mut hash = Sha256::new();
        let part = file.bytes.min(SAMPLE_BYTES);
        for start in [0, file.bytes - part] {
            open.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            (&mut open).take(part).read_to_end(&mut bytes)?;
            hash.update(&bytes);
        }
        hash.update(file.bytes.to_be_bytes());
        Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    };
    digest().map_err(|source| Error::Unreadable { path: file.path.clone(), source })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;

    use tenaz_csv::{Column, Kind, Layout};

    use super::*;

    fn tables(dir: &std::path::Path) -> Vec<TableFiles> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        let file = |name: String| {
            let path = dir.join(&name);
            SourceFile { bytes: path.metadata().unwrap().len(), path, name, constants: Vec::new() }
        };
        let layout = Arc::new(Layout::new(vec![Column::new("a", Kind::Text)]));
        let format = tenaz_source::FileFormat { has_header: true, ..Default::default() };
        vec![TableFiles { name: "t".to_owned(), layout, format, files: names.into_iter().map(file).collect() }]
    }

    #[test]
    fn the_file_that_differs_is_named_and_how() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        let long = format!("a\n{}", "x\n".repeat(200_000));
        write("one.csv", "a\n1\n");
        write("two.csv", &long);
        let entries = manifest(&tables(dir.path())).unwrap();
        let says = || match check_manifest("j", &entries, &tables(dir.path())) {
            Ok(()) => "same".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(says(), "same");
        write("one.csv", "a\n2\n");
        assert_eq!(says(), "these are not the files of job j: one.csv has the same size and another content here");
        write("one.csv", "a\n1\n");
        write("two.csv", &format!("{}y\n", &long[..long.len() - 2]));
        assert!(says().contains("two.csv has the same size and another content"), "{}", says());
        write("two.csv", &long[2..]);
        assert!(says().contains("two.csv has 400000 bytes here and had 400002"), "{}", says());
        std::fs::remove_file(dir.path().join("two.csv")).unwrap();
        assert!(says().contains("two.csv is missing here"), "{}", says());
        write("two.csv", &long);
        write("three.csv", "a\n");
        assert!(says().contains("three.csv of table t was not there when it began"), "{}", says());
    }

    #[test]
    fn a_wrong_header_is_found_before_anything_is_sent() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("one.csv"), "a\n1\n").unwrap();
        check_headers(&tables(dir.path())).unwrap();
        std::fs::write(dir.path().join("two.csv"), "b\n1\n").unwrap();
        let error = check_headers(&tables(dir.path())).unwrap_err().to_string();
        assert!(error.contains("two.csv: the header does not match"), "{error}");
    }
}
