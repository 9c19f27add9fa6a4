//! Tells this build from others: a digest of all code that decides what a job's messages and answers are.
//!
//! Members of a cluster work together on a job only if they run the same build (`src/build_id.rs`). A number that is
//! raised by hand would be forgotten; the text of the code cannot be.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::error::Error;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

/// The crate whose code, with all crates of this workspace that it depends on, decides what a job's messages and answers are.
const ROOT: &str = "runtime";

fn main() -> Result<(), Box<dyn Error>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = vec![crates.join("../Cargo.lock")];
    let mut names = BTreeSet::new();
    add_with_dependencies(ROOT, &crates, &mut names)?;
    assert!(
        names.contains("cluster") && names.contains("engine"),
        "the dependencies of {ROOT} were not found: {names:?}"
    );
    for name in names {
        let sources = crates.join(&name).join("src");
        println!("cargo:rerun-if-changed={}", crates.join(&name).join("Cargo.toml").display());
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

/// Adds the crate of this name, and those of the workspace that its manifest names as dependencies.
fn add_with_dependencies(name: &str, crates: &Path, found: &mut BTreeSet<String>) -> Result<(), Box<dyn Error>> {
    if !found.insert(name.to_owned()) {
        return Ok(());
    }
    let manifest = fs::read_to_string(crates.join(name).join("Cargo.toml"))?;
    let lines = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    for line in lines.take_while(|line| !line.starts_with('[')) {
        if let Some((dependency, _)) = line.strip_prefix("tenaz-").and_then(|rest| rest.split_once(['.', ' ', '='])) {
            add_with_dependencies(dependency, crates, found)?;
        }
    }
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
