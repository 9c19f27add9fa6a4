//! The runtime: what makes a planned job happen.
//!
//! [`run`] answers all queries of a job on this machine in one pass: threads cut files into chunks, run leaf tasks,
//! hand rows to partitions, and run inner tasks as soon as `tenaz-core` says that their input is complete. The rows in
//! flight are bounded by the number of threads, the rows at rest by a [`Budget`].
//!
//! This crate never parses SQL or CSV itself and never prints: it reports through [`Observer`] and [`Progress`].

mod answer;
pub mod cluster;
mod data;
mod error;
pub mod format;
mod job;
mod job_rows;
pub mod limits;
mod panics;
mod partition;
mod progress;
mod reader;
mod rejects;
mod row_set;
mod spool;
mod workspace;

pub use answer::{Answer, plain_schema};
pub use data::{DataFile, DataSet};
pub use error::Error;
pub use job::{Observer, Options, Outcome, TableReport, run};
pub use progress::{Progress, TableProgress};
pub use rejects::{RejectLine, reject_piece_schema, reject_schema};
pub use row_set::RowCounts;
pub use spool::{Budget, Spool, SpooledRows};
pub use workspace::Workspace;
