//! The working threads, shared fairly: jobs take turns, so a small job never waits behind a large one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tenaz_core::JobId;
use tenaz_vitals::Gauge;

use crate::limits::TASK_STACK_BYTES;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Queues {
    /// Jobs with work, in the order of their turns.
    turns: VecDeque<(JobId, VecDeque<Work>)>,
    closed: bool,
}

#[derive(Default)]
struct State {
    queues: Mutex<Queues>,
    changed: Condvar,
    /// How much waits.
    depth: Gauge,
}

impl State {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A pool of threads.
pub(super) struct Pool {
    state: Arc<State>,
}

impl Pool {
    /// So many threads; `depth` tells how much work waits for them.
    pub(super) fn new(threads: usize, depth: Gauge) -> Self {
        let state = Arc::new(State { depth, ..State::default() });
        for number in 0..threads.max(1) {
            let state = Arc::clone(&state);
            let thread = std::thread::Builder::new().name(format!("task-{number}")).stack_size(TASK_STACK_BYTES);
            thread.spawn(move || work(&state)).expect("a thread can be started");
        }
        Self { state }
    }

    /// A handle through which one job hands in its work.
    pub(super) fn of_job(&self, job: &JobId) -> JobPool {
        JobPool { state: Arc::clone(&self.state), job: job.clone() }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.state.lock().closed = true;
        self.state.changed.notify_all();
    }
}

/// One job's way into the pool.
#[derive(Clone)]
pub(super) struct JobPool {
    state: Arc<State>,
    job: JobId,
}

impl JobPool {
    /// Runs `work` on a thread of the pool when this job's turn comes.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut queues = self.state.lock();
        let own = queues.turns.iter_mut().find(|(job, _)| *job == self.job);
        match own {
            Some((_, queue)) => queue.push_back(Box::new(work)),
            None => queues.turns.push_back((self.job.clone(), VecDeque::from([Box::new(work) as Work]))),
        }
        drop(queues);
        self.state.depth.inc();
        self.state.changed.notify_one();
    }
}

fn work(state: &State) {
    let mut queues = state.lock();
    loop {
        if let Some((job, mut queue)) = queues.turns.pop_front() {
            let next = queue.pop_front();
            if !queue.is_empty() {
                queues.turns.push_back((job, queue));
            }
            drop(queues);
            if let Some(next) = next {
                state.depth.dec();
                next();
            }
            queues = state.lock();
        } else if queues.closed {
            return;
        } else {
            queues = state.changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_small_job_does_not_wait_behind_a_large_one() {
        let depth = Gauge::default();
        let pool = Pool::new(1, depth.clone());
        let (large, small) = (JobId::from_bytes([1; 8]), JobId::from_bytes([2; 8]));
        let (done, order) = mpsc::channel();
        let (start, started) = mpsc::channel::<()>();
        // The only thread waits until everything is queued.
        pool.of_job(&large).run(move || assert!(started.recv().is_err(), "nothing is sent"));
        for n in 0..100 {
            let done = done.clone();
            pool.of_job(&large).run(move || drop(done.send(format!("large {n}"))));
        }
        let told = done.clone();
        pool.of_job(&small).run(move || drop(told.send("small".to_owned())));
        assert!(depth.get() >= 101, "at most the first has been begun");
        drop((start, done));
        let order: Vec<String> = order.iter().collect();
        assert_eq!(order.len(), 101);
        assert_eq!(depth.get(), 0, "nothing waits any more");
        let place = order.iter().position(|what| what == "small");
        assert!(place.is_some_and(|place| place <= 1), "{place:?}");
    }
}
