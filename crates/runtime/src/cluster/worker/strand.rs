//! Work that must be done one after the other, on whatever thread: the messages of one log.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pool::JobPool;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Work>,
    running: bool,
}

/// A queue of work that runs in order on the pool.
#[derive(Clone)]
pub(super) struct Strand {
    queue: Arc<Mutex<Queue>>,
    pool: JobPool,
}

impl Strand {
    pub(super) fn new(pool: JobPool) -> Self {
        Self { queue: Arc::default(), pool }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` after all that was handed in before.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut queue = self.lock();
        queue.waiting.push_back(Box::new(work));
        if !queue.running {
            queue.running = true;
            drop(queue);
            self.schedule();
        }
    }

    /// One piece of work per turn, so that other jobs get theirs.
    fn schedule(&self) {
        let strand = self.clone();
        self.pool.run(move || {
            let next = strand.lock().waiting.pop_front();
            if let Some(next) = next {
                next();
            }
            let more = {
                let mut queue = strand.lock();
                queue.running = !queue.waiting.is_empty();
                queue.running
            };
            if more {
                strand.schedule();
            }
        });
    }
}
