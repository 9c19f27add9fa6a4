//! What a private node reads and writes, all below its directory.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::{
    NodeNetwork, NodeOptions,
    ports::Ports,
    users::{NodeUser, definitions},
};
use crate::error::{Error, NodeObstacle, Result};

/// Erlang that writes the names of Raft servers to disk as soon as they are new. The launcher splits at spaces.
///
/// RabbitMQ keeps the names of quorum queues and of the streams' coordinator in a table that is written when nobody has used
/// it for half a second. (m) A node of version 3.10.8 that is killed before that comes back with queues that never confirm
/// anything, and with its first streams "home node down" for ever.
const RECORD_NAMES: &str = "spawn(fun()->Record=fun(Again)->\
    [dets:sync(Table)||Table<-dets:all(),File<-[dets:info(Table,filename)],is_list(File),\
    filename:basename(File)==\"names.dets\"],\
    timer:sleep(20),Again(Again)end,Record(Record)end).";

/// A log of the broker of this size is put aside.
const LOG_BYTES: u64 = 16 << 20;
/// What is written to find out whether there is room: less than a node needs for its start.
const ROOM_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    name: String,
    network: NodeNetwork,
    record_names: bool,
    /// Where in its log the present life begins: what stands before it says nothing about this one.
    life_begins: u64,
}

impl Files {
    /// Writes configuration and cookie. An existing cookie stays: cluster nodes share one.
    pub(super) fn write(
        options: &NodeOptions,
        own_user: Option<&NodeUser>,
        ports: &Ports,
        peers: &[String],
    ) -> Result<Files> {
        let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if options.name.is_empty() || !options.name.chars().all(good) {
            let detail = "its name must consist of letters, digits, '-' and '_'".to_owned();
            return Err(Error::Node { name: options.name.clone(), detail });
        }
        let failed = |error: io::Error| cannot_write(&options.name, &options.dir, &error);
        fs::create_dir_all(&options.dir).map_err(failed)?;
        // RabbitMQ changes its working directory, so every path must be absolute.
        let dir = options.dir.canonicalize().map_err(failed)?;
        let (name, network) = (options.name.clone(), options.network.clone());
        let files = Files { dir, name, network, record_names: options.record_names, life_begins: 0 };
        let mut configuration = configuration(options, ports, peers);
        if let Some(own_user) = own_user {
            let path = files.dir.join("definitions.json");
            let users = [std::slice::from_ref(own_user), &options.users].concat();
            write_secret(&path, &definitions(&users)).map_err(failed)?;
            configuration.push_str(&format!("load_definitions = {}\n", path.display()));
        }
        files.write_all(&configuration).map_err(failed)?;
        Ok(files)
    }

    fn write_all(&self, configuration: &str) -> io::Result<()> {
        for folder in ["mnesia", "log", "home", "generated"] {
            fs::create_dir_all(self.dir.join(folder))?;
        }
        fs::write(self.dir.join("rabbitmq.conf"), configuration)?;
        fs::write(self.dir.join("rabbitmq-env.conf"), "")?;
        fs::write(self.dir.join("enabled_plugins"), "[].\n")?;
        let cookie = self.dir.join("home/.erlang.cookie");
        if !cookie.exists() {
            write_cookie(&cookie, &new_secret())?;
        }
        Ok(())
    }

    /// The name by which Erlang knows the node.
    pub(super) fn node_name(&self) -> String {
        format!("{}@{}", self.name, self.network.host())
    }

