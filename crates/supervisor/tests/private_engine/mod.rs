//! A Podman service of the test's own: its socket, storage and containers are in a temporary directory.
#![allow(clippy::print_stderr, clippy::unwrap_used, unreachable_pub)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bollard::Docker as Api;
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{CreateContainerOptions, RemoveContainerOptions, StartContainerOptions};

/// The image: one static program, imported from a directory.
const IMAGE: &str = "localhost/tenaz-test:1";
const PATIENCE: Duration = Duration::from_secs(60);

/// Limits that a container may have where the machine's own are lower than Podman's defaults; files instead of shared memory and
/// the journal, and no control groups, so that nothing is left outside of the directory.
const SETTINGS: &str = r#"[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
cgroups = "disabled"
[engine]
lock_type = "file"
events_logger = "file"
cgroup_manager = "cgroupfs"
"#;

pub struct PrivateEngine {
    dir: tempfile::TempDir,
    socket: PathBuf,
    api: Api,
    service: Option<Child>,
    /// Tells the containers of this test from those of others, on an engine that is shared.
    mark: String,
    made: std::sync::Mutex<Vec<String>>,
}

impl PrivateEngine {
    /// `None`, with a message, where no engine can be had.
    pub async fn start() -> Option<Self> {
        let skip = |reason: &str| eprintln!("skipped: {reason}");
        if let Ok(socket) = std::env::var("TENAZ_TEST_DOCKER") {
            return Some(Self::connect(tempfile::tempdir().unwrap(), PathBuf::from(socket), None));
        }
        let busybox = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
        let Some(busybox) = busybox.filter(|_| has("podman") && has("unshare") && has("tar")) else {
            skip("podman and busybox-static are not installed");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("containers.conf"), SETTINGS).unwrap();
        if let Err(reason) = import(dir.path(), busybox) {
            skip(&format!("podman cannot import an image here: {reason}"));
            return None;
        }
        let socket = dir.path().join("podman.sock");
        let service =
            podman(dir.path(), &["system", "service", "--time", "0", &format!("unix://{}", socket.display())])
                .stderr(fs::File::create(dir.path().join("service.log")).unwrap())
                .spawn()
                .unwrap();
        let mut engine = Self::wait_for(dir, socket, service).await?;
        match engine.can_run().await {
            Ok(()) => Some(engine),
            Err(reason) => {
                skip(&format!("podman cannot run containers here: {reason}"));
                engine.clean();
                None
            }
        }
    }

    fn connect(dir: tempfile::TempDir, socket: PathBuf, service: Option<Child>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let api = Api::connect_with_unix(socket.to_str().unwrap(), 60, bollard::API_DEFAULT_VERSION).unwrap();
        Self { dir, socket, api, service, mark, made: std::sync::Mutex::default() }
    }

