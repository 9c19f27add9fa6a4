//! Keeps the processes of a cluster alive.

pub mod backend;
