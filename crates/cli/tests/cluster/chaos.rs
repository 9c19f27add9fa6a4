//! Kills without end.

use std::time::{Duration, Instant};

use crate::harness::{Cluster, assert_same_results, books, coffee, steam, wait_for};

/// Kills a worker, starts another in its place.
fn kill_one(cluster: &mut Cluster, turn: usize, faults: &str) {
    let alive: Vec<usize> = (0..cluster.workers.len()).filter(|&n| cluster.workers[n].is_alive()).collect();
    let victim = alive[turn % alive.len()];
    cluster.workers[victim].kill();
    cluster.add_worker(faults);
}

/// Kills a worker every second until all of `clients` have ended. Returns how many died.
fn kill_every_second(cluster: &mut Cluster, clients: &[crate::harness::Process], faults: &str) -> usize {
    let mut kills = 0;
    let mut next = Instant::now() + Duration::from_secs(1);
    wait_for("the jobs end", || {
        if clients.iter().all(|client| !client.is_alive()) {
            return Some(());
        }
        if Instant::now() >= next {
            next += Duration::from_secs(1);
            kill_one(cluster, kills, faults);
            kills += 1;
        }
        None
    });
    kills
}

#[test]
fn a_kill_every_second_for_the_whole_job() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(3, 1, "slow=60");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    let clients = [client];
    let kills = kill_every_second(&mut cluster, &clients, "slow=60");
    clients[0].succeeds();
    assert!(kills >= 3, "{kills} workers were killed");
    assert_same_results(coffee(), &out);
}

#[test]
fn three_jobs_of_different_workloads_at_once_under_kills() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(3, 2, "slow=30");
    let jobs = [coffee(), steam(), books()];
    let outs: Vec<_> = jobs.iter().map(|data| cluster.out(&data.workload)).collect();
    let clients: Vec<_> = jobs.iter().zip(&outs).map(|(data, out)| cluster.submit(data, out, &[])).collect();
    let kills = kill_every_second(&mut cluster, &clients, "slow=30");
    clients.iter().for_each(crate::harness::Process::succeeds);
    assert!(kills >= 2, "{kills} workers were killed");
    jobs.iter().zip(&outs).for_each(|(data, out)| assert_same_results(data, out));
}
