//! The page in a real browser: Chromium, steered over WebDriver, with the real binary behind it. Every test fails when a script of
//! the page throws, or when its policy had to stop something. Screenshots of all views stay in `target/screenshots`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod asking;
mod browser;
mod guarded;
mod hostile;
mod looks;
mod served;
mod watching;

#[path = "../cluster/harness/mod.rs"]
#[allow(dead_code, unused_imports, unreachable_pub, clippy::unwrap_used, reason = "the tests of clusters use the rest")]
mod harness;
