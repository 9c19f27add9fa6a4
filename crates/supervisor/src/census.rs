//! Which processes of a cluster there are, found in `/proc` by the mark in their environment.
//!
//! Whatever was lost or forgotten elsewhere, this is the truth. A mark is inherited, so the children of a managed process
//! (RabbitMQ's under its wrapper) are found, too: the *head* of such a family is the process that was started for the name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use rustix::process::Signal;
use tenaz_core::{Incarnation, ProcessName, ProcessRole};
use tenaz_vitals::ClusterId;

use crate::command::{CLUSTER_ID, INCARNATION, MACHINE, NAME};
use crate::kernel::{PidFd, Stat};

/// The role is one of the first words of a head's command line: `[interpreter] program role …`.
const WORDS_WITH_ROLE: usize = 4;

/// A process that carries the cluster's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name for which it, or its head, was started.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// In which life.
    pub incarnation: Incarnation,
    /// The machine of cluster.toml for which it was started.
    pub machine: String,
    /// Its process id.
    pub pid: u32,
    /// When it was started, in the kernel's ticks.
    pub start_ticks: u64,
    /// Whether a signal has stopped it.
    pub is_stopped: bool,
    /// Whether it is the process that was started for the name, and not a child of that one.
    pub is_head: bool,
    /// How long it has been there.
    pub age_ms: u64,
    cluster: ClusterId,
}

/// All processes of a cluster on this machine, heads first, by name and age. Zombies have ended and are not here.
pub fn scan(cluster: &ClusterId) -> Vec<Member> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<Member> = pids.filter_map(|pid| member(cluster, pid)).collect();
    found.sort_by_key(|m| (!m.is_head, m.name.clone(), m.start_ticks, m.pid));
    // Between fork and exec a child looks like its parent: the older one is the head.
    let mut last: Option<(ProcessName, Incarnation)> = None;
    for member in found.iter_mut().filter(|m| m.is_head) {
        let this = (member.name.clone(), member.incarnation);
        member.is_head = last.as_ref() != Some(&this);
        last = Some(this);
    }
    found
}

/// The heads only.
pub fn heads(cluster: &ClusterId) -> Vec<Member> {
    scan(cluster).into_iter().filter(|member| member.is_head).collect()
}

fn member(cluster: &ClusterId, pid: u32) -> Option<Member> {
    let mark = Mark::of(pid)?;
    if mark.cluster != *cluster {
        return None;
    }
    // Read after the mark: the mark was of this process if the pid did not change hands, and `Target` checks again.
    let stat = Stat::of(pid).filter(|stat| !matches!(stat.state, 'Z' | 'X' | 'x'))?;
    let role = role_of(&mark.name)?;
    Some(Member {
        role,
        pid,
        start_ticks: stat.start_ticks,
        is_stopped: stat.is_stopped(),
        is_head: stat.session == pid && command_line_names(pid, role),
        age_ms: stat.age_ms(),
        name: mark.name,
        incarnation: mark.incarnation,
        machine: mark.machine,
        cluster: mark.cluster,
    })
}

/// Managed processes are called `ROLE-N`.
fn role_of(name: &ProcessName) -> Option<ProcessRole> {
    name.as_str().split('-').next()?.parse().ok()
}

fn command_line_names(pid: u32, role: ProcessRole) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).take(WORDS_WITH_ROLE).any(|word| word == role.as_str().as_bytes())
}

/// What a process's environment says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    cluster: ClusterId,
    name: ProcessName,
    incarnation: Incarnation,
    machine: String,
}

impl Mark {
    /// `None`: it is not marked, or not ours to look into.
    fn of(pid: u32) -> Option<Self> {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let value = |name: &str| {
            let entries = environment.split(|byte| *byte == 0);
            let mut values = entries.filter_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
            values.next().and_then(|value| OsStr::from_bytes(value).to_str())
        };
        Some(Self {
            cluster: value(CLUSTER_ID)?.parse().ok()?,
            name: value(NAME)?.parse().ok()?,
            incarnation: Incarnation(value(INCARNATION)?.parse().ok()?),
            machine: value(MACHINE).unwrap_or_default().to_owned(),
        })
    }
}

/// Whether a process says nothing of itself yet: it is just becoming another program.
pub(crate) fn has_no_environment(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| environment.is_empty())
}

impl Member {
    /// A handle through which it can be signalled, if it is still there.
    pub(crate) fn target(&self) -> Option<Target> {
        Target::verify(&self.cluster, &self.name, self.incarnation, self.pid, self.start_ticks)
    }

    /// Name and pid, for people.
    pub fn describe(&self) -> String {
        format!("{} (pid {})", self.name, self.pid)
    }
}

/// A process that is certainly the one that is meant: the only way to signal one.
#[derive(Debug)]
pub(crate) struct Target {
    pidfd: PidFd,
}

impl Target {
    /// `None` if it has ended, or if whoever has the pid now is another or carries another mark.
    pub(crate) fn verify(
        cluster: &ClusterId,
        name: &ProcessName,
        incarnation: Incarnation,
        pid: u32,
        start_ticks: u64,
    ) -> Option<Self> {
        // The handle first: what is found to be the right process after that is what the handle means, for it was
        // started before.
        let pidfd = PidFd::open(pid)?;
        let mark = Mark::of(pid)?;
        let stat = Stat::of(pid)?;
        let right = stat.start_ticks == start_ticks
            && mark.cluster == *cluster
            && mark.name == *name
            && mark.incarnation == incarnation
            && !pidfd.has_ended();
        right.then_some(Self { pidfd })
    }

    /// Sends a signal. `false`: it has ended already.
    pub(crate) fn signal(&self, signal: Signal) -> std::io::Result<bool> {
        self.pidfd.signal(signal)
    }

    /// Asks it to end in good order; wakes it first if it was stopped, or it would never hear that.
    pub(crate) fn terminate(&self) -> std::io::Result<bool> {
        Ok(self.signal(Signal::TERM)? && self.signal(Signal::CONT)?)
    }

    /// Waits until it has ended.
    pub(crate) async fn ended(self) -> std::io::Result<()> {
        self.pidfd.ended().await.map(drop)
    }
}
