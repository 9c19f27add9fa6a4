//! Searches random SQL for as long as it is told to, and writes down what it has covered. `scripts/random-sql` says how it is asked.
//!
//! It is the code of `runtime/tests/random_sql.rs` in a program of its own, because a test cannot be built from the objects of a
//! release build: dev-dependencies change the features of what DataFusion depends on.

#[path = "../../runtime/tests/random/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub, missing_docs, reason = "modules of a test, which has no outside")]
mod random;
#[path = "../../runtime/tests/staged/mod.rs"]
#[allow(missing_docs, reason = "modules of a test, which has no outside")]
mod staged;

use std::process::ExitCode;

use random::settings;

#[allow(clippy::print_stderr, reason = "whoever waits wants to know what has been found so far")]
fn say(text: &str) {
    eprintln!("{text}");
}

fn main() -> ExitCode {
    settings::silence_panics_of_jobs();
    let search = settings::search(say, settings::ENOUGH_FAILURES_OF_A_LONG_SEARCH);
    if search.python.is_none() {
        say(
            "there is no DuckDB, and without a second opinion a search is worth little: scripts/second-opinion installs it",
        );
        return ExitCode::from(2);
    }
    let report = search.run();
    say(&settings::shown(&report));
    for failure in report.failures.values() {
        say(&format!("{} times:\n{}", failure.count, failure.text));
    }
    if report.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
