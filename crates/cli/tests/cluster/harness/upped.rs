//! Clusters that supervisors keep alive: `tenaz up`, `tenaz status`, `tenaz down`.

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::MutexGuard;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{DataSet, Process, wait_for};

/// What a test wants of its cluster.
#[derive(Clone)]
pub struct Wanted<'a> {
    pub workers: usize,
    pub gateways: usize,
    pub supervisors: usize,
    /// Somebody else's broker; `None`: one of its own.
    pub broker: Option<&'a str>,
    /// Options of every worker, besides one thread.
    pub worker_options: &'a [&'a str],
    /// Options of every gateway.
    pub gateway_options: &'a [&'a str],
    /// More lines for the description's `[restarts]`.
    pub restarts: &'a str,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self {
            workers: 2,
            gateways: 1,
            supervisors: 3,
            broker: None,
            worker_options: &[],
            gateway_options: &[],
            restarts: "",
        }
    }
}

/// A cluster that runs by itself until this is dropped.
pub struct Upped {
    pub home: PathBuf,
    pub prefix: String,
    pub dir: tempfile::TempDir,
    down: bool,
    _alone: MutexGuard<'static, ()>,
}

/// Runs the program to its end.
pub fn tenaz(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
    command.args(arguments).current_dir(dir).env_remove("TENAZ_CONFIG").env_remove("TENAZ_CLUSTER");
    command.output().expect("the program runs")
}

/// A port that is free, and outside of the range from which outgoing connections take theirs.
pub fn free_port() -> u16 {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = 20_000 + (std::process::id() % 500) as u16 * 20;
    loop {
        let port = start + NEXT.fetch_add(1, Ordering::Relaxed);
        let address = ("127.0.0.1", port);
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return port;
        }
    }
}

impl Upped {
    /// A directory with a description, and nothing started yet.
    pub fn described(wanted: &Wanted<'_>) -> Self {
        let alone = super::alone();
        let dir = tempfile::tempdir().expect("a directory");
        let prefix = super::next_prefix();
        let mut text = format!("name = \"test\"\nprefix = \"{prefix}\"\n");
        match wanted.broker {
            Some(url) => text += &format!("broker = \"{url}\"\n"),
            None => text += &format!("[broker-node]\nmachine = \"here\"\nport = {}\n", free_port()),
        }
        let mut options = vec!["--threads", "1", "--log-format", "json", "--log", "info,tenaz_runtime=debug,lapin=off"];
        options.extend(wanted.worker_options);
        let gateways: Vec<String> = (0..wanted.gateways).map(|_| format!("127.0.0.1:{}", free_port())).collect();
        text += &format!("[restarts]\n{}\n", wanted.restarts);
        text += &format!(
            "[[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\nworkers = {}\ngateways = {gateways:?}\nworker-options = {options:?}\ngateway-options = {:?}\n",
            wanted.workers, wanted.gateway_options
        );
        for id in 1..=wanted.supervisors {
            text += &format!("[[supervisor]]\nid = {id}\nmachine = \"here\"\nlisten = \"127.0.0.1:{}\"\n", free_port());
        }
        std::fs::write(dir.path().join("test.toml"), text).expect("a file");
        let home = dir.path().join("home");
        Self { home, prefix, dir, down: false, _alone: alone }
    }

    /// Brings it up; everything is ready when this returns. Nothing where RabbitMQ is not installed.
    pub fn start(wanted: &Wanted<'_>) -> Option<Self> {
        // Says so where it is not.
        super::shared_broker()?;
        let upped = Self::described(wanted);
        let done = upped.up();
        assert!(done.status.success(), "{}\n{}", text(&done), upped.logs());
        Some(upped)
    }

    pub fn up(&self) -> Output {
        self.up_with(&["--config", "test.toml"])
    }

    /// `tenaz up` with these options, in the background.
    pub fn up_with(&self, options: &[&str]) -> Output {
        let home = self.home_text();
        tenaz(self.dir.path(), &[&["up", "--detach", "--cluster", &home], options].concat())
    }

    pub fn home_text(&self) -> String {
        self.home.display().to_string()
    }

    /// What `tenaz status` says; nothing if it has nothing to say.
    pub fn status(&self) -> Option<Value> {
        let done = tenaz(self.dir.path(), &["status", "--format", "json", "--cluster", &self.home_text()]);
        serde_json::from_slice(&done.stdout).ok()
    }

    /// Waits until the status is such that `look` finds what it wants.
    pub fn wait<T>(&self, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        let seen = std::cell::RefCell::new(None);
        let guard = Blame { upped: self, seen: &seen };
        let found = wait_for(what, || {
            let status = self.status();
            let found = status.as_ref().and_then(&look);
            *seen.borrow_mut() = status;
            found
        });
        std::mem::forget(guard);
        found
    }

    /// Waits until everybody is ready and somebody leads.
    pub fn wait_until_well(&self) {
        self.wait("everybody is ready", |status| {
            let ready = status["processes"].as_array()?.iter().all(|process| process["state"] == "ready");
            (ready && status["leader"].is_string()).then_some(())
        });
    }

    pub fn process(&self, name: &str) -> Value {
        self.wait(&format!("{name} is known"), |status| find(status, name))
    }

    pub fn pid(&self, name: &str) -> i32 {
        let pid = self.wait(&format!("{name} runs"), |status| find(status, name)?["pid"].as_i64());
        i32::try_from(pid).expect("a pid")
    }

    pub fn leader(&self) -> String {
        self.wait("somebody leads", |status| status["leader"].as_str().map(str::to_owned))
    }

