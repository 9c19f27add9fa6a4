//! Many runs, side by side: what they covered, and the least that breaks a rule.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tenaz_core::End;
use tenaz_sim::{FAULT_KINDS, Options, Pairs, Report, Shape, run, shrink};

use crate::command::Extent;

/// So many broken runs are shown.
const MAX_SHOWN: usize = 20;

/// What was covered.
#[derive(Default)]
struct Tally {
    runs: u64,
    steps: u64,
    poisoned: u64,
    changed: u64,
    jobs: u64,
    /// Runs that went on until all jobs were removed.
    removed: u64,
    /// How often a job was written into the registry again.
    mentions: u64,
    /// How jobs ended.
    ends: BTreeMap<String, u64>,
    fired: [u64; FAULT_KINDS.len()],
    /// Broken runs by their number.
    broken: Vec<(u64, Options)>,
}

impl Tally {
    fn add(&mut self, number: u64, options: Options, report: &Report) {
        self.runs += 1;
        self.steps += report.steps;
        self.poisoned += report.allowed.iter().filter(|job| job.poison.is_some()).count() as u64;
        self.changed += report.allowed.iter().filter(|job| job.changed.is_some()).count() as u64;
        self.jobs += report.ends.len() as u64;
        self.removed += u64::from(report.until_removed);
        self.mentions += report.mentions;
        for end in report.ends.iter().flatten() {
            let name = match end {
                End::Done(_) => "done",
                End::Failed { code, .. } => code,
                End::Cancelled => "cancelled",
                End::Expired => "expired",
            };
            *self.ends.entry(name.to_owned()).or_default() += 1;
        }
        report.fired.iter().for_each(|fault| self.fired[fault.kind()] += 1);
        if report.violation.is_some() {
            self.broken.push((number, options));
        }
    }

    fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.poisoned += other.poisoned;
        self.changed += other.changed;
        self.jobs += other.jobs;
        self.removed += other.removed;
        self.mentions += other.mentions;
        other.ends.into_iter().for_each(|(end, count)| *self.ends.entry(end).or_default() += count);
        self.fired.iter_mut().zip(other.fired).for_each(|(fired, more)| *fired += more);
        self.broken.extend(other.broken);
    }
}

/// Runs seeds. True if no rule was broken.
pub(crate) fn seeds(
    options: &Options,
    from: u64,
    seeds: u64,
    extent: Extent,
    out: &mut impl Write,
) -> io::Result<bool> {
    let began = Instant::now();
    let tally = sweep(seeds, extent, |number, tally| {
        let options = Options { seed: from + number, ..options.clone() };
        let report = run(&options)?;
        tally.add(number, options, &report);
        Ok(())
    })?;
    let per_second = tally.runs as f64 / began.elapsed().as_secs_f64().max(0.001);
    writeln!(out, "{} seeds from {from}, {:.0} a second, {} steps", tally.runs, per_second, tally.steps)?;
    show(tally, out)
}

/// Runs every pair of faults in one small job. True if no rule was broken.
pub(crate) fn pairs(shape: Shape, seed: u64, extent: Extent, out: &mut impl Write) -> io::Result<bool> {
    let pairs = Pairs::new(shape, seed).map_err(io::Error::other)?;
    let firsts = pairs.firsts();
    let total = firsts.len() as u64;
    // A part of them, if time runs out, is spread over all.
    let stride = spread(total);
    let (done, missed) = (AtomicU64::new(0), AtomicU64::new(0));
    let began = Instant::now();
    let tally = sweep(total, extent, |number, tally| {
        let first = firsts[(u128::from(number) * u128::from(stride) % u128::from(total)) as usize];
        pairs.after(first, |options, report| {
            missed.fetch_add(u64::from(report.missed), Ordering::Relaxed);
            tally.add(number, options, &report);
        })?;
        done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    })?;
    let (runs, done, steps) = (tally.runs, done.into_inner(), pairs.steps());
    writeln!(
        out,
        "{runs} pairs of faults: {done} of {total} first faults with all that may follow, {shape:?}, seed {seed}"
    )?;
    let (missed, positions) = (missed.into_inner(), pairs.positions());
    writeln!(out, "{missed} of them struck nobody; {steps} steps, so there are {positions} pairs of positions")?;
    writeln!(out, "{:.0} runs a second", runs as f64 / began.elapsed().as_secs_f64().max(0.001))?;
    show(tally, out)
}

/// A number without a common factor with `total`, far from 1.
fn spread(total: u64) -> u64 {
    let divides = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a == 1
    };
    (0..).map(|more| total / 5 * 3 + 1 + more).find(|&stride| divides(stride, total)).unwrap_or(1)
}

/// Does `each` for numbers from 0 on, until all are done or the time is over.
fn sweep(
    total: u64,
    extent: Extent,
    each: impl Fn(u64, &mut Tally) -> Result<(), tenaz_core::Error> + Sync,
) -> io::Result<Tally> {
    let (next, all) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let began = Instant::now();
    let is_over = || extent.time.is_some_and(|time| began.elapsed() >= time);
    std::thread::scope(|scope| {
        let work = || -> io::Result<()> {
            let mut tally = Tally::default();
            while !is_over() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= total {
                    break;
                }
                each(number, &mut tally).map_err(io::Error::other)?;
            }
            all.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).merge(tally);
            Ok(())
        };
        let threads: Vec<_> = (0..extent.threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a run panicked"))))
    })?;
    Ok(all.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn show(mut tally: Tally, out: &mut impl Write) -> io::Result<bool> {
    let Tally { jobs, poisoned, changed, removed, mentions, .. } = &tally;
    writeln!(out, "{jobs} jobs, {poisoned} with a task that kills, {changed} with a chunk in two versions")?;
    writeln!(out, "{removed} runs until everything was removed; {mentions} times a job was written again")?;
    let ends: Vec<String> = tally.ends.iter().map(|(end, count)| format!("{count} {end}")).collect();
    writeln!(out, "ends: {}", ends.join(", "))?;
    writeln!(out, "faults that struck:")?;
    for (name, fired) in FAULT_KINDS.iter().zip(tally.fired) {
        writeln!(out, "  {fired:>9} {name}")?;
    }
    tally.broken.sort_by_key(|(number, _)| *number);
    for (_, options) in tally.broken.iter().take(MAX_SHOWN) {
        show_broken(options, out)?;
    }
    writeln!(out, "{} broken", tally.broken.len())?;
    Ok(tally.broken.is_empty())
}

fn show_broken(options: &Options, out: &mut impl Write) -> io::Result<()> {
    let report = shrink(options).map_err(io::Error::other)?;
    let rule = report.violation.unwrap_or_default();
    let faults: Vec<String> = report.plan.iter().map(|(step, fault)| format!("{step}:{fault}")).collect();
    let shape = options.shape.map_or_else(String::new, |shape| format!(" --shape {shape:?}").to_lowercase());
    let option = if options.plan.is_some() { "--plan" } else { "--faults" };
    writeln!(out, "seed {} ({:?}), {} faults suffice: {rule}", report.seed, report.shape, faults.len())?;
    let faults = faults.join(",");
    writeln!(out, "    replay: cargo run -p tenaz-sim -- --seed {}{shape} {option} '{faults}'", report.seed)
}
