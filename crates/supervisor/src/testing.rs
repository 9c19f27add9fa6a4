//! A cluster of shell scripts, for tests.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tenaz_core::{Incarnation, MemberId, ProcessName, ProcessRole, SupervisorId, Term};

use crate::backend::processes::Processes;
use crate::census;
use crate::config::Config;
use crate::executor::{Executor, MachineProcess, Order};
use crate::home::Home;

/// Long enough for a machine that does ten other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for something without any child process: reading a pipe that nobody writes to is part of the shell. The last
/// argument says what is special about it.
const SCRIPT: &str = "pipe=\"pipe.$$\"
for mode; do :; done
case \"$mode\" in
  exit-*) echo \"going with ${mode#exit-}\"; exit \"${mode#exit-}\" ;;
  deaf) trap '' TERM ;;
  family) sleep 1000 & ;;
esac
mkfifo \"$pipe\" && exec 3<>\"$pipe\" && rm \"$pipe\"
echo \"up as $TENAZ_NAME $TENAZ_INCARNATION\"
read -r line <&3
";

pub(crate) struct TestCluster {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) program: PathBuf,
    dir: tempfile::TempDir,
}

impl TestCluster {
    /// Two workers that behave in this way, a gateway, a supervisor.
    pub(crate) fn new(mode: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(&dir.path().join("home")).unwrap();
        let text = format!(
            "name = \"test\"\nbroker = \"amqp://u:secret@127.0.0.1:1\"\n[[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\n\
             workers = 2\ngateways = [\"127.0.0.1:7400\"]\nworker-options = [{mode:?}]\n\
             [[supervisor]]\nid = 1\nmachine = \"here\"\nlisten = \"127.0.0.1:7501\"\n"
        );
        let config = Config::parse(&text, "cluster.toml").unwrap();
        home.write_config(&config).unwrap();
        // `sh worker …` in the cluster's directory runs the script there. A script that is itself executed could be "busy":
        // children of other tests have it open for writing until they exec.
        for role in ProcessRole::ALL {
            std::fs::write(home.dir().join(role.as_str()), SCRIPT).unwrap();
        }
        let program = PathBuf::from("/bin/sh");
        Self { home, config, program, dir }
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(crate) fn executor(&self) -> Executor {
        let backend = Processes::with_program(&self.home, &self.config, "here", self.program.clone());
        Executor::with_backend(&self.home, &self.config, "here", Arc::new(backend))
    }

    /// A process with these marks that nobody has a record of, and that is not our child.
    pub(crate) fn start_strange(&self, cluster: &str, name: &str, incarnation: u64, role: &str) {
        let mut command = Command::new("/bin/sh");
        let script = "setsid \"$1\" \"$2\" >/dev/null 2>&1 </dev/null &";
        command.args(["-c", script, "sh"]).arg(&self.program).arg(role).current_dir(self.home.dir());
        command.env("TENAZ_CLUSTER_ID", cluster).env("TENAZ_NAME", name).env("TENAZ_MACHINE", "here");
        assert!(command.env("TENAZ_INCARNATION", incarnation.to_string()).status().unwrap().success());
    }

    pub(crate) async fn start(&self, executor: &Executor, name: &str, incarnation: u64) {
        let result = executor.execute(term(1), &start(name, incarnation)).await;
        assert_eq!(result, crate::executor::OrderResult::Done);
        let up = format!("up as {name} {incarnation}");
        until(async || executor.last_lines(&self::name(name), 5).await.contains(&up)).await;
    }

    pub(crate) fn events(&self) -> String {
        std::fs::read_to_string(self.home.events_path()).unwrap_or_default()
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = census::scan(self.home.id());
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            for target in left.iter().filter_map(census::Member::target) {
                let _ = target.signal(Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A process that has nothing to do with the cluster, or belongs to another one.
pub(crate) struct Decoy(std::process::Child);

impl Decoy {
    pub(crate) fn start(cluster_id: Option<&str>) -> Self {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(id) = cluster_id {
            command.env("TENAZ_CLUSTER_ID", id).env("TENAZ_NAME", "worker-1").env("TENAZ_INCARNATION", "1");
        }
        Self(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Decoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn name(text: &str) -> ProcessName {
    text.parse().unwrap()
}

pub(crate) fn term(round: u64) -> Term {
    Term { round, leader: SupervisorId(1), life: MemberId(7) }
}

pub(crate) fn start(name: &str, incarnation: u64) -> Order {
    let streak = tenaz_core::Streak::default();
    Order::Start { name: self::name(name), incarnation: Incarnation(incarnation), because: "test".to_owned(), streak }
}

pub(crate) fn kill(name: &str, incarnation: u64) -> Order {
    Order::Kill { name: self::name(name), incarnation: Incarnation(incarnation), because: "test".to_owned() }
}

pub(crate) async fn look(executor: &Executor, name: &str) -> MachineProcess {
    let all = executor.inspect().await.unwrap();
    all.into_iter().find(|process| process.found.name.as_str() == name).unwrap()
}

pub(crate) async fn until(mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "it never came to be");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// An address that nobody listens on, neither TCP nor UDP. Not one of those that the system gives to whoever asks for any:
/// it could be given away before it is used.
pub(crate) fn free_addr() -> std::net::SocketAddr {
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
