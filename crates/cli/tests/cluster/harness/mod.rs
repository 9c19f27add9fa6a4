//! Starts brokers, workers, gateways and clients for one test, and ends exactly those.

mod broker;
mod data;
mod process;
mod upped;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use broker::shared;
pub use broker::{Broker, in_runtime, shared_broker};
pub use data::{DataSet, altered, assert_same_results, books, coffee, steam};
pub use process::{Process, Task};
pub use upped::{Upped, Wanted, find, tenaz, text};

/// Longer than anything takes here, however loaded the machine is.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Scenarios run one after the other: two cores are few for a broker and five processes.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static NEXT: AtomicU32 = AtomicU32::new(1);

/// Waits until `ready` gives something; panics with `what` when it never does.
pub fn wait_for<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready() {
            return value;
        }
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn next_prefix() -> String {
    format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A deployment with a prefix of its own on a broker.
pub struct Cluster {
    pub url: String,
    pub prefix: String,
    pub workers: Vec<Process>,
    pub gateways: Vec<Process>,
    keep: Vec<String>,
    /// After the processes, which show their logs when a test fails.
    pub dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    /// A deployment on this broker, without processes.
    pub fn on(url: &str) -> Self {
        let alone = alone();
        let prefix = next_prefix();
        let dir = tempfile::tempdir().expect("a directory");
        let (workers, gateways, keep) = (Vec::new(), Vec::new(), Vec::new());
        Self { url: url.to_owned(), prefix, dir, workers, gateways, keep, _alone: alone }
    }

    /// A deployment on the broker that all tests share, or nothing where RabbitMQ is not installed.
    pub fn shared() -> Option<Self> {
        let url = broker::shared()?;
        Some(Self::on(&url))
    }

    /// More options for workers and gateways.
    pub fn with_options(mut self, options: &[&str]) -> Self {
        self.keep.extend(options.iter().map(|text| (*text).to_owned()));
        self
    }

    fn process(&self, name: &str, arguments: &[&str]) -> Process {
        let mut line = vec![arguments[0], "--broker", &self.url, "--prefix", &self.prefix];
        line.extend(["--log", "info,tenaz_runtime=debug,lapin=off", "--log-format", "json"]);
        line.extend(self.keep.iter().map(String::as_str));
        line.extend(&arguments[1..]);
        Process::start(self.dir.path(), name, &line)
    }

    /// One more worker with one thread, ready to work.
    pub fn add_worker(&mut self, faults: &str) -> usize {
        self.add_worker_with(&["--faults", faults])
    }

    pub fn add_worker_with(&mut self, options: &[&str]) -> usize {
        let name = format!("worker-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let worker = self.process(&name, &[&["worker", "--threads", "1"], options].concat());
        self.workers.push(worker);
        self.workers.len() - 1
    }

    pub fn wait_for_workers(&self) {
        for worker in &self.workers {
            worker.wait_for_log("the worker is ready");
        }
    }

    /// One more gateway, listening.
    pub fn add_gateway(&mut self) -> usize {
        self.add_gateway_with(&["--listen", "127.0.0.1:0"])
    }

    pub fn add_gateway_with(&mut self, options: &[&str]) -> usize {
        let name = format!("gateway-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut arguments = vec!["gateway"];
        arguments.extend(options);
        let gateway = self.process(&name, &arguments);
        gateway.url();
        self.gateways.push(gateway);
        self.gateways.len() - 1
    }

    /// `workers` workers and `gateways` gateways, all ready.
    pub fn start(mut self, workers: usize, gateways: usize, faults: &str) -> Self {
        for _ in 0..workers {
            self.add_worker(faults);
        }
        for _ in 0..gateways {
            self.add_gateway();
        }
        self.wait_for_workers();
        self
    }

    /// The URLs of all gateways that live.
    pub fn gateway_urls(&self) -> String {
        let alive = self.gateways.iter().filter(|gateway| gateway.is_alive());
        alive.map(Process::url).collect::<Vec<_>>().join(",")
    }

    /// A client that submits a workload over `data`, in small chunks.
    pub fn submit(&self, data: &DataSet, out: &Path, options: &[&str]) -> Process {
        let urls = self.gateway_urls();
        self.submit_to(&urls, data, out, options)
    }

    pub fn submit_to(&self, urls: &str, data: &DataSet, out: &Path, options: &[&str]) -> Process {
        let name = format!("client-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let (dir, out) = (data.dir.display().to_string(), out.display().to_string());
        let mut line = vec!["submit", data.workload, "--data", &dir, "--gateway", urls, "--out", &out];
        if !options.contains(&"--resume") && !options.contains(&"--chunk-size") {
            line.extend(["--chunk-size", data.chunk_size, "--partitions", "3"]);
        }
        line.extend(options);
        Process::start(self.dir.path(), &name, &line)
    }

    pub fn out(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The jobs that a gateway knows.
    pub fn jobs(&self) -> Vec<serde_json::Value> {
        let Some(url) = self.gateways.iter().find(|gateway| gateway.is_alive()).map(Process::url) else {
            return Vec::new();
        };
        let answer = get(&format!("{url}/v1/jobs"));
        answer.and_then(|answer| answer["jobs"].as_array().cloned()).unwrap_or_default()
    }

    /// The id of the only job.
    pub fn only_job(&self) -> String {
        wait_for("the job exists", || {
            let jobs = self.jobs();
            assert!(jobs.len() <= 1, "one job at most: {jobs:?}");
            jobs.first().and_then(|job| job["job"].as_str()).map(str::to_owned)
        })
    }

    /// The state of a job, as a living gateway tells it.
    pub fn state(&self, job: &str) -> Option<serde_json::Value> {
        let url = self.gateways.iter().find(|gateway| gateway.is_alive()).map(Process::url)?;
        get(&format!("{url}/v1/jobs/{job}"))
    }

    /// Everything is as before: no queue, no stream of any job.
    pub fn assert_nothing_left(&self, broker: &Broker) {
        wait_for("the job's queues are gone", || {
            let queues = broker.queues();
            let ours = format!("{}.job.", self.prefix);
            (!queues.iter().any(|name| name.starts_with(&ours))).then_some(())
        });
    }
}

/// A JSON document, or nothing if the server is not there or says no.
pub fn get(url: &str) -> Option<serde_json::Value> {
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20))).build().into();
    let mut answer = agent.get(url).call().ok()?;
    answer.body_mut().read_json().ok()
}
