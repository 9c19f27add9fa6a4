//! A seeded simulator of the protocol: a model of the broker, workers that die at chosen steps, and an oracle.
//!
//! This crate never touches a real broker, a clock or a thread.
