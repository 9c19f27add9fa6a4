//! `tenaz-sim`: runs seeds, names those that break a rule, and shows one of them step by step.

use std::io::{self, Write};
use std::process::ExitCode;

use tenaz_sim::{Options, Report, run};

const HELP: &str = "\
Simulates the protocol of tenaz with a model of the broker, and kills at chosen steps.

Usage: tenaz-sim --seeds N [--from S]    run N seeds, the first of which is S (default 0)
       tenaz-sim --seed S                run one seed and print its trace and verdict

Exit code: 0 all is well, 1 a rule was broken, 2 usage.
";

enum Command {
    Many { from: u64, seeds: u64 },
    One(u64),
    Help,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    let done = match parse(&words) {
        Ok(Command::Help) => out.write_all(HELP.as_bytes()).map(|()| true),
        Ok(Command::One(seed)) => one(seed, &mut out),
        Ok(Command::Many { from, seeds }) => many(from, seeds, &mut out),
        Err(what) => {
            let _ = write!(io::stderr(), "{what}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    // Whoever closed the output early has seen enough.
    if done.unwrap_or(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(words: &[String]) -> Result<Command, String> {
    let (mut from, mut seeds, mut seed) = (0, None, None);
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let text = words.next().ok_or(format!("{word} needs a number"))?;
            text.parse().map_err(|_| format!("{word} needs a number, but {text:?} is none"))
        };
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--seeds" => seeds = Some(number()?),
            "--from" => from = number()?,
            "--seed" => seed = Some(number()?),
            _ => return Err(format!("{word:?} is not an option")),
        }
    }
    match (seed, seeds) {
        (Some(seed), None) => Ok(Command::One(seed)),
        (None, Some(seeds)) => Ok(Command::Many { from, seeds }),
        _ => Err("give either --seeds N or --seed S".to_owned()),
    }
}

fn one(seed: u64, out: &mut impl Write) -> io::Result<bool> {
    let report = run(&Options { seed, keep_lines: true, ..Options::default() }).map_err(io::Error::other)?;
    for line in &report.lines {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    writeln!(out, "seed {seed}: {:?}, {} steps, trace {:016x}", report.shape, report.steps, report.digest)?;
    writeln!(out, "faults that fired: {:?}", report.fired)?;
    if let Some(poison) = report.poison {
        writeln!(out, "poisoned: {poison}")?;
    }
    writeln!(out, "the job ended: {:?} (concluded {} times)", report.end, report.conclusions)?;
    match &report.violation {
        None => writeln!(out, "all rules held")?,
        Some(rule) => writeln!(out, "BROKEN: {rule}")?,
    }
    Ok(report.violation.is_none())
}

fn many(from: u64, seeds: u64, out: &mut impl Write) -> io::Result<bool> {
    let (mut broken, mut steps, mut fired, mut poisoned) = (0_u64, 0, 0, 0_u64);
    for seed in from..from.saturating_add(seeds) {
        let report: Report = run(&Options { seed, ..Options::default() }).map_err(io::Error::other)?;
        steps += report.steps;
        fired += report.fired.len();
        poisoned += u64::from(report.poison.is_some());
        if let Some(rule) = report.violation {
            broken += 1;
            writeln!(out, "seed {seed} ({:?}): {rule}", report.shape)?;
            writeln!(out, "    replay: cargo run -p tenaz-sim -- --seed {seed}")?;
        }
    }
    writeln!(out, "{seeds} seeds, {steps} steps, {fired} faults fired, {poisoned} poisoned jobs, {broken} broken")?;
    Ok(broken == 0)
}
