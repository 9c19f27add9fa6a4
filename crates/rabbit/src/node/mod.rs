//! Private RabbitMQ nodes: for `tenaz up` and for tests.
//!
//! A private node shares nothing with a broker that the machine may run: its own directory, ports, cookie and name
//! server (epmd), all on 127.0.0.1 (or in a network that a test has made for it, see [`NodeNetwork`]).
//!
//! **Which RabbitMQ.** The one that the machine's packages have put in the usual places, or the one whose `rabbitmq-server`,
//! `rabbitmqctl`, `erl` and `epmd` are in the directory that `TENAZ_RABBITMQ_BIN` names. `scripts/rabbitmq4` makes such a
//! directory for a RabbitMQ in a root file system of its own. Tests run with 3.10 and 4.3.
//!
//! **Nothing stays behind.** A node is two direct children of this process: `epmd` and `beam.smp` (the launcher script
//! execs it, told so by `detached`). Dropping a node kills both by pid, and everything else that carries its directory
//! in its environment. If this process is itself killed with SIGKILL the kernel does it: both children ask for SIGKILL
//! when their parent dies (`PR_SET_PDEATHSIG`), and the helpers of beam.smp end within seconds after it. The kernel
//! means the *thread* that started a child, so one thread that never ends starts them all. Both children have a process
//! group of their own, so that Ctrl-C reaches tenaz first and the broker last.

mod cluster;
mod files;
mod network;
mod ports;
mod process;
mod users;

use std::{
    path::{Path, PathBuf},
    process::Child,
    sync::Arc,
    time::{Duration, Instant},
};

pub use cluster::PrivateCluster;
pub use network::NodeNetwork;
pub use users::NodeUser;

use crate::{
    connection::Connection,
    declare::StreamSpec,
    error::{Error, NodeObstacle, Result},
    settings::{BrokerSettings, BrokerUrl},
};
use files::Files;
use ports::Ports;

const START_DEADLINE: Duration = Duration::from_secs(60);
const STOP_DEADLINE: Duration = Duration::from_secs(20);
const KILL_DEADLINE: Duration = Duration::from_secs(10);
const RECORD_DEADLINE: Duration = Duration::from_secs(30);
const FIRST_STREAM_TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_STREAM: &str = "tenaz.first-stream";
const POLL: Duration = Duration::from_millis(50);
const START_ATTEMPTS: usize = 3;
const LOG_LINES_IN_ERRORS: usize = 15;

/// Whether this machine has what a private node needs; the error says what to install.
pub fn find_installed() -> Result<()> {
    process::server_script("rabbitmq-server").map(drop)
}

/// How to run a private node.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Its directory; created if missing, never deleted. What an earlier node left there is found again.
    pub dir: PathBuf,
    /// A short name: letters, digits, `-` and `_`.
    pub name: String,
    /// The broker blocks publishers above this much memory.
    pub memory_limit_bytes: u64,
    /// The broker blocks publishers below this much free disk.
    pub disk_free_limit_bytes: u64,
    /// More lines for its `rabbitmq.conf`.
    pub extra_config: Vec<String>,
    /// The AMQP port; `None`: a free one. A node that is to come back after its caller's death needs one that stays.
    pub port: Option<u16>,
    /// Who may log in. Nobody named: `guest`, as with any RabbitMQ that is just installed.
    pub users: Vec<NodeUser>,
    /// Where it listens.
    pub network: NodeNetwork,
    /// More entries for the environment of all its processes, by which they can be recognised.
    pub marks: Vec<(String, String)>,
    /// Whether the names of new queues are written to disk at once. RabbitMQ by itself takes up to seconds, and a queue whose
    /// name is not there when the node is killed does not come back in order.
    pub record_names: bool,
}

impl NodeOptions {
    /// A node in this directory with generous limits: an alarm on a busy machine would look like a hang.
    pub fn new(dir: impl Into<PathBuf>, name: impl Into<String>) -> Self {
        Self {
            dir: dir.into(),
            name: name.into(),
            memory_limit_bytes: 4 << 30,
            disk_free_limit_bytes: 50 << 20,
            extra_config: Vec::new(),
            port: None,
            users: Vec::new(),
            network: NodeNetwork::default(),
            marks: Vec::new(),
            record_names: true,
        }
    }
}

/// A RabbitMQ node that belongs to this process.
#[derive(Debug)]
pub struct PrivateNode {
    options: NodeOptions,
    /// By which the node itself logs in.
    own_user: Option<NodeUser>,
    files: Files,
    ports: Ports,
    epmd: Arc<process::Epmd>,
    beam: Option<Child>,
}

