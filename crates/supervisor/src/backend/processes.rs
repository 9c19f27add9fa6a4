//! Child processes of this machine, in sessions of their own.
//!
//! A child outlives the supervisor that started it, and every supervisor of the machine may adopt it: by its record, or
//! by the census if the record is lost. All of them watch it by pidfd. Its ending is read by whoever looks first: a
//! process that has ended stays a zombie, whose exit code everybody of the same user can read, until its parent has written
//! the ending down. Only if the parent is gone, too, nobody knows it.
//!
//! Whoever calls `start`, `kill` or `stop` holds the lock of the cluster's directory (the executor does).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use rustix::process::Signal;
use serde_json::json;
use tenaz_core::{Ending, Incarnation, OutsideCause, ProcessName, ProcessRole};

use super::watch::Watch;
use super::{Backend, BackendError, Found};
use crate::census::{self, Member, Target, has_no_environment};
use crate::command::{self, ProcessCommand};
use crate::config::{Config, ProcessSpec};
use crate::error::Error;
use crate::home::Home;
use crate::kernel::{Stat, Vitality, vitality};
use crate::limits::{LOCK_PATIENCE, MARK_LOOKS, MARK_PAUSE, NOTE_PATIENCE};
use crate::log_file;
use crate::records::{Life, Record, Records};
use tenaz_words::unix_ms;

/// What a shell says of a program that it cannot start.
const CANNOT_START: Ending = Ending::Exited(127);

/// Runs the processes of one machine as children.
#[derive(Debug, Clone)]
pub struct Processes {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    home: Home,
    records: Records,
    config: Config,
    specs: Vec<ProcessSpec>,
    /// Runs instead of this very program.
    program: Option<PathBuf>,
    watch: Watch,
    /// Set once the first census was made: records may be older than what runs.
    counted: AtomicBool,
}

impl Processes {
    /// The back-end of a machine of cluster.toml.
    pub fn new(home: &Home, config: &Config, machine: &str) -> Self {
        Self::build(home, config, machine, None)
    }

    /// The same with another program than this one, for tests.
    #[doc(hidden)]
    pub fn with_program(home: &Home, config: &Config, machine: &str, program: PathBuf) -> Self {
        Self::build(home, config, machine, Some(program))
    }

    fn build(home: &Home, config: &Config, machine: &str, program: Option<PathBuf>) -> Self {
        let specs = config.processes().into_iter().filter(|spec| spec.machine == machine).collect();
        let inner = Inner {
            home: home.clone(),
            records: home.records(),
            config: config.clone(),
            specs,
            program,
            watch: Watch::default(),
            counted: AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&Arc<Inner>) -> Result<T, BackendError> + Send + 'static,
    ) -> Result<T, BackendError> {
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        done.unwrap_or_else(|error| Err(refused(what, error)))
    }
}

#[async_trait]
impl Backend for Processes {
    fn kind(&self) -> &'static str {
        "processes"
    }

    async fn inspect(&self) -> Result<Vec<Found>, BackendError> {
        self.blocking("looking at processes", |inner| Ok(inner.inspect())).await
    }

    async fn start(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let name = name.clone();
        self.blocking("starting a process", move |inner| inner.start(&name, incarnation)).await
    }

    async fn kill(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let name = name.clone();
        let kill = |target: &Target| target.signal(Signal::KILL);
        self.blocking("killing a process", move |inner| inner.signal(&name, incarnation, kill)).await
    }

    async fn stop(&self, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let name = name.clone();
        self.blocking("stopping a process", move |inner| inner.signal(&name, incarnation, Target::terminate)).await
    }

    async fn changed(&self) {
        self.inner.watch.changed().await;
    }

    async fn last_lines(&self, name: &ProcessName, lines: usize) -> Vec<String> {
        let (path, name) = (self.inner.home.log_path(name), name.clone());
        let read = tokio::task::spawn_blocking(move || log_file::last_lines(&path, &name, lines)).await;
        read.unwrap_or_default()
    }
}

impl Inner {
    fn inspect(self: &Arc<Self>) -> Vec<Found> {
        let known: Vec<(&ProcessSpec, Option<Record>)> =
            self.specs.iter().map(|spec| (spec, self.records.read(&spec.name))).collect();
        let lost = |record: &Option<Record>| match record {
            None => true,
            Some(record) => record.living().is_some_and(|life| vitality(life.pid, life.start_ticks) == Vitality::Gone),
        };
        let first = !self.counted.swap(true, Ordering::Relaxed);
        let heads = if first || known.iter().any(|(_, record)| lost(record)) {
            census::heads(self.home.id())
        } else {
            Vec::new()
        };
        known.into_iter().map(|(spec, record)| self.look_at(spec, record, &heads)).collect()
    }

