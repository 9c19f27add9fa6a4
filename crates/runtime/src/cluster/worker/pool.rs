//! The working threads, shared fairly: tenants take turns, and so do the jobs of each. A small job never waits behind a large one,
//! and many jobs of one tenant get no more than one job of another.
//!
//! Work that is begun cannot be interrupted, and one tenant's may run for hours. So a tenant that has work and no thread, while others
//! have all of them, gets a thread of its own until it has no work left, and the system shares the cores.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tenaz_core::JobId;
use tenaz_vitals::Gauge;

use crate::limits::{MAX_EXTRA_THREADS, TASK_STACK_BYTES};

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
    /// Threads that work for each tenant.
    running: BTreeMap<String, usize>,
    /// The pool's own threads.
    threads: usize,
    /// Those of them that work.
    busy: usize,
    /// Threads beyond the pool's own.
    extra: usize,
    closed: bool,
}

impl Queues {
    fn push(&mut self, tenant: &str, job: &JobId, work: Work) {
        self.turns.of(&tenant.to_owned()).of(job).push_back(work);
    }

    fn is_running(&self, tenant: &str) -> bool {
        self.running.contains_key(tenant)
    }

    /// Tenants with work that have no thread and will get none soon. They are promised one each.
    fn grant_extra(&mut self) -> Vec<String> {
        let mut granted = Vec::new();
        while self.busy == self.threads && self.extra < MAX_EXTRA_THREADS {
            let waits = self.turns.0.iter().find(|(tenant, _)| !self.is_running(tenant));
            let Some(tenant) = waits.map(|(tenant, _)| tenant.clone()) else { break };
            self.extra += 1;
            self.begins(&tenant);
            granted.push(tenant);
        }
        granted
    }

    fn begins(&mut self, tenant: &str) {
        *self.running.entry(tenant.to_owned()).or_default() += 1;
    }

    fn ends(&mut self, tenant: &str) {
        if let Some(running) = self.running.get_mut(tenant) {
            *running -= 1;
            if *running == 0 {
                self.running.remove(tenant);
            }
        }
    }

    /// The next work of the job whose turn it is, of the tenant whose turn it is: of one without a thread first. Both go to the end of
    /// their lines.
    fn pop(&mut self) -> Option<(String, Work)> {
        let waits = self.turns.0.iter().position(|(tenant, _)| !self.is_running(tenant)).unwrap_or(0);
        self.pop_at(waits)
    }

    /// The next work of this tenant.
    fn pop_of(&mut self, tenant: &str) -> Option<(String, Work)> {
        let at = self.turns.0.iter().position(|(known, _)| known == tenant)?;
        self.pop_at(at)
    }

    fn pop_at(&mut self, at: usize) -> Option<(String, Work)> {
        let (tenant, mut jobs) = self.turns.0.remove(at)?;
        let (job, mut queue) = jobs.0.pop_front()?;
        let work = queue.pop_front();
        if !queue.is_empty() {
            jobs.0.push_back((job, queue));
        }
        if !jobs.0.is_empty() {
            self.turns.0.push_back((tenant.clone(), jobs));
        }
        work.map(|work| (tenant, work))
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
        let threads = threads.max(1);
        let queues = Mutex::new(Queues { threads, ..Queues::default() });
        let state = Arc::new(State { queues, depth, ..State::default() });
        for number in 0..threads {
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
        let granted = queues.grant_extra();
        drop(queues);
        granted.into_iter().for_each(|tenant| start_extra(&self.state, tenant));
        self.state.depth.inc();
        self.state.changed.notify_one();
    }
}

/// Starts a thread that works for this tenant until it has no work left.
fn start_extra(state: &Arc<State>, tenant: String) {
    let (own, of) = (Arc::clone(state), tenant.clone());
    let thread = std::thread::Builder::new().name("task-extra".to_owned()).stack_size(TASK_STACK_BYTES);
    let started = thread.spawn(move || {
        let mut queues = own.lock();
        while let Some((_, next)) = queues.pop_of(&of) {
            drop(queues);
            own.depth.dec();
            next();
            queues = own.lock();
        }
        queues.ends(&of);
        queues.extra -= 1;
    });
    if let Err(error) = started {
        // The pool's own threads come to it in turn.
        tracing::warn!(%error, "a thread could not be started");
        let mut queues = state.lock();
        queues.ends(&tenant);
        queues.extra -= 1;
    }
}

fn work(state: &Arc<State>) {
    let mut queues = state.lock();
    loop {
        if let Some((tenant, next)) = queues.pop() {
            queues.begins(&tenant);
            queues.busy += 1;
            let granted = queues.grant_extra();
            drop(queues);
            granted.into_iter().for_each(|tenant| start_extra(state, tenant));
            state.depth.dec();
            next();
            queues = state.lock();
            queues.busy -= 1;
            queues.ends(&tenant);
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
    fn work_that_never_ends_keeps_no_other_tenant_from_a_thread() {
        let pool = Pool::new(2, Gauge::default());
        let job = |number| JobId::from_bytes([number; 8]);
        let (hold, held) = mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        let (begun, begins) = mpsc::channel();
        for number in 0..64 {
            let (held, begun) = (Arc::clone(&held), begun.clone());
            pool.of_job("greedy", &job(number)).run(move || {
                let _ = begun.send(());
                // As long as the test lives.
                let _ = held.lock().map(|held| held.recv());
            });
        }
        (0..2).for_each(|_| begins.recv().expect("both threads are taken"));
        let (done, order) = mpsc::channel();
        for number in 100..110 {
            let done = done.clone();
            pool.of_job("honest", &job(number)).run(move || {
                let _ = done.send(());
            });
        }
        for _ in 0..10 {
            order.recv_timeout(std::time::Duration::from_secs(30)).expect("the honest tenant is served");
        }
        assert!(begins.try_recv().is_err(), "the greedy tenant gets no more threads than the pool has");
        drop(hold);
    }

    #[test]
    fn many_jobs_of_one_tenant_get_no_more_than_one_of_another() {
        let mut queues = Queues { threads: 1, ..Queues::default() };
        let mut hand_in = |tenant: &str, job: u8| {
            (0..10).for_each(|_| queues.push(tenant, &JobId::from_bytes([job; 8]), Box::new(|| {})));
        };
        (1..=64).for_each(|job| hand_in("greedy", job));
        hand_in("honest", 100);
        // One thread takes all of it, one after the other.
        let order: Vec<String> = std::iter::from_fn(|| queues.pop().map(|(tenant, _)| tenant)).collect();
        assert_eq!(order.len(), 650);
        let last = order.iter().rposition(|tenant| *tenant == "honest").expect("all are done");
        assert!(last <= 20, "every other turn is the honest tenant's: {last}");
    }
}
