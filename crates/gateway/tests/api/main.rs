//! The HTTP API against a real broker. The tests of this binary share one node and have names of their own on it.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod cluster;
mod jobs;
mod streams;
mod uploads;