impl PrivateNode {
    /// Starts a node and waits until AMQP answers.
    pub async fn start(options: NodeOptions) -> Result<PrivateNode> {
        let mut attempt = 1;
        loop {
            let epmd = process::Epmd::start(&options, None).await?;
            let mut node = Self::prepare(options.clone(), Arc::new(epmd), &[])?;
            match node.restart().await {
                Ok(()) => return node.make_streams_last().await.map(|()| node),
                // Someone took a port between our look and the node's bind.
                Err(Error::NodeObstructed { obstacle: NodeObstacle::PortTaken, .. })
                    if options.port.is_none() && attempt < START_ATTEMPTS =>
                {
                    attempt += 1
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The coordinator of streams is made with the first stream. A node that dies before it has written that down never
    /// finds this stream again, so there is a first one before anybody else comes.
    async fn make_streams_last(&self) -> Result<()> {
        let deadline = Instant::now() + START_DEADLINE;
        while !self.files.knows_streams() {
            match self.make_first_stream().await {
                // A node that has only just started may close or forget a connection.
                Err(error) if error.is_temporary() && Instant::now() < deadline => {
                    tracing::warn!(%error, "a new node's first stream");
                    tokio::time::sleep(POLL).await;
                }
                outcome => return outcome,
            }
        }
        Ok(())
    }

    async fn make_first_stream(&self) -> Result<()> {
        let mut settings = self.settings();
        settings.answer_timeout = FIRST_STREAM_TIMEOUT;
        let connection = Connection::open(&settings, "the first stream").await?;
        let spec = StreamSpec::new(FIRST_STREAM);
        connection.declare_stream(&spec).await?;
        let deadline = Instant::now() + RECORD_DEADLINE;
        while !self.files.knows_streams() {
            if Instant::now() > deadline {
                return Err(self.failed("it does not write to disk that it has streams"));
            }
            tokio::time::sleep(POLL).await;
        }
        connection.delete_queue(&spec.name).await?;
        connection.close().await;
        Ok(())
    }

    fn prepare(options: NodeOptions, epmd: Arc<process::Epmd>, peers: &[String]) -> Result<PrivateNode> {
        let mut ports = Ports::free(&options.name)?;
        ports.amqp = options.port.unwrap_or(ports.amqp);
        let own_user = (!options.users.is_empty()).then(|| NodeUser::of_the_node(FIRST_STREAM));
        let files = Files::write(&options, own_user.as_ref(), &ports, peers)?;
        Ok(PrivateNode { options, own_user, files, ports, epmd, beam: None })
    }

    /// Starts the node again, with the same directory and ports, and waits until AMQP answers.
    pub async fn restart(&mut self) -> Result<()> {
        self.launch().await?;
        self.wait_until_ready().await
    }

    /// Kills the node with SIGKILL, as a crash would, and waits until its port is closed.
    pub async fn kill(&mut self) -> Result<()> {
        self.kill_processes();
        self.wait_until_port_closed().await
    }

    /// Stops the node in good order; kills it if that takes too long.
    pub async fn stop(&mut self) -> Result<()> {
        if let Some(beam) = &self.beam {
            process::terminate(beam.id());
            let deadline = Instant::now() + STOP_DEADLINE;
            while Instant::now() < deadline && !self.has_exited() {
                tokio::time::sleep(POLL).await;
            }
        }
        self.kill().await
    }

    /// Waits until the node has written to disk that these quorum queues, and the streams if there are any, exist.
    ///
    /// See [`NodeOptions::record_names`]. Tests that kill a node wait here first, unless they test just that.
    pub async fn wait_until_recorded(&self, quorum_queues: &[&str]) -> Result<()> {
        let deadline = Instant::now() + RECORD_DEADLINE;
        while !self.files.has_recorded(quorum_queues) {
            if Instant::now() > deadline {
                return Err(self.failed("it does not write its queues to disk"));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Where it listens, with user and password: `amqp://guest:guest@127.0.0.1:PORT/%2f`.
    pub fn url(&self) -> String {
        let url = self.broker_url();
        format!("amqp://{}:{}@{}:{}/%2f", url.user, url.password, self.options.network.address, self.ports.amqp)
    }

    /// Settings with which to connect to it.
    pub fn settings(&self) -> BrokerSettings {
        BrokerSettings::new(vec![self.broker_url()])
    }

    /// The process that is the broker (`beam.smp`), while it runs.
    pub fn pid(&self) -> Option<u32> {
        let child = self.beam.as_ref()?.id();
        // Normally the child itself; a launcher that does not exec would have it among its descendants.
        let mut family = process::with_environment(&self.files.environment_mark());
        family.sort_by_key(|pid| *pid != child);
        family.into_iter().find(|pid| process::command_name(*pid).is_some_and(|name| name.starts_with("beam")))
    }

    /// The AMQP port.
    pub fn port(&self) -> u16 {
        self.ports.amqp
    }

    /// The node's directory.
    pub fn dir(&self) -> &Path {
        &self.options.dir
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        self.files.log_tail(lines)
    }

    /// Runs `rabbitmqctl` on this node and returns what it printed. It takes seconds: Erlang starts for it.
    pub async fn ctl(&self, arguments: &[&str]) -> Result<String> {
        let mut command = tokio::process::Command::from(self.command(&process::server_script("rabbitmqctl")?));
        command.args(["-n", &self.files.node_name()]).args(arguments).kill_on_drop(true);
        command.stdin(std::process::Stdio::null());
        let output =
            command.output().await.map_err(|error| self.failed(&format!("rabbitmqctl did not run: {error}")))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(self.failed(&format!("rabbitmqctl {} said: {}", arguments.join(" "), text.trim())))
    }

    fn broker_url(&self) -> BrokerUrl {
        let guest = || ("guest".to_owned(), "guest".to_owned());
        let own_user = self.own_user.as_ref().map(|own| (own.name.clone(), own.password.clone()));
        let (user, password) = own_user.unwrap_or_else(guest);
        BrokerUrl {
            tls: false,
            user,
            password,
            host: self.options.network.address.to_string(),
            port: self.ports.amqp,
            vhost: "/".to_owned(),
        }
    }

    fn command(&self, script: &Path) -> std::process::Command {
        let mut command = process::clean_command(script, &self.options.network);
        command.envs(self.files.environment(&self.ports)).envs(self.epmd.environment());
        command.envs(self.options.marks.iter().cloned());
        command
    }

    async fn launch(&mut self) -> Result<()> {
        self.kill_processes();
        self.wait_until_port_closed().await?;
        self.files.mend_streams();
        self.files.begin_life();
        let mut command = self.command(&process::server_script("rabbitmq-server")?);
        let (stdout, stderr) = self.files.output_files()?;
        // With this the launcher script becomes the broker instead of waiting for it.
        command.env("detached", "true").stdout(stdout).stderr(stderr);
        let child = process::spawn(command).map_err(|error| self.failed(&format!("it did not start: {error}")))?;
        self.beam = Some(child);
        Ok(())
    }

    /// Ready means that a client can log in.
    async fn wait_until_ready(&mut self) -> Result<()> {
        let mut settings = self.settings();
        settings.connect_timeout = Duration::from_secs(5);
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            if ports::is_open(self.options.network.address, self.ports.amqp).await {
                match Connection::open(&settings, "is the node ready?").await {
                    Ok(connection) => {
                        connection.close().await;
                        return Ok(());
                    }
                    Err(error) if !error.is_temporary() => return Err(error),
                    Err(_) => {}
                }
            }
            if self.has_exited() {
                return Err(self.failed_with_log("it ended while starting"));
            }
            if Instant::now() > deadline {
                self.kill_processes();
                return Err(self.failed_with_log(&format!("it did not answer within {} s", START_DEADLINE.as_secs())));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn wait_until_port_closed(&self) -> Result<()> {
        let deadline = Instant::now() + KILL_DEADLINE;
        while ports::is_open(self.options.network.address, self.ports.amqp).await {
            if Instant::now() > deadline {
                let detail = format!("port {} is in use, and not by this node", self.ports.amqp);
                return Err(self.obstructed(NodeObstacle::PortTaken, detail));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(())
    }

    /// Whether the broker's process has ended.
    pub fn has_exited(&mut self) -> bool {
        self.beam.as_mut().is_none_or(|beam| !matches!(beam.try_wait(), Ok(None)))
    }

    /// Kills the broker and whatever it started.
    fn kill_processes(&mut self) {
        if let Some(mut beam) = self.beam.take() {
            process::kill_and_reap(&mut beam);
        }
        process::kill_all(&process::with_environment(&self.files.environment_mark()));
    }

    fn failed(&self, detail: &str) -> Error {
        Error::Node { name: self.options.name.clone(), detail: detail.to_owned() }
    }

    /// Why a node that has ended by itself did so, as far as it can be told.
    pub fn why_ended(&self) -> Error {
        self.failed_with_log("it ended by itself")
    }

    fn obstructed(&self, obstacle: NodeObstacle, detail: String) -> Error {
        Error::NodeObstructed { name: self.options.name.clone(), obstacle, detail }
    }

    fn failed_with_log(&self, detail: &str) -> Error {
        let log = self.files.log_tail(LOG_LINES_IN_ERRORS);
        let detail = format!("{detail}; the end of its log in '{}' is:\n{log}", self.options.dir.display());
        match self.files.obstacle() {
            Some(obstacle) => self.obstructed(obstacle, detail),
            None => self.failed(&detail),
        }
    }
}

impl Drop for PrivateNode {
    fn drop(&mut self) {
        self.kill_processes();
    }
}
