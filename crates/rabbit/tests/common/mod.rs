//! What the tests against a real broker share. They skip, with a message, only where RabbitMQ is not installed.
#![allow(dead_code, clippy::print_stderr, clippy::unwrap_used)]

use std::{path::PathBuf, sync::OnceLock, time::Duration};

use tenaz_rabbit::{
    BrokerSettings, Connection, Consumer, Error, Properties,
    node::{NodeOptions, PrivateNode},
};

/// Longer than anything takes on a loaded machine; only a bug gets there.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// A fresh directory below `target`.
pub fn fresh_dir(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
}

/// A node for one test.
pub async fn start_node(name: &str) -> Option<PrivateNode> {
    match PrivateNode::start(NodeOptions::new(fresh_dir(name), name)).await {
        Ok(node) => Some(node),
        Err(error @ Error::NotInstalled { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a test with a deadline.
pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE * 3, test).await.expect("the test hangs") });
}

/// The node that the tests of one binary share. A static is never dropped: the kernel kills the node with this process.
pub fn shared_settings() -> Option<BrokerSettings> {
    static NODE: OnceLock<Option<PrivateNode>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(start_node("shared"))
    };
    // On a thread of its own, because the caller may be inside a runtime.
    let node = NODE.get_or_init(|| std::thread::spawn(start).join().unwrap());
    node.as_ref().map(PrivateNode::settings)
}

/// Runs a test on the shared node.
pub fn with_broker<F: Future<Output = ()>>(test: impl FnOnce(BrokerSettings) -> F) {
    if let Some(settings) = shared_settings() {
        run(test(settings));
    }
}

pub async fn connect(settings: &BrokerSettings) -> Connection {
    Connection::open(settings, "test").await.unwrap()
}

/// Properties with an id.
pub fn id(id: impl ToString) -> Properties {
    Properties::of_kind("test").with_id(id.to_string())
}

/// Takes and acknowledges `count` messages; returns their ids.
pub async fn take(consumer: &mut Consumer, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let delivery = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("a message").unwrap();
        consumer.ack(delivery.tag).await.unwrap();
        ids.push(delivery.properties.message_id.unwrap_or_default());
    }
    ids
}

/// Asks again until the answer is yes.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
