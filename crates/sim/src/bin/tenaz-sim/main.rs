//! `tenaz-sim`: runs seeds and pairs of faults, names those that break a rule, and shows one of them step by step.

mod command;
mod sweep;

use std::io::{self, Write};
use std::process::ExitCode;

use tenaz_sim::{Options, run};

use command::{Command, HELP};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    let done = match command::parse(&words) {
        Ok(Command::Help) => out.write_all(HELP.as_bytes()).map(|()| true),
        Ok(Command::One(options)) => one(&options, &mut out),
        Ok(Command::Seeds { options, from, seeds, extent }) => sweep::seeds(&options, from, seeds, extent, &mut out),
        Ok(Command::Pairs { shape, seed, extent }) => sweep::pairs(shape, seed, extent, &mut out),
        Err(what) => {
            let _ = write!(io::stderr(), "{what}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    // Whoever closed the output early has seen enough.
    if done.unwrap_or(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(options: &Options, out: &mut impl Write) -> io::Result<bool> {
    let report = run(options).map_err(io::Error::other)?;
    for line in &report.lines {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    writeln!(out, "seed {}: {:?}, {} steps, trace {:016x}", report.seed, report.shape, report.steps, report.digest)?;
    writeln!(out, "faults that fired: {:?}", report.fired)?;
    for (job, (end, allowed)) in report.ends.iter().zip(&report.allowed).enumerate() {
        if let Some(poison) = allowed.poison {
            writeln!(out, "poisoned: {poison} of job {job}")?;
        }
        writeln!(out, "job {job} ended: {end:?}")?;
    }
    match &report.violation {
        None => writeln!(out, "all rules held")?,
        Some(rule) => writeln!(out, "BROKEN: {rule}")?,
    }
    Ok(report.violation.is_none())
}