    /// Sends a signal to a process of this cluster, whose life it returns.
    pub fn signal(&self, name: &str, signal: Signal) -> u64 {
        let process = self.wait(&format!("{name} runs"), |status| {
            let process = find(status, name)?;
            process["pid"].is_u64().then_some(process)
        });
        let pid = i32::try_from(process["pid"].as_i64().expect("a pid")).expect("a pid");
        kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("the process is ours");
        process["incarnation"].as_u64().expect("a life")
    }

    /// Waits until a later life of the process is ready.
    pub fn wait_for_life_after(&self, name: &str, life: u64) -> u64 {
        self.wait(&format!("{name} is ready again after life {life}"), |status| {
            let process = find(status, name)?;
            let now = process["incarnation"].as_u64()?;
            (now > life && process["state"] == "ready").then_some(now)
        })
    }

    pub fn gateway_urls(&self) -> String {
        self.wait("gateways are known", |status| {
            let urls: Vec<&str> = status["gateways"].as_array()?.iter().filter_map(|g| g["url"].as_str()).collect();
            (!urls.is_empty()).then(|| urls.join(","))
        })
    }

    /// A client that submits a workload in small chunks.
    pub fn submit(&self, data: &DataSet, name: &str) -> (Process, PathBuf) {
        let out = self.dir.path().join(format!("{name}.results"));
        let (dir, out_text, urls) = (data.dir.display().to_string(), out.display().to_string(), self.gateway_urls());
        let line = [
            "submit",
            &data.workload,
            "--data",
            &dir,
            "--gateway",
            &urls,
            "--out",
            &out_text,
            "--chunk-size",
            data.chunk_size,
            "--partitions",
            "3",
        ];
        (Process::start(self.dir.path(), name, &line), out)
    }

    /// Waits until the cluster works on a job.
    pub fn wait_for_work(&self) {
        self.wait("a job is worked on", |status| {
            let jobs = status["jobs"].as_array()?;
            jobs.iter().any(|job| job["progress"]["chunks"].as_u64() > Some(2)).then_some(())
        });
    }

    /// Waits until the cluster's own broker has the queues of all running jobs on disk. (A lone RabbitMQ 3.10 that is killed
    /// within a second or so of a declaration forgets the queue, or never confirms anything to it again; see ARCHITECTURE.md.)
    pub fn wait_until_recorded(&self) {
        self.wait("the broker has recorded the jobs' queues", |status| {
            let names = names_on_disk(&self.home.join("broker"));
            let jobs = status["jobs"].as_array()?.iter().filter(|job| job["state"] != "done");
            let queue =
                |job: &Value| format!("%2F_{}.job.{}.chunks.0", self.prefix, job["job"].as_str().unwrap_or_default());
            let queues: Vec<String> = jobs.map(queue).collect();
            let is_recorded = |queue: &String| names.windows(queue.len()).any(|window| window == queue.as_bytes());
            (!queues.is_empty() && queues.iter().all(is_recorded)).then_some(())
        });
    }

    /// What happened, so far.
    pub fn events(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home.join("events.ndjson")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// All processes that carry the cluster's mark.
    pub fn census(&self) -> Vec<u32> {
        let id = std::fs::read_to_string(self.home.join("id")).unwrap_or_default();
        let mark = format!("TENAZ_CLUSTER_ID={}", id.trim());
        let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
        })
        .collect()
    }

    /// Ends it as a user would.
    pub fn down(&mut self, options: &[&str]) -> Output {
        self.down = true;
        let home = self.home_text();
        let mut line = vec!["down", "--cluster", &home];
        line.extend(options);
        tenaz(self.dir.path(), &line)
    }

    pub fn logs(&self) -> String {
        let mut text = String::new();
        for entry in std::fs::read_dir(self.home.join("logs")).into_iter().flatten().flatten() {
            let whole = std::fs::read_to_string(entry.path()).unwrap_or_default();
            let lines: Vec<&str> = whole.lines().collect();
            let last = lines[lines.len().saturating_sub(30)..].join("\n");
            text += &format!("---- {}\n{last}\n", entry.file_name().to_string_lossy());
        }
        let events = std::fs::read_to_string(self.home.join("events.ndjson")).unwrap_or_default();
        text + "---- events\n" + &events
    }
}

impl Drop for Upped {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.logs());
        }
        if !self.down {
            let done = self.down(&["--drain", "1s"]);
            if !done.status.success() {
                eprintln!("{}", text(&done));
            }
        }
        for pid in self.census() {
            let _ = Pid::from_raw(pid as i32).map(|pid| kill_process(pid, Signal::KILL));
        }
    }
}

/// Shows the last status of a cluster that never came to where a test waited for it.
struct Blame<'a> {
    upped: &'a Upped,
    seen: &'a std::cell::RefCell<Option<Value>>,
}

impl Drop for Blame<'_> {
    fn drop(&mut self) {
        eprintln!(
            "the last status of {}: {:#}",
            self.upped.home.display(),
            self.seen.borrow().clone().unwrap_or_default()
        );
    }
}

pub fn find(status: &Value, name: &str) -> Option<Value> {
    status["processes"].as_array()?.iter().find(|process| process["name"] == name).cloned()
}

pub fn text(done: &Output) -> String {
    format!("{}\n{}{}", done.status, String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
}

/// What the files say in which a broker keeps the names of its Raft servers.
fn names_on_disk(dir: &Path) -> Vec<u8> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(names_on_disk(&path));
        } else if path.ends_with("names.dets") {
            found.extend(std::fs::read(&path).unwrap_or_default());
        }
    }
    found
}
