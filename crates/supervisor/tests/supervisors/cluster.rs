//! A cluster on this machine: supervisors as threads of the test, the others as real processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tenaz_core::{ProcessRole, ProcessState, SupervisorId};
use tenaz_supervisor::backend::processes::Processes;
use tenaz_supervisor::status::{self, ProcessStatus, Status};
use tenaz_supervisor::{Config, Executor, Home, Supervisor, SupervisorSettings, census};
use tenaz_vitals::Key;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::managed;

/// Long enough for a machine that does ten other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) fn executor(home: &Home, config: &Config, machine: &str) -> Executor {
    let backend = Processes::with_program(home, config, machine, PathBuf::from("/bin/sh"));
    Executor::with_backend(home, config, machine, Arc::new(backend))
}

/// An address that nobody listens on, neither TCP nor UDP. Not one of those that the system gives to whoever asks for any:
/// it could be given away before it is used.
fn free_addr() -> std::net::SocketAddr {
    use std::sync::atomic::{AtomicU16, Ordering};
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = u16::try_from(std::process::id() % 97).unwrap() * 120;
    loop {
        let port = 20_000 + (first + NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000;
        let addr = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        if std::net::TcpListener::bind(addr).is_ok() && std::net::UdpSocket::bind(addr).is_ok() {
            return addr;
        }
    }
}

/// A supervisor that runs in a thread of this test.
struct Member {
    kill: CancellationToken,
    thread: JoinHandle<()>,
    runtime: Handle,
}

pub(crate) struct Cluster {
    pub(crate) home: Home,
    /// The directory of each machine. Both are here, and know nothing of each other's.
    homes: BTreeMap<&'static str, Home>,
    pub(crate) config: Config,
    pub(crate) key: Key,
    members: BTreeMap<u16, Member>,
    _dir: tempfile::TempDir,
}

impl Cluster {
    /// Three supervisors on one machine, and so many workers that behave in this way.
    pub(crate) fn new(workers: u32, mode: &str) -> Self {
        Self::on(&["here"; 3], workers, mode)
    }

    /// Supervisors on these machines, and so many workers on each of them.
    pub(crate) fn on(supervisors: &[&'static str], workers: u32, mode: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut text = "name = \"test\"\nbroker = \"amqp://u:secret@127.0.0.1:1\"\n\
             [supervision]\nhang-after = \"4s\"\n[restarts]\nbackoff = \"50ms\"\nfailed-starts = 3\n"
            .to_owned();
        let home = Home::create(&dir.path().join("here")).unwrap();
        let mut homes = BTreeMap::from([("here", home.clone())]);
        for machine in supervisors {
            homes.entry(machine).or_insert_with(|| {
                // The same cluster: the same key and id.
                let there = dir.path().join(machine);
                std::fs::create_dir(&there).unwrap();
                for file in ["key", "id"] {
                    std::fs::copy(home.dir().join(file), there.join(file)).unwrap();
                }
                Home::create(&there).unwrap()
            });
        }
        for machine in homes.keys() {
            text += &format!(
                "[[machine]]\nname = {machine:?}\naddress = \"127.0.0.1\"\n\
                 workers = {workers}\nworker-options = [{mode:?}]\n"
            );
        }
        for (id, machine) in (1..).zip(supervisors) {
            text += &format!("[[supervisor]]\nid = {id}\nmachine = {machine:?}\nlisten = \"{}\"\n", free_addr());
        }
        let config = Config::parse(&text, "cluster.toml").unwrap();
        for home in homes.values() {
            home.write_config(&config).unwrap();
            for role in ProcessRole::ALL {
                std::fs::write(home.dir().join(role.as_str()), managed::script()).unwrap();
            }
        }
        let key = home.key(&config).unwrap();
        let mut cluster = Self { home, homes, config, key, members: BTreeMap::new(), _dir: dir };
        (1..=3).for_each(|id| cluster.start(id));
        cluster
    }

    pub(crate) fn executor(&self) -> Executor {
        executor(&self.home, &self.config, "here")
    }

    fn start(&mut self, id: u16) {
        let machine = self.config.supervisor(SupervisorId(id)).unwrap().machine.clone();
        let settings = SupervisorSettings {
            id: SupervisorId(id),
            home: self.homes[machine.as_str()].clone(),
            config: self.config.clone(),
            key: self.key.clone(),
            cluster: self.home.id().clone(),
            vitals: None,
        };
        let (kill, killed) = (CancellationToken::new(), CancellationToken::new());
        let (sender, runtime) = std_mpsc::channel();
        let stop = kill.clone();
        let thread = std::thread::spawn(move || {
            // One thread: if it is blocked, the whole supervisor is.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            sender.send(runtime.handle().clone()).unwrap();
            runtime.block_on(async {
                let executor = executor(&settings.home, &settings.config, &machine);
                tokio::select! {
                    ended = Supervisor::run_with(settings, executor, killed) => ended.unwrap(),
                    // In the middle of whatever it did.
                    () = stop.cancelled() => {}
                }
            });
            runtime.shutdown_background();
        });
        self.members.insert(id, Member { kill, thread, runtime: runtime.recv().unwrap() });
    }

    /// Ends a supervisor without a word.
    pub(crate) fn kill_supervisor(&mut self, id: u16) {
        let member = self.members.remove(&id).unwrap();
        member.kill.cancel();
        member.thread.join().unwrap();
    }

    /// Stops a supervisor as SIGSTOP would, until the answer is dropped.
    pub(crate) fn pause_supervisor(&self, id: u16) -> std_mpsc::Sender<()> {
        let (sender, wake) = std_mpsc::channel::<()>();
        let (paused, is_paused) = std_mpsc::channel();
        self.members[&id].runtime.spawn(async move {
            paused.send(()).unwrap();
            // Blocks the thread, on purpose.
            let _ = wake.recv();
        });
        is_paused.recv().unwrap();
        sender
    }

    pub(crate) async fn status(&self) -> Option<Status> {
        status::ask(&self.config, &self.key, self.home.id(), Duration::from_secs(10)).await.ok()
    }

    /// Waits until the leader sees it so.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Status) -> bool) -> Status {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status().await;
            if let Some(status) = status.clone().filter(|status| status.is_of_leader() && holds(status)) {
                return status;
            }
            assert!(Instant::now() < deadline, "never: {what}; {status:#?}\n{}", self.events());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn until_all_ready(&self) -> Status {
        let ready =
            |process: &ProcessStatus| process.role == ProcessRole::Supervisor || process.state == ProcessState::Ready;
        self.until("all are ready", |status| {
            status.supervisors.iter().all(|supervisor| supervisor.connected) && status.processes.iter().all(ready)
        })
        .await
    }

    pub(crate) fn events(&self) -> String {
        std::fs::read_to_string(self.home.events_path()).unwrap_or_default()
    }

    pub(crate) fn count_events(&self, event: &str) -> usize {
        self.events().matches(&format!("\"event\":\"{event}\"")).count()
    }
}

pub(crate) fn process<'a>(status: &'a Status, name: &str) -> &'a ProcessStatus {
    status.processes.iter().find(|process| process.name.as_str() == name).unwrap()
}

pub(crate) fn signal(process: &ProcessStatus, signal: Signal) {
    let pid = process.pid.expect("it runs");
    assert_ne!(pid, std::process::id());
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for home in self.homes.values() {
            let _ = home.close();
        }
        for member in std::mem::take(&mut self.members).into_values() {
            member.kill.cancel();
            let _ = member.thread.join();
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Only processes with this cluster's mark; this test has none.
            let left = census::scan(self.home.id());
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            for member in left {
                if let Some(pid) = i32::try_from(member.pid).ok().and_then(Pid::from_raw) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