    fn look_at(self: &Arc<Self>, spec: &ProcessSpec, record: Option<Record>, heads: &[Member]) -> Found {
        let mut record = record.unwrap_or_else(|| Record::new(spec.name.clone(), spec.role));
        loop {
            match self.look_once(spec, record, heads) {
                Ok(found) => return found,
                Err(later) => record = *later,
            }
        }
    }

    /// What a record means now. If somebody has started the process again meanwhile, their record, of which nothing is known
    /// yet: what was seen is true of the life before.
    fn look_once(self: &Arc<Self>, spec: &ProcessSpec, seen: Record, heads: &[Member]) -> Result<Found, Box<Record>> {
        let of = seen.incarnation;
        let unless_later = |record: Record| if record.incarnation > of { Err(Box::new(record)) } else { Ok(record) };
        let mut record = seen;
        if let Some(life) = record.living() {
            record = unless_later(match self.fate(&record, life) {
                Fate::Lives => return Ok(self.found(spec, &record, Some(life.pid))),
                Fate::Ended(ending) => self.note(spec, &record, ending),
                // Its parent, or someone who saw the zombie, may have written it down since.
                Fate::Gone => self.records.read(&spec.name).unwrap_or(record),
            })?;
        }
        let unrecorded = heads.iter().filter(|head| head.name == spec.name && head.incarnation >= record.incarnation);
        if let Some(head) = unrecorded.max_by_key(|head| head.incarnation)
            && head.target().is_some()
        {
            record = unless_later(self.adopt(spec, head))?;
            if record.living() == Some(Life::of(head)) {
                return Ok(self.found(spec, &record, Some(head.pid)));
            }
        }
        if let Some(pid) = self.foreign_supervisor(spec) {
            return Ok(self.found(spec, &record, Some(pid)));
        }
        if record.life.is_some() && record.ended.is_none() {
            record = unless_later(self.note(spec, &record, Ending::Unknown))?;
        }
        Ok(self.found(spec, &record, None))
    }

    /// What became of the process that a record means. One that is just becoming another program has no environment for a
    /// moment, which is long where the processors are busy: a stranger is one that has another.
    fn fate(self: &Arc<Self>, record: &Record, life: Life) -> Fate {
        for _ in 0..MARK_LOOKS {
            match vitality(life.pid, life.start_ticks) {
                Vitality::Running if self.is_ours(record, life) || has_no_environment(life.pid) => return Fate::Lives,
                Vitality::Running => std::thread::sleep(MARK_PAUSE),
                Vitality::Leaving => return Fate::Lives,
                Vitality::Zombie(ending) => return Fate::Ended(ending),
                Vitality::Gone => break,
            }
        }
        Fate::Gone
    }

    /// Whether the process that has the record's pid and start time is the one: compared once, and then watched.
    fn is_ours(self: &Arc<Self>, record: &Record, life: Life) -> bool {
        if self.watch.has(life) {
            return true;
        }
        let target = self.target(record, life);
        if target.is_some() {
            self.follow(record, life);
        }
        target.is_some()
    }

    fn target(&self, record: &Record, life: Life) -> Option<Target> {
        Target::verify(self.home.id(), &record.name, record.incarnation, life.pid, life.start_ticks)
    }

    fn follow(self: &Arc<Self>, record: &Record, life: Life) {
        let inner = Arc::clone(self);
        let (name, role, incarnation) = (record.name.clone(), record.role, record.incarnation);
        self.watch.follow(life, move || {
            if let Vitality::Zombie(ending) = vitality(life.pid, life.start_ticks) {
                let written = inner.home.lock_within(LOCK_PATIENCE).and_then(|_lock| {
                    inner.write_ending(&name, role, incarnation, ending)?;
                    Ok(())
                });
                if let Err(error) = written {
                    tracing::warn!(%name, %error, "an ending cannot be written down");
                }
            }
        });
    }

