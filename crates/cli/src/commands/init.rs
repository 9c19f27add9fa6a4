//! `tenaz init`

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write, stdout};
use std::path::Path;

use anyhow::{Context, Result};
use tenaz_infer::{infer, workload_file};

use crate::args::InitArgs;
use crate::outcome::Usage;
use crate::outcome::stdout_failed;
use crate::screen::Screen;

pub(crate) fn init(args: &InitArgs, screen: &Screen) -> Result<()> {
    let inferred = infer(&args.dir, &args.reading.reading())?;
    let text = workload_file(&inferred);
    for note in &inferred.notes {
        screen.note(note);
    }
    let path = args.out.clone().unwrap_or_else(|| inferred.dir.join("workload.toml"));
    if path.as_os_str() == "-" {
        return stdout().write_all(text.as_bytes()).map_err(stdout_failed);
    }
    write(&path, &text, args.force)?;
    let tables = match inferred.workload.tables.len() {
        1 => "1 table".to_owned(),
        tables => format!("{tables} tables"),
    };
    screen.say(&format!("wrote {} with {tables}", path.display()));
    screen.say(&format!("\nNext: tenaz run {} --data {}", path.display(), inferred.dir.display()));
    Ok(())
}

/// Writes the file; an old one only if it may be replaced.
fn write(path: &Path, text: &str, replace: bool) -> Result<()> {
    let mut options = OpenOptions::new();
    options.write(true);
    let options = if replace { options.create(true).truncate(true) } else { options.create_new(true) };
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {
            let text = format!("{} is already there; add --force to replace it, or --out FILE", path.display());
            Err(Usage(text).into())
        }
        other => other.with_context(|| format!("cannot write {}", path.display())),
    }
}
