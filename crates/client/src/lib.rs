//! A client of the gateways: cuts files into chunks, sends what is missing, follows the job, fetches the answers.
//!
//! ```text
//!  patience.rs    when a request is repeated, and when to give up
//!  gateways.rs    which gateway, what to do when it does not answer        tenaz_api   what travels as JSON
//!  calls.rs       one function per request of the HTTP API                 stream.rs   answers, read to their end record
//!  files.rs       the manifest: are these the files of the job?            cut.rs      chunks, numbered as `tenaz run` does
//!  upload.rs      reader and senders; heals what got lost                  follow.rs   how the job is doing; waits for its end
//! ```
//!
//! Every request may be repeated through any gateway: creating a job carries a key, a chunk has a number, closing a
//! table says the same each time. So a failure is answered by asking again elsewhere, and the worst that happens is
//! that a chunk is sent twice.
//!
//! This crate never plans or computes and never prints: it needs no query engine.

mod calls;
mod compare;
mod compress;
mod cut;
mod error;
mod files;
mod follow;
mod gateways;
pub mod limits;
mod patience;
mod stream;
mod submission_key;
mod transport;
mod upload;

pub use compress::Compression;
pub use cut::{SourceFile, TableFiles};
pub use error::Error;
pub use files::{check_headers, check_manifest, manifest};
pub use follow::{Glance, Submission, Until, check_job};
pub use gateways::{Gateways, Settings};
pub use stream::{End, Flow, read_end};
pub use submission_key::random_key;
pub use tenaz_api as api;
pub use tenaz_api::Ranges;
pub use transport::Transport;
pub use upload::{UploadOptions, Wanted};
