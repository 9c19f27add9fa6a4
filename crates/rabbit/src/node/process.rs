//! Starting, finding and killing processes, such that none outlives this one.

use std::{
    fs, io,
    net::Ipv4Addr,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal};

use super::{NodeNetwork, NodeOptions, ports};
use crate::error::{Error, Result};

/// Where packages put the scripts; the ones in `/usr/sbin` would switch to the user `rabbitmq`.
const SCRIPT_DIRS: [&str; 3] = ["/usr/lib/rabbitmq/bin", "/opt/rabbitmq/sbin", "/usr/local/lib/rabbitmq/bin"];
const EPMD_ATTEMPTS: usize = 3;
const EPMD_DEADLINE: Duration = Duration::from_secs(10);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The full path of one of RabbitMQ's scripts. `TENAZ_RABBITMQ_BIN` names their directory if it is unusual.
pub(super) fn server_script(name: &str) -> Result<PathBuf> {
    let mut dirs = given_dir().into_iter().chain(SCRIPT_DIRS.iter().map(PathBuf::from));
    let script = dirs.find_map(|dir| Some(dir.join(name)).filter(|script| script.is_file()));
    let script = script.ok_or_else(|| Error::NotInstalled { missing: format!("{}/{name}", SCRIPT_DIRS[0]) })?;
    program("erl")?;
    Ok(script)
}

fn given_dir() -> Option<PathBuf> {
    std::env::var_os("TENAZ_RABBITMQ_BIN").map(PathBuf::from)
}

/// A command that inherits nothing of our environment but the path: an inherited `RABBITMQ_…` would mean another node.
pub(super) fn clean_command(program: &Path, network: &NodeNetwork) -> Command {
    let mut command = network.command(program);
    command.env_clear().env("PATH", search_path()).env("LANG", "C.UTF-8").stdin(Stdio::null());
    command
}

/// Starts a command that is killed when this process dies, whatever kills it.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    type Job = (Command, mpsc::Sender<io::Result<Child>>);
    // The kernel sends the signal when the *thread* that started a child ends, so this one never does.
    static STARTER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (jobs, inbox) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("node-starter".to_owned())
            .spawn(move || {
                for (mut command, reply) in inbox {
                    // A caller that went away must not leave a child behind.
                    if let Err(mpsc::SendError(Ok(mut child))) = reply.send(spawn_bound(&mut command)) {
                        kill_and_reap(&mut child);
                    }
                }
            })
            .map(drop)
            .unwrap_or_else(|error| tracing::error!(%error, "no thread to start processes with"));
        jobs
    });
    let (reply, child) = mpsc::channel();
    let ended = || io::Error::other("the thread that starts processes is not there");
    starter.send((command, reply)).map_err(|_| ended())?;
    child.recv().map_err(|_| ended())?
}

fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    let parent = getpid();
    command.process_group(0);
    let bind_to_parent = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // It may have died before the line above.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::Error::from(io::ErrorKind::Interrupted)) }
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes two plain system calls
    // and neither allocates nor locks: an `io::Error` of a kind or a code has no heap part.
    unsafe { command.pre_exec(bind_to_parent) };
    command.spawn()
}

/// An Erlang name server of our own, in the foreground, so that it is our child and not a daemon.
#[derive(Debug)]
pub(super) struct Epmd {
    child: Child,
    address: Ipv4Addr,
    port: u16,
}

impl Epmd {
    /// Starts it and waits until it listens: a node that finds none would start a daemon that outlives everyone.
    ///
    /// Nodes look for the name server of another address at the port of their own. So the name servers of a cluster all have
    /// the same `port`; `None`: a free one.
    pub(super) async fn start(options: &NodeOptions, port: Option<u16>) -> Result<Epmd> {
        let (node, network) = (&options.name, &options.network);
        let failed = |detail: String| Error::Node { name: node.clone(), detail };
        let program = program("epmd")?;
        for _ in 0..EPMD_ATTEMPTS {
            let port = port.map_or_else(|| ports::free_port(node), Ok)?;
            let mut command = clean_command(&program, network);
            command.args(["-port", &port.to_string(), "-address", &network.address.to_string()]);
            command.envs(options.marks.iter().cloned()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = spawn(command).map_err(|error| failed(format!("epmd did not start: {error}")))?;
            let mut epmd = Epmd { child, address: network.address, port };
            let deadline = Instant::now() + EPMD_DEADLINE;
            // It ends at once if someone took the port after our look.
            while matches!(epmd.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                if ports::is_open(network.address, port).await {
                    return Ok(epmd);
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let address = network.address;
        Err(failed(format!("epmd (Erlang's name server) does not listen on {address}; check that it runs by hand")))
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn environment(&self) -> [(&'static str, String); 2] {
        [("ERL_EPMD_PORT", self.port.to_string()), ("ERL_EPMD_ADDRESS", self.address.to_string())]
    }
}

impl Drop for Epmd {
    fn drop(&mut self) {
        kill_and_reap(&mut self.child);
    }
}

/// All processes with this entry in their environment.
pub(super) fn with_environment(entry: &str) -> Vec<u32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = processes.flatten().filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
        })
        .collect()
}

/// The short name of a process, e.g. `beam.smp`.
pub(super) fn command_name(pid: u32) -> Option<String> {
    fs::read_to_string(format!("/proc/{pid}/comm")).ok().map(|name| name.trim().to_owned())
}

/// Asks a process to end in good order.
pub(super) fn terminate(pid: u32) {
    send(pid, Signal::TERM);
}

pub(super) fn kill_all(pids: &[u32]) {
    for pid in pids {
        send(*pid, Signal::KILL);
    }
}

pub(super) fn kill_and_reap(child: &mut Child) {
    // Errors mean that it is gone already.
    let _ = child.kill();
    let _ = child.wait();
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // An error means that it is gone already.
        let _ = kill_process(pid, signal);
    }
}

/// The full path of one of Erlang's programs. A RabbitMQ in an unusual directory may have its own beside it, of a version
/// that the machine's is not.
fn program(name: &str) -> Result<PathBuf> {
    let path = search_path();
    let mut dirs = given_dir().into_iter().chain(std::env::split_paths(&path));
    let found = dirs.find_map(|dir| Some(dir.join(name)).filter(|path| path.is_file()));
    found.ok_or_else(|| Error::NotInstalled { missing: name.to_owned() })
}

/// Ours and the usual places: RabbitMQ's scripts call `erl` and the tools of the system by name.
fn search_path() -> String {
    match std::env::var("PATH") {
        Ok(path) if !path.is_empty() => format!("{path}:{PATH}"),
        _ => PATH.to_owned(),
    }
}
