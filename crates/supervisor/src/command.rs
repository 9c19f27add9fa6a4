//! The command line and the environment of a managed process: made here and nowhere else.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tenaz_core::{Incarnation, ProcessRole};

use crate::broker_users::{self, BrokerRole};
use crate::config::{Config, ProcessSpec};
use crate::error::Error;
use crate::home::Home;
use tenaz_words::show_span;

/// The entries of a process's environment by which others recognise it. The rest is for the process itself.
pub const MARKS: [&str; 4] = [CLUSTER_ID, NAME, INCARNATION, MACHINE];
/// The cluster's id: the mark by which its processes are told from all others.
pub const CLUSTER_ID: &str = "TENAZ_CLUSTER_ID";
/// The process's name.
pub const NAME: &str = "TENAZ_NAME";
/// Which of its lives it is.
pub const INCARNATION: &str = "TENAZ_INCARNATION";
/// The machine of cluster.toml that it was started for.
pub const MACHINE: &str = "TENAZ_MACHINE";
/// Where heartbeats go.
pub const SUPERVISORS: &str = "TENAZ_SUPERVISORS";
/// Where the shared key is.
pub const KEY_FILE: &str = "TENAZ_KEY_FILE";
/// How often heartbeats are sent.
pub const HEARTBEAT_EVERY: &str = "TENAZ_HEARTBEAT_EVERY";
/// Where to serve health and metrics.
pub const HTTP: &str = "TENAZ_HTTP";
/// Where the broker is. Not an option: every user of the machine can read command lines, and this has a password.
pub const BROKER: &str = "TENAZ_BROKER";
/// Who may log in at a private broker. Not an option, for the same reason.
pub const BROKER_USERS: &str = "TENAZ_BROKER_USERS";
/// Names another program to run than this one, for tests.
pub const PROGRAM: &str = "TENAZ_PROGRAM";

/// How a process is started.
#[derive(Clone, PartialEq, Eq)]
pub struct ProcessCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// What is added to our own environment.
    pub environment: Vec<(&'static str, OsString)>,
}

impl std::fmt::Debug for ProcessCommand {
    /// Without the environment, which has a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProcessCommand").field("program", &self.program).field("arguments", &self.arguments).finish()
    }
}

impl ProcessCommand {
    /// The command of a process in one of its lives. `program`: see [`program`].
    ///
    /// # Errors
    /// The cluster's key cannot be read, or the one that the process gets cannot be written.
    pub fn new(
        program: PathBuf,
        home: &Home,
        config: &Config,
        spec: &ProcessSpec,
        incarnation: Incarnation,
    ) -> Result<Self, Error> {
        let mut environment: Vec<(&'static str, OsString)> = vec![
            (CLUSTER_ID, home.id().as_str().into()),
            (NAME, spec.name.as_str().into()),
            (INCARNATION, incarnation.to_string().into()),
            (MACHINE, spec.machine.clone().into()),
        ];
        // A supervisor reads the description itself.
        if spec.role != ProcessRole::Supervisor {
            environment.extend([
                (SUPERVISORS, supervisors(config).into()),
                (KEY_FILE, home.heartbeat_key_file(config)?.into()),
                (HEARTBEAT_EVERY, show_span(config.supervision.heartbeat_every).into()),
            ]);
        }
        // A gateway, too, answers the supervisors where no client can take their place.
        if let Some(machine) = config.machine(&spec.machine) {
            environment.push((HTTP, SocketAddr::new(machine.address, 0).to_string().into()));
        }
        match spec.role {
            ProcessRole::Worker => environment.push((BROKER, home.broker_url(config, BrokerRole::Worker)?.into())),
            ProcessRole::Gateway => environment.push((BROKER, home.broker_url(config, BrokerRole::Gateway)?.into())),
            ProcessRole::Broker => environment.push((BROKER_USERS, broker_users::told(&home.key(config)?).into())),
            ProcessRole::Supervisor => {}
        }
        Ok(Self { program, arguments: arguments(home, config, spec), environment })
    }

    /// Starts it in a session of its own, with everything it says going into `log`. It outlives us.
    pub(crate) fn spawn(&self, home: &Home, log: File) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(home.dir()).stdin(Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        // What we were told about the broker is ours, not that of a process that needs none.
        command
            .env_remove(BROKER)
            .env_remove(BROKER_USERS)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes one plain system call
        // and neither allocates nor locks: an `io::Error` from a code has no heap part.
        unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from)) };
        command.spawn()
    }
}

fn supervisors(config: &Config) -> String {
    let addresses: Vec<String> = config.supervisors.iter().map(|s| s.listen.to_string()).collect();
    addresses.join(",")
}

fn arguments(home: &Home, config: &Config, spec: &ProcessSpec) -> Vec<OsString> {
    let mut found: Vec<OsString> = vec![spec.role.as_str().into()];
    let mut add = |name: &str, value: OsString| found.extend([name.into(), value]);
    match spec.role {
        ProcessRole::Supervisor => {
            let number = spec.name.as_str().rsplit('-').next().unwrap_or_default();
            add("--cluster", home.dir().into());
            add("--id", number.into());
        }
        ProcessRole::Broker => {
            add("--dir", home.broker_dir().into());
            add("--port", spec.listen.map_or(0, |listen| listen.port()).to_string().into());
            add("--prefix", config.prefix.clone().into());
        }
        ProcessRole::Worker => add("--prefix", config.prefix.clone().into()),
        ProcessRole::Gateway => {
            add("--prefix", config.prefix.clone().into());
            if let Some(listen) = spec.listen {
                add("--listen", listen.to_string().into());
            }
        }
    }
    found.extend(spec.options.iter().map(OsString::from));
    found
}

/// This very program, or the one that was put in its place while it ran.
pub fn program() -> PathBuf {
    if let Some(named) = std::env::var_os(PROGRAM).filter(|named| !named.is_empty()) {
        return named.into();
    }
    let itself = Path::new("/proc/self/exe");
    std::fs::read_link(itself).ok().and_then(|link| existing(&link)).unwrap_or_else(|| itself.to_owned())
}

/// When the file was replaced, the kernel still means the old one, and shows it as `PATH (deleted)`. If nothing has taken its
/// place, `/proc/self/exe` can still be started.
fn existing(link: &Path) -> Option<PathBuf> {
    if link.is_file() {
        return Some(link.to_owned());
    }
    let replaced = PathBuf::from(link.to_str()?.strip_suffix(" (deleted)")?);
    replaced.is_file().then_some(replaced)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_replaced_is_found_by_its_old_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tenaz");
        std::fs::write(&path, "").unwrap();
        let deleted = PathBuf::from(format!("{} (deleted)", path.display()));
        assert_eq!(existing(&path), Some(path.clone()));
        assert_eq!(existing(&deleted), Some(path.clone()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(existing(&deleted), None);
    }
}
