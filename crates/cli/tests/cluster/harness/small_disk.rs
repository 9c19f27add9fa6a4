//! A disk with room for two megabytes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system of its own, gone with this value.
pub struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// A disk at `path`; nothing, with a message, where file systems cannot be mounted.
    pub fn mount(path: PathBuf) -> Option<Self> {
        std::fs::create_dir(&path).expect("a directory");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(&path).output();
        match mounted {
            Ok(mounted) if mounted.status.success() => Some(Self { path }),
            other => {
                eprintln!("skipped: a file system cannot be mounted, which takes root ({other:?})");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Its process may still be about to end.
        let unmounted = Command::new("umount").arg("--lazy").arg(&self.path).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            eprintln!("{} is still mounted", self.path.display());
        }
    }
}
