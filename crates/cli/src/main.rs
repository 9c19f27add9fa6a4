//! The one binary: reads the command line, calls the crates that do the work, and speaks to the user.

mod args;
mod commands;
mod out_dir;
mod outcome;
mod progress;
mod screen;
mod stop;
mod summary;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use screen::Screen;

/// Chunks and columns are allocated and freed all the time, by every thread: measured 1.3 times as fast as the
/// system's allocator on coffee data.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let screen = Screen::new(cli.quiet);
    let done = match cli.command {
        Command::Run(args) => commands::run::run(&args, &screen),
        Command::Demo(args) => commands::demo::demo(&args, &screen),
        Command::Generate(args) => commands::generate::generate(&args, &screen),
        Command::Sql(args) => commands::sql::sql(&args, &screen),
        Command::Init(args) => commands::init::init(&args, &screen),
        Command::Explain(args) => commands::explain::explain(&args, &screen),
        Command::Completions(args) => commands::completions::completions(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => outcome::report(&error, &screen),
    }
}
