//! Keeps the processes of a cluster alive.
//!
//! The truth about a process is the kernel's: it is found in `/proc` by the mark in its environment, watched and
//! signalled through a pidfd. Files in the cluster's directory ([`home`]) are history and a cache. Nothing here can change an
//! answer: workers, gateways and the broker's logs stay right without any supervisor.
//!
//! This crate never signals a process that does not carry this cluster's mark.

pub mod backend;
mod broker_users;
pub mod census;
pub mod chaos;
pub mod command;
pub mod config;
mod driver;
mod error;
pub mod events;
pub mod executor;
pub mod home;
mod kernel;
pub mod limits;
mod lock;
mod log_file;
pub mod peers;
pub mod records;
pub mod status;
pub mod stop;
mod supervisor;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;

pub use broker_users::BrokerRole;
pub use config::{Config, ConfigError};
pub use error::Error;
pub use executor::Executor;
pub use home::Home;
pub use supervisor::{Supervisor, SupervisorSettings};
