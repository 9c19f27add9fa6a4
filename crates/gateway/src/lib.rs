//! The HTTP edge of a cluster: jobs, uploads, results, events. Stateless: any gateway serves any job.
//!
//! ```text
//!  client ──PUT chunk──▶ gateway ──work queue, then receipt──▶ broker
//!  client ◀──rows, events── gateway ◀──results log, control log── broker
//! ```
//!
//! | where | what |
//! |---|---|
//! | `server`, `strangers`, `timed_io`, `certificates` | connections, HTTPS, and the clients that never say or finish anything |
//! | `routes` | the table of routes; `openapi.json` says the same |
//! | `about`, `requests`, `status` | health, metrics, and what they count |
//! | `jobs`, `admission`, `state` | creating, listing, watching, cancelling |
//! | `chunks`, `files`, `cutting`, `digests`, `finish`, `receipts` | uploads |
//! | `results`, `rejects`, `events`, `results_log` | streams |
//! | `plans` | which tables a job reads and what its answers look like |
//!
//! This crate never computes an answer and keeps nothing that another gateway could not find out.

mod about;
mod admission;
mod app;
mod auth;
mod body;
mod certificates;
mod chunks;
mod cluster;
mod cutting;
mod digests;
mod encoding;
mod error;
mod events;
mod file_stamp;
mod files;
mod finish;
mod gateway;
mod job_time;
mod jobs;
pub mod limits;
mod named_limits;
mod observer;
mod places;
mod plans;
mod problem;
mod publish;
mod receipts;
mod rejects;
mod request_rate;
mod requests;
mod results;
mod results_log;
mod routes;
mod row_stream;
mod server;
mod settings;
mod stages;
mod state;
mod status;
mod strangers;
mod stream;
mod stuck;
mod supervision;
mod text;
mod timed_io;
mod token_guard;
mod tokens;

pub use certificates::TlsFiles;
pub use error::Error;
pub use gateway::Gateway;
pub use settings::{GatewaySettings, Limits};
pub use supervision::{Asked, Supervised, Supervisors};
