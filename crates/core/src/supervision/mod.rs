//! Keeping processes alive, as plain values: what is seen of them goes in with the time, what to do about it comes out.

mod chaos;
mod keeper;
mod process;
mod restarts;

pub use chaos::{ChaosAction, ChaosError, ChaosPlan, ChaosSettings, ChaosWeights, Strike};
pub use keeper::{Keeper, KeeperAction, KeeperEvent, OrderFailure, Past, ProcessState, Standing, Streak, Trouble};
pub use process::{Ending, Incarnation, OutsideCause, ProcessName, ProcessRole};
pub use restarts::KeeperPolicy;
