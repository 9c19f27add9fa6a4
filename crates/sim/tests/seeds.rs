//! Ten thousand seeds: whatever happens, the answer is right and the job ends.

mod parallel;

use parallel::in_parallel;
use tenaz_core::{End, Source};
use tenaz_sim::{Fault, Options, Report, run};

const SEEDS: u64 = 10_000;

type IsKind = fn(&Fault) -> bool;

fn of_seed(seed: u64) -> Report {
    run(&Options { seed, ..Options::default() }).expect("shapes are valid")
}

#[test]
fn ten_thousand_seeds_break_no_rule() {
    let reports = in_parallel((0..SEEDS).collect(), |&seed| of_seed(seed));
    let broken: Vec<String> = reports
        .iter()
        .filter_map(|report| {
            let rule = report.violation.as_ref()?;
            Some(format!("cargo run -p tenaz-sim -- --seed {}    # {:?}: {rule}", report.seed, report.shape))
        })
        .collect();
    assert!(broken.is_empty(), "{} of {SEEDS} seeds are broken:\n{}", broken.len(), broken.join("\n"));

    // The faults happened, of every kind, and more than once in a run.
    let fired = |wanted: IsKind| reports.iter().flat_map(|r| &r.fired).filter(|fault| wanted(fault)).count();
    let kinds: [(&str, IsKind); 9] = [
        ("kill of a worker", |f| matches!(f, Fault::KillWorker(_))),
        ("cut of a worker", |f| matches!(f, Fault::CutWorker(_))),
        ("restart", |f| *f == Fault::RestartBroker),
        ("power cut", |f| *f == Fault::PowerCut),
        ("pause", |f| matches!(f, Fault::Pause(..))),
        ("suspicion", |f| matches!(f, Fault::Suspect(_))),
        ("stall", |f| matches!(f, Fault::Stall(_))),
        ("kill of a client", |f| *f == Fault::KillClient),
        ("cut of a client", |f| *f == Fault::CutClient),
    ];
    for (name, wanted) in kinds {
        assert!(fired(wanted) > 300, "{name} fired only {} times", fired(wanted));
    }
    assert!(reports.iter().filter(|report| report.conclusions > 1).count() > 100, "two owners conclude, too");

    // Poison makes a job fail, and nothing else does.
    let poisoned = |report: &&Report| report.poison.is_some();
    assert!(reports.iter().filter(poisoned).count() > 500);
    assert!(reports.iter().filter(|r| matches!(r.poison, Some(Source::Task { .. }))).count() > 100);
    for report in &reports {
        assert_eq!(report.end == Some(End::Done), report.poison.is_none(), "seed {}: {:?}", report.seed, report.end);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let digests = |seeds: std::ops::Range<u64>| -> Vec<u64> { seeds.map(|seed| of_seed(seed).digest).collect() };
    let first = digests(0..300);
    assert_eq!(first, digests(0..300));
    assert_ne!(first[..100], first[100..200], "different seeds are different runs");
}

#[test]
fn keeping_the_text_of_a_trace_changes_nothing() {
    let kept = run(&Options { seed: 5, keep_lines: true, ..Options::default() }).expect("shapes are valid");
    assert_eq!(kept.digest, of_seed(5).digest);
    assert!(kept.lines.len() as u64 >= kept.steps / 2);
    assert!(of_seed(5).lines.is_empty());
}
