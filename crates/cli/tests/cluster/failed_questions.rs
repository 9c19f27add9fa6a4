//! A question that cannot be answered does not take the others of its job with it.

use std::time::Duration;

use serde_json::Value;

use crate::harness::{Cluster, Process, Task, assert_same_results, failing, hungry};

const SLOW: &str = "slow=100";

/// What a gateway answers, whatever the status.
fn answer(url: &str) -> (u16, Value) {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(20)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let mut answer = agent.get(url).call().expect("the gateway answers");
    (answer.status().as_u16(), answer.body_mut().read_json().expect("JSON"))
}

/// Chunks are delivered again, tasks are begun again, logs are read again: it is the same outcome.
#[test]
fn the_others_are_answered_as_on_one_machine_though_workers_are_killed() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(failing(), &out, &[]);
    // The only worker owns everything; another comes when it is gone.
    cluster.workers[0].kill_during(Task::Chunk);
    let second = cluster.add_worker(SLOW);
    cluster.workers[second].kill_during(Task::Inner);
    cluster.add_worker("");
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    assert_same_results(failing(), &out);
    assert!(!out.join("leaf.csv").exists() && !out.join("inner.csv").exists());
    for name in ["leaf", "inner"] {
        let told = format!("tenaz: {name}: ");
        assert_eq!(client.log().matches(&told).count(), 1, "{}", client.log());
    }
}

#[test]
fn a_job_names_the_questions_that_failed() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    let client = cluster.submit(failing(), &cluster.out("out"), &["--keep"]);
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    let job = cluster.only_job();
    let state = cluster.state(&job).expect("the job");
    assert_eq!(state["state"], "done");
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        list.map(|query| query["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&state["results"]["queries"]), ["fine", "top"]);
    assert_eq!(names(&state["results"]["failed"]), ["leaf", "inner"]);
    assert_eq!(state["results"]["failed"][0]["class"], "query");
    assert_eq!(names(&cluster.jobs()[0]["failed"]), ["leaf", "inner"], "in the list of jobs, too");
    let url = cluster.gateway_urls();
    let (status, problem) = answer(&format!("{url}/v1/jobs/{job}/results/leaf"));
    assert_eq!(
        (status, &problem["code"], &problem["query"]),
        (422, &"query_failed".into(), &"leaf".into()),
        "{problem}"
    );
    // It can be fetched again, with the same outcome.
    let again = cluster.submit(failing(), &cluster.out("again"), &["--resume", &job]);
    assert_eq!(again.wait().code(), Some(1), "{}", again.log());
    assert_same_results(failing(), &cluster.out("again"));
}

/// Both workers stand back. When no worker is left, it is not the job that is given up.
#[test]
fn a_question_that_no_worker_has_memory_for_does_not_take_the_others_with_it() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(0, 1, "");
    let poor = [(); 2].map(|()| cluster.add_worker_with(&["--memory", "1K"]));
    cluster.wait_for_workers();
    let out = cluster.out("out");
    let client = cluster.submit(hungry(), &out, &["--keep"]);
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    assert!(client.log().contains("tenaz: large: Resources exhausted"), "{}", client.log());
    let state = cluster.state(&cluster.only_job()).expect("the job");
    assert_eq!(
        (&state["state"], &state["results"]["failed"][0]["class"]),
        (&"done".into(), &"process".into()),
        "{state}"
    );
    let answer = |dir: &std::path::Path| std::fs::read_to_string(dir.join("small.csv")).expect("the other answer");
    assert_eq!(answer(&out), answer(&hungry().expected));
    assert!(!out.join("large.csv").exists());
    for worker in poor {
        assert!(cluster.workers[worker].log().contains("stands back"), "{}", cluster.workers[worker].log());
    }
    assert!(cluster.workers.iter().all(Process::is_alive));
}
