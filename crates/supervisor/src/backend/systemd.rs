//! Units of systemd, through `systemctl` and `journalctl`.
//!
//! A process is a unit such as `tenaz-worker@1.service`, which is called `worker-1`. The units must have `Restart=no`: either
//! systemd starts again what has ended, or the supervisors do. A life is told by the time at which systemd started it, in
//! milliseconds, whatever number the order to start had.

mod tools;
mod unit;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::{FutureExt as _, select_all};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tenaz_core::{Incarnation, ProcessName, ProcessRole};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::tools::Tools;
use self::unit::{PROPERTIES, Unit, is_pattern, named, parse_shown};
use super::limits::UNIT_POLL;
use super::{Backend, BackendError, Found, last_of};

/// Units of one systemd, the machine's or a user's.
#[derive(Debug)]
pub struct Systemd {
    units: Vec<String>,
    tools: Tools,
    memory: Mutex<Memory>,
}

/// What was seen the last time.
#[derive(Debug, Default)]
struct Memory {
    /// Units that a pattern has matched: systemd forgets those that ended well, and patterns match only what it remembers.
    matched: BTreeSet<String>,
    /// The main processes.
    pids: BTreeSet<u32>,
    /// Those whose end was already told. systemd may take a moment to notice it, too.
    told: BTreeSet<u32>,
    /// Units that were already complained about: once is enough.
    unusable: BTreeSet<String>,
}

impl Systemd {
    /// These units, by name (`tenaz-worker@1.service`) or pattern (`tenaz-worker@*.service`), of the machine's systemd or, with
    /// `user`, of the user's own.
    ///
    /// Names are better: a pattern does not match units that have never run since the machine was started.
    pub fn new(units: &[String], user: bool) -> Result<Self, BackendError> {
        for unit in units {
            unit::check(unit).map_err(|detail| BackendError::Refused { what: "using systemd".to_owned(), detail })?;
        }
        Ok(Self { units: units.to_vec(), tools: Tools::new(user), memory: Mutex::default() })
    }

    /// With other programs than the `systemctl` and `journalctl` on the path.
    pub fn using(mut self, systemctl: impl Into<PathBuf>, journalctl: impl Into<PathBuf>) -> Self {
        self.tools.systemctl = systemctl.into();
        self.tools.journalctl = journalctl.into();
        self
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All units, by process name.
    async fn all(&self) -> Result<BTreeMap<ProcessName, (ProcessRole, Unit)>, BackendError> {
        let mut asked: BTreeSet<String> = self.units.iter().cloned().collect();
        asked.extend(self.memory().matched.iter().cloned());
        if asked.is_empty() {
            return Ok(BTreeMap::new());
        }
        // Microseconds, because seconds would not tell two lives apart; UTC, because others need a table of time zones.
        let args = ["show", "--timestamp=us+utc", "-p", PROPERTIES, "--"].map(str::to_owned);
        let shown = self.tools.systemctl("looking at the units", args.into_iter().chain(asked)).await?;
        let units = parse_shown(&shown);
        let mut memory = self.memory();
        let by_pattern = self.units.iter().any(|unit| is_pattern(unit));
        let mut all = BTreeMap::new();
        for unit in units {
            if let Some(reason) = unit.unusable() {
                if memory.unusable.insert(unit.id.clone()) {
                    tracing::warn!(unit = unit.id, "{reason}");
                }
                if !unit.is_there() {
                    continue;
                }
            }
            if by_pattern {
                memory.matched.insert(unit.id.clone());
            }
            match named(&unit.id, |name| all.contains_key(name)) {
                Some((name, role)) => {
                    all.insert(name, (role, unit));
                }
                None if memory.unusable.insert(unit.id.clone()) => {
                    tracing::warn!(
                        unit = unit.id,
                        "the unit's name does not say what it is, as in tenaz-worker@1.service"
                    );
                }
                None => {}
            }
        }
        memory.pids = all.values().filter_map(|(_, unit)| unit.pid).collect();
        let pids = memory.pids.clone();
        memory.told.retain(|pid| pids.contains(pid));
        Ok(all)
    }

    async fn unit(&self, name: &ProcessName) -> Result<(Unit, Found), BackendError> {
        let there = self.all().await?.remove(name);
        let (role, unit) = there.ok_or_else(|| BackendError::NoSuchProcess(name.clone()))?;
        let found = self.found(name, role, &unit);
        Ok((unit, found))
    }

    fn found(&self, name: &ProcessName, role: ProcessRole, unit: &Unit) -> Found {
        Found {
            name: name.clone(),
            role,
            incarnation: unit.incarnation,
            pid: unit.pid,
            ended: unit.ended(),
            alias: None,
            log: Some(format!("journalctl {}-u {}", if self.tools.user { "--user " } else { "" }, unit.id)),
        }
    }

    /// Waits for the end of a main process that was running at the last look.
    async fn some_end(&self) {
        let watched: Vec<u32> = {
            let memory = self.memory();
            memory.pids.difference(&memory.told).copied().collect()
        };
        let mut ends = Vec::new();
        for pid in watched {
            let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            let fd = pidfd_open(raw, PidfdFlags::NONBLOCK).ok();
            // SAFETY: the `OwnedFd` goes into the `AsyncFd`, so it stays open and the same as long as that lives.
            match fd.and_then(|fd| unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()) {
                Some(fd) => ends.push(
                    async move {
                        let _ = fd.readable().await;
                        pid
                    }
                    .boxed(),
                ),
                // It has already ended; or pidfds are not to be had, and then a look once a second must do.
                None => {
                    self.memory().told.insert(pid);
                    return;
                }
            }
        }
        if ends.is_empty() {
            return std::future::pending().await;
        }
        let (pid, ..) = select_all(ends).await;
        self.memory().told.insert(pid);
    }
}

#[async_trait]
impl Backend for Systemd {
    fn kind(&self) -> &'static str {
        "systemd"
    }

