//! `tenaz down`: ends everything of a cluster on this machine, in order, and leaves nothing.
//!
//! It relies on nobody: no supervisor has to live, no record has to be right, no process has to listen. First nothing can be
//! started any more; then each kind of process is asked to end and, if it does not in time, killed; then whatever still carries
//! the cluster's mark is killed and named.

use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use rustix::process::Signal;
use serde_json::json;
use tenaz_core::{ProcessName, ProcessRole};
use tokio::time::Instant;

use crate::census::{self, Member};
use crate::config::Config;
use crate::error::Error;
use crate::home::Home;
use crate::limits::{FAMILY_PATIENCE, KILL_PATIENCE, LOCK_PATIENCE};
use crate::lock::FileLock;

/// How long processes that were asked to end may take, before they are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPatience {
    /// Supervisors have nothing to finish.
    pub supervisors: Duration,
    /// Gateways finish requests, workers the chunks that they have begun.
    pub drain: Duration,
    /// The broker closes its files.
    pub broker: Duration,
}

impl Default for StopPatience {
    fn default() -> Self {
        Self { supervisors: Duration::from_secs(5), drain: Duration::from_secs(20), broker: Duration::from_secs(20) }
    }
}

/// What happens while a cluster is taken down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopStep {
    /// Nothing is started any more.
    Closed,
    /// A process was asked to end.
    Asked(Member),
    /// A process has ended.
    Ended(Member),
    /// A process did not end in time and was killed.
    Killed(Member),
    /// Something that outlived the process it belonged to was killed.
    Leftover(Member),
}

/// What was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Who ended when asked, in the order of their ends.
    pub ended: Vec<ProcessName>,
    /// Who had to be killed.
    pub killed: Vec<ProcessName>,
    /// What was killed although its process had ended, with pids.
    pub leftovers: Vec<String>,
    /// Supervisors that someone started by hand: they carry no mark, so they are not touched.
    pub untouched: Vec<String>,
}

/// Ends everything of a cluster on this machine; of a machine of cluster.toml only, if one is named.
///
/// Without a description that can be read, everything ends all the same.
///
/// `before_broker` runs when workers and gateways are gone and the broker still answers: the moment to delete queues.
///
/// # Errors
/// The directory cannot be written, or a process cannot be ended.
pub async fn stop_all(
    home: &Home,
    config: Option<&Config>,
    machine: Option<&str>,
    patience: StopPatience,
    mut progress: impl FnMut(StopStep),
    before_broker: impl AsyncFnOnce(),
) -> Result<Stopped, Error> {
    let mut stopping = Stopping { home, machine, progress: &mut progress, done: Stopped::default() };
    stopping.close().await?;
    stopping.end(ProcessRole::Supervisor, patience.supervisors).await?;
    stopping.end(ProcessRole::Gateway, patience.drain).await?;
    stopping.end(ProcessRole::Worker, patience.drain).await?;
    before_broker().await;
    stopping.end(ProcessRole::Broker, patience.broker).await?;
    stopping.end_leftovers().await?;
    if let Some(config) = config {
        stopping.name_strangers(config);
    }
    let done = stopping.done;
    let home_too = home.clone();
    blocking(move || clear_run(&home_too)).await??;
    home.event("down", json!({"ended": done.ended, "killed": done.killed, "leftovers": done.leftovers}));
    Ok(done)
}

struct Stopping<'a> {
    home: &'a Home,
    machine: Option<&'a str>,
    progress: &'a mut dyn FnMut(StopStep),
    done: Stopped,
}

