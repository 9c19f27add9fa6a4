//! Workers and gateways of several builds on one broker, and actors that panic.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::harness::{Cluster, Task, assert_same_results, coffee, wait_for};

/// What a worker calls itself that is not of this build.
const OTHER: &str = "build=another";

#[test]
fn a_worker_of_another_build_owns_nothing_and_holds_nothing_up() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "");
    let other = cluster.add_worker(OTHER);
    cluster.wait_for_workers();
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &[]).succeeds();
    assert_same_results(coffee(), &out);
    cluster.workers[other].wait_for_log("the job cannot be served here");
    assert_eq!(cluster.workers[other].counts(Task::Chunk), (0, 0));
}

#[test]
fn a_job_that_only_workers_of_another_build_see_says_so_and_ends() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, OTHER);
    let client = cluster.submit(coffee(), &cluster.out("out"), &[]);
    let job = cluster.only_job();
    let created = Instant::now();
    wait_for("the job says what it waits for", || {
        let waiting = cluster.state(&job)?["waiting_for"].clone();
        (waiting["code"] == "workers" && waiting.to_string().contains("runs build")).then_some(())
    });
    // It may succeed later, when there are workers of that build again.
    assert_eq!(client.wait().code(), Some(75), "{}", client.log());
    assert!(client.log().contains("run another one (another)"), "{}", client.log());
    assert!(created.elapsed() < Duration::from_secs(30), "it ended after {:?}", created.elapsed());
}

#[test]
fn an_actor_that_panics_is_started_again() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "panic-actor=3");
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &[]).succeeds();
    assert!(cluster.workers[0].log().contains("a job's actor has panicked"), "the fault has fired");
    assert_same_results(coffee(), &out);
}

#[test]
fn a_worker_that_plans_differently_owns_nothing_and_holds_nothing_up() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "");
    let other = cluster.add_worker("plan=another");
    cluster.wait_for_workers();
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &[]).succeeds();
    assert_same_results(coffee(), &out);
    cluster.workers[other].wait_for_log("OtherPlan");
    assert_eq!(cluster.workers[other].counts(Task::Chunk), (0, 0));
}

#[test]
fn a_job_that_all_workers_plan_differently_is_called_a_fault_of_tenaz() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "plan=another");
    let client = cluster.submit(coffee(), &cluster.out("out"), &[]);
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    assert!(client.log().contains("plan this job differently from its gateway"), "{}", client.log());
}

/// A gateway that says of every job that it is of another build. Returns its URL and how often it was asked.
fn gateway_of_another_build() -> (String, Arc<AtomicUsize>) {
    const PROBLEM: &str = r#"{"code":"other_build","class":"process","status":503,"detail":"ask another gateway"}"#;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = BufReader::new(&stream).lines();
            while head.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            counted.fetch_add(1, Ordering::SeqCst);
            let head = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 5";
            let bytes = PROBLEM.len();
            // A client that has gone away wants no answer.
            let _ = write!(stream, "{head}\r\nconnection: close\r\ncontent-length: {bytes}\r\n\r\n{PROBLEM}");
        }
    });
    (url, asked)
}

#[test]
fn a_client_goes_on_with_the_gateways_of_its_jobs_build() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    let others: Vec<(String, Arc<AtomicUsize>)> = (0..3).map(|_| gateway_of_another_build()).collect();
    let urls: Vec<&str> = others.iter().map(|(url, _)| url.as_str()).collect();
    let urls = format!("{},{}", urls.join(","), cluster.gateway_urls());
    let asked = || others.iter().map(|(_, asked)| asked.load(Ordering::SeqCst)).sum::<usize>();
    // Clients begin anywhere, one in four with the gateway that can serve them.
    for attempt in 0..10 {
        let out = cluster.out(&format!("out-{attempt}"));
        cluster.submit_to(&urls, coffee(), &out, &[]).succeeds();
        assert_same_results(coffee(), &out);
        if asked() > 0 {
            return;
        }
    }
    panic!("no client has ever asked one of the others");
}
