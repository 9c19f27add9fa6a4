//! Supervisors on one machine, with real processes to keep.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod cluster;
mod managed;

use std::time::Duration;

use cluster::{Cluster, process, signal};
use rustix::process::Signal;
use tenaz_core::{Incarnation, ProcessState, SupervisorId};
use tenaz_supervisor::executor::{Order, OrderResult};
use tenaz_supervisor::status;
use tenaz_vitals::Key;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_dies_or_hangs_is_started_again_and_everybody_else_is_left_alone() {
    let cluster = Cluster::new(2, "good");
    let before = cluster.until_all_ready().await;
    assert_eq!(process(&before, "worker-1").incarnation, Incarnation(1));
    signal(process(&before, "worker-1"), Signal::KILL);
    let again = |name: &'static str, incarnation| {
        move |status: &status::Status| {
            let process = process(status, name);
            process.state == ProcessState::Ready && process.incarnation == Incarnation(incarnation)
        }
    };
    let status = cluster.until("worker-1 is started again", again("worker-1", 2)).await;
    assert_eq!(process(&status, "worker-1").restarts, 1);
    // How it ended may become known a moment after it was started again.
    let known = |status: &status::Status| {
        process(status, "worker-1").last_ending.as_ref().is_some_and(|ending| ending.how == "signal 9")
    };
    cluster.until("its ending is known", known).await;

    signal(process(&status, "worker-2"), Signal::STOP);
    let status = cluster.until("worker-2 is replaced", again("worker-2", 2)).await;
    assert_eq!(process(&status, "worker-1").incarnation, Incarnation(2));
    let killed = cluster.events();
    assert!(killed.lines().any(|line| line.contains("\"killed\"") && line.contains("hung")), "{killed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_crashes_at_every_start_is_given_up_with_its_reason_and_its_last_words() {
    let cluster = Cluster::new(1, "exit-3");
    let given_up = |status: &status::Status| process(status, "worker-1").state == ProcessState::GivenUp;
    let status =
        cluster.until("it is given up", |status| given_up(status) && process(status, "worker-1").given_up.is_some());
    let status = status.await;
    let worker = process(&status, "worker-1");
    let given_up = worker.given_up.as_ref().unwrap();
    assert_eq!(given_up.reason, "3 starts in a row failed, the last with: exit code 3");
    assert!(given_up.last_lines.iter().any(|line| line == "going with 3"), "{given_up:?}");
    assert_eq!((worker.incarnation, worker.restarts), (Incarnation(3), 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_stopped_and_woken_finds_another_and_its_orders_refused() {
    let cluster = Cluster::new(1, "good");
    let before = cluster.until_all_ready().await;
    let (leader, old) = (before.leader.unwrap(), before.term.unwrap());
    let wake = cluster.pause_supervisor(leader.0);
    // It may be asked and does not answer: the others do.
    let after = cluster.until("another leads", |status| status.leader != Some(leader)).await;
    let new = after.term.unwrap();
    assert!(new > old);
    // The new one has to do something, so that its term is known where orders are executed.
    signal(process(&after, "worker-1"), Signal::KILL);
    cluster.until("it acts", |status| process(status, "worker-1").incarnation == Incarnation(2)).await;
    let order = Order::Kill { name: "worker-1".parse().unwrap(), incarnation: Incarnation(2), because: "late".into() };
    let refused = cluster.executor().execute(old, &order).await;
    assert!(matches!(refused, OrderResult::Fenced(highest) if highest >= new), "{refused:?}");
    drop(wake);
    let status = cluster.until_all_ready().await;
    assert!(status.term >= Some(new));
    assert_eq!(process(&status, "worker-1").incarnation, Incarnation(2));
    // Nobody does anything twice.
    assert_eq!(cluster.count_events("started"), 2, "{}", cluster.events());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leaders_death_is_healed_by_the_others() {
    let mut cluster = Cluster::new(1, "good");
    let before = cluster.until_all_ready().await;
    let leader = before.leader.unwrap();
    cluster.kill_supervisor(leader.0);
    let after = cluster.until_all_ready().await;
    assert!(after.term > before.term);
    let name = format!("supervisor-{leader}");
    let revived = process(&after, &name);
    assert!(revived.pid.is_some_and(|pid| pid != std::process::id()), "it is a process of its own now: {revived:?}");
    let worker = process(&after, "worker-1");
    assert_eq!((worker.incarnation, worker.state), (Incarnation(1), ProcessState::Ready), "it has noticed nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_survivor_of_three_revives_the_others_although_it_cannot_lead() {
    let mut cluster = Cluster::new(1, "good");
    let before = cluster.until_all_ready().await;
    let leader = before.leader.unwrap();
    cluster.kill_supervisor(leader.0);
    let other = if leader == SupervisorId(1) { 2 } else { 1 };
    cluster.kill_supervisor(other);
    let after = cluster.until_all_ready().await;
    assert!(after.term > before.term);
    assert_eq!(process(&after, "worker-1").incarnation, Incarnation(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_heals_other_machines_through_their_supervisors() {
    let cluster = Cluster::on(&["here", "there", "there"], 1, "good");
    let before = cluster.until_all_ready().await;
    let workers: Vec<_> = before.processes.iter().filter(|p| p.name.as_str().starts_with("worker")).collect();
    // So one of them is not where the leader is.
    assert_ne!(workers[0].machine, workers[1].machine);
    for worker in &workers {
        signal(worker, Signal::KILL);
    }
    // How it ended may become known a moment after it was started again.
    let again = |status: &status::Status| {
        workers.iter().all(|worker| {
            let now = process(status, worker.name.as_str());
            let killed = now.last_ending.as_ref().is_some_and(|ending| ending.how == "signal 9");
            now.state == ProcessState::Ready && now.incarnation == Incarnation(2) && killed
        })
    };
    let after = cluster.until("both are started again", again).await;
    assert!(workers.iter().all(|worker| process(&after, worker.name.as_str()).machine == worker.machine));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_counted_and_get_no_answer() {
    let cluster = Cluster::new(1, "good");
    let status = cluster.until_all_ready().await;
    let forger = Key::from_bytes([7; 32]);
    let asked = status::ask(&cluster.config, &forger, cluster.home.id(), Duration::from_secs(30)).await;
    assert!(asked.is_err());
    let listen = cluster.config.supervisor(status.leader.unwrap()).unwrap().listen;
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"not a heartbeat", listen).unwrap();
    let counted = cluster.until("it is counted", |status| {
        let counters = &status.counters;
        counters.peer_messages_refused["forged"] > 0 && counters.heartbeats_refused["malformed"] > 0
    });
    assert!(counted.await.counters.heartbeats > 0);
}