    /// Writes down an ending that was seen, and returns the record as it is then.
    fn note(&self, spec: &ProcessSpec, seen: &Record, ending: Ending) -> Record {
        let written = self
            .home
            .lock_within(NOTE_PATIENCE)
            .and_then(|_lock| self.write_ending(&spec.name, spec.role, seen.incarnation, ending));
        written.unwrap_or_else(|error| {
            tracing::debug!(name = %spec.name, %error, "an ending is not written down yet");
            let mut record = seen.clone();
            record.end(seen.incarnation, ending);
            record
        })
    }

    /// Under the lock.
    fn write_ending(
        &self,
        name: &ProcessName,
        role: ProcessRole,
        incarnation: Incarnation,
        ending: Ending,
    ) -> Result<Record, Error> {
        let recorded = self.records.read(name);
        // Without a record the cluster was taken down meanwhile: its histories are forgotten, and stay so.
        let forgotten = recorded.is_none();
        let mut record = recorded.unwrap_or_else(|| Record::new(name.clone(), role));
        if record.end(incarnation, ending) && !forgotten {
            self.records.write(&record)?;
            self.home.ended(name, incarnation, ending);
        }
        Ok(record)
    }

    /// A process that runs without a record gets one.
    fn adopt(self: &Arc<Self>, spec: &ProcessSpec, head: &Member) -> Record {
        let written = self.home.lock_within(NOTE_PATIENCE).and_then(|_lock| self.write_adoption(spec, head));
        let record = written.unwrap_or_else(|error| {
            tracing::debug!(name = %spec.name, %error, "an adoption is not written down yet");
            adopted(self.records.read_or_new(&spec.name, spec.role), head)
        });
        if let Some(life) = record.living().filter(|life| *life == Life::of(head)) {
            self.follow(&record, life);
        }
        record
    }

    /// Under the lock.
    fn write_adoption(&self, spec: &ProcessSpec, head: &Member) -> Result<Record, Error> {
        let before = self.records.read_or_new(&spec.name, spec.role);
        let record = adopted(before.clone(), head);
        if record != before {
            self.records.write(&record)?;
            let fields = json!({"name": head.name, "incarnation": head.incarnation, "pid": head.pid});
            self.home.event("adopted", fields);
        }
        Ok(record)
    }

    /// A supervisor that people (or systemd) started by hand carries no mark, but holds its name.
    fn foreign_supervisor(&self, spec: &ProcessSpec) -> Option<u32> {
        if spec.role == ProcessRole::Supervisor { self.home.identity_holder(&spec.name) } else { None }
    }

    fn found(&self, spec: &ProcessSpec, record: &Record, pid: Option<u32>) -> Found {
        Found {
            name: spec.name.clone(),
            role: spec.role,
            incarnation: record.incarnation,
            pid,
            ended: if pid.is_some() { None } else { record.ended },
            alias: None,
            log: Some(self.home.log_path(&spec.name).display().to_string()),
        }
    }

    fn spec(&self, name: &ProcessName) -> Result<&ProcessSpec, BackendError> {
        let found = self.specs.iter().find(|spec| spec.name == *name);
        found.ok_or_else(|| BackendError::NoSuchProcess(name.clone()))
    }

    fn start(self: &Arc<Self>, name: &ProcessName, incarnation: Incarnation) -> Result<(), BackendError> {
        let spec = self.spec(name)?;
        let late = |detail: String| Err(BackendError::OutOfDate { name: name.clone(), detail });
        let mut record = self.records.read_or_new(name, spec.role);
        if incarnation <= record.incarnation {
            return late(format!("incarnation {} was there already", record.incarnation));
        }
        if let Some(life) = record.living() {
            match self.fate(&record, life) {
                Fate::Lives => return late(format!("incarnation {} runs", record.incarnation)),
                Fate::Ended(ending) => record = self.settle(record, ending)?,
                Fate::Gone => record = self.settle(record, Ending::Unknown)?,
            }
        }
        // Whatever the records say, nobody gets a double.
        if let Some(head) = census::heads(self.home.id()).into_iter().find(|head| head.name == *name) {
            let adopted = self.write_adoption(spec, &head).map_err(|error| went_wrong("adopting it", &error))?;
            self.follow(&adopted, Life::of(&head));
            return late(format!("incarnation {} runs as pid {}", head.incarnation, head.pid));
        }
        if let Some(pid) = self.foreign_supervisor(spec) {
            return late(format!("it runs as pid {pid}, started by someone else"));
        }
        self.spawn(spec, record, incarnation)
    }

