//! Which build of tenaz this process is.

use tenaz_core::BuildId;

/// The build of this process: the digest that `build.rs` took of the code.
pub fn build_id() -> BuildId {
    BuildId::new(env!("TENAZ_BUILD_ID"))
}
