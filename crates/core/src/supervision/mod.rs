//! Keeping processes alive, as plain values: what is seen of them goes in with the time, what to do about it comes out.

mod chaos;
mod process;

pub use chaos::{ChaosAction, ChaosError, ChaosPlan, ChaosSettings, ChaosWeights, Strike};
pub use process::{Ending, Incarnation, ProcessName, ProcessRole};
