//! What the processes of a cluster share: names of queues and streams, messages, the link to the broker, the book of jobs,
//! membership, cleaning up.
//!
//! ```text
//!  Link ─── the connections to the broker, renewed when lost
//!   ├── Book ─────── the registry's log and each open job's control log, read into memory
//!   ├── Membership ─ heartbeats out, heartbeats in, who is gone
//!   └── Janitor ──── expires, deletes what belongs to jobs that have ended
//! ```
//!
//! This crate never runs a task, never serves a client, and never decides what an answer is.

mod beat;
mod book;
mod build_id;
mod error;
mod event_log;
mod frame;
mod janitor;
mod job;
pub mod limits;
mod link;
mod log;
mod membership;
mod names;
mod process_signs;
mod spec;
mod wipe;

pub use beat::{Beat, JobActivity, JobProgress, Role};
pub use book::{Book, ControlProblem, JobView};
pub use build_id::build_id;
pub use error::Error;
pub use event_log::EventLog;
pub use frame::{ChunkHeader, Encoding, Framed, frame, unframe};
pub use janitor::{Janitor, Patience};
pub use job::{channels_of, create_job, declare_chunks, delete_chunks, delete_job_objects, store_probe};
pub use link::{Link, LinkSettings, Session};
pub use log::{LogMessage, read_log};
pub use membership::{Membership, Seen};
pub use names::Names;
pub use process_signs::ProcessSigns;
pub use spec::{Control, IndexedRows, JobSpec, QueryEnd, ResultEnd, ResultIndex, TableEnd, short_digest};
pub use wipe::{Wiped, wipe};
