//! A seeded simulator of the protocol: a model of the broker, workers that die at chosen steps, and an oracle.
//!
//! The state machines are the real ones of `tenaz-core`; everything around them is a model. One number, the seed, decides
//! the job, its data, the order of all steps and the faults, so that whatever goes wrong can be seen again.
//!
//! This crate never touches a real broker, a clock or a thread.

mod broker;
mod checks;
mod client;
mod faults;
mod mutation;
mod node;
mod options;
mod rng;
mod rows;
mod run;
mod scenario;
mod step;
mod store;
mod trace;
mod world;

pub use faults::{Fault, MAX_FAULTS, Plan};
pub use mutation::{MUTATIONS, Mutation};
pub use options::Options;
pub use run::{MAX_QUIET_STEPS, Report, run};
pub use scenario::{SHAPES, Shape};
