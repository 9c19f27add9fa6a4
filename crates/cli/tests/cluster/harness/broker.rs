//! Private brokers.

use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenaz_rabbit::Error;
use tenaz_rabbit::node::{NodeOptions, PrivateNode};
use tokio::runtime::Runtime;

/// Runs something async.
pub fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    });
    runtime.block_on(work)
}

/// A private node.
#[derive(Clone)]
pub struct Broker {
    node: Arc<Mutex<PrivateNode>>,
}

impl Broker {
    /// Starts a node; nothing where RabbitMQ is not installed.
    pub fn start(dir: &Path, name: &str) -> Option<Self> {
        Self::start_with(NodeOptions::new(dir, name))
    }

    /// Starts a node that is not told to write the names of its queues down at once, as a foreign one is not.
    pub fn start_forgetful(dir: &Path, name: &str) -> Option<Self> {
        Self::start_with(NodeOptions { record_names: false, ..NodeOptions::new(dir, name) })
    }

    fn start_with(options: NodeOptions) -> Option<Self> {
        match in_runtime(PrivateNode::start(options)) {
            Ok(node) => Some(Self { node: Arc::new(Mutex::new(node)) }),
            Err(Error::NotInstalled { .. }) => {
                eprintln!("skipped: RabbitMQ is not installed (apt-get install rabbitmq-server)");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut PrivateNode) -> T) -> T {
        work(&mut self.node.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn url(&self) -> String {
        self.with(|node| node.url())
    }

    /// Kills the node with SIGKILL; its process is gone when this returns.
    pub fn kill(&self) {
        self.with(|node| in_runtime(node.kill()).expect("the node dies"));
    }

    pub fn restart(&self) {
        self.with(|node| in_runtime(node.restart()).expect("the node comes back"));
    }

    /// Waits until the node would know these work queues after a kill. (A lone node forgets queues that are younger than a
    /// second or so; see ARCHITECTURE.md.)
    pub fn wait_until_recorded(&self, queues: &[&str]) {
        self.with(|node| in_runtime(node.wait_until_recorded(queues)).expect("the queues are recorded"));
    }

    /// Puts the processes of the broker to sleep that deliver chunks to workers, as if it had forgotten them. How many.
    pub fn forget_consumers_of_chunks(&self) -> usize {
        let chunks = "[Q || Q <- rabbit_amqqueue:list(), \
                      re:run(element(4, amqqueue:get_name(Q)), <<\"[.]chunks[.]\">>) =/= nomatch]";
        let asleep = format!(
            "length([sys:suspend(P) || P <- lists:usort([element(1, C) || Q <- {chunks}, C <- rabbit_amqqueue:consumers(Q)])])."
        );
        let text = self.with(|node| in_runtime(node.ctl(&["eval", &asleep])).expect("rabbitmqctl answers"));
        text.trim().parse().unwrap_or_else(|_| panic!("{text}"))
    }

    /// What the broker says of its queues, for people.
    pub fn queue_states(&self) -> String {
        let ask = ["-q", "list_queues", "name", "type", "state", "messages", "consumers"];
        self.with(|node| in_runtime(node.ctl(&ask)).unwrap_or_else(|error| error.to_string()))
    }

    pub fn queues(&self) -> Vec<String> {
        let text = self.with(|node| in_runtime(node.ctl(&["-q", "list_queues", "name"])).expect("rabbitmqctl answers"));
        text.lines().map(|line| line.trim().to_owned()).collect()
    }
}

/// The node that all tests without a fault of the broker share. It goes with the test process.
pub fn shared_broker() -> Option<&'static Broker> {
    static SHARED: OnceLock<Option<(tempfile::TempDir, Broker)>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        let broker = Broker::start(dir.path(), "shared")?;
        Some((dir, broker))
    });
    shared.as_ref().map(|(_, broker)| broker)
}

pub fn shared() -> Option<String> {
    shared_broker().map(Broker::url)
}
