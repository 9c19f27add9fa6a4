//! `tenaz completions`

use std::io::{Write, stdout};

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::outcome::stdout_failed;

pub(crate) fn completions(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tenaz", &mut script);
    stdout().write_all(&script).map_err(stdout_failed)
}
