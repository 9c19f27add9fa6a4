//! What people write and read: times, and names that they have mistyped. None of our crates is needed for it, and every
//! other one may use it.

mod clock;
mod nearest;
mod span;

pub use clock::{rfc3339, unix_ms};
pub use nearest::nearest;
pub use span::{parse_span, show_span};
