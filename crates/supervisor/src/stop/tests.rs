#![allow(clippy::unwrap_used)]

use super::*;
use crate::testing::*;

const SHORT: StopPatience = StopPatience {
    supervisors: Duration::from_millis(300),
    drain: Duration::from_millis(300),
    broker: Duration::from_millis(300),
};

/// For tests in which everybody ends when asked.
const LONG: StopPatience = StopPatience { supervisors: PATIENCE, drain: PATIENCE, broker: PATIENCE };

async fn down(cluster: &TestCluster, patience: StopPatience) -> (Stopped, Vec<StopStep>) {
    let mut steps = Vec::new();
    let mut asked_broker = 0;
    let done = stop_all(
        &cluster.home,
        Some(&cluster.config),
        None,
        patience,
        |step| steps.push(step),
        async || asked_broker += 1,
    );
    let done = done.await.unwrap();
    assert_eq!(asked_broker, 1);
    assert!(!cluster.home.is_up() && cluster.home.is_closed());
    (done, steps)
}

fn files(cluster: &TestCluster) -> Vec<String> {
    let entries = std::fs::read_dir(cluster.home.run("")).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn everything_ends_in_order_also_what_was_stopped_by_a_signal() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    for name in ["supervisor-1", "worker-1", "worker-2", "gateway-1"] {
        cluster.start(&executor, name, 1).await;
    }
    let worker = cluster.home.running().into_iter().find(|m| m.name.as_str() == "worker-1").unwrap();
    worker.target().unwrap().signal(Signal::STOP).unwrap();
    let (done, steps) = down(&cluster, LONG).await;
    let asked: Vec<&str> = steps
        .iter()
        .filter_map(|step| if let StopStep::Asked(member) = step { Some(member.name.as_str()) } else { None })
        .collect();
    assert_eq!(asked, ["supervisor-1", "gateway-1", "worker-1", "worker-2"]);
    assert_eq!((done.ended.len(), done.killed.len(), done.leftovers.len()), (4, 0, 0));
    assert_eq!(files(&cluster), ["closed", "lock"]);
    // Twice in a row, and with nobody there.
    assert_eq!(down(&cluster, LONG).await.0, Stopped::default());
}

#[tokio::test]
async fn who_does_not_listen_is_killed_and_named() {
    let cluster = TestCluster::new("deaf");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let (done, _) = down(&cluster, SHORT).await;
    assert_eq!((done.ended, done.killed), (vec![], vec![name("worker-1")]));
}

#[tokio::test]
async fn children_that_outlive_their_process_are_leftovers() {
    let cluster = TestCluster::new("family");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    assert_eq!(cluster.home.running().len(), 1, "its child is not taken for it");
    let mut decoy = Decoy::start(Some("0123456789abcdef"));
    let (done, _) = down(&cluster, LONG).await;
    assert_eq!((done.ended, done.leftovers.len()), (vec![name("worker-1")], 1));
    assert!(decoy.lives(), "another cluster's processes are not touched");
}

#[tokio::test]
async fn records_are_not_needed_and_strangers_are_named_but_not_touched() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-2", 3).await;
    std::fs::remove_file(cluster.home.run("worker-2.json")).unwrap();
    let _by_hand = cluster.home.hold_identity(&name("supervisor-1")).unwrap().unwrap();
    let (done, _) = down(&cluster, LONG).await;
    assert_eq!(done.ended, [name("worker-2")]);
    assert_eq!(done.untouched, [format!("supervisor-1 (pid {})", std::process::id())]);
    assert_eq!(files(&cluster), ["closed", "lock", "supervisor-1.lock"]);
}

#[tokio::test]
async fn one_machine_of_several_is_taken_down() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let other = stop_all(&cluster.home, Some(&cluster.config), Some("there"), LONG, |_| {}, async || {}).await.unwrap();
    assert_eq!((other, cluster.home.running().len()), (Stopped::default(), 1));
    assert!(files(&cluster).contains(&"worker-1.json".to_owned()));
}
