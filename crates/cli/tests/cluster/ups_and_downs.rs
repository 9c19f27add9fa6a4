//! `tenaz up` and `tenaz down`, and sixty seconds of chaos between them.

use std::net::TcpListener;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Process, Upped, Wanted, assert_same_results, coffee, shared_broker, tenaz, text, wait_for};
use crate::vitals::metrics;

fn ports(upped: &Upped) -> Vec<u16> {
    let text = std::fs::read_to_string(upped.home.join("cluster.toml")).expect("a description");
    // The broker's own address is not the cluster's.
    let text: String = text.lines().filter(|line| !line.contains("amqp://")).collect();
    let addresses = text.split("127.0.0.1:").skip(1);
    let numbers = addresses.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn up_then_down_leaves_no_process_no_queue_no_port() {
    let Some(broker) = shared_broker() else { return };
    let url = broker.url();
    let Some(mut upped) = Upped::start(&Wanted { gateways: 2, broker: Some(&url), ..Wanted::default() }) else {
        return;
    };
    let ours = |name: &String| name.starts_with(&format!("{}.", upped.prefix));
    let (client, out) = upped.submit(coffee(), "job");
    client.succeeds();
    assert_same_results(coffee(), &out);
    let (detached, _) = upped.submit(coffee(), "another");
    upped.wait_for_work();
    assert!(broker.queues().iter().any(ours), "there are queues");
    let used = ports(&upped);
    assert!(used.len() >= 5, "{used:?}");
    let again = upped.up();
    assert_eq!(again.status.code(), Some(1));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("already up") && said.contains("tenaz down"), "{said}");
    let down = upped.down(&["--drain", "2s", "--discard-jobs"]);
    assert!(down.status.success(), "{}", text(&down));
    drop(detached);
    assert_eq!(upped.census(), Vec::<u32>::new(), "no process");
    let ours = |name: &&String| name.starts_with(&format!("{}.", upped.prefix));
    let left = broker.queues();
    assert_eq!(left.iter().filter(ours).collect::<Vec<_>>(), Vec::<&String>::new(), "no queue");
    for port in used {
        TcpListener::bind(("127.0.0.1", port)).unwrap_or_else(|error| panic!("port {port}: {error}"));
    }
    let down = upped.down(&[]);
    assert!(down.status.success(), "twice is as good as once: {}", text(&down));
    let status = tenaz(upped.dir.path(), &["status", "--cluster", &upped.home_text()]);
    assert_eq!(status.status.code(), Some(75), "{}", text(&status));
}

/// Where a process of the cluster in a directory answers.
fn http_of(dir: &Path, name: &str) -> String {
    let status = tenaz(dir, &["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let processes = status["processes"].as_array().expect("processes");
    let process = processes.iter().find(|process| process["name"] == name).expect("the process");
    format!("http://{}", process["http"].as_str().expect("an address"))
}

#[test]
fn the_foreground_stops_everything_on_a_signal() {
    if shared_broker().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let line = ["up", "--workers", "1", "--supervisors", "1", "--threads", "1", "--port", "21000"];
    let up = Process::start(dir.path(), "up", &line);
    up.wait_for_log("Ctrl-C stops it all");
    let status = tenaz(dir.path(), &["status"]);
    assert!(status.status.success(), "{}", text(&status));
    let table = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(table.contains("broker-1") && table.contains("supervisor-1 leads") && table.contains("no jobs"), "{table}");
    wait_for("the broker's checks to be counted", || {
        let shown = metrics(&http_of(dir.path(), "broker-1"));
        (shown["tenaz_broker_up"] == 1.0 && shown["tenaz_broker_checks_total{outcome=\"passed\"}"] >= 1.0).then_some(())
    });
    up.interrupt();
    up.succeeds();
    assert!(up.log().contains("The cluster is down"), "{}", up.log());
    let status = tenaz(dir.path(), &["status"]);
    assert_eq!(status.status.code(), Some(75), "{}", text(&status));
}

#[test]
fn the_foreground_ends_when_somebody_else_takes_the_cluster_down() {
    if shared_broker().is_none() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let line = ["up", "--workers", "1", "--supervisors", "1", "--threads", "1", "--port", "21100"];
    let up = Process::start(dir.path(), "up", &line);
    up.wait_for_log("Ctrl-C stops it all");
    let down = tenaz(dir.path(), &["down"]);
    assert!(down.status.success(), "{}", text(&down));
    up.succeeds();
    assert!(up.log().contains("taken down by another command"), "{}", up.log());
    assert!(!up.log().contains("did not start"), "{}", up.log());
}

#[test]
fn sixty_seconds_of_chaos_change_no_byte() {
    let wanted = Wanted { workers: 3, gateways: 2, worker_options: &["--faults", "slow=10"], ..Wanted::default() };
    let Some(mut upped) = Upped::start(&wanted) else { return };
    let home = upped.home_text();
    let line = [
        "chaos",
        "--cluster",
        &home,
        "--every",
        "1s",
        "--roles",
        "worker,gateway,supervisor,broker",
        "--seed",
        "7",
        "--for",
        "60s",
    ];
    let chaos = Process::start(upped.dir.path(), "chaos", &line);
    let mut jobs = 0;
    // One job after the other, until the chaos is over and one more has seen the whole of its end.
    while chaos.is_alive() {
        let (client, out) = upped.submit(coffee(), &format!("job-{jobs}"));
        client.succeeds();
        assert_same_results(coffee(), &out);
        jobs += 1;
    }
    if jobs == 0 {
        let (client, out) = upped.submit(coffee(), "after");
        client.succeeds();
        assert_same_results(coffee(), &out);
        jobs += 1;
    }
    chaos.succeeds();
    let done = std::fs::read_to_string(upped.dir.path().join("chaos.out")).expect("what it did");
    let strikes: Vec<serde_json::Value> = done.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let hit = |role: &str| strikes.iter().filter(|s| s["role"] == role && s["hit"] == true).count();
    for role in ["worker", "gateway", "supervisor", "broker"] {
        assert!(hit(role) > 0, "{role} was struck:\n{done}");
    }
    assert!(jobs > 0);
    upped.wait_until_well();
    let down = upped.down(&["--drain", "2s"]);
    assert!(down.status.success(), "{}", text(&down));
    assert_eq!(upped.census(), Vec::<u32>::new());
}
