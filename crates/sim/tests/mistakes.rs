//! The simulator finds mistakes: each of these breaks one rule of the protocol and is found out within some hundred seeds.

use tenaz_sim::{MUTATIONS, Mutation, Options, run};

/// Within so many seeds every mistake shows.
const SEEDS: u64 = 400;

/// What was broken first, and in which seed.
fn found(mutation: Mutation) -> Option<(u64, String)> {
    (0..SEEDS).find_map(|seed| {
        let report = run(&Options { seed, mutation, ..Options::default() }).expect("shapes are valid");
        report.violation.map(|rule| (seed, rule))
    })
}

#[test]
fn every_mistake_is_found() {
    for mutation in MUTATIONS {
        let (seed, rule) = found(mutation).unwrap_or_else(|| panic!("{mutation:?} was not found in {SEEDS} seeds"));
        let expected = match mutation {
            Mutation::None => unreachable!("that is no mistake"),
            Mutation::AckBeforeConfirm => "was acknowledged before its output was in log",
            Mutation::NoDedup => "was accounted for twice",
            Mutation::ConcludeEarly | Mutation::MixContents | Mutation::KeepReleased => "is right",
            Mutation::IgnoreWaves => "was begun before broadcast",
            Mutation::NoRepublish | Mutation::NoQuarantine | Mutation::NoReport => "the job has not ended",
        };
        assert!(rule.contains(expected), "{mutation:?}, seed {seed}: {rule}");
    }
}
