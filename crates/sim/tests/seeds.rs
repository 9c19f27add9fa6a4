//! Three thousand seeds: whatever happens, the answer is right and the job ends.

mod parallel;

use parallel::in_parallel;
use tenaz_core::{End, Source};
use tenaz_sim::{Allowed, FAULT_KINDS, Options, Report, run};

const SEEDS: u64 = 3_000;

fn of_seed(seed: u64) -> Report {
    run(&Options { seed, ..Options::default() }).expect("shapes are valid")
}

#[test]
fn three_thousand_seeds_break_no_rule() {
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
    for (kind, name) in FAULT_KINDS.iter().enumerate() {
        let fired = reports.iter().flat_map(|report| &report.fired).filter(|fault| fault.kind() == kind).count();
        assert!(fired > 20, "{name} fired only {fired} times");
    }
    assert!(reports.iter().map(|report| report.stood_back).sum::<u64>() > 100, "workers stand back");
    let given_up: u64 = reports.iter().map(|report| report.given_up).sum();
    assert!(given_up >= 2, "workers gave {given_up} connections up over which nothing was delivered");
    let concluded_twice = reports.iter().filter(|report| report.conclusions > 1).count();
    assert!(concluded_twice > 20, "two owners conclude, too, but only {concluded_twice} times");

    // Jobs end in every way, and in each only if something has led to it (the simulator checks that).
    let ends: Vec<(&Allowed, &End)> =
        reports.iter().flat_map(|report| report.allowed.iter().zip(report.ends.iter().flatten())).collect();
    let count =
        |is_it: &dyn Fn(&Allowed, &End) -> bool| ends.iter().filter(|(allowed, end)| is_it(allowed, end)).count();
    let code = |end: &End| match end {
        End::Failed { code, .. } => code.clone(),
        _ => String::new(),
    };
    assert!(count(&|allowed, end| allowed.poison.is_some() && code(end) == "quarantined") > 50);
    assert!(count(&|allowed, _| matches!(allowed.poison, Some(Source::Task { .. }))) > 20);
    assert!(count(&|allowed, end| allowed.changed.is_some() && code(end) == "contradiction") > 50);
    assert!(count(&|allowed, end| allowed.changed.is_some() && end.is_done()) > 3, "all took the same version");
    assert!(count(&|_, end| *end == End::Cancelled) > 20);
    assert!(count(&|_, end| *end == End::Expired) > 5);
    assert!(count(&|_, end| code(end) == "unserved") > 20);
    assert!(reports.iter().filter(|report| report.ends.len() > 1).count() > 300, "several jobs at once");
    assert!(reports.iter().filter(|report| report.until_removed).count() > 100, "until everything is removed");
    assert!(reports.iter().map(|report| report.mentions).sum::<u64>() > 300, "jobs are written again");
}

/// Seeds beyond the three thousand that were broken once, each with the reason. Whenever the model comes closer to the product, a
/// seed stands for another run, so what was found by the earlier ones is kept as a mistake, too (`mistakes.rs`).
const FOUND: [(u64, &str); 24] = [
    (45_975, "a worker waited for ever for an answer that had gone with its connection"),
    (41_479, "a living worker was believed gone for good, which nobody but itself can say"),
    (67_448, "the same"),
    (78_213, "the same"),
    (23_974, "the same"),
    (58_084, "the same"),
    (66_775, "the same"),
    (72_923, "the same"),
    (45_857, "a job was removed and made again, but its queues stayed away"),
    (63_391, "a power cut took the only mention of a job, and then its client went for ever"),
    (47_741, "a job looked idle for a moment, and chunks were called lost whose rows were on their way"),
    (85_465, "the same"),
    (126_864, "the same"),
    (136_759, "the same"),
    (148_968, "the same"),
    (191_939, "the same"),
    (84_299, "the registry forgot a job: the members whose turn it was died one after the other"),
    (174_148, "the same"),
    (183_865, "the same"),
    (152_909, "a worker that was stopped wrote a job again that was removed meanwhile"),
    (79_389, "a power cut took the end of a creation, all who knew it died, and the client did not ask for it again"),
    (103_933, "the same"),
    (108_394, "the same"),
    (126_932, "the same"),
];

#[test]
fn seeds_that_were_broken_once_break_no_rule() {
    let broken: Vec<(u64, String)> =
        FOUND.iter().filter_map(|&(seed, _)| of_seed(seed).violation.map(|rule| (seed, rule))).collect();
    assert_eq!(broken, []);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let digests = |seeds: std::ops::Range<u64>| -> Vec<u64> { seeds.map(|seed| of_seed(seed).digest).collect() };
    let first = digests(0..100);
    assert_eq!(first, digests(0..100));
    assert_ne!(first[..30], first[30..60], "different seeds are different runs");
}

#[test]
fn keeping_the_text_of_a_trace_changes_nothing() {
    let kept = run(&Options { seed: 5, keep_lines: true, ..Options::default() }).expect("shapes are valid");
    assert_eq!(kept.digest, of_seed(5).digest);
    assert!(kept.lines.len() as u64 >= kept.steps / 2);
    assert!(of_seed(5).lines.is_empty());
}