    async fn inspect(&self) -> Result<Vec<Found>, BackendError> {
        Ok(self.all().await?.iter().map(|(name, (role, unit))| self.found(name, *role, unit)).collect())
    }

    /// Starts it. The life gets the time of its start for a number, which is higher than all before and at least as high as
    /// one that was counted up from them.
    async fn start(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let (unit, found) = self.unit(name).await?;
        found.may_start(incarnation)?;
        let what = format!("starting {}", unit.id);
        if unit.failed {
            // Otherwise systemd's own limit of starts would be in the way; the supervisors have theirs.
            self.tools.systemctl(&what, ["reset-failed", "--", &unit.id]).await?;
        }
        self.tools.systemctl(&what, ["start", "--", &unit.id]).await.map(drop)
    }

    /// The whole control group, so that nothing of a killed unit is left to be in the way of the next life.
    async fn kill(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let (unit, found) = self.unit(name).await?;
        if !found.must_be(incarnation)? {
            return Ok(());
        }
        let what = format!("killing {}", unit.id);
        let killed = self.tools.systemctl(&what, ["kill", "-s", "KILL", "--", &unit.id]).await;
        self.unless_gone(name, incarnation, killed).await
    }

    async fn stop(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let (unit, found) = self.unit(name).await?;
        if !found.must_be(incarnation)? {
            return Ok(());
        }
        let what = format!("stopping {}", unit.id);
        // systemd sends the unit's KillSignal=, and SIGKILL after its TimeoutStopSec=: nobody waits for that here.
        let stopped = self.tools.systemctl(&what, ["stop", "--no-block", "--", &unit.id]).await;
        self.unless_gone(name, incarnation, stopped).await
    }

    async fn changed(&self) {
        let _ = tokio::time::timeout(UNIT_POLL, self.some_end()).await;
    }

    async fn last_lines(&self, name: &ProcessName, lines: usize) -> Vec<String> {
        let read = async {
            let (unit, _) = self.unit(name).await?;
            // The journal has all lives of the unit; this one began here.
            let since = format!("--since=@{}", unit.incarnation.0 / 1000);
            let count = lines.to_string();
            self.tools.journalctl(["-u", &unit.id, "-n", &count, "-o", "cat", "--no-pager", &since]).await
        };
        match read.await {
            Ok(text) => last_of(text.lines().map(str::to_owned), lines),
            Err(error) => vec![format!("({error})")],
        }
    }
}

impl Systemd {
    /// Forgives an error about a life that has ended meanwhile.
    async fn unless_gone(
        &self,
        name: &ProcessName,
        incarnation: Incarnation,
        done: Result<String, BackendError>,
    ) -> Result<(), BackendError> {
        let Err(error) = done else { return Ok(()) };
        let (_, now) = self.unit(name).await?;
        if now.is_running() && now.incarnation == incarnation { Err(error) } else { Ok(()) }
    }
}