    /// Everything that keeps the node away from other brokers of this machine.
    pub(super) fn environment(&self, ports: &Ports) -> Vec<(&'static str, String)> {
        let path = |name: &str| self.dir.join(name).display().to_string();
        let interface = self.network.erlang_address();
        let mut arguments = format!("-start_epmd false -kernel inet_dist_use_interface {interface}");
        if self.record_names {
            arguments.push_str(" -eval ");
            arguments.push_str(RECORD_NAMES);
        }
        let mut environment = vec![
            ("HOME", path("home")),
            ("RABBITMQ_NODENAME", self.node_name()),
            ("RABBITMQ_NODE_IP_ADDRESS", self.network.address.to_string()),
            ("RABBITMQ_NODE_PORT", ports.amqp.to_string()),
            ("RABBITMQ_DIST_PORT", ports.dist.to_string()),
            ("RABBITMQ_MNESIA_BASE", path("mnesia")),
            ("RABBITMQ_LOG_BASE", path("log")),
            ("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf")),
            ("RABBITMQ_CONF_ENV_FILE", path("rabbitmq-env.conf")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", path("enabled_plugins")),
            ("RABBITMQ_GENERATED_CONFIG_DIR", path("generated")),
            ("RABBITMQ_FEATURE_FLAGS_FILE", path("feature_flags")),
            ("RABBITMQ_PID_FILE", path("pid")),
            // Otherwise Erlang writes it where its user happens to stand.
            ("ERL_CRASH_DUMP", path("log/erl_crash.dump")),
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", arguments),
        ];
        if self.network.has_long_names() {
            environment.push(("RABBITMQ_USE_LONGNAME", "true".to_owned()));
        }
        environment
    }

    /// An entry that only this node's processes have in their environment.
    pub(super) fn environment_mark(&self) -> String {
        format!("RABBITMQ_MNESIA_BASE={}", self.dir.join("mnesia").display())
    }

    /// Where the launcher writes.
    pub(super) fn output_files(&self) -> Result<(File, File)> {
        let create = |name: &str| File::create(self.dir.join("log").join(name));
        create("stdout")
            .and_then(|stdout| Ok((stdout, create("stderr")?)))
            .map_err(|error| cannot_write(&self.name, &self.dir, &error))
    }

    fn log(&self) -> PathBuf {
        self.dir.join("log").join(format!("{}.log", self.node_name()))
    }

    /// A new life is about to begin.
    pub(super) fn begin_life(&mut self) {
        self.life_begins = fs::metadata(self.log()).map_or(0, |data| data.len());
    }

    /// What is in the way of the present life, as its directory and its log show it.
    pub(super) fn obstacle(&self) -> Option<NodeObstacle> {
        let has_no_room = self.try_room().err().is_some_and(|error| is_full(&error));
        if has_no_room || self.life_mentions("enospc") {
            return Some(NodeObstacle::NoDiskSpace);
        }
        self.life_mentions("eaddrinuse").then_some(NodeObstacle::PortTaken)
    }

    fn try_room(&self) -> io::Result<()> {
        let path = self.dir.join("room");
        let written = fs::write(&path, [1; ROOM_BYTES]);
        // What cannot be removed is small, and is written over the next time.
        let _ = fs::remove_file(&path);
        written
    }

    /// Whether the log of the present life has this word, or what the launcher wrote.
    fn life_mentions(&self, word: &str) -> bool {
        let log = fs::read(self.log()).unwrap_or_default();
        let life = usize::try_from(self.life_begins).ok().and_then(|begin| log.get(begin..)).unwrap_or(&log);
        let launcher = fs::read(self.dir.join("log/stderr")).unwrap_or_default();
        contains(life, word) || contains(&launcher, word)
    }

    /// The last lines of its log, after what the launcher wrote to stderr.
    pub(super) fn log_tail(&self, lines: usize) -> String {
        let mut text = String::new();
        for name in ["stderr".to_owned(), format!("{}.log", self.node_name())] {
            let whole = fs::read(self.dir.join("log").join(name)).unwrap_or_default();
            let whole = String::from_utf8_lossy(&whole);
            let all: Vec<&str> = whole.lines().collect();
            for line in &all[all.len().saturating_sub(lines)..] {
                text.push_str(line);
                text.push('\n');
            }
        }
        text
    }

