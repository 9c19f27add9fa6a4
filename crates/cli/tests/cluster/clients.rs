//! Clients that die, come back, change their minds, or never come back.

use std::time::Duration;

use crate::harness::{Cluster, assert_same_results, coffee, shared_broker, wait_for};

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
