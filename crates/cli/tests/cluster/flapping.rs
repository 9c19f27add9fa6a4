//! Partitions that a worker loses and gets back while tasks of theirs still wait for a thread.

use crate::harness::{Cluster, Process, assert_same_results, pairs, wait_for};

/// The only thread of a worker is busy for so long with each task that tasks queue up behind it.
const VERY_SLOW: &str = "slow=600";
const PARTITIONS: usize = 16;

/// How many tasks the worker has ready for its threads or behind them.
fn queued(worker: &Process) -> usize {
    worker.entries().iter().filter(|entry| entry["message"] == "a task is queued").count()
}

/// How many partitions the worker owned after each change.
fn owned(worker: &Process) -> Vec<usize> {
    let entries = worker.entries();
    let changes = entries.iter().filter(|entry| entry["message"] == "ownership has changed");
    changes.map(|entry| entry["partitions"].as_u64().expect("a count") as usize).collect()
}

fn wait_until_it_owns(worker: &Process, what: &str, wanted: impl Fn(usize) -> bool) {
    wait_for(what, || owned(worker).last().copied().filter(|&count| wanted(count)));
}

/// Freezes the second worker until the first has taken its partitions over, wakes it until it has them back, and then
/// lets it be lost again, by `lose`.
fn flap(lose: impl Fn(&Process)) {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, VERY_SLOW);
    cluster.add_worker(VERY_SLOW);
    cluster.wait_for_workers();
    let (stays, flaps) = (&cluster.workers[0], &cluster.workers[1]);
    let out = cluster.out("out");
    let client = cluster.submit(pairs(), &out, &["--partitions", &PARTITIONS.to_string()]);
    wait_for("inner tasks wait at the first worker", || (queued(stays) > 2).then_some(()));
    let own = *owned(stays).last().expect("it owns some");
    assert!(own > 2 && own < PARTITIONS, "both have partitions: {own}");
    flaps.freeze();
    wait_until_it_owns(stays, "the first worker takes all over", |count| count == PARTITIONS);
    wait_for("tasks of the taken partitions wait", || (queued(stays) > own + 2).then_some(()));
    flaps.thaw();
    wait_until_it_owns(stays, "the second has its partitions back", |count| count < PARTITIONS);
    lose(flaps);
    wait_until_it_owns(stays, "the first worker takes all over again", |count| count == PARTITIONS);
    client.succeeds();
    assert_same_results(pairs(), &out);
}

#[test]
fn a_worker_that_is_paused_woken_and_killed_costs_no_rows() {
    flap(Process::kill);
}

#[test]
fn a_worker_that_is_paused_woken_and_paused_again_costs_no_rows() {
    flap(Process::freeze);
}
