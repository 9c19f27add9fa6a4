//! What a search is told by the environment.

use std::sync::Mutex;

use super::ledger::Ledger;
use super::report::Report;
use super::search::Search;
use super::second_opinion;

/// Queries of a plain `cargo test`: 2,000 again when the differences are mended that wider SQL has found (seeds 16, 47 and 48 are
/// the first; `scripts/random-sql --seed 16 --queries 8` shows one).
const QUERIES: u64 = 112;
/// Different failures after which a search ends.
pub const ENOUGH_FAILURES_OF_A_TEST: u64 = 3;
pub const ENOUGH_FAILURES_OF_A_LONG_SEARCH: u64 = 20;

fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

/// The search that the environment asks for.
pub fn search(says: fn(&str), enough: u64) -> Search {
    let ledger = std::env::var_os("TENAZ_RANDOM_SQL_LEDGER").map(|path| Ledger::open(path.into()));
    let after_ledger = ledger.as_ref().map_or(1, Ledger::next_seed);
    Search {
        first_seed: number("TENAZ_RANDOM_SQL_SEED", after_ledger),
        queries: number("TENAZ_RANDOM_SQL_QUERIES", QUERIES),
        jobs: number("TENAZ_RANDOM_SQL_JOBS", std::thread::available_parallelism().map_or(1, |n| n.get() as u64))
            as usize,
        enough: number("TENAZ_RANDOM_SQL_FAILURES", enough) as usize,
        shrinks: number("TENAZ_RANDOM_SQL_SHRINK", 1) == 1,
        unanswered: number("TENAZ_RANDOM_SQL_UNANSWERED", 0) == 1,
        python: second_opinion::python(),
        says,
        seen: Mutex::default(),
        ledger,
    }
}

/// A report in words, with examples if the environment asks for them.
pub fn shown(report: &Report) -> String {
    if number("TENAZ_RANDOM_SQL_EXAMPLES", 0) == 1 { format!("{report:#}") } else { report.to_string() }
}

/// A panic of a job is reported with its query, and its trace would bury the report. Threads of tests have names.
pub fn silence_panics_of_jobs() {
    let shows = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name().is_some() {
            shows(panic);
        }
    }));
}
