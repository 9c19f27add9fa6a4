//! Two jobs on the same workers, one of which kills them: only what kills is blamed.

mod parallel;

use parallel::in_parallel;
use tenaz_core::End;
use tenaz_sim::{Options, Report, run};

const SEEDS: u64 = 1_000;

fn quarantined(end: Option<&Option<End>>) -> bool {
    matches!(end, Some(Some(End::Failed { code, .. })) if code == "quarantined")
}

/// The simulator itself checks that no job is failed for what it did not do; here it is seen that the poison was met.
#[test]
fn one_jobs_poison_never_fails_another_job() {
    let of_seed = |&seed: &u64| run(&Options { seed, beside_poison: true, ..Options::default() });
    let reports: Vec<Report> =
        in_parallel((0..SEEDS).collect(), |seed| of_seed(seed).expect("shapes are valid")).into_iter().collect();
    let broken: Vec<String> = reports
        .iter()
        .filter_map(|report| Some(format!("seed {}, {:?}: {}", report.seed, report.shape, report.violation.as_ref()?)))
        .collect();
    assert!(broken.is_empty(), "{} of {SEEDS} seeds are broken:\n{}", broken.len(), broken.join("\n"));
    let convicted = reports.iter().filter(|report| quarantined(report.ends.first())).count();
    let done = reports.iter().filter(|report| report.ends.get(1).cloned().flatten().is_some_and(|end| end.is_done()));
    assert!(convicted * 2 > reports.len(), "{convicted} jobs were failed for their poison");
    assert!(done.count() * 2 > reports.len(), "most of the others are done");
}
