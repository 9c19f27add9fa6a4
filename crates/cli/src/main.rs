//! The one binary: reads the command line, calls the crates that do the work, and speaks to the user.

mod args;
mod bad_records;
mod cluster_args;
mod commands;
mod config;
mod fetch;
mod hand_out;
mod out_dir;
mod outcome;
mod process;
mod progress;
mod row_stream;
mod screen;
mod stop;
mod summary;
mod supervision_args;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use screen::Screen;

/// Chunks and columns are allocated and freed all the time, by every thread. What it gains over the system's allocator has
/// not been measured yet.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match config::with_file(Cli::command()) {
        Ok(command) => command,
        Err(error) => return outcome::report(&error, &Screen::new(false)),
    };
    let cli = Cli::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit());
    let screen = Screen::new(cli.quiet);
    let done = match cli.command {
        Command::Run(args) => commands::run::run(&args, &screen),
        Command::Demo(args) => commands::demo::demo(&args, &screen),
        Command::Generate(args) => commands::generate::generate(&args, &screen),
        Command::Submit(args) => commands::submit::submit(&args, &screen),
        Command::Sql(args) => commands::sql::sql(&args, &screen),
        Command::Init(args) => commands::init::init(&args, &screen),
        Command::Explain(args) => commands::explain::explain(&args, &screen),
        Command::Gateway(args) => commands::gateway::gateway(&args),
        Command::Worker(args) => commands::worker::worker(&args),
        Command::Supervisor(args) => commands::supervisor::supervisor(&args),
        Command::Broker(args) => commands::broker::broker(&args),
        Command::Up(args) => commands::up::up(&args, &screen),
        Command::Status(args) => commands::status::status(&args, &screen),
        Command::Down(args) => commands::down::down(&args, &screen),
        Command::Chaos(args) => commands::chaos::chaos(&args, &screen),
        Command::Probe(args) => commands::probe::probe(&args),
        Command::Completions(args) => commands::completions::completions(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => outcome::report(&error, &screen),
    }
}
