//! What the tests against a real broker share. They skip, with a message, only where RabbitMQ is not installed.
#![allow(dead_code, clippy::print_stderr, clippy::unwrap_used)]

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use tenaz_rabbit::{
    Backoff, BrokerSettings, Connection, Consumer, Error, Properties, Result,
    node::{NodeOptions, PrivateNode},
};

/// Longer than anything takes on a loaded machine; only a bug gets there.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// How many channels the shared node allows on one AMQP connection: few, so that a test can use them up.
pub(crate) const CHANNEL_MAX: usize = 64;

/// A fresh directory below `target`. Those that earlier runs left there are removed.
pub(crate) fn fresh_dir(name: &str) -> PathBuf {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for old in std::fs::read_dir(&base).unwrap().flatten() {
        let file_name = old.file_name().into_string().unwrap_or_default();
        let owner = file_name.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !is_running(pid)) {
            let _ = std::fs::remove_dir_all(old.path());
        }
    }
    let dir = base.join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// Whether a process is there, and not only waiting to be reaped.
pub(crate) fn is_running(pid: u32) -> bool {
    // The state follows the name, which is in parentheses.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A node for one test.
pub(crate) async fn start_node(name: &str) -> Option<PrivateNode> {
    start_node_with(NodeOptions::new(fresh_dir(name), name)).await
}

/// A node with these options.
pub(crate) async fn start_node_with(options: NodeOptions) -> Option<PrivateNode> {
    match PrivateNode::start(options).await {
        Ok(node) => Some(node),
        Err(error @ Error::NotInstalled { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a test with a deadline.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE * 3, test).await.expect("the test hangs") });
}

/// The node that the tests of one binary share. A static is never dropped: the kernel kills the node with this process.
pub(crate) fn shared_settings() -> Option<BrokerSettings> {
    static NODE: OnceLock<Option<PrivateNode>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let options = NodeOptions::new(fresh_dir("shared"), "shared");
        runtime.block_on(start_node_with(NodeOptions {
            extra_config: vec![format!("channel_max = {CHANNEL_MAX}")],
            ..options
        }))
    };
    // On a thread of its own, because the caller may be inside a runtime.
    let node = NODE.get_or_init(|| std::thread::spawn(start).join().unwrap());
    node.as_ref().map(PrivateNode::settings)
}

/// Runs a test on the shared node.
pub(crate) fn with_broker<F: Future<Output = ()>>(test: impl FnOnce(BrokerSettings) -> F) {
    if let Some(settings) = shared_settings() {
        run(test(settings));
    }
}

/// Tries until it works; anything but a temporary error is a failure of the test.
pub(crate) async fn insist<T>(mut attempt: impl AsyncFnMut() -> Result<T>) -> T {
    let mut backoff = Backoff::new();
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) if error.is_temporary() => tokio::time::sleep(backoff.next_delay()).await,
            Err(error) => panic!("{error}"),
        }
    }
}

pub(crate) async fn connect(settings: &BrokerSettings) -> Connection {
    Connection::open(settings, "test").await.unwrap()
}

/// Properties with an id.
pub(crate) fn id(id: impl ToString) -> Properties {
    Properties::of_kind("test").with_id(id.to_string())
}

/// Takes and acknowledges `count` messages; returns their ids.
pub(crate) async fn take(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let delivery = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("a message").unwrap();
        consumer.ack(delivery.tag).await.unwrap();
        ids.push(delivery.properties.message_id.unwrap_or_default());
    }
    ids
}

/// Asks again until the answer is yes.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A way to the broker that can be cut as a killed process would cut it (no goodbye, just a closed socket), and that can be
/// slow: [`Cable::delay_answers`], [`Cable::limit_sending`].
pub(crate) struct Cable {
    pub(crate) settings: BrokerSettings,
    pace: Arc<Pace>,
    forwarding: tokio::task::JoinHandle<()>,
}

/// How slow a cable is now. Zero: not at all.
#[derive(Default)]
struct Pace {
    answers_delay_ms: AtomicU64,
    sending_bytes_per_second: AtomicU64,
}

impl Cable {
    pub(crate) async fn to(settings: &BrokerSettings) -> Cable {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut through = settings.clone();
        let broker = through.urls[0].port;
        through.urls[0].port = listener.local_addr().unwrap().port();
        let pace = Arc::new(Pace::default());
        let forwarding = tokio::spawn(forward(listener, broker, Arc::clone(&pace)));
        Cable { settings: through, pace, forwarding }
    }

    pub(crate) fn cut(self) {
        self.forwarding.abort();
    }

    /// Whatever the broker says from now on arrives this much later.
    pub(crate) fn delay_answers(&self, delay: Duration) {
        self.pace.answers_delay_ms.store(delay.as_millis() as u64, Ordering::Relaxed);
    }

    /// From now on each connection takes at most this many bytes a second to the broker.
    pub(crate) fn limit_sending(&self, bytes_per_second: u64) {
        self.pace.sending_bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }
}

async fn forward(listener: TcpListener, broker: u16, pace: Arc<Pace>) {
    let mut ways = tokio::task::JoinSet::new();
    loop {
        let (near, _) = listener.accept().await.unwrap();
        let far = TcpStream::connect(("127.0.0.1", broker)).await.unwrap();
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        let sending = Arc::clone(&pace);
        ways.spawn(carry(from_near, to_far, move |bytes| {
            let limit = sending.sending_bytes_per_second.load(Ordering::Relaxed);
            Duration::from_millis((bytes as u64 * 1000).checked_div(limit).unwrap_or(0))
        }));
        let answers = Arc::clone(&pace);
        ways.spawn(carry(from_far, to_near, move |_| {
            Duration::from_millis(answers.answers_delay_ms.load(Ordering::Relaxed))
        }));
    }
}

/// Carries bytes one way, each piece after its delay.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: impl Fn(usize) -> Duration) {
    let mut piece = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        tokio::time::sleep(delay(bytes)).await;
        if to.write_all(&piece[..bytes]).await.is_err() {
            return;
        }
    }
}
