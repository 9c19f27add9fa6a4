//! What the tests against real brokers share. They skip, with a message, only where RabbitMQ is not installed.
#![allow(dead_code, clippy::print_stderr, clippy::unwrap_used)]

pub(crate) mod http;
pub(crate) mod worker;

use std::future::Future;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tenaz_cluster::{Link, LinkSettings, Names};
use tenaz_gateway::{Gateway, GatewaySettings};
use tenaz_rabbit::node::{NodeOptions, PrivateNode};
use tenaz_rabbit::{BrokerSettings, Error};

use http::Client;

/// Longer than anything takes on a loaded machine; only a bug gets there.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) fn fresh_dir(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    dir
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
    runtime.shutdown_timeout(Duration::from_secs(1));
}

/// Runs a test on the node that the tests of one binary share. A static is never dropped: the kernel kills the node with
/// this process.
pub(crate) fn with_broker<F: Future<Output = ()>>(test: impl FnOnce(Deployment) -> F) {
    static NODE: OnceLock<Option<PrivateNode>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(start_node("gateway"))
    };
    let node = NODE.get_or_init(|| std::thread::spawn(start).join().unwrap());
    if let Some(node) = node {
        run(test(Deployment::on(node.settings())));
    }
}

/// Names what hangs.
pub(crate) async fn soon<T>(what: impl std::fmt::Display, work: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(done) => done,
        Err(_) => panic!("this hangs: {what}"),
    }
}

/// Asks again until the answer is yes.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !is_so().await {
        assert!(tokio::time::Instant::now() < deadline, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A cluster of its own on a broker: names that no other test has.
#[derive(Clone)]
pub(crate) struct Deployment {
    pub(crate) broker: BrokerSettings,
    pub(crate) names: Names,
}

impl Deployment {
    pub(crate) fn on(broker: BrokerSettings) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let names = Names::new(&format!("t{}", NEXT.fetch_add(1, Ordering::Relaxed))).unwrap();
        Self { broker, names }
    }

    pub(crate) async fn link(&self) -> Link {
        let settings =
            LinkSettings { broker: self.broker.clone(), names: self.names.clone(), connection_name: "test".to_owned() };
        soon("opening a link", Link::open(settings)).await.unwrap()
    }

    /// A gateway with default settings.
    pub(crate) async fn gateway(&self) -> TestGateway {
        self.gateway_with(|_| {}).await
    }

    pub(crate) async fn gateway_with(&self, change: impl FnOnce(&mut GatewaySettings)) -> TestGateway {
        let mut settings = GatewaySettings::new("127.0.0.1:0".parse().unwrap());
        change(&mut settings);
        let link = self.link().await;
        let gateway = soon("starting a gateway", Gateway::start(link.clone(), settings)).await.unwrap();
        let client = Client::to(gateway.local_addr());
        TestGateway { gateway, link, client }
    }
}

pub(crate) struct TestGateway {
    pub(crate) gateway: Gateway,
    pub(crate) link: Link,
    pub(crate) client: Client,
}

impl TestGateway {
    pub(crate) async fn stop(self) {
        soon("shutting down", self.gateway.shutdown(Duration::from_secs(5))).await;
        soon("closing a link", self.link.close()).await;
    }
}

impl std::ops::Deref for TestGateway {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

/// Two tables, one of them joined to the other, and a question that needs only one of them.
pub(crate) const SHOP: &str = r#"
name = "shop"

[[table]]
name = "sales"
files = "sales*.csv"
role = "fact"
columns = [{ name = "n", type = "int" }, { name = "item", type = "text" }]

[[table]]
name = "items"
files = "items.csv"
role = "dimension"
columns = [{ name = "item", type = "text" }, { name = "price", type = "decimal(9,2)" }]

[[table]]
name = "unread"
files = "unread.csv"
columns = [{ name = "x", type = "int" }]

[[query]]
name = "large"
title = "Large sales"
sql = "SELECT n, item FROM sales WHERE n > 10"

[[query]]
name = "turnover"
sql = "SELECT s.item, sum(s.n * i.price) AS total FROM sales s JOIN items i ON s.item = i.item GROUP BY s.item ORDER BY total DESC, s.item"
"#;

/// A request for the shop's answers.
pub(crate) fn shop(queries: &[&str]) -> Value {
    json!({"workload": {"file": "shop.toml", "toml": SHOP}, "queries": queries})
}

/// Creates a job and returns its id.
pub(crate) async fn create(client: &Client, request: &Value) -> String {
    let response = client.post("/v1/jobs", request).await;
    assert_eq!(response.status, 201, "{}", response.text());
    response.json()["job"].as_str().unwrap().to_owned()
}