    async fn wait_for(dir: tempfile::TempDir, socket: PathBuf, mut service: Child) -> Option<Self> {
        let begun = Instant::now();
        while !socket.exists() || std::os::unix::net::UnixStream::connect(&socket).is_err() {
            let ended = service.try_wait().unwrap();
            if ended.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(dir.path().join("service.log")).unwrap_or_default();
                eprintln!("skipped: podman's service does not run here: {}", log.trim());
                let _ = service.kill();
                let _ = service.wait();
                return None;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(Self::connect(dir, socket, Some(service)))
    }

    /// Tries one container: whether they can run depends on the machine's control groups and rights.
    async fn can_run(&self) -> Result<(), String> {
        let id = self.make("probe", Default::default(), &["/bin/sh", "-c", "exit 0"]).await?;
        let started = self.api.start_container(&id, None::<StartContainerOptions>).await;
        started.map_err(|error| error.to_string())?;
        self.remove(&id).await;
        Ok(())
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn is_ours(&self) -> bool {
        self.service.is_some()
    }

    pub fn label(&self) -> String {
        format!("tenaz.cluster={}", self.mark)
    }

    /// A container's name on the engine.
    pub fn called(&self, short: &str) -> String {
        format!("{}-{short}", self.mark)
    }

    /// Makes a container of the cluster, and does not start it. Gives its id.
    pub async fn container(&self, short: &str, role: &str, process: Option<&str>, command: &[&str]) -> String {
        let mut labels = vec![("tenaz.cluster", self.mark.as_str()), ("tenaz.role", role)];
        labels.extend(process.map(|process| ("tenaz.process", process)));
        self.make(short, labels, command).await.unwrap()
    }

    /// Makes one of another cluster.
    pub async fn foreign_container(&self, short: &str, command: &[&str]) -> String {
        self.make(short, vec![("tenaz.cluster", "another"), ("tenaz.role", "worker")], command).await.unwrap()
    }

    async fn make(&self, short: &str, labels: Vec<(&str, &str)>, command: &[&str]) -> Result<String, String> {
        let options = CreateContainerOptions { name: Some(self.called(short)), ..Default::default() };
        let image = std::env::var("TENAZ_TEST_IMAGE").unwrap_or_else(|_| IMAGE.to_owned());
        let body = ContainerCreateBody {
            image: Some(image),
            cmd: Some(command.iter().map(|word| (*word).to_owned()).collect()),
            labels: Some(labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()),
            host_config: Some(HostConfig { network_mode: Some("none".to_owned()), ..Default::default() }),
            ..Default::default()
        };
        let made = self.api.create_container(Some(options), body).await.map_err(|error| error.to_string())?;
        self.made.lock().unwrap().push(made.id.clone());
        Ok(made.id)
    }

    async fn remove(&self, id: &str) {
        let options = RemoveContainerOptions { force: true, ..Default::default() };
        let _ = self.api.remove_container(id, Some(options)).await;
        self.made.lock().unwrap().retain(|made| made != id);
    }

    /// Ends the service, leaving its socket behind, as an engine that was killed does, for as long as its directory is kept.
    pub fn end(mut self) -> (tempfile::TempDir, PathBuf) {
        self.clean();
        let socket = self.socket.clone();
        let _ = fs::remove_file(&socket);
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        (std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap()), socket)
    }

    /// Removes all containers, then ends the service.
    fn clean(&mut self) {
        for id in std::mem::take(&mut *self.made.lock().unwrap()) {
            // While a container changes its state, an engine may refuse to remove it.
            let begun = Instant::now();
            while !self.removed(&id) {
                if begun.elapsed() > PATIENCE {
                    eprintln!("the container {id} could not be removed");
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        if let Some(mut service) = self.service.take() {
            let _ = service.kill();
            let _ = service.wait();
        }
    }

    fn removed(&self, id: &str) -> bool {
        let url = format!("unix://{}", self.socket.display());
        let mut command = match self.service {
            Some(_) => {
                let mut podman = Command::new("podman");
                podman.args(["--remote", "--url", &url, "rm", "--force", "--ignore", "--time", "0", id]);
                podman
            }
            None => {
                let mut docker = Command::new("docker");
                docker.args(["-H", &url, "rm", "--force", id]);
                docker
            }
        };
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        // Without the program nothing can be done.
        status.map_or(true, |status| status.success())
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        self.clean();
    }
}

fn has(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).exists()))
}

/// Podman with all its state in the directory, in mount points of its own: a cache that it insists on having elsewhere is lost
/// with them, and its OCI runtime refuses machines that have both versions of control groups, so the second one is taken out
/// of its sight.
fn podman(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    let alone = "mkdir -p /var/lib/containers && mount -t tmpfs tmpfs /var/lib/containers
        umount /sys/fs/cgroup/unified 2>/dev/null
        exec podman \"$@\"";
    command.args(["--mount", "sh", "-c", alone, "podman"]);
    for (option, below) in [("--root", "root"), ("--runroot", "run"), ("--tmpdir", "tmp")] {
        command.arg(option).arg(dir.join(below));
    }
    command.args(["--storage-driver", "vfs"]).args(args);
    command.env("CONTAINERS_CONF", dir.join("containers.conf")).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn import(dir: &Path, busybox: &str) -> Result<(), String> {
    let bin = dir.join("image/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::copy(busybox, bin.join("busybox")).unwrap();
    for tool in ["sh", "sleep"] {
        std::os::unix::fs::symlink("busybox", bin.join(tool)).unwrap();
    }
    let archive = dir.join("image.tar");
    let packed = Command::new("tar").arg("-C").arg(dir.join("image")).arg("-cf").arg(&archive).arg(".").status();
    assert!(packed.unwrap().success());
    let done = podman(dir, &["import", archive.to_str().unwrap(), IMAGE]).stderr(Stdio::piped()).output().unwrap();
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()) }
}