    /// Removes segments of streams that were never begun.
    ///
    /// (m) A node of version 3.10.8 that is killed in the few milliseconds in which it makes a segment leaves an index without
    /// one. It then cannot start that stream, nor delete it, and says so in its log five hundred times a second.
    pub(super) fn mend_streams(&self) {
        /// What both files begin with, before there is anything in them.
        const HEADER_BYTES: u64 = 8;
        let entries = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
        let bytes = |path: &Path| fs::metadata(path).map_or(0, |data| data.len());
        for index in entries(&self.streams()).flat_map(|stream| entries(&stream)) {
            let segment = index.with_extension("segment");
            let is_index = index.extension().is_some_and(|extension| extension == "index");
            if is_index && bytes(&index) <= HEADER_BYTES && bytes(&segment) < HEADER_BYTES {
                // What cannot be removed is as it was before.
                let _ = fs::remove_file(&index);
                let _ = fs::remove_file(&segment);
            }
        }
    }

    /// Whether the directories of Raft servers on disk name these queues, and the coordinator of streams if it exists.
    pub(super) fn has_recorded(&self, quorum_queues: &[&str]) -> bool {
        let queues = self.names("quorum");
        // The coordinator is created with the first stream. Its own directory has no name to know it by, and in version 4 the
        // broker's metadata have one beside it.
        let has_streams = fs::read_dir(self.streams()).is_ok_and(|mut entries| entries.next().is_some());
        quorum_queues.iter().all(|queue| contains(&queues, &format!("%2F_{queue}")))
            && (!has_streams || self.knows_streams())
    }

    /// Whether the coordinator of streams is named on disk.
    pub(super) fn knows_streams(&self) -> bool {
        contains(&self.names("coordination"), "rabbit_stream_coordinator")
    }

    /// The directory with a directory for each stream.
    fn streams(&self) -> PathBuf {
        self.dir.join("mnesia").join(self.node_name()).join("stream")
    }

    fn names(&self, system: &str) -> Vec<u8> {
        fs::read(self.raft(system).join("names.dets")).unwrap_or_default()
    }

    /// The directory of a system of Raft servers.
    fn raft(&self, system: &str) -> PathBuf {
        self.dir.join("mnesia").join(self.node_name()).join(system).join(self.node_name())
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn cannot_write(name: &str, dir: &Path, error: &io::Error) -> Error {
    let (name, detail) = (name.to_owned(), format!("cannot write to '{}' ({error})", dir.display()));
    match is_full(error) {
        true => Error::NodeObstructed { name, obstacle: NodeObstacle::NoDiskSpace, detail },
        false => Error::Node { name, detail: format!("{detail}; choose another directory") },
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

fn configuration(options: &NodeOptions, ports: &Ports, peers: &[String]) -> String {
    let mut lines = vec![
        format!("listeners.tcp.1 = {}:{}", options.network.address, ports.amqp),
        format!("vm_memory_high_watermark.absolute = {}", options.memory_limit_bytes),
        format!("disk_free_limit.absolute = {}", options.disk_free_limit_bytes),
        "log.console = false".to_owned(),
        "log.file.level = warning".to_owned(),
        format!("log.file.rotation.size = {LOG_BYTES}"),
        "log.file.rotation.count = 1".to_owned(),
    ];
    if !peers.is_empty() {
        lines.push("cluster_formation.peer_discovery_backend = classic_config".to_owned());
        for (index, peer) in peers.iter().enumerate() {
            lines.push(format!("cluster_formation.classic_config.nodes.{} = {peer}", index + 1));
        }
    }
    lines.extend(options.extra_config.iter().cloned());
    lines.join("\n") + "\n"
}

/// A secret of 128 bits: the cookie that nodes of one cluster share, or a password.
pub(super) fn new_secret() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the system gives random numbers");
    format!("{:032x}", u128::from_be_bytes(bytes))
}

fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let _ = fs::remove_file(path);
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

/// Erlang refuses a cookie that others can read.
pub(super) fn write_cookie(path: &Path, cookie: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(path)?;
    file.write_all(cookie.as_bytes())
}
