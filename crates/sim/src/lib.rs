//! A seeded simulator of the protocol: a model of the broker, workers that die at chosen steps, and an oracle.
//!
//! Workers run the real [`JobDriver`](tenaz_core::JobDriver) with a toy [`RowEngine`](tenaz_core::RowEngine). All that decides
//! something around it is that of `tenaz-core`, too, as in real processes: [`JobSeat`](tenaz_core::JobSeat),
//! [`Roster`](tenaz_core::Roster), [`Registry`](tenaz_core::Registry), [`ControlLog`](tenaz_core::ControlLog),
//! [`Upkeep`](tenaz_core::Upkeep), [`UnservedJob`](tenaz_core::UnservedJob) in every process, and in gateways
//! [`ChunkIntake`](tenaz_core::ChunkIntake), [`QueueWatch`](tenaz_core::QueueWatch) and [`FilePlaces`](tenaz_core::FilePlaces). The
//! broker, HTTP and the client are models. One number, the seed, decides the jobs, their data, the order of all steps and the
//! faults, so that whatever goes wrong can be seen again.
//!
//! This crate never touches a real broker, a clock or a thread; only its program runs several seeds side by side, for a while.

mod broker;
mod checks;
mod client;
mod engine;
mod faults;
mod gateway;
mod mutation;
mod node;
mod options;
mod pairs;
mod parties;
mod process;
mod rng;
mod rows;
mod run;
mod scenario;
mod shrink;
mod step;
mod store;
mod trace;
mod world;

pub use engine::{LogBytes, RealChunk, RealEngine, RealError, RealJob};
pub use faults::{FAULT_KINDS, Fault, MAX_FAULTS, ONE_OF_EACH, Plan};
pub use mutation::{MUTATIONS, Mutation};
pub use options::Options;
pub use pairs::{PAIR_STEPS, Pairs};
pub use run::{Allowed, MAX_QUIET_STEPS, Report, run};
pub use scenario::{SHAPES, Shape};
pub use shrink::shrink;
