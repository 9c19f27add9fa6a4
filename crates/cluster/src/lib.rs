//! What the processes of a cluster share: names of queues and streams, messages, the link to the broker, the book of jobs,
//! membership, cleaning up.
//!
//! ```text
//!  Link ─── two connections to the broker, renewed when lost
//!   ├── Book ─────── the registry's log and each open job's control log, read into memory
//!   ├── Membership ─ heartbeats out, heartbeats in, who is gone
//!   └── Janitor ──── expires, deletes what belongs to jobs that have ended
//! ```
//!
//! This crate never runs a task, never serves a client, and never decides what an answer is.

mod beat;
mod book;
mod error;
mod frame;
mod janitor;
mod job;
pub mod limits;
mod link;
mod log;
mod membership;
mod names;
mod spec;
mod wipe;

pub use beat::{Beat, JobProgress, Role};
pub use book::{Book, JobView, Note};
pub use error::Error;
pub use frame::{ChunkHeader, Encoding, Framed, frame, unframe};
pub use janitor::{Janitor, Patience};
pub use job::{create_job, declare_chunks, delete_chunks, delete_job_objects};
pub use link::{Link, LinkSettings, Session};
pub use log::{LogMessage, read_log};
pub use membership::{Membership, Seen};
pub use names::Names;
pub use spec::{Control, JobSpec, QueryEnd, ResultEnd, TableEnd};
pub use wipe::{Wiped, wipe};
