//! `tenaz man`

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::args::{Cli, ManArgs};

/// Writes `tenaz.1`, and a page for each subcommand that is not hidden.
pub(crate) fn man(args: &ManArgs) -> Result<()> {
    let dir = &args.dir;
    let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(Cli::command(), dir));
    written.with_context(|| format!("cannot write manual pages to {}", dir.display()))
}
