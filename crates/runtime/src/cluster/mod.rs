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

pub use results::{ResultEvent, ResultsFold};
pub use rows::{ChunkAccount, Message, RowsHeader, decode, encode};
pub use worker::{Faults, Worker, WorkerSettings};
