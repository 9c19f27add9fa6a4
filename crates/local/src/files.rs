//! Files dropped onto the page: taken piece by piece into a temporary directory, where they become tables.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path as Named, Query, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenaz_core::ProblemCode;

use crate::limits::{MAX_DROPPED_FILES, MAX_NAME_BYTES};
use crate::problem::Problem;
use crate::server::Shared;

/// Endings by which files are known to be tables; others get `.csv` in addition, because they were dropped on purpose.
const TABLE_ENDINGS: [&str; 4] = ["csv", "tsv", "tab", "psv"];
const PACKINGS: [&str; 7] = ["gz", "zst", "zstd", "bz2", "xz", "lz4", "gzip"];

/// The files that were dropped, and those that are being taken in.
#[derive(Debug)]
pub(crate) struct DroppedFiles {
    dir: Mutex<Option<TempDir>>,
    complete: PathBuf,
    partial: PathBuf,
    files: Mutex<BTreeMap<String, Arc<Mutex<Dropped>>>>,
}

#[derive(Debug)]
struct Dropped {
    size: u64,
    received: u64,
    number: usize,
}

/// Where a piece of a file belongs.
#[derive(Debug, Deserialize)]
pub(crate) struct Piece {
    /// Its first byte in the file.
    from: u64,
    /// Bytes of the whole file.
    size: u64,
}

impl DroppedFiles {
    pub(crate) fn new() -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("tenaz-ui-").tempdir()?;
        let (complete, partial) = (dir.path().join("files"), dir.path().join("partial"));
        std::fs::create_dir(&complete)?;
        std::fs::create_dir(&partial)?;
        Ok(Self { dir: Mutex::new(Some(dir)), complete, partial, files: Mutex::default() })
    }

    /// The directory of complete files.
    pub(crate) fn dir(&self) -> &Path {
        &self.complete
    }

    /// Removes everything.
    pub(crate) fn clear(&self) {
        drop(self.dir.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Takes a piece. It must begin where the last one has ended; says how far the file is.
    fn take(&self, name: &str, piece: &Piece, bytes: &[u8]) -> Result<(u64, bool), Problem> {
        let name = safe_name(name)?;
        let file = self.file(&name, piece)?;
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if file.size != piece.size {
            // Another file of the same name takes its place.
            (file.size, file.received) = (piece.size, 0);
        }
        if piece.from == 0 && (file.received == file.size) {
            file.received = 0;
        }
        if piece.from != file.received || piece.from + bytes.len() as u64 > piece.size {
            let text = format!("{name}: {} bytes are there, and the piece begins at {}", file.received, piece.from);
            return Err(Problem::new(ProblemCode::Contradiction, text).with("received", file.received));
        }
        let path = self.partial.join(file.number.to_string());
        append(&path, file.received, bytes).map_err(|error| Problem::of_file(&error))?;
        file.received += bytes.len() as u64;
        let is_complete = file.received == file.size;
        if is_complete {
            std::fs::rename(&path, self.complete.join(&name)).map_err(|error| Problem::of_file(&error))?;
        }
        Ok((file.received, is_complete))
    }

    fn file(&self, name: &str, piece: &Piece) -> Result<Arc<Mutex<Dropped>>, Problem> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let number = files.len();
        if let Some(known) = files.get(name) {
            return Ok(Arc::clone(known));
        }
        if number >= MAX_DROPPED_FILES {
            let text = format!("at most {MAX_DROPPED_FILES} files can be dropped: start tenaz ui with --data DIR");
            return Err(Problem::new(ProblemCode::TooLarge, text));
        }
        let file = Arc::new(Mutex::new(Dropped { size: piece.size, received: 0, number }));
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn list(&self) -> Vec<Value> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let describe = |(name, file): (&String, &Arc<Mutex<Dropped>>)| {
            let file = file.lock().unwrap_or_else(PoisonError::into_inner);
            json!({"name": name, "size": file.size, "received": file.received})
        };
        files.iter().map(describe).collect()
    }
}

fn append(path: &Path, at: u64, bytes: &[u8]) -> std::io::Result<()> {
    let mut file: File = OpenOptions::new().create(true).write(true).truncate(false).open(path)?;
    file.set_len(at)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

/// The name under which a file is kept: that of the browser, where it cannot lead anywhere else.
fn safe_name(name: &str) -> Result<String, Problem> {
    let name: String = name.chars().map(|c| if c == '/' || c == '\\' || c.is_control() { '_' } else { c }).collect();
    let name = name.trim_start_matches('.').trim().to_owned();
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        let text = format!("a file's name has 1 to {MAX_NAME_BYTES} bytes: rename it");
        return Err(Problem::new(ProblemCode::BadRequest, text));
    }
    let lower = name.to_lowercase();
    let unpacked = PACKINGS.iter().find_map(|packing| lower.strip_suffix(packing)?.strip_suffix('.')).unwrap_or(&lower);
    let is_table = unpacked.rsplit_once('.').is_some_and(|(_, ending)| TABLE_ENDINGS.contains(&ending));
    Ok(if is_table { name } else { format!("{name}.csv") })
}

/// `PUT /v1/files/{name}?from=…&size=…`
pub(crate) async fn put(
    State(local): State<Shared>,
    Named(name): Named<String>,
    Query(piece): Query<Piece>,
    bytes: Bytes,
) -> Result<Json<Value>, Problem> {
    let done = tokio::task::spawn_blocking(move || {
        let (received, is_complete) = local.files.take(&name, &piece, &bytes)?;
        if is_complete {
            local.tables.look();
        }
        Ok(json!({"name": safe_name(&name)?, "received": received, "size": piece.size}))
    });
    done.await.map_err(Problem::internal)?.map(Json)
}

/// `GET /v1/files`
pub(crate) async fn list(State(local): State<Shared>) -> Json<Value> {
    Json(json!({"files": local.files.list()}))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_in_pieces_and_goes_on_where_it_was_cut() {
        let files = DroppedFiles::new().unwrap();
        let take = |from, bytes: &[u8]| files.take("a.csv", &Piece { from, size: 8 }, bytes);
        assert_eq!(take(0, b"a,b\n").unwrap(), (4, false));
        assert!(!files.dir().join("a.csv").exists(), "half a file is no table");
        assert!(take(6, b"2\n").is_err(), "a gap");
        assert!(take(0, b"a,b\n").is_err(), "what is there is not taken twice");
        assert_eq!(files.list()[0]["received"], 4);
        assert_eq!(take(4, b"1,2\n").unwrap(), (8, true));
        assert_eq!(std::fs::read(files.dir().join("a.csv")).unwrap(), b"a,b\n1,2\n");
        let again = files.take("a.csv", &Piece { from: 0, size: 2 }, b"x\n").unwrap();
        assert_eq!((again, std::fs::read(files.dir().join("a.csv")).unwrap()), ((2, true), b"x\n".to_vec()));
        files.clear();
        assert!(!files.dir().exists());
    }

    #[test]
    fn names_lead_nowhere_else_and_always_to_a_table() {
        for (given, kept) in [
            ("orders.csv", "orders.csv"),
            ("orders.csv.gz", "orders.csv.gz"),
            ("notes.txt", "notes.txt.csv"),
            ("../../etc/passwd", "_.._etc_passwd.csv"),
            ("<img src=x>.csv", "<img src=x>.csv"),
            (".hidden.tsv", "hidden.tsv"),
            ("a\nb.csv", "a_b.csv"),
        ] {
            assert_eq!(safe_name(given).unwrap(), kept, "{given:?}");
        }
        assert!(safe_name("..").is_err() && safe_name(&"x".repeat(300)).is_err());
    }
}
