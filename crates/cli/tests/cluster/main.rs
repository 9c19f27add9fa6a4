//! A real cluster: real processes, a real broker, real kills. Every test proves that its fault fired, and that the result
//! files are those of `tenaz run`, byte for byte.
#![allow(unreachable_pub, reason = "modules of one test program")]
#![allow(clippy::print_stderr, reason = "a skipped test says so, and a failed one shows the logs")]

mod harness;

mod asking;
mod brokers;
mod builds;
mod chaos;
mod clients;
mod descriptions;
mod failed_questions;
mod flapping;
mod gateways;
mod healing;
mod hostile_tenants;
mod jobs;
mod leaders;
mod partition;
mod sick_workers;
mod storm;
mod ups_and_downs;
mod vitals;
mod workers;
