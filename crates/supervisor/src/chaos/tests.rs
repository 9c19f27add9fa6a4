#![allow(clippy::unwrap_used)]

use tenaz_core::ChaosWeights;

use super::*;
use crate::testing::*;

fn chaos(roles: &[ProcessRole], weights: ChaosWeights, every_ms: u64, duration_ms: Option<u64>) -> Chaos {
    let settings = ChaosSettings { every_ms, roles: roles.to_vec(), weights, pause_ms: 200..=200, duration_ms };
    Chaos { seed: 7, settings, settle: Duration::ZERO }
}

const KILL: ChaosWeights = ChaosWeights { kill: 1, pause: 0, restart: 0 };
const PAUSE: ChaosWeights = ChaosWeights { kill: 0, pause: 1, restart: 0 };
const RESTART: ChaosWeights = ChaosWeights { kill: 0, pause: 0, restart: 1 };

#[tokio::test]
async fn only_the_clusters_own_processes_of_the_named_roles_are_struck() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    for name in ["worker-1", "worker-2", "gateway-1"] {
        cluster.start(&executor, name, 1).await;
    }
    let mut decoys = [Decoy::start(None), Decoy::start(Some("0123456789abcdef"))];
    let stop = CancellationToken::new();
    let mut records: Vec<StrikeRecord> = Vec::new();
    let sink = |record: &StrikeRecord| {
        records.push(record.clone());
        if record.outcome == "nobody there" {
            stop.cancel();
        }
    };
    let plan = chaos(&[ProcessRole::Worker], KILL, 20, None);
    let summary = tokio::time::timeout(PATIENCE, run(&cluster.home, &plan, sink, stop.clone())).await.unwrap().unwrap();
    assert_eq!((summary.killed, summary.missed >= 1), (2, true));
    // A killed process needs a moment to go.
    let left = || cluster.home.running().iter().map(|m| m.name.to_string()).collect::<Vec<_>>();
    until(async || left() == ["gateway-1"]).await;
    assert!(decoys.iter_mut().all(Decoy::lives));
    let mut hit: Vec<&str> = records.iter().filter(|r| r.hit).map(|r| r.name.as_ref().unwrap().as_str()).collect();
    hit.sort();
    assert_eq!(hit, ["worker-1", "worker-2"]);
    let line = serde_json::to_value(&records[0]).unwrap();
    assert_eq!(
        (&line["action"], &line["role"], &line["seed"], &line["number"]),
        (&"kill".into(), &"worker".into(), &7.into(), &1.into())
    );
}

#[tokio::test]
async fn a_pause_stops_the_whole_family_and_ends() {
    let cluster = TestCluster::new("family");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let plan = chaos(&[ProcessRole::Worker], PAUSE, 20, Some(24));
    let mut stopped = 0;
    let mut actions = Vec::new();
    let sink = |record: &StrikeRecord| {
        actions.push(record.action);
        if record.action == "pause" {
            // The kernel stops a process a moment after the signal was sent.
            let deadline = std::time::Instant::now() + PATIENCE;
            while stopped < 2 && std::time::Instant::now() < deadline {
                stopped = census::scan(cluster.home.id()).iter().filter(|member| member.is_stopped).count();
            }
        }
    };
    let summary = run(&cluster.home, &plan, sink, CancellationToken::new()).await.unwrap();
    assert_eq!((summary.paused, stopped), (1, 2));
    assert_eq!(actions, ["pause", "resume"]);
    until(async || census::scan(cluster.home.id()).iter().all(|member| !member.is_stopped)).await;
}

#[tokio::test]
async fn whoever_was_paused_goes_on_when_the_run_is_cut_off() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let mut plan = chaos(&[ProcessRole::Worker], PAUSE, 20, None);
    plan.settings.pause_ms = 3_600_000..=3_600_000;
    let stop = CancellationToken::new();
    let summary = run(&cluster.home, &plan, |_| stop.cancel(), stop.clone()).await.unwrap();
    assert_eq!(summary.paused, 1);
    until(async || cluster.home.running().iter().all(|member| !member.is_stopped)).await;
    // Also when its future is dropped in the middle.
    let struck = std::cell::Cell::new(false);
    let run = run(&cluster.home, &plan, |_| struck.set(true), CancellationToken::new());
    tokio::select! {
        _ = run => unreachable!("the plan never ends"),
        () = until(async || struck.get()) => {}
    }
    until(async || cluster.home.running().iter().all(|member| !member.is_stopped)).await;
}

#[tokio::test]
async fn who_has_just_been_started_is_spared_and_a_restart_asks() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    cluster.start(&executor, "worker-1", 1).await;
    let mut plan = chaos(&[ProcessRole::Worker], RESTART, 20, Some(24));
    plan.settle = Duration::from_secs(3600);
    let summary = run(&cluster.home, &plan, |_| {}, CancellationToken::new()).await.unwrap();
    assert_eq!((summary.strikes, summary.missed), (1, 1));
    plan.settle = Duration::ZERO;
    let summary = run(&cluster.home, &plan, |_| {}, CancellationToken::new()).await.unwrap();
    assert_eq!(summary.restarted, 1);
    until(async || look(&executor, "worker-1").await.found.ended == Some(tenaz_core::Ending::Signalled(15))).await;
}
