//! Own questions: from a directory of CSV files to a [`Workload`](tenaz_engine::Workload), by looking at a sample.
//!
//! [`infer()`] finds the files, groups them into tables, and guesses delimiter, header, names and types from a bounded part of each.
//! [`overrule()`] lets the user know better, and [`workload_file()`] writes the guess down for editing.
//!
//! ```text
//!  directory ──find──▶ files ──probe──▶ shapes ──group──▶ tables ──sample──▶ types ──▶ Workload
//! ```
//!
//! A type is the narrowest that takes every sampled value, so no sampled record is ever rejected; a later one may be.
//!
//! This crate never reads a whole file, never plans a query and never prints.

mod columns;
mod error;
mod evidence;
mod find;
mod grouping;
mod header;
mod infer;
pub mod limits;
mod misfits;
mod names;
mod nulls;
mod overrule;
mod preamble;
mod probe;
mod reading;
mod sample;
mod sniff;
mod spelling;
mod unlabelled;
mod workload_file;

pub use error::Error;
pub use infer::{Inferred, Source, infer};
pub use overrule::overrule;
pub use reading::Reading;
pub use workload_file::{workload_file, workload_text};
