//! Processes of a test: started, watched by their logs, killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;

use rustix::process::{Pid, Signal, kill_process};

use super::wait_for;

/// A kind of work that a worker says it begins and finishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Chunk,
    Inner,
}

impl Task {
    fn messages(self) -> (&'static str, &'static str) {
        match self {
            Self::Chunk => ("a chunk is begun", "a chunk is finished"),
            Self::Inner => ("a task is begun", "a task is finished"),
        }
    }
}

/// A process of this test, ended with it.
pub struct Process {
    pub name: String,
    log: PathBuf,
    /// Everything the process may keep on disk; gone with it.
    temp: PathBuf,
    child: Mutex<Child>,
    pid: Pid,
}

impl Process {
    pub fn start(dir: &Path, name: &str, arguments: &[&str]) -> Self {
        let temp = dir.join(format!("{name}.tmp"));
        std::fs::create_dir(&temp).expect("a directory");
        Self::start_in(dir, name, arguments, temp)
    }

    /// A process that keeps its temporary files in `temp`.
    pub fn start_in(dir: &Path, name: &str, arguments: &[&str], temp: PathBuf) -> Self {
        let log = dir.join(format!("{name}.log"));
        let errors = File::create(&log).expect("a log");
        let output = File::create(dir.join(format!("{name}.out"))).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_tenaz"))
            // Some data is bad on purpose.
            .env("TENAZ_ACCEPT_REJECTS", "true")
            .args(arguments)
            .env("TMPDIR", &temp)
            .env_remove("TENAZ_CONFIG")
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .expect("the program starts");
        let pid = Pid::from_child(&child);
        Self { name: name.to_owned(), log, temp, child: Mutex::new(child), pid }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the process is ours");
    }

    /// SIGKILL. Nothing that the process had on disk survives.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
        let status = self.wait();
        assert!(!status.success(), "{} was killed", self.name);
        std::fs::remove_dir_all(&self.temp).expect("its directory");
    }

    /// The most memory that it has had at a time.
    pub fn peak_memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_nonzero())).expect("it lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kilobytes << 10
    }

    /// The processor time that it has taken.
    pub fn busy(&self) -> std::time::Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero())).expect("it lives");
        let fields: Vec<&str> = stat.rsplit(')').next().expect("fields").split_whitespace().collect();
        let ticks = |place: usize| fields[place].parse::<u64>().expect("a number of ticks");
        std::time::Duration::from_millis(10 * (ticks(11) + ticks(12)))
    }

    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    pub fn is_alive(&self) -> bool {
        self.child.lock().expect("the child").try_wait().expect("its state").is_none()
    }

    /// Waits for its end.
    pub fn wait(&self) -> ExitStatus {
        let ended = || self.child.lock().expect("the child").try_wait().expect("its state");
        let deadline = std::time::Instant::now() + super::PATIENCE;
        loop {
            if let Some(status) = ended() {
                return status;
            }
            assert!(std::time::Instant::now() < deadline, "{} does not end:\n{}", self.name, self.log_tail());
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    /// Waits for its end, which must be a good one.
    pub fn succeeds(&self) {
        let status = self.wait();
        assert!(status.success(), "{} failed with {status}:\n{}", self.name, self.log_tail());
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// The lines of its log that are whole.
    pub fn entries(&self) -> Vec<serde_json::Value> {
        self.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    pub fn wait_for_log(&self, text: &str) {
        wait_for(&format!("{} says {text:?}", self.name), || {
            assert!(self.is_alive() || self.log().contains(text), "{} has ended:\n{}", self.name, self.log_tail());
            self.log().contains(text).then_some(())
        });
    }

    /// Where a gateway listens.
    pub fn url(&self) -> String {
        wait_for(&format!("{} listens", self.name), || {
            assert!(self.is_alive() || self.log().contains("listening"), "{}:\n{}", self.name, self.log_tail());
            let entry = self.entries().into_iter().find(|entry| entry["message"] == "listening")?;
            entry["url"].as_str().map(str::to_owned)
        })
    }

    /// How many pieces of work were begun, and how many of them finished.
    pub fn counts(&self, task: Task) -> (usize, usize) {
        let (begun, finished) = task.messages();
        let entries = self.entries();
        let count = |text: &str| entries.iter().filter(|entry| entry["message"] == text).count();
        (count(begun), count(finished))
    }

    /// Kills the process while it is in the middle of such work: it is frozen first, and killed only if the work is
    /// still under way then.
    pub fn kill_during(&self, task: Task) {
        self.kill_when(&format!("{} works on a {task:?}", self.name), || {
            let (begun, finished) = self.counts(task);
            begun > finished
        });
    }

    /// Kills the process while `is_so`, which is looked at again when the process stands still.
    pub fn kill_when(&self, what: &str, is_so: impl Fn() -> bool) {
        wait_for(what, || {
            assert!(self.is_alive(), "{} has ended:\n{}", self.name, self.log_tail());
            if !is_so() {
                return None;
            }
            self.freeze();
            if is_so() {
                self.kill();
                return Some(());
            }
            self.thaw();
            None
        });
        assert!(is_so(), "{what}, at its end");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let mut child = self.child.lock().expect("the child");
        if matches!(child.try_wait(), Ok(None)) {
            drop(child.kill());
            drop(child.wait());
        }
        if std::thread::panicking() {
            eprintln!("---- {}\n{}", self.name, self.log_tail());
        }
    }
}
