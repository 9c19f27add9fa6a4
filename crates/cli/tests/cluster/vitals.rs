//! What processes show of themselves: health, readiness, metrics, heartbeats.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::Value;
use tenaz_vitals::{ClusterId, Heartbeat, HeartbeatListener, Key};

use crate::harness::{Cluster, PATIENCE, Process, Task, assert_same_results, coffee, get, in_runtime, wait_for};

/// Where a worker answers questions about itself.
fn http(process: &Process) -> String {
    wait_for("it says where it answers", || {
        let entry = process.entries().into_iter().find(|entry| entry["message"] == "the process is up")?;
        entry["http"].as_str().map(str::to_owned)
    })
}

/// The status and the body, whatever the status is.
fn ask(url: &str) -> (u16, String, String) {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(url).call().expect("an answer");
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    (answer.status().as_u16(), kind, answer.body_mut().read_to_string().expect("a body"))
}

/// The samples of `/metrics`, by name with labels.
pub(crate) fn metrics(base: &str) -> BTreeMap<String, f64> {
    let (status, kind, text) = ask(&format!("{base}/metrics"));
    assert_eq!((status, kind.as_str()), (200, "application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(text.ends_with("# EOF\n"), "{text}");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a sample");
            (name.to_owned(), value.parse().expect("a number"))
        })
        .collect()
}

fn summary(dir: &std::path::Path) -> Value {
    serde_json::from_slice(&std::fs::read(dir.join("summary.json")).expect("a summary")).expect("JSON")
}

#[test]
fn what_processes_count_agrees_with_the_summary() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster;
    cluster.add_worker_with(&["--http", "127.0.0.1:0", "--name", "worker-7"]);
    cluster.add_gateway_with(&["--listen", "127.0.0.1:0", "--name", "gateway-8"]);
    cluster.wait_for_workers();
    let (worker, gateway) = (http(&cluster.workers[0]), cluster.gateways[0].url());
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &[]).succeeds();
    assert_same_results(coffee(), &out);

    let summary = summary(&out);
    let total = |field: &str| {
        let tables = summary["tables"].as_object().expect("tables").values();
        tables.map(|table| table[field].as_f64().expect("a number")).sum::<f64>()
    };
    let counted = metrics(&worker);
    let rows = |outcome: &str| counted[&format!("tenaz_rows_total{{outcome=\"{outcome}\"}}")];
    assert!(total("rejected") > 0.0, "the data has bad records: {summary}");
    assert_eq!(rows("accepted") + rows("rejected"), total("records"), "{counted:?}");
    assert_eq!(rows("rejected"), total("rejected"));
    let (begun, finished) = cluster.workers[0].counts(Task::Chunk);
    assert_eq!(begun, finished);
    assert_eq!(counted["tenaz_chunks_total"], finished as f64);
    assert_eq!(counted["tenaz_tasks_total"], cluster.workers[0].counts(Task::Inner).1 as f64);
    assert_eq!(counted["tenaz_replays_total"], 0.0, "nothing was taken over");
    assert_eq!(counted["tenaz_broker_reconnects_total"], 0.0);
    assert!(counted["tenaz_bytes_total{direction=\"out\"}"] > 0.0);

    let taken = metrics(&gateway);
    assert_eq!(taken["tenaz_chunks_total"], counted["tenaz_chunks_total"]);
    assert_eq!(taken["tenaz_bytes_total{direction=\"in\"}"], counted["tenaz_bytes_total{direction=\"in\"}"]);
    assert!(taken["tenaz_bytes_total{direction=\"out\"}"] > 0.0);
    let uploads = "tenaz_http_requests_total{route=\"/v1/jobs/{job}/tables/{table}/chunks/{chunk}\",method=\"PUT\",status=\"2xx\"}";
    assert!(taken[uploads] > 0.0, "{taken:?}");
    let (_, _, text) = ask(&format!("{gateway}/metrics"));
    assert!(!text.contains("coffee"), "no workload is named: {text}");

    for (base, name, role) in [(&worker, "worker-7", "worker"), (&gateway, "gateway-8", "gateway")] {
        let health = get(&format!("{base}/healthz")).expect("it is up");
        assert_eq!((&health["status"], &health["name"], &health["role"]), (&"up".into(), &name.into(), &role.into()));
        assert_eq!(health["ready"], true, "{health}");
        let pulse = |health: &Value| health["pulse"].as_u64().expect("a pulse");
        wait_for("the pulse moves on", || {
            let later = get(&format!("{base}/healthz")).expect("it is up");
            (pulse(&later) > pulse(&health) + 1).then_some(())
        });
        let (status, _, body) = ask(&format!("{base}/readyz"));
        assert_eq!(status, 200);
        let ready: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(ready["status"], "ready");
    }
}