impl Stopping<'_> {
    async fn close(&mut self) -> Result<(), Error> {
        let home = self.home.clone();
        match blocking(move || home.close()).await? {
            // Someone who is not of this cluster has the lock in hand. It is closed all the same, and if that one still
            // starts something, it is found as a leftover.
            Err(Error::Locked { holder, .. }) => tracing::warn!(holder, "the cluster's directory is locked: going on"),
            other => other?,
        }
        (self.progress)(StopStep::Closed);
        Ok(())
    }

    /// Those who belong to what is taken down.
    async fn members(&self) -> Result<Vec<Member>, Error> {
        let id = self.home.id().clone();
        let mut members = blocking(move || census::scan(&id)).await?;
        let meant = |m: &Member| self.machine.is_none_or(|machine| m.machine.is_empty() || m.machine == machine);
        members.retain(|member| member.pid != std::process::id() && meant(member));
        Ok(members)
    }

    async fn end(&mut self, role: ProcessRole, patience: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + patience;
        let mut waiting = FuturesUnordered::new();
        for member in self.members().await?.into_iter().filter(|member| member.role == role) {
            let Some(target) = member.target() else { continue };
            if !member.is_head {
                // Of a broker that was paused: it must hear what its head tells it.
                signal(&member, || target.signal(Signal::CONT));
                continue;
            }
            signal(&member, || target.terminate());
            (self.progress)(StopStep::Asked(member.clone()));
            waiting.push(async move { (tokio::time::timeout_at(deadline, target.ended()).await.is_ok(), member) });
        }
        let mut late = Vec::new();
        while let Some((in_time, member)) = waiting.next().await {
            if in_time {
                self.done.ended.push(member.name.clone());
                (self.progress)(StopStep::Ended(member));
            } else {
                late.push(member);
            }
        }
        drop(waiting);
        for member in self.kill(late).await? {
            self.done.killed.push(member.name.clone());
            (self.progress)(StopStep::Killed(member));
        }
        Ok(())
    }

    /// Kills them and waits until they are gone. Returns those that were still there.
    async fn kill(&self, members: Vec<Member>) -> Result<Vec<Member>, Error> {
        let deadline = Instant::now() + KILL_PATIENCE;
        let (mut killed, mut stuck) = (Vec::new(), Vec::new());
        let targets: Vec<_> = members.into_iter().filter_map(|m| m.target().map(|target| (m, target))).collect();
        for (member, target) in &targets {
            signal(member, || target.signal(Signal::KILL));
        }
        for (member, target) in targets {
            match tokio::time::timeout_at(deadline, target.ended()).await {
                Ok(_) => killed.push(member),
                Err(_) => stuck.push(member.describe()),
            }
        }
        if stuck.is_empty() { Ok(killed) } else { Err(Error::StillThere { names: stuck.join(", ") }) }
    }

    /// Children of processes that have ended may need a moment to notice.
    async fn end_leftovers(&mut self) -> Result<(), Error> {
        let patience = Instant::now() + FAMILY_PATIENCE;
        loop {
            let left = self.members().await?;
            if left.is_empty() {
                return Ok(());
            }
            // A head cannot be told to end at this point: whoever started it did so after everything was closed.
            if Instant::now() < patience && left.iter().all(|member| !member.is_head) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            }
            for member in self.kill(left).await? {
                self.done.leftovers.push(member.describe());
                (self.progress)(StopStep::Leftover(member));
            }
        }
    }

    fn name_strangers(&mut self, config: &Config) {
        let here = config.supervisors.iter().filter(|s| self.machine.is_none_or(|machine| machine == s.machine));
        for supervisor in here {
            let name = supervisor.name();
            if let Some(pid) = self.home.identity_holder(&name) {
                self.done.untouched.push(format!("{name} (pid {pid})"));
            }
        }
    }
}

fn signal(member: &Member, send: impl FnOnce() -> std::io::Result<bool>) {
    if let Err(error) = send() {
        tracing::warn!(name = %member.name, pid = member.pid, %error, "a process cannot be signalled");
    }
}

/// Forgets the lives that have ended. What is locked stays, and so does the sign that the cluster is down.
fn clear_run(home: &Home) -> Result<(), Error> {
    // Of another machine of cluster.toml that shares the directory.
    if home.is_up() {
        return Ok(());
    }
    // So that nobody who saw an ending brings a record back that he has just read.
    let _lock = home.lock_within(LOCK_PATIENCE);
    let run = home.run("");
    for entry in std::fs::read_dir(&run).map_err(Error::file("read", &run))?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "lock" || name == "closed" {
            continue;
        }
        let held = match path.extension() {
            Some(extension) if extension == "lock" => FileLock::attempt(&path)?.is_none(),
            _ => false,
        };
        if !held {
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file("remove", path)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Error::Interrupted(error.to_string()))
}

#[cfg(test)]
mod tests;