    fn settle(&self, record: Record, ending: Ending) -> Result<Record, BackendError> {
        let settled = self.write_ending(&record.name, record.role, record.incarnation, ending);
        settled.map_err(|error| went_wrong("writing an ending down", &error))
    }

    fn spawn(
        self: &Arc<Self>,
        spec: &ProcessSpec,
        mut record: Record,
        incarnation: Incarnation,
    ) -> Result<(), BackendError> {
        let program = self.program.clone().unwrap_or_else(command::program);
        let command = ProcessCommand::new(program, &self.home, &self.config, spec, incarnation)
            .map_err(|error| went_wrong("making its command", &error))?;
        let path = self.home.log_path(&spec.name);
        let log = log_file::open(&path, &spec.name, incarnation);
        let mut log = log.map_err(|error| went_wrong("opening its log", &error))?;
        let started = log.try_clone().and_then(|copy| command.spawn(&self.home, copy));
        let write =
            |record: &Record| self.records.write(record).map_err(|error| went_wrong("recording a start", &error));
        let child = match started {
            Ok(child) => child,
            Err(error) if OutsideCause::of_error(&error).is_some() => {
                return Err(went_wrong("starting it", &Error::file("start", &command.program)(error)));
            }
            Err(error) => {
                // A life that ended at once, with its reason in the log: so it is counted, and given up in the end.
                let cannot = BackendError::CannotStart { program: command.program, detail: error.to_string() };
                let _ = std::io::Write::write_all(&mut log, format!("tenaz: {cannot}\n").as_bytes());
                record.begin(incarnation, None, unix_ms());
                record.end(incarnation, CANNOT_START);
                write(&record)?;
                return Err(cannot);
            }
        };
        // It cannot be reaped by anybody but us, so it is in /proc, dead or alive.
        let start_ticks = Stat::of(child.id()).map_or(0, |stat| stat.start_ticks);
        let life = Life { pid: child.id(), start_ticks };
        record.begin(incarnation, Some(life), unix_ms());
        // Watched even if it cannot be recorded: it must be reaped.
        self.follow(&record, life);
        write(&record)
    }

    fn signal(
        self: &Arc<Self>,
        name: &ProcessName,
        incarnation: Incarnation,
        send: impl Fn(&Target) -> std::io::Result<bool>,
    ) -> Result<(), BackendError> {
        let spec = self.spec(name)?;
        let record = self.records.read_or_new(name, spec.role);
        let life = record.living().filter(|life| vitality(life.pid, life.start_ticks) == Vitality::Running);
        let target = match life {
            Some(life) if record.incarnation == incarnation => self.target(&record, life),
            _ => None,
        };
        let target = target.or_else(|| {
            let mut heads = census::heads(self.home.id()).into_iter();
            heads.find(|head| head.name == *name && head.incarnation == incarnation)?.target()
        });
        let Some(target) = target else {
            if record.incarnation == incarnation {
                return match self.foreign_supervisor(spec) {
                    Some(pid) => Err(refused("signalling it", format!("pid {pid} was started by someone else"))),
                    None => Ok(()),
                };
            }
            let detail = format!("its latest incarnation is {}, not {incarnation}", record.incarnation);
            return Err(BackendError::OutOfDate { name: name.clone(), detail });
        };
        send(&target).map(drop).map_err(|error| refused("signalling it", error))
    }
}

/// What became of the process that a record means.
enum Fate {
    /// It runs. One that is leaving still does: how it ends is known at the next look.
    Lives,
    /// It has ended like this.
    Ended(Ending),
    /// It is not there any more; its pid may be another's.
    Gone,
}

/// The record of a process that was found running, unless it has ended or been started again since.
fn adopted(mut record: Record, head: &Member) -> Record {
    if record.incarnation > head.incarnation || head.target().is_none() {
        return record;
    }
    let life = Life::of(head);
    if record.incarnation != head.incarnation {
        record.begin(head.incarnation, Some(life), unix_ms().saturating_sub(head.age_ms));
    } else {
        (record.life, record.ended) = (Some(life), None);
    }
    record
}

/// The error of an order that the system did not let us carry out.
fn went_wrong(what: &str, error: &Error) -> BackendError {
    match error.outside_cause() {
        Some(cause) => BackendError::Obstructed { what: what.to_owned(), cause, detail: error.to_string() },
        None => refused(what, error),
    }
}

fn refused(what: &str, error: impl std::fmt::Display) -> BackendError {
    BackendError::Refused { what: what.to_owned(), detail: error.to_string() }
}