#[test]
fn a_worker_that_takes_over_counts_replays() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "slow=25");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    cluster.workers[0].kill_during(Task::Inner);
    let second = cluster.add_worker_with(&["--http", "127.0.0.1:0"]);
    client.succeeds();
    assert_same_results(coffee(), &out);
    let counted = metrics(&http(&cluster.workers[second]));
    assert!(counted["tenaz_replays_total"] >= 4.0, "three partitions and the results: {counted:?}");
    assert!(counted["tenaz_recovery_seconds_count"] >= 1.0, "{counted:?}");
}

/// Hears until `done` says so.
fn hear<T>(listener: &mut HeartbeatListener, what: &str, mut done: impl FnMut(Heartbeat) -> Option<T>) -> T {
    in_runtime(async {
        let search = async {
            loop {
                if let Some(found) = done(listener.next().await.heartbeat) {
                    return found;
                }
            }
        };
        tokio::time::timeout(PATIENCE, search).await.unwrap_or_else(|_| panic!("never heard: {what}"))
    })
}

#[test]
fn a_hang_is_seen_though_heartbeats_come() {
    let Some(cluster) = Cluster::shared() else { return };
    let key_file = cluster.out("key");
    let key = Key::create(&key_file).expect("a key");
    let anywhere: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let cluster_id = ClusterId::of(&key);
    let mut supervisor = in_runtime(HeartbeatListener::bind(anywhere, key, cluster_id)).expect("a listener");
    let addr = supervisor.local_addr().expect("an address").to_string();
    let key_file = key_file.display().to_string();
    let watched = ["--supervisors", &addr, "--key-file", &key_file];
    let mut cluster = cluster;
    cluster.add_worker_with(&[&["--name", "hanging", "--faults", "hang=3"], &watched[..]].concat());
    cluster.add_worker_with(&[&["--name", "working"], &watched[..]].concat());
    let gateway =
        cluster.add_gateway_with(&[&["--listen", "127.0.0.1:0", "--name", "gateway-1"], &watched[..]].concat());
    cluster.wait_for_workers();
    for name in ["hanging", "working", "gateway-1"] {
        hear(&mut supervisor, "all are ready", |said| {
            (said.identity.name.as_str() == name && said.ready).then_some(())
        });
    }
    let url = cluster.gateways[gateway].url();
    hear(&mut supervisor, "where the gateway is", |said| {
        (said.url.as_ref() == Some(&url) && said.http.is_some()).then_some(())
    });

    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    cluster.workers[0].wait_for_log("hanging on purpose");
    // Heartbeats of both go on; after a while only one of them has a pulse that moves. That is how they are told apart.
    let mut pulses: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    hear(&mut supervisor, "one stands, the other does not", |said| {
        pulses.entry(said.identity.name.to_string()).or_default().push(said.pulse);
        let latest = |name: &str| pulses.get(name).map(|all| &all[all.len().saturating_sub(6)..]).unwrap_or_default();
        let (hanging, working) = (latest("hanging"), latest("working"));
        let stands = hanging.len() == 6 && hanging.iter().all(|pulse| *pulse == hanging[0]);
        let moves = working.len() == 6 && working.last() > working.first();
        (stands && moves).then_some(())
    });
    // Nobody restarts it here. Killed, the other takes over.
    cluster.workers[0].kill();
    client.succeeds();
    assert_same_results(coffee(), &out);
    let said = hear(&mut supervisor, "the work is counted", |said| {
        (said.identity.name.as_str() == "working" && said.counters.chunks > 0).then_some(said)
    });
    assert!(said.counters.rows > 0 && said.counters.bytes > 0);
    cluster.workers[1].terminate();
    hear(&mut supervisor, "it says that it ends", |said| said.draining.then_some(()));
    cluster.workers[1].succeeds();
    assert_eq!(supervisor.refused().forged.get() + supervisor.refused().other_cluster.get(), 0);
}

#[test]
fn heartbeats_without_a_key_are_a_mistake() {
    let dir = tempfile::tempdir().expect("a directory");
    let broker = ["--broker", "amqp://127.0.0.1:1"];
    let start = |options: &[&str]| {
        let process =
            Process::start(dir.path(), &format!("p{}", options.len()), &[&["worker"], &broker[..], options].concat());
        (process.wait().code(), process.log())
    };
    let (code, said) = start(&["--supervisors", "127.0.0.1:7501"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--key-file"), "{said}");
    let missing = dir.path().join("none").display().to_string();
    let (code, said) = start(&["--supervisors", "127.0.0.1:7501", "--key-file", &missing]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot be read"), "{said}");
    let key = dir.path().join("key");
    Key::create(&key).expect("a key");
    let key = key.display().to_string();
    let (code, said) = start(&["--supervisors", "nowhere", "--key-file", &key, "--name", "w"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("HOST:PORT"), "{said}");
    let (code, said) =
        start(&["--supervisors", "127.0.0.1:7501", "--key-file", &key, "--http", "1.2.3.4:1", "--name", "w"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot listen on 1.2.3.4:1"), "{said}");
}
