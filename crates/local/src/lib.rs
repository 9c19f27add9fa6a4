//! Questions on one machine: what `tenaz ui` serves.
//!
//! The page asks the same HTTP API as on a cluster (`/v1/jobs`, …), and here the embedded engine answers: every job is a
//! [`tenaz_runtime::run`] on a thread of its own. Besides, there are the tables of a directory and of files dropped onto the page
//! (`/v1/tables`, `/v1/files`), and windows into answers of millions of rows.
//!
//! It listens on loopback only. A request needs the token that the address of the page holds, names the host that we listen on,
//! and does not come from another site (`guard`).
//!
//! This crate knows no broker and no cluster.

mod files;
mod guard;
mod jobs;
pub mod limits;
mod problem;
mod process;
mod routes;
mod server;
pub mod statements;
mod tables;

pub use server::{Server, Settings};
