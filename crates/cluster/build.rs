//! Tells this build from others: a digest of all code that decides what a job's messages and answers are.
//!
//! Members of a cluster work together on a job only if they run the same build (`src/build_id.rs`). A number that is
//! raised by hand would be forgotten; the text of the code cannot be.

use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

/// The crates that plan, compute, encode or decide.
const CRATES: [&str; 6] = ["cluster", "core", "csv", "engine", "runtime", "text"];

fn main() -> Result<(), Box<dyn Error>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![crates.join("../Cargo.lock")];
    for name in CRATES {
        let sources = crates.join(name).join("src");
        println!("cargo:rerun-if-changed={}", sources.display());
        walk(&sources, &mut files)?;
    }
    println!("cargo:rerun-if-changed={}", files[0].display());
    files.sort();
    // Two different keys for one hash of 64 bits make one of 128.
    let (mut first, mut second) = (DefaultHasher::new(), DefaultHasher::new());
    second.write(b"tenaz");
    for file in files {
        let text = fs::read(&file)?;
        for hasher in [&mut first, &mut second] {
            hasher.write_usize(text.len());
            hasher.write(&text);
        }
    }
    println!("cargo:rustc-env=TENAZ_BUILD_ID={:016x}{:016x}", first.finish(), second.finish());
    Ok(())
}

fn walk(dir: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
