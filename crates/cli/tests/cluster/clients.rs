//! Clients that die, come back, change their minds, or never come back.

use std::time::Duration;

use crate::harness::{
    Cluster, altered_in_the_middle, assert_same_results, coffee, shared_broker, short_bad_records, wait_for,
};

#[test]
fn a_client_killed_in_mid_upload_is_resumed_by_another() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, "slow=25");
    let client = cluster.submit(coffee(), &cluster.out("never"), &[]);
    let job = cluster.only_job();
    client.kill_when("the upload is under way", || {
        let Some(state) = cluster.state(&job) else { return false };
        let tables = state["tables"].as_array().cloned().unwrap_or_default();
        let received: u64 = tables.iter().filter_map(|table| table["chunks_received"].as_u64()).sum();
        received > 5 && state["state"] == "uploading"
    });
    assert!(!cluster.out("never").join("summary.json").exists());
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &["--resume", &job]).succeeds();
    assert_same_results(coffee(), &out);
    cluster.assert_nothing_left(shared_broker().expect("the broker"));
}

#[test]
fn ctrl_c_tells_how_to_go_on() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "slow=25");
    let client = cluster.submit(coffee(), &cluster.out("never"), &[]);
    let job = cluster.only_job();
    client.wait_for_log(&job);
    client.interrupt();
    assert_eq!(client.wait().code(), Some(130), "{}", client.log());
    let said = client.log();
    assert!(said.contains(&format!("--resume {job}")), "{said}");
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &["--resume", &job]).succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn other_files_cannot_be_passed_off_as_the_rest_of_an_upload() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "slow=25");
    let client = cluster.submit(coffee(), &cluster.out("never"), &[]);
    let job = cluster.only_job();
    client.wait_for_log(&job);
    client.kill();
    let other = crate::harness::altered(coffee());
    let resumed = cluster.submit(&other, &cluster.out("out"), &["--resume", &job]);
    assert!(!resumed.wait().success());
    assert!(resumed.log().contains("transactions"), "the file is named: {}", resumed.log());
}

/// The change is neither in the size of the file nor near one of its ends.
#[test]
fn a_file_that_was_changed_in_the_middle_is_named_with_its_chunk() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "slow=100");
    let data = short_bad_records();
    let client = cluster.submit(data, &cluster.out("never"), &["--chunk-size", "16K", "--partitions", "3"]);
    let job = cluster.only_job();
    client.kill_when("the middle of the file has arrived", || {
        let Some(state) = cluster.state(&job) else { return false };
        let tables = state["tables"].as_array().cloned().unwrap_or_default();
        let items = tables.iter().find(|table| table["name"] == "transaction_items");
        items.and_then(|items| items["chunks_received"].as_u64()).is_some_and(|received| received > 15)
    });
    let changed = altered_in_the_middle(data);
    let resumed = cluster.submit(&changed, &cluster.out("out"), &["--resume", &job]);
    assert_eq!(resumed.wait().code(), Some(1), "{}", resumed.log());
    let said = resumed.log();
    assert!(said.contains("transaction_items"), "{said}");
    assert!(said.contains("was changed since job") && said.contains("chunk 9 of table transaction_items"), "{said}");
    let out = cluster.out("out");
    cluster.submit(data, &out, &["--resume", &job]).succeeds();
    assert_same_results(data, &out);
}

#[test]
fn a_job_that_nobody_claims_expires_and_leaves_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.with_options(&["--expire", "2s", "--keep", "2s"]).start(1, 1, "slow=25");
    let client = cluster.submit(coffee(), &cluster.out("never"), &[]);
    cluster.only_job();
    client.kill();
    wait_for("the job is forgotten", || cluster.jobs().is_empty().then_some(()));
    cluster.assert_nothing_left(shared_broker().expect("the broker"));
}

#[test]
fn a_cancelled_job_leaves_nothing() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.with_options(&["--keep", "1s"]).start(1, 1, "slow=25");
    let client = cluster.submit(coffee(), &cluster.out("never"), &[]);
    let job = cluster.only_job();
    let url = cluster.gateways[0].url();
    let agent: ureq::Agent = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20))).build().into();
    agent.delete(format!("{url}/v1/jobs/{job}")).call().expect("it is cancelled");
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    assert!(client.log().contains("cancel"), "{}", client.log());
    cluster.assert_nothing_left(shared_broker().expect("the broker"));
}
