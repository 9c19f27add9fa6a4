//! Many jobs, fair to each other; settings and mistakes.

use crate::harness::{
    Cluster, Process, Task, assert_same_results, books, coffee, megabytes_of_bad_records, short_bad_records, steam,
    wait_for,
};

#[test]
fn every_workload_over_the_cluster_is_as_on_one_machine() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, "");
    for data in [steam(), books()] {
        let out = cluster.out(&data.workload);
        cluster.submit(data, &out, &[]).succeeds();
        assert_same_results(data, &out);
    }
}

#[test]
fn compressed_chunks_give_the_same_answers() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    for how in ["lz4", "zstd"] {
        let out = cluster.out(how);
        cluster.submit(coffee(), &out, &["--compress", how]).succeeds();
        assert_same_results(coffee(), &out);
    }
}

/// They are a hundred times as large as the chunk that they come from, so they travel in parts.
#[test]
fn bad_records_by_the_hundred_thousand_are_told_as_on_one_machine() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    let out = cluster.out("out");
    cluster.submit(short_bad_records(), &out, &[]).succeeds();
    assert_same_results(short_bad_records(), &out);
    let rejects = std::fs::read(out.join("rejects.csv")).expect("bad records");
    assert!(rejects.iter().filter(|byte| **byte == b'\n').count() > 150_000);
}

/// As much of it as was 5.5 GB in a worker once.
#[test]
fn eight_megabytes_of_bad_records_take_a_worker_little_memory() {
    const MOST_BYTES: u64 = 700 << 20;
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    let (data, out) = (megabytes_of_bad_records(), cluster.out("out"));
    cluster.submit(data, &out, &[]).succeeds();
    let peak = cluster.workers[0].peak_memory_bytes();
    assert_same_results(data, &out);
    let rejects = std::fs::read(out.join("rejects.csv")).expect("the rejects");
    let lines = rejects.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines, (8 << 20) / 8 - 2 + 1, "every record, and a header");
    assert!(peak < MOST_BYTES, "{} MB", peak >> 20);
    eprintln!("{} MB at most for {} MB of rejects", peak >> 20, rejects.len() >> 20);
}

#[test]
fn a_small_job_is_not_stuck_behind_a_large_one() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "slow=100");
    let large = cluster.submit(coffee(), &cluster.out("large"), &[]);
    wait_for("the large job is worked on", || (cluster.workers[0].counts(Task::Chunk).1 > 3).then_some(()));
    let out = cluster.out("small");
    let small = cluster.submit(coffee(), &out, &["--query", "q2_profit", "--chunk-size", "1M"]);
    let _ = small.wait();
    assert!(large.is_alive(), "the large job, which came first, is still under way");
    small.succeeds();
}

#[test]
fn two_deployments_share_a_broker() {
    let Some(first) = Cluster::shared() else { return };
    let first = first.start(1, 1, "");
    let other = format!("{}-other", first.prefix);
    let name = "stranger";
    let stranger = Process::start(
        first.dir.path(),
        name,
        &["worker", "--broker", &first.url, "--prefix", &other, "--log-format", "json", "--log", "debug"],
    );
    stranger.wait_for_log("the worker is ready");
    let out = first.out("out");
    first.submit(coffee(), &out, &[]).succeeds();
    assert_same_results(coffee(), &out);
    assert!(!stranger.log().contains("working on a job"), "another deployment's jobs are none of its business");
}

#[test]
fn start_up_errors_say_whose_fault_it_is() {
    let Some(cluster) = Cluster::shared() else { return };
    let try_url = |name: &str, url: &str, code: i32, text: &str| {
        let worker = Process::start(cluster.dir.path(), name, &["worker", "--broker", url]);
        assert_eq!(worker.wait().code(), Some(code), "{}", worker.log());
        assert!(worker.log().contains(text), "{url}: {}", worker.log());
    };
    let host = cluster.url.rsplit('@').next().expect("a host").trim_start_matches("amqp://").to_owned();
    try_url("nobody", "amqp://127.0.0.1:1", 75, "127.0.0.1:1");
    try_url("stranger", &format!("amqp://nobody:wrong@{host}"), 1, "password");
    try_url("typo", "http://localhost", 2, "amqp://");
}

/// Of `steam`, q1 asks about games only. Its answer does not wait for reviews, and does not change when they come.
#[test]
fn a_question_is_final_while_another_table_is_still_to_come() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, "");
    let url = cluster.gateways[0].url();
    let request = serde_json::json!({"workload": "steam", "partitions": 2}).to_string();
    let made = ureq::post(format!("{url}/v1/jobs")).send(request.as_bytes()).expect("a job");
    let made: serde_json::Value = made.into_body().read_json().expect("JSON");
    let job = made["job"].as_str().expect("an id").to_owned();
    let send = |table: &str| {
        let file = std::fs::read(steam().dir.join(format!("{table}.csv"))).expect("a file");
        ureq::put(format!("{url}/v1/jobs/{job}/tables/{table}/data")).send(&file[..]).expect("an upload");
    };
    send("games");
    let question = |name: &str| {
        let state = cluster.state(&job)?;
        let questions = state["questions"].as_array()?;
        questions.iter().find(|question| question["name"] == name).cloned()
    };
    let early = wait_for("q1 is final", || question("q1").filter(|question| question["state"] == "final"));
    assert_eq!(cluster.state(&job).expect("the state")["state"], "uploading");
    assert_eq!(question("q4").expect("a question")["state"], "open");
    let rows = ureq::get(format!("{url}/v1/jobs/{job}/results/q1")).call().expect("an answer");
    let rows = rows.into_body().read_to_string().expect("text");
    let end: serde_json::Value = serde_json::from_str(rows.lines().last().expect("lines")).expect("JSON");
    assert_eq!(end["end"]["fingerprint"], early["fingerprint"], "the stream ends while reviews are missing");
    assert_eq!(rows.lines().count() as u64, early["rows"].as_u64().expect("rows") + 1);
    send("reviews");
    wait_for("the job is done", || (cluster.state(&job)?["state"] == "done").then_some(()));
    assert_eq!(question("q1").expect("a question"), early, "never taken back");
    let summary = std::fs::read(steam().expected.join("summary.json")).expect("a summary");
    let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
    for name in ["q1", "q4"] {
        let question = question(name).expect("a question");
        assert_eq!(question["fingerprint"], summary["queries"][name]["fingerprint"], "{name}");
    }
}
