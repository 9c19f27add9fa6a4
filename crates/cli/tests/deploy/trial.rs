//! Starts the real program as a file says, on this machine's loopback: with real secrets, without a broker.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::files::{self, Launch};

/// Longer than a process takes to find out that there is no broker, even on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

pub struct Trial {
    dir: tempfile::TempDir,
    nobody: SocketAddr,
}

impl Trial {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = Command::new(files::root().join("deploy/make-secrets")).arg(dir.path().join("secrets")).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // A port that was free a moment ago: nobody listens there.
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self { dir, nobody }
    }

    pub fn secret(&self, name: &str) -> PathBuf {
        self.dir.path().join("secrets").join(name)
    }

    /// Runs it to its end. Supervisors only check their description, which is the one of this file.
    pub fn run(&self, launch: &Launch, cluster: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.args(launch.args.iter().map(|arg| on_any_port(arg)));
        for (name, value) in launch.env.iter().chain(&launch.shared) {
            command.env(name, self.here(name, value));
        }
        if launch.role() == "supervisor" {
            command.arg("--check").env("TENAZ_CLUSTER", self.home(cluster));
        }
        finish(command, &launch.from)
    }

    /// What a variable has to be here.
    fn here(&self, name: &str, value: &str) -> String {
        let secret = |name: &str| self.secret(name).display().to_string();
        match name {
            "TENAZ_BROKER" => {
                assert!(value.starts_with("amqps://") && value.ends_with(":5671/%2f"), "{value}");
                format!("amqps://{}/%2f", self.nobody)
            }
            "TENAZ_CREDENTIALS_FILE" => secret(file_of(value, "credentials")),
            "TENAZ_TOKENS" => secret(file_of(value, "tokens")),
            "TENAZ_KEY_FILE" => secret(file_of(value, "heartbeat-key")),
            "TENAZ_CA_FILE" => secret(file_of(value, "ca")),
            "TENAZ_TLS_CERT" => secret(file_of(value, "gateway-cert")),
            "TENAZ_TLS_KEY" => secret(file_of(value, "gateway-key")),
            // Nothing may leave the machine.
            "TENAZ_SUPERVISORS" => vec![self.nobody.to_string(); value.split(',').count()].join(","),
            _ => on_any_port(value),
        }
    }

    /// A cluster's directory with the description from a file and the key from here.
    fn home(&self, cluster: &str) -> PathBuf {
        let home = self.dir.path().join("home");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o700)).unwrap();
        let text = files::text(cluster);
        let lines = text.lines().map(|line| match line.starts_with("key-file = ") {
            true => format!("key-file = {:?}", self.secret("cluster-key")),
            false => line.to_owned(),
        });
        std::fs::write(home.join("cluster.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
        home
    }
}

/// The secret's name, which must be the file's.
fn file_of<'a>(path: &'a str, expected: &str) -> &'a str {
    let name = Path::new(path).file_name().unwrap().to_str().unwrap();
    assert_eq!(name, expected, "{path}");
    name
}

/// An address keeps its host, because what is open to others has other rules, and gets a free port.
fn on_any_port(value: &str) -> String {
    match value.parse::<SocketAddr>() {
        Ok(address) => SocketAddr::new(address.ip(), 0).to_string(),
        Err(_) => value.to_owned(),
    }
}

fn finish(mut command: Command, from: &str) -> Output {
    let mut child = command.spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE {
            let _ = child.kill();
            let output = child.wait_with_output().unwrap();
            panic!("{from}: still runs; it said: {}", String::from_utf8_lossy(&output.stderr));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// `tenaz COMMAND --help`, whole.
pub fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tenaz")).args([command, "--help"]).output().unwrap();
    assert!(output.status.success(), "tenaz {command} --help");
    String::from_utf8(output.stdout).unwrap()
}
