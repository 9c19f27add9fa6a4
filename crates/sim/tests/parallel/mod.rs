//! Runs of different seeds share nothing, so they can go side by side.

use std::num::NonZero;

/// `run` of every item, on all cores, in the order of the items.
pub(crate) fn in_parallel<T: Sync, R: Send>(items: Vec<T>, run: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = items.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let started: Vec<_> =
            items.chunks(share).map(|share| scope.spawn(|| share.iter().map(&run).collect::<Vec<R>>())).collect();
        started.into_iter().flat_map(|thread| thread.join().expect("a run does not panic")).collect()
    })
}
