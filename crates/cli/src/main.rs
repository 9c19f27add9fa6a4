//! The one binary: reads the command line, calls the crates that do the work, and speaks to the user.

mod args;
mod bad_records;
mod cluster_args;
mod commands;
mod config;
mod copies;
mod delivery;
mod ends;
mod fetch;
mod hand_out;
mod messages;
mod out_dir;
mod outcome;
mod process;
mod progress;
mod reading_args;
mod rejected;
mod row_stream;
mod screen;
mod secrets;
mod shell;
mod stop;
mod summary;
mod supervision_args;
mod supervisors;
mod transport_args;
mod verdict;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use args::{Cli, Command};
use screen::Screen;

/// Chunks and columns are allocated and freed all the time, by every thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let command = match config::with_file(Cli::command()) {
        Ok(command) => command,
        Err(error) => return outcome::report(&error, &Screen::new(false)),
    };
    let cli = match command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return outcome::report_usage(&error, std::env::args()),
    };
    let screen = Screen::with_format(cli.quiet, cli.command.message_format());
    // These two say it in their log.
    if !matches!(cli.command, Command::Gateway(_) | Command::Worker(_)) {
        secrets::warnings(std::env::args_os().skip(1)).into_iter().for_each(|warning| screen.say(warning));
    }
    if matches!(cli.command, Command::Run(_) | Command::Demo(_) | Command::Sql(_) | Command::Worker(_)) {
        use_small_pages();
    }
    let done = match cli.command {
        Command::Run(args) => commands::run::run(&args, &screen),
        Command::Demo(args) => commands::demo::demo(&args, &screen),
        Command::Generate(args) => commands::generate::generate(&args, &screen),
        Command::Submit(args) => commands::submit::submit(&args, &screen),
        Command::Sql(args) => commands::sql::sql(&args, &screen),
        Command::Init(args) => commands::init::init(&args, &screen),
        Command::Ui(args) => commands::ui::ui(&args, &screen),
        Command::Explain(args) => commands::explain::explain(&args, &screen),
        Command::Gateway(args) => commands::gateway::gateway(&args, &screen),
        Command::Worker(args) => commands::worker::worker(&args, &screen),
        Command::Supervisor(args) => commands::supervisor::supervisor(&args, &screen),
        Command::Broker(args) => commands::broker::broker(&args, &screen),
        Command::Up(args) => commands::up::up(&args, &screen),
        Command::Status(args) => commands::status::status(&args, &screen),
        Command::Down(args) => commands::down::down(&args, &screen),
        Command::Chaos(args) => commands::chaos::chaos(&args, &screen),
        Command::Probe(args) => commands::probe::probe(&args),
        Command::Completions(args) => commands::completions::completions(&args),
        Command::Man(args) => commands::man::man(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => outcome::report(&error, &screen),
    }
}

/// Columns come and go a few hundred kilobytes at a time. The allocator asks for huge pages, of which the kernel clears all
/// two megabytes whenever one of them is touched again: 17 % of the CPU time of a job, and a quarter of its memory.
fn use_small_pages() {
    // SAFETY: this call touches no memory; it sets a flag of this process. Where it is not known, nothing happens.
    #[cfg(target_os = "linux")]
    unsafe {
        libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0);
    }
}
