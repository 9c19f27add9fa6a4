//! Starts brokers, workers, gateways and clients for one test, and ends exactly those.

mod broker;
mod cuttable_link;
mod data;
mod process;
mod small_disk;
mod upped;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use broker::shared;
pub use broker::{Broker, in_runtime, shared_broker};
pub use cuttable_link::CuttableLink;
pub use data::{
    DataSet, altered, altered_in_the_middle, assert_same_results, books, coffee, failing, hungry, long_texts,
    megabytes_of_bad_records, pairs, short_bad_records, steam,
};
pub use process::{Process, Task};
pub use small_disk::SmallDisk;
pub use upped::{Upped, Wanted, find, free_port, tenaz, text};

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

    /// The command line of a process of this deployment.
    fn line<'a>(&'a self, arguments: &[&'a str]) -> Vec<&'a str> {
        let mut line = vec![arguments[0], "--broker", &self.url, "--prefix", &self.prefix];
        line.extend(["--log", "info,tenaz_runtime=debug,tenaz_gateway=debug,lapin=off", "--log-format", "json"]);
        line.extend(self.keep.iter().map(String::as_str));
        line.extend(&arguments[1..]);
        line
    }

    fn process(&self, name: &str, arguments: &[&str]) -> Process {
        Process::start(self.dir.path(), name, &self.line(arguments))
    }

    /// One more worker that keeps its temporary files on this disk.
    pub fn add_worker_on(&mut self, disk: &SmallDisk, options: &[&str]) -> usize {
        let name = format!("worker-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let line = [&["worker", "--threads", "1"], options].concat();
        let worker = Process::start_in(self.dir.path(), &name, &self.line(&line), disk.path().to_owned());
        self.workers.push(worker);
        self.workers.len() - 1
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

    /// Another worker in the place of one that was killed. It is not waited for.
    pub fn replace_worker(&mut self, index: usize, faults: &str) {
        let last = self.add_worker(faults);
        self.workers.swap_remove(index);
        debug_assert_eq!(last, self.workers.len());
    }

    /// Another gateway at the address of one that was killed. It is not waited for.
    pub fn replace_gateway(&mut self, index: usize, address: &str) {
        self.gateways[index] = self.start_gateway(&["--listen", address]);
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
        let gateway = self.start_gateway(options);
        gateway.url();
        self.gateways.push(gateway);
        self.gateways.len() - 1
    }

    fn start_gateway(&self, options: &[&str]) -> Process {
        let name = format!("gateway-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.process(&name, &[&["gateway"], options].concat())
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
        let mut line = vec!["submit", &data.workload, "--data", &dir, "--gateway", urls, "--out", &out];
        if !options.contains(&"--resume") && !options.contains(&"--chunk-size") {
            line.extend(["--chunk-size", data.chunk_size]);
            if !options.contains(&"--partitions") {
                line.extend(["--partitions", "3"]);
            }
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

    /// Whether any process of this deployment has said this, also one that is gone.
    pub fn logs_mention(&self, text: &str) -> bool {
        let files = std::fs::read_dir(self.dir.path()).expect("a directory").flatten().map(|entry| entry.path());
        let mut logs = files.filter(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.any(|log| std::fs::read_to_string(log).unwrap_or_default().contains(text))
    }

    /// What all gateways have said, also those that are gone, in the order of their lives.
    pub fn gateway_logs(&self) -> String {
        let files = std::fs::read_dir(self.dir.path()).expect("a directory").flatten().map(|entry| entry.path());
        let is_log = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "log");
        let is_gateway = |path: &PathBuf| path.display().to_string().contains("/gateway-");
        let mut logs: Vec<PathBuf> = files.filter(|path| is_log(path) && is_gateway(path)).collect();
        logs.sort_by_key(|path| path.metadata().and_then(|file| file.modified()).ok());
        let text = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        logs.iter().map(|path| format!("---- {}\n{}", path.display(), text(path))).collect()
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
