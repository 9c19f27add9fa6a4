//! The cluster's directory: its description, key and id, what is remembered of its processes, and its locks.

use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole};
use tenaz_vitals::{ClusterId, Key};

use crate::broker_users::BrokerRole;
use crate::census::{self, Member};
use crate::config::Config;
use crate::error::Error;
use crate::events;
use crate::kernel::Stat;
use crate::limits::{IDENTITY_PATIENCE, LOCK_PATIENCE};
use crate::lock::{self, FileLock};
use crate::records::{Records, write_whole};
use tenaz_words::unix_ms;

/// Where a cluster is kept if nobody says otherwise.
pub const DEFAULT_DIR: &str = ".tenaz";

/// A cluster's directory.
#[derive(Debug, Clone)]
pub struct Home {
    dir: PathBuf,
    id: ClusterId,
}

/// While this lives, no order is executed by anybody else on this machine.
#[derive(Debug)]
pub struct HomeLock(#[allow(dead_code, reason = "held, not read")] FileLock);

/// While this lives, its holder is the process of that name.
#[derive(Debug)]
pub struct IdentityLock(#[allow(dead_code, reason = "held, not read")] FileLock);

/// While this lives, nobody else brings the cluster up.
#[derive(Debug)]
pub struct UpLock(#[allow(dead_code, reason = "held, not read")] FileLock);

impl Home {
    /// Makes a directory into a cluster's, with an id and a key of its own. What is there stays.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(dir: &Path) -> Result<Self, Error> {
        for part in [dir.to_owned(), dir.join("run"), dir.join("logs")] {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&part);
            made.map_err(Error::file("create", part))?;
        }
        let dir = std::fs::canonicalize(dir).map_err(Error::file("find", dir))?;
        let _lock = lock_plainly(&dir)?;
        let (id, key) = (dir.join("id"), dir.join("key"));
        if !key.exists() {
            Key::create(&key)?;
        }
        if !id.exists() {
            write_whole(&id, format!("{}\n", ClusterId::random()?).as_bytes())?;
        }
        Ok(Self { id: read_id(&id)?, dir })
    }

    /// The cluster of a directory that has one.
    ///
    /// # Errors
    /// There is none, or what there is cannot be read.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let Ok(found) = std::fs::canonicalize(dir) else { return Err(Error::NoCluster { dir: dir.to_owned() }) };
        let file = found.join("cluster.toml");
        if !file.is_file() {
            return Err(Error::NoCluster { dir: found });
        }
        let id_file = found.join("id");
        let id = if id_file.exists() {
            read_id(&id_file)?
        } else {
            // A directory that was set up by hand, with a description and a key.
            ClusterId::of(&Key::read(&found.join(Config::read(&file)?.key_file))?.for_heartbeats())
        };
        for part in ["run", "logs"] {
            let part = found.join(part);
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&part);
            made.map_err(Error::file("create", part))?;
        }
        Ok(Self { dir: found, id })
    }

    /// The directory that was named, or `.tenaz` here, or here if this is one.
    ///
    /// # Errors
    /// There is no cluster.
    pub fn find(named: Option<&Path>) -> Result<Self, Error> {
        match named {
            Some(dir) => Self::open(dir),
            None if !Path::new(DEFAULT_DIR).exists() && Path::new("cluster.toml").is_file() => {
                Self::open(Path::new("."))
            }
            None => Self::open(Path::new(DEFAULT_DIR)),
        }
    }

    /// Its absolute path.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Which cluster it is.
    pub fn id(&self) -> &ClusterId {
        &self.id
    }

    /// Where its description is.
    pub fn config_path(&self) -> PathBuf {
        self.dir.join("cluster.toml")
    }

    /// Its description.
    ///
    /// # Errors
    /// It is wrong.
    pub fn config(&self) -> Result<Config, Error> {
        Ok(Config::read(&self.config_path())?)
    }

    /// Writes its description, for this user only: it may have a broker's password.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write_config(&self, config: &Config) -> Result<(), Error> {
        write_whole(&self.config_path(), config.to_toml().as_bytes())
    }

    /// Takes over a description that people wrote elsewhere, as it is, and the key beside it.
    ///
    /// Everybody who has that key derives the same id from it, so that the machines of a cluster agree without having
    /// spoken. A cluster of one machine gets a key of its own if there is none.
    ///
    /// # Errors
    /// Something cannot be read or written, or a key that machines must share is missing.
    pub fn adopt(&mut self, file: &Path, config: &Config, key: &Path) -> Result<(), Error> {
        let text = std::fs::read(file).map_err(Error::file("read", file))?;
        let own_key = self.key_path(config);
        if key.exists() {
            let id = ClusterId::of(&Key::read(key)?.for_heartbeats());
            if std::fs::canonicalize(key).ok() != std::fs::canonicalize(&own_key).ok() {
                let secret = std::fs::read(key).map_err(Error::file("read", key))?;
                write_whole(&own_key, &secret)?;
            }
            write_whole(&self.dir.join("id"), format!("{id}\n").as_bytes())?;
            self.id = id;
        } else if config.machines.len() > 1 {
            return Err(Error::NoKey { path: key.to_owned() });
        } else if !own_key.exists() {
            Key::create(&own_key)?;
        }
        write_whole(&self.config_path(), &text)
    }

    /// Where the shared key is.
    pub fn key_path(&self, config: &Config) -> PathBuf {
        self.dir.join(&config.key_file)
    }

    /// The shared key.
    ///
    /// # Errors
    /// It cannot be read, or others can read it.
    pub fn key(&self, config: &Config) -> Result<Key, Error> {
        Ok(Key::read(&self.key_path(config))?)
    }

    /// The file with the key of heartbeats, which is all that a worker or a gateway gets: no order can be sealed with it.
    ///
    /// # Errors
    /// The cluster's key cannot be read, or the file cannot be written.
    pub fn heartbeat_key_file(&self, config: &Config) -> Result<PathBuf, Error> {
        let (key, path) = (self.key(config)?.for_heartbeats(), self.dir.join("run").join("heartbeat-key"));
        let known = Key::read(&path).is_ok_and(|known| known == key);
        if !known {
            key.write(&path)?;
        }
        Ok(path)
    }

    /// Where a process of this role finds the broker, with its password.
    ///
    /// # Errors
    /// The cluster's key cannot be read, of which the passwords of a private node are made.
    pub fn broker_url(&self, config: &Config, role: BrokerRole) -> Result<String, Error> {
        match (&config.broker, &config.broker_node) {
            (Some(broker), _) => Ok(broker.url().to_owned()),
            (None, Some(node)) => Ok(role.url(node.port, &self.key(config)?)),
            (None, None) => Ok(String::new()),
        }
    }

    /// Where a private RabbitMQ node keeps its data.
    pub fn broker_dir(&self) -> PathBuf {
        self.dir.join("broker")
    }

    /// Where all processes write.
    pub(crate) fn logs_dir(&self) -> PathBuf {
        self.dir.join("logs")
    }

    /// Where a process writes.
    pub fn log_path(&self, name: &ProcessName) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }

    /// Where it is written what happened.
    pub fn events_path(&self) -> PathBuf {
        self.dir.join("events.ndjson")
    }

    /// Writes down what happened: `fields` is an object.
    pub fn event(&self, event: &str, fields: Value) {
        events::append(&self.events_path(), event, fields);
    }

    /// The same for the end of a process.
    pub(crate) fn ended(&self, name: &ProcessName, incarnation: Incarnation, ending: Ending) {
        let (code, signal) = match ending {
            Ending::Exited(code) => (Some(code), None),
            Ending::Signalled(signal) => (None, Some(signal)),
            Ending::Unknown => (None, None),
        };
        let how = ending.to_string();
        let fields =
            json!({"name": name, "incarnation": incarnation, "ending": how, "exit_code": code, "signal": signal});
        self.event("ended", fields);
    }

    pub(crate) fn run(&self, file: &str) -> PathBuf {
        self.dir.join("run").join(file)
    }

    pub(crate) fn records(&self) -> Records {
        Records::new(self.dir.join("run"))
    }

    /// Whether `tenaz down` has begun: nothing is started any more.
    pub fn is_closed(&self) -> bool {
        self.run("closed").exists()
    }

    /// From now on nothing is started. Returns when every order that had begun is done. Blocks the thread.
    ///
    /// # Errors
    /// It cannot be written, or someone holds the lock.
    pub fn close(&self) -> Result<(), Error> {
        let lock = self.lock();
        // Even without the lock, so that `down` can end whoever holds it.
        write_whole(&self.run("closed"), b"tenaz down\n")?;
        lock.map(drop)
    }

    /// Lets processes be started again, and forgets what was held against them: that is of the cluster that was taken
    /// down. Whoever calls this holds [`Home::lock_up`] and has seen that nobody runs.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn reopen(&self) -> Result<(), Error> {
        let lock = self.lock()?;
        self.records().begin_anew()?;
        drop(lock);
        let path = self.run("closed");
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", path)(error)),
            _ => Ok(()),
        }
    }

    /// Everybody of this cluster who runs on this machine.
    pub fn running(&self) -> Vec<Member> {
        census::heads(&self.id)
    }

    /// Whether anybody of this cluster runs on this machine.
    pub fn is_up(&self) -> bool {
        !self.running().is_empty()
    }

    /// Keeps others from bringing this cluster up at the same moment. `None`: someone else is at it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn lock_up(&self) -> Result<Option<UpLock>, Error> {
        Ok(FileLock::attempt(&self.dir.join("up.lock"))?.map(UpLock))
    }

    /// Makes this process the one of that name. `None`: another one lives. Blocks the thread, at most for a second.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn hold_identity(&self, name: &ProcessName) -> Result<Option<IdentityLock>, Error> {
        let path = self.identity_path(name);
        // Someone who only looks whether the name is taken has the lock for a moment.
        let Some(lock) = FileLock::within(&path, IDENTITY_PATIENCE)? else { return Ok(None) };
        let write = |mut file: &std::fs::File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            writeln!(file, "{}", std::process::id())
        };
        write(lock.file()).map_err(Error::file("write", path))?;
        Ok(Some(IdentityLock(lock)))
    }

    /// Whoever holds that name. A pid of 0: someone, but it is not known who.
    pub(crate) fn identity_holder(&self, name: &ProcessName) -> Option<u32> {
        let path = self.identity_path(name);
        if !path.exists() || !matches!(FileLock::attempt(&path), Ok(None)) {
            return None;
        }
        let mut text = String::new();
        let _ = std::fs::File::open(&path).and_then(|file| file.take(16).read_to_string(&mut text));
        Some(text.trim().parse().unwrap_or_default())
    }

    fn identity_path(&self, name: &ProcessName) -> PathBuf {
        self.run(&format!("{name}.lock"))
    }

    /// The next life of a process that someone starts by hand: written down, so that whoever starts it later counts on. Blocks
    /// the thread, at most for some seconds.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn begin_by_hand(&self, name: &ProcessName, role: ProcessRole) -> Result<Incarnation, Error> {
        let _lock = self.lock()?;
        let mut record = self.records().read_or_new(name, role);
        let incarnation = Incarnation(record.incarnation.0 + 1);
        record.begin(incarnation, None, unix_ms());
        self.records().write(&record)?;
        Ok(incarnation)
    }

    /// The lock under which orders are executed. Blocks the thread, at most for some seconds.
    ///
    /// A process of this cluster that was stopped (SIGSTOP) while it held the lock would keep everybody from healing
    /// anything, itself included: it is killed, as every process that hangs is.
    ///
    /// # Errors
    /// Someone else holds it for far longer than an order takes.
    pub fn lock(&self) -> Result<HomeLock, Error> {
        match self.lock_within(LOCK_PATIENCE) {
            Err(Error::Locked { .. }) if self.kill_stopped_holder() => self.lock_within(LOCK_PATIENCE),
            other => other,
        }
    }

    pub(crate) fn lock_within(&self, patience: Duration) -> Result<HomeLock, Error> {
        let path = self.run("lock");
        if let Some(lock) = FileLock::within(&path, patience)? {
            return Ok(HomeLock(lock));
        }
        let holder = self.holder_for_people(&path);
        Err(Error::Locked { path, seconds: patience.as_secs(), holder })
    }

    fn holder_for_people(&self, path: &Path) -> String {
        let Some(pid) = lock::holder(path) else { return "by someone".to_owned() };
        let member = census::scan(&self.id).into_iter().find(|member| member.pid == pid);
        let name = member.map_or("a process".to_owned(), |member| member.name.to_string());
        let stopped = if Stat::of(pid).is_some_and(|stat| stat.is_stopped()) { ", stopped" } else { "" };
        format!("by {name} (pid {pid}{stopped})")
    }

    fn kill_stopped_holder(&self) -> bool {
        let Some(pid) = lock::holder(&self.run("lock")) else { return false };
        let member = census::scan(&self.id).into_iter().find(|member| member.pid == pid && member.is_stopped);
        let Some((member, target)) = member.and_then(|m| m.target().map(|target| (m, target))) else { return false };
        let killed = target.signal(Signal::KILL).unwrap_or(false);
        if killed {
            let why = "it was stopped while it held the cluster's lock";
            let fields = json!({"name": member.name, "incarnation": member.incarnation, "pid": pid, "because": why});
            self.event("killed", fields);
        }
        killed
    }
}

fn lock_plainly(dir: &Path) -> Result<FileLock, Error> {
    let path = dir.join("run/lock");
    FileLock::within(&path, LOCK_PATIENCE)?.ok_or_else(|| Error::Locked {
        path,
        seconds: LOCK_PATIENCE.as_secs(),
        holder: "by someone".to_owned(),
    })
}

fn read_id(path: &Path) -> Result<ClusterId, Error> {
    let text = std::fs::read_to_string(path).map_err(Error::file("read", path))?;
    text.trim().parse().map_err(|_| Error::Damaged {
        path: path.to_owned(),
        detail: "it should have 16 hexadecimal digits".to_owned(),
    })
}

#[cfg(test)]
mod tests;
