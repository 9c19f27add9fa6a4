//! Gateways that die.

use std::io::{BufRead, BufReader};

use crate::harness::{Cluster, assert_same_results, coffee, wait_for};

/// Chunks received of a job, and whether its upload is complete, as a gateway that lives tells it.
fn upload(cluster: &Cluster, job: &str) -> Option<(u64, bool)> {
    let state = cluster.state(job)?;
    let tables = state["tables"].as_array()?;
    let received = tables.iter().filter_map(|table| table["chunks_received"].as_u64()).sum();
    Some((received, state["state"] != "uploading"))
}

#[test]
fn a_gateway_killed_in_mid_upload() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 2, "slow=25");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    let job = cluster.only_job();
    let reached = |cluster: &Cluster, wanted: u64| {
        wait_for("chunks have arrived", || upload(cluster, &job).filter(|(chunks, _)| *chunks >= wanted))
    };
    // One after the other, so that the one in use is among them, and the client always has another.
    let (first, complete) = reached(&cluster, 5);
    assert!(!complete, "in mid-upload");
    let url = cluster.gateways[0].url();
    cluster.gateways[0].kill();
    let (second, complete) = reached(&cluster, first + 5);
    assert!(!complete, "still in mid-upload after {second} chunks");
    cluster.add_gateway_with(&["--listen", url.trim_start_matches("http://")]);
    let (_, complete) = reached(&cluster, second);
    assert!(!complete, "still in mid-upload");
    cluster.gateways[1].kill();
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_gateway_killed_in_mid_result() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 2, "slow=25");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &["--keep"]);
    let job = cluster.only_job();
    // q1 is a plain filter: its rows come while data is still being uploaded.
    let doomed = &cluster.gateways[0];
    let url = format!("{}/v1/jobs/{job}/results/q1", doomed.url());
    let answer = ureq::get(&url).header("accept", "application/x-ndjson").call().expect("a stream");
    let mut lines = BufReader::new(answer.into_body().into_reader()).lines();
    let first = lines.next().expect("a row").expect("a line");
    assert!(first.starts_with("{\"row\":"), "{first}");
    let state = cluster.state(&job).expect("the state");
    assert_ne!(state["state"], "done", "rows come while chunks are still being worked on");
    doomed.kill();
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(!rest.iter().any(|line| line.contains("\"end\"")), "a cut stream has no end: {:?}", rest.last());
    client.succeeds();
    assert_same_results(coffee(), &out);
    // Another gateway tells the whole story, with its end.
    let url = format!("{}/v1/jobs/{job}/results/q1", cluster.gateways[1].url());
    let answer = ureq::get(&url).header("accept", "application/x-ndjson").call().expect("a stream");
    let lines: Vec<String> = BufReader::new(answer.into_body().into_reader()).lines().map_while(Result::ok).collect();
    let end: serde_json::Value = serde_json::from_str(lines.last().expect("lines")).expect("JSON");
    assert_eq!(end["end"]["rows"].as_u64(), Some(lines.len() as u64 - 1));
    let summary = std::fs::read(coffee().expected.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    assert_eq!(end["end"]["fingerprint"], summary["queries"]["q1"]["fingerprint"]);
}
