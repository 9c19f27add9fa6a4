//! Result files: written beside their final names, and renamed when they are complete, one by one or all at once.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A directory in which files appear complete or not at all.
#[derive(Debug)]
pub(crate) struct OutDir {
    dir: PathBuf,
    parts: Vec<(PathBuf, PathBuf)>,
    /// The files under temporary names, locked as long as this process lives.
    locked: Vec<File>,
    stale: Vec<PathBuf>,
}

impl OutDir {
    /// Makes the directory and checks that files can be written there, before any work is done.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make the directory {}", dir.display()))?;
        tempfile::tempfile_in(dir).with_context(|| format!("cannot write into {}", dir.display()))?;
        remove_leftovers(dir);
        Ok(Self { dir: dir.to_owned(), parts: Vec::new(), locked: Vec::new(), stale: Vec::new() })
    }

    /// Writes a file and gives it its final name.
    pub(crate) fn place(&mut self, name: &str, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
        self.write(name, fill)?;
        // Until it has its name it is litter, which goes with this directory.
        if let Some((part, path)) = self.parts.last() {
            fs::rename(part, path).with_context(|| format!("cannot write {}", path.display()))?;
            self.parts.pop();
        }
        Ok(())
    }

    /// Removes a file of an earlier run now.
    pub(crate) fn take_away(&self, name: &str) -> Result<()> {
        remove_old(&self.dir.join(name))
    }

    /// Writes a file under a temporary name.
    pub(crate) fn write(&mut self, name: &str, fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<()> {
        let path = self.dir.join(name);
        let part = self.dir.join(format!(".{name}.{}.part", std::process::id()));
        let failed = || format!("cannot write {}", path.display());
        self.parts.push((part.clone(), path.clone()));
        let file = File::create(&part).with_context(failed)?;
        // Where files cannot be locked, what a killed process leaves behind stays.
        let _ = file.try_lock();
        self.locked.extend(file.try_clone());
        let mut out = BufWriter::with_capacity(1 << 16, file);
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
        std::mem::take(&mut self.stale).iter().try_for_each(|path| remove_old(path))?;
        for (part, path) in &self.parts {
            fs::rename(part, path).with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.parts.clear();
        Ok(())
    }
}

fn remove_old(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(e).with_context(|| format!("cannot remove the old {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Removes the files under temporary names of processes that were killed: nobody holds their locks.
fn remove_leftovers(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_part = name.starts_with('.')
            && name
                .strip_suffix(".part")
                .and_then(|name| name.rsplit_once('.'))
                .is_some_and(|(_, id)| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
        if is_part && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            // What cannot be removed is in nobody's way.
            let _ = fs::remove_file(&path);
        }
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_of_killed_processes_are_removed_and_those_of_living_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let names = |dir: &Path| {
            let mut names: Vec<String> =
                fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        fs::write(dir.path().join(".q1.csv.4711.part"), "half").unwrap();
        fs::write(dir.path().join(".notes.part"), "mine").unwrap();
        let mut living = OutDir::create(dir.path()).unwrap();
        assert_eq!(names(dir.path()), [".notes.part"]);
        living.write("q1.csv", |out| Ok(out.write_all(b"a\n")?)).unwrap();
        let other = OutDir::create(dir.path()).unwrap();
        assert_eq!(names(dir.path()).len(), 2, "the file of a living process stays");
        drop(other);
        living.commit().unwrap();
        assert_eq!(names(dir.path()), [".notes.part", "q1.csv"]);
    }
}
