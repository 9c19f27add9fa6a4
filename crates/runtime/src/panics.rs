//! Panics inside tasks.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Error;

/// A panic in a task fails the job with the task named, and nothing else.
pub(crate) fn guarded<T>(task: impl Fn() -> String, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "no message".to_owned());
        Err(Error::Crashed { task: task(), message })
    })
}
