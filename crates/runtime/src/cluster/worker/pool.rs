//! The working threads, shared fairly: tenants take turns, and so do the jobs of each. A small job never waits behind a large one,
//! and many jobs of one tenant get no more than one job of another.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tenaz_core::JobId;
use tenaz_vitals::Gauge;

use crate::limits::TASK_STACK_BYTES;

type Work = Box<dyn FnOnce() + Send>;

/// Those that have something, in the order of their turns.
struct Turns<K, V>(VecDeque<(K, V)>);

impl<K, V> Default for Turns<K, V> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<K: PartialEq + Clone, V: Default> Turns<K, V> {
    fn of(&mut self, key: &K) -> &mut V {
        let at = self.0.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            self.0.push_back((key.clone(), V::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

type JobTurns = Turns<JobId, VecDeque<Work>>;

#[derive(Default)]
struct Queues {
    /// Tenants with work, and their jobs with work.
    turns: Turns<String, JobTurns>,
    closed: bool,
}

impl Queues {
    fn push(&mut self, tenant: &String, job: &JobId, work: Work) {
        self.turns.of(tenant).of(job).push_back(work);
    }

    /// The next work of the job whose turn it is, of the tenant whose turn it is. Both go to the end of their lines.
    fn pop(&mut self) -> Option<Work> {
        let (tenant, mut jobs) = self.turns.0.pop_front()?;
        let (job, mut queue) = jobs.0.pop_front()?;
        let work = queue.pop_front();
        if !queue.is_empty() {
            jobs.0.push_back((job, queue));
        }
        if !jobs.0.is_empty() {
            self.turns.0.push_back((tenant, jobs));
        }
        work
    }
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
    pub(super) fn of_job(&self, tenant: &str, job: &JobId) -> JobPool {
        JobPool { state: Arc::clone(&self.state), tenant: tenant.to_owned(), job: job.clone() }
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
    tenant: String,
    job: JobId,
}

impl JobPool {
    /// Runs `work` on a thread of the pool when this job's turn comes.
    pub(super) fn run(&self, work: impl FnOnce() + Send + 'static) {
        let mut queues = self.state.lock();
        queues.push(&self.tenant, &self.job, Box::new(work));
        drop(queues);
        self.state.depth.inc();
        self.state.changed.notify_one();
    }
}

fn work(state: &State) {
    let mut queues = state.lock();
    loop {
        if let Some(next) = queues.pop() {
            drop(queues);
            state.depth.dec();
            next();
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
        pool.of_job("ana", &large).run(move || assert!(started.recv().is_err(), "nothing is sent"));
        for n in 0..100 {
            let done = done.clone();
            pool.of_job("ana", &large).run(move || drop(done.send(format!("large {n}"))));
        }
        let told = done.clone();
        pool.of_job("ana", &small).run(move || drop(told.send("small".to_owned())));
        assert!(depth.get() >= 101, "at most the first has been begun");
        drop((start, done));
        let order: Vec<String> = order.iter().collect();
        assert_eq!(order.len(), 101);
        assert_eq!(depth.get(), 0, "nothing waits any more");
        let place = order.iter().position(|what| what == "small");
        assert!(place.is_some_and(|place| place <= 1), "{place:?}");
    }

    #[test]
    fn many_jobs_of_one_tenant_get_no_more_than_one_of_another() {
        let pool = Pool::new(1, Gauge::default());
        let (done, order) = mpsc::channel();
        let (start, started) = mpsc::channel::<()>();
        pool.of_job("greedy", &JobId::from_bytes([0; 8])).run(move || assert!(started.recv().is_err()));
        let hand_in = |tenant: &'static str, job: u8, works: usize| {
            for _ in 0..works {
                let done = done.clone();
                pool.of_job(tenant, &JobId::from_bytes([job; 8])).run(move || drop(done.send(tenant)));
            }
        };
        (1..=64).for_each(|job| hand_in("greedy", job, 10));
        hand_in("honest", 100, 10);
        drop((start, done));
        let order: Vec<&str> = order.iter().collect();
        assert_eq!(order.len(), 650);
        let last = order.iter().rposition(|tenant| *tenant == "honest").expect("all are done");
        assert!(last <= 20, "every other turn is the honest tenant's: {last}");
    }
}
