//! Why work on this thread must end before it is done: it was cancelled, or its time is over.
//!
//! DataFusion's operators, rules and functions know nothing of who waits for them. Planning and tasks each run on one thread from
//! start to end, so what ends them is known to the thread: [`StopFlag::during`] and [`within`] set it, and
//! [`check`] is called wherever work may take long (every operator's output, every rule of the optimizer, conditions of joins).

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use datafusion::common::{DataFusionError, Result};

use crate::limits::MAX_CONSTANT_BYTES;

/// A flag that ends the work of all threads that look at it.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Asks the work to end.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work shall end.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Does `work` on this thread; tasks in it end with an error soon after the flag is set. Their results are worth nothing then.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        with(Bounds { flag: Some(self.clone()), ..current() }, work)
    }
}

#[derive(Debug, Clone, Default)]
struct Bounds {
    flag: Option<StopFlag>,
    /// The end of the time that planning may take, and how much it is.
    deadline: Option<(Instant, Duration)>,
    /// The bytes of constants that were computed while planning.
    constant_bytes: usize,
}

thread_local! {
    static BOUNDS: RefCell<Bounds> = RefCell::default();
}

fn current() -> Bounds {
    BOUNDS.with_borrow(Clone::clone)
}

/// Puts the bounds back that held before, also after a panic.
struct Restore(Option<Bounds>);

impl Drop for Restore {
    fn drop(&mut self) {
        BOUNDS.set(self.0.take().unwrap_or_default());
    }
}

fn with<T>(bounds: Bounds, work: impl FnOnce() -> T) -> T {
    let _restore = Restore(Some(BOUNDS.replace(bounds)));
    work()
}

/// Plans on this thread, for so long at most.
pub(crate) fn within<T>(limit: Duration, work: impl FnOnce() -> T) -> T {
    with(Bounds { deadline: Some((Instant::now() + limit, limit)), constant_bytes: 0, ..current() }, work)
}

/// Fails if planning on this thread has computed too many bytes of constants with these. Tasks keep none.
pub(crate) fn count_constant(bytes: usize) -> Result<()> {
    BOUNDS.with_borrow_mut(|bounds| {
        if bounds.deadline.is_none() {
            return Ok(());
        }
        bounds.constant_bytes = bounds.constant_bytes.saturating_add(bytes);
        match bounds.constant_bytes > MAX_CONSTANT_BYTES {
            true => Err(DataFusionError::Execution(format!(
                "the constants of the query have {} bytes, and the limit is {} MiB; make them shorter",
                bounds.constant_bytes,
                MAX_CONSTANT_BYTES >> 20
            ))),
            false => Ok(()),
        }
    })
}

/// Fails if the work on this thread shall end.
pub(crate) fn check() -> Result<()> {
    BOUNDS.with_borrow(|bounds| {
        if bounds.flag.as_ref().is_some_and(StopFlag::is_set) {
            return Err(DataFusionError::Execution("the work was stopped".to_owned()));
        }
        match bounds.deadline {
            Some((end, limit)) if Instant::now() > end => Err(DataFusionError::Plan(format!(
                "planning takes longer than the limit of {} s: write it as several smaller queries",
                limit.as_secs_f64()
            ))),
            _ => Ok(()),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_ends_by_the_flag_and_by_the_clock_of_its_own_thread_only() {
        let flag = StopFlag::default();
        assert!(flag.during(check).is_ok());
        flag.stop();
        assert!(flag.during(check).is_err());
        assert!(check().is_ok(), "the flag holds for its own work only");
        let late = within(Duration::ZERO, || {
            while Instant::now().elapsed().is_zero() {}
            check()
        });
        assert!(late.is_err_and(|error| error.to_string().contains("limit of 0 s")));
        assert!(check().is_ok());
    }

    #[test]
    fn a_panic_does_not_leave_its_bounds_behind() {
        let flag = StopFlag::default();
        flag.stop();
        let panicked = std::panic::catch_unwind(|| flag.during(|| panic!("in the middle")));
        assert!(panicked.is_err());
        assert!(check().is_ok());
    }
}
