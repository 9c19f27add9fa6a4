//! What `tenaz up` does to the description of a cluster that is there already, and what `tenaz down` leaves for it.

use sha2::{Digest, Sha256};

use crate::harness::{Upped, Wanted, assert_same_results, coffee, shared, shared_broker, text};

/// The HTTP status of a gateway's answer to a client without a token.
fn status_without_token(url: &str) -> u16 {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    agent.get(format!("{url}/v1/jobs")).call().expect("the gateway answers").status().as_u16()
}

fn described(upped: &Upped) -> toml::Table {
    let text = std::fs::read_to_string(upped.home.join("cluster.toml")).expect("a description");
    text.parse().expect("TOML")
}

#[test]
fn what_up_does_not_mention_stays_as_it_was() {
    let Some(url) = shared() else { return };
    let dir = tempfile::tempdir().expect("a directory");
    let tokens = dir.path().join("tokens").display().to_string();
    let hash: String = Sha256::digest(b"secret").iter().map(|byte| format!("{byte:02x}")).collect();
    std::fs::write(&tokens, format!("me:{hash}\n")).expect("a file");
    let options = ["--tokens", &tokens];
    let wanted = Wanted {
        workers: 1,
        gateways: 2,
        supervisors: 1,
        broker: Some(&url),
        gateway_options: &options,
        ..Wanted::default()
    };
    let Some(mut upped) = Upped::start(&wanted) else { return };
    let before = described(&upped);
    assert!(upped.down(&["--drain", "1s"]).status.success());

    let again = upped.up_with(&["--workers", "2"]);
    assert!(again.status.success(), "{}\n{}", text(&again), upped.logs());
    let urls = upped.gateway_urls();
    assert_eq!(urls.split(',').count(), 2, "the second gateway is there: {urls}");
    for url in urls.split(',') {
        assert_eq!(status_without_token(url), 401, "{url} asks for a token, as it did before");
    }
    let after = described(&upped);
    let machine = |table: &toml::Table| table["machine"][0].as_table().expect("a machine").clone();
    let (mut machine_before, machine_after) = (machine(&before), machine(&after));
    machine_before["workers"] = 2.into();
    for (name, value) in &machine_before {
        assert_eq!(machine_after.get(name), Some(value), "{name}");
    }
    assert_eq!(after["supervisor"], before["supervisor"]);
    assert_eq!((&after["name"], &after["prefix"]), (&before["name"], &before["prefix"]));
    assert!(upped.down(&["--drain", "1s"]).status.success());

    // Another file may describe the cluster anew, but not open what was closed.
    let open = std::fs::read_to_string(upped.dir.path().join("test.toml")).expect("the file");
    let open: Vec<&str> = open.lines().filter(|line| !line.starts_with("gateway-options")).collect();
    std::fs::write(upped.dir.path().join("open.toml"), open.join("\n")).expect("a file");
    let refused = upped.up_with(&["--config", "open.toml"]);
    let said = text(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--tokens") && said.contains("cluster.toml"), "it says what, and how to do it: {said}");
    assert_eq!(described(&upped), after, "and changes nothing");
}

#[test]
fn down_keeps_running_jobs_and_discards_them_when_told_to() {
    let Some(broker) = shared_broker() else { return };
    let url = broker.url();
    let slow = ["--faults", "slow=40"];
    let wanted = Wanted { workers: 1, supervisors: 1, broker: Some(&url), worker_options: &slow, ..Wanted::default() };
    let Some(mut upped) = Upped::start(&wanted) else { return };
    let (client, out) = upped.submit(coffee(), "job");
    upped.wait_for_work();
    let down = upped.down(&["--drain", "1s"]);
    assert!(down.status.success(), "{}", text(&down));
    assert!(text(&down).contains("--discard-jobs"), "what it kept, and how to get rid of it: {}", text(&down));
    assert!(client.is_alive(), "the job was not over, and is not: {}", client.log_tail());
    assert!(upped.up_with(&[]).status.success(), "{}", upped.logs());
    client.succeeds();
    assert_same_results(coffee(), &out);

    let (client, _) = upped.submit(coffee(), "unwanted");
    upped.wait_for_work();
    let down = upped.down(&["--drain", "1s", "--discard-jobs"]);
    assert!(down.status.success(), "{}", text(&down));
    assert!(text(&down).contains("jobs gone: 1"), "{}", text(&down));
    drop(client);
    let ours = format!("{}.", upped.prefix);
    let left: Vec<String> = broker.queues().into_iter().filter(|name| name.starts_with(&ours)).collect();
    assert_eq!(left, Vec::<String>::new());
}
