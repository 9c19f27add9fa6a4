//! What is asked for on the command line.

use std::time::Duration;

use tenaz_sim::{Fault, Options, Plan, SHAPES, Shape};

/// The text of `--help`.
pub(crate) const HELP: &str = "\
Simulates workers, client and broker of a job, and lets things go wrong at chosen steps.

Usage: tenaz-sim --seeds N [--from S] [--jobs J] [--for TIME] [--shape SHAPE] [--beside-poison]
           run N seeds, the first of which is S (default 0), on J threads (default 2), for at most TIME (30s, 30m, 8h);
           without --seeds as many as TIME allows
       tenaz-sim --pairs SHAPE [--seed S] [--jobs J] [--for TIME]
           every pair of faults within 100 steps of each other in a small job, or as many of them as TIME allows
       tenaz-sim --seed S [--shape SHAPE] [--beside-poison] [--faults LIST | --plan LIST]
           run one seed and print its trace and verdict; LIST is STEP:FAULT[:SLOT][:STEPS],...
           instead of the seed's own faults (--faults), or in a small job (--plan)

--beside-poison: two jobs, the first of which has a task that kills whoever runs it
SHAPE: aggregate, dimension, join, filter, chain, innerbroadcast, twoqueries, waves
Exit code: 0 all is well, 1 a rule was broken, 2 usage.
";

/// What is to be done.
pub(crate) enum Command {
    /// Many seeds.
    Seeds {
        options: Options,
        from: u64,
        seeds: u64,
        extent: Extent,
    },
    /// Every pair of faults.
    Pairs {
        shape: Shape,
        seed: u64,
        extent: Extent,
    },
    /// One run, with its trace.
    One(Options),
    Help,
}

/// How much is done at once, and for how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) threads: usize,
    pub(crate) time: Option<Duration>,
}

/// The words of the command line as values.
#[derive(Default)]
struct Given {
    from: u64,
    seeds: Option<u64>,
    seed: Option<u64>,
    threads: Option<u64>,
    time: Option<Duration>,
    shape: Option<Shape>,
    pairs: Option<Shape>,
    faults: Option<Plan>,
    plan: Option<Plan>,
    beside_poison: bool,
}

/// What the words ask for.
pub(crate) fn parse(words: &[String]) -> Result<Command, String> {
    let mut given = Given::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut text = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--help" | "-h" => return Ok(Command::Help),
            "--seeds" => given.seeds = Some(number(text()?)?),
            "--from" => given.from = number(text()?)?,
            "--seed" => given.seed = Some(number(text()?)?),
            "--jobs" => given.threads = Some(number(text()?)?),
            "--for" => given.time = Some(time(text()?)?),
            "--shape" => given.shape = Some(shape(text()?)?),
            "--pairs" => given.pairs = Some(shape(text()?)?),
            "--faults" => given.faults = Some(plan(text()?)?),
            "--beside-poison" => given.beside_poison = true,
            "--plan" => given.plan = Some(plan(text()?)?),
            _ => return Err(format!("{word:?} is not an option")),
        }
    }
    given.command()
}

impl Given {
    fn command(self) -> Result<Command, String> {
        let extent = Extent { threads: self.threads.unwrap_or(2).clamp(1, 256) as usize, time: self.time };
        let seed = self.seed.unwrap_or_default();
        let options = Options { seed, shape: self.shape, beside_poison: self.beside_poison, ..Options::default() };
        match (self.pairs, self.seeds, self.seed) {
            (Some(shape), None, _) => Ok(Command::Pairs { shape, seed: self.seed.unwrap_or(1), extent }),
            (None, None, Some(_)) => {
                Ok(Command::One(Options { faults: self.faults, plan: self.plan, keep_lines: true, ..options }))
            }
            (None, Some(seeds), None) => Ok(Command::Seeds { options, from: self.from, seeds, extent }),
            (None, None, None) if extent.time.is_some() => {
                Ok(Command::Seeds { options, from: self.from, seeds: u64::MAX - self.from, extent })
            }
            _ => Err("give one of --seeds N, --for TIME, --pairs SHAPE, --seed S".to_owned()),
        }
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number"))
}

fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return Err(format!("{text:?} is not a time: write 30s, 30m or 8h")),
    };
    Ok(Duration::from_secs(number(digits)?.saturating_mul(seconds)))
}

fn shape(text: &str) -> Result<Shape, String> {
    let found = SHAPES.into_iter().find(|shape| format!("{shape:?}").eq_ignore_ascii_case(text));
    found.ok_or(format!("{text:?} is no shape of a job"))
}

fn plan(text: &str) -> Result<Plan, String> {
    text.split(',').filter(|item| !item.is_empty()).map(planned).collect()
}

fn planned(item: &str) -> Result<(u64, Fault), String> {
    let (step, fault) = item.split_once(':').ok_or(format!("{item:?} is not STEP:FAULT"))?;
    Ok((number(step)?, fault.parse()?))
}
