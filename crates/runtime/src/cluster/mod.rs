//! Jobs over RabbitMQ: what travels, who works, what comes out.
//!
//! ```text
//!  rows.rs      rows as messages, and back
//!  results.rs   the results log as a reader sees it: rows, rejects, the account of every chunk, the end
//!  worker/      the worker: drives `tenaz_core::JobWorker`, one per job
//! ```

mod results;
mod rows;
mod worker;

use tenaz_engine::{JobPlan, describe};

pub use crate::job_rows::{ChunkAccount, Message, RejectPiece};
pub use results::{ResultEvent, ResultsFold};
pub use rows::{Extras, RejectsPart, RowsHeader, decode, encode};
pub use worker::{Faults, Worker, WorkerSettings};

/// A digest of all that a plan shows of itself: stages, operators, edges, scans. Members whose digests differ would give
/// different things the same number.
pub fn plan_digest(plan: &JobPlan) -> String {
    tenaz_cluster::short_digest(describe::text(plan).as_bytes())
}
