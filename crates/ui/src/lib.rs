//! The page: HTML, style sheets and ES modules, embedded into the binary and served as they are.
//!
//! There is no build step: what stands in `assets/` is what a browser gets, compressed once per process. All files but the page
//! itself live under a path with the digest of their content, so they may be kept for ever and never mix with those of another
//! build. The page loads nothing from elsewhere and runs no script that is not one of these files ([`policy`]).
//!
//! This crate knows no job and no cluster: the page asks the HTTP API for them.

mod assets;
mod page;
pub mod policy;
mod serve;

pub use assets::{Asset, assets, content_hash};
pub use page::Host;
pub use serve::{asset, page, wants_page};
