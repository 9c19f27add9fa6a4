//! Result files: written beside their final names, and renamed when all of them are complete.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A directory in which files appear all at once or not at all.
#[derive(Debug)]
pub(crate) struct OutDir {
    dir: PathBuf,
    parts: Vec<(PathBuf, PathBuf)>,
    stale: Vec<PathBuf>,
}

impl OutDir {
    /// Makes the directory and checks that files can be written there, before any work is done.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
        tempfile::tempfile_in(dir).with_context(|| format!("cannot write into {}", dir.display()))?;
        Ok(Self { dir: dir.to_owned(), parts: Vec::new(), stale: Vec::new() })
    }

    /// Writes a file under a temporary name.
    pub(crate) fn write(&mut self, name: &str, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
        let path = self.dir.join(name);
        let part = self.dir.join(format!(".{name}.{}.part", std::process::id()));
        let failed = || format!("cannot write {}", path.display());
        self.parts.push((part.clone(), path.clone()));
        let mut out = BufWriter::with_capacity(1 << 16, File::create(&part).with_context(failed)?);
        fill(&mut out).with_context(failed)?;
        out.flush().with_context(failed)?;
        Ok(())
    }

    /// A file of an earlier run that would be wrong now.
    pub(crate) fn remove(&mut self, name: &str) {
        self.stale.push(self.dir.join(name));
    }

    /// Gives all files their final names.
    pub(crate) fn commit(mut self) -> Result<()> {
        for path in std::mem::take(&mut self.stale) {
            match fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                    return Err(e).with_context(|| format!("cannot remove the old {}", path.display()));
                }
                _ => {}
            }
        }
        for (part, path) in &self.parts {
            fs::rename(part, path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.parts.clear();
        Ok(())
    }
}

impl Drop for OutDir {
    fn drop(&mut self) {
        for (part, _) in &self.parts {
            // What cannot be removed was never created, or is beyond our reach.
            let _ = fs::remove_file(part);
        }
    }
}
