//! The HTTP API against a real broker. The tests of this binary share one node and have names of their own on it.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod access;
mod any_bytes;
mod cluster;
mod encrypted;
mod jobs;
mod streams;
mod uploads;
