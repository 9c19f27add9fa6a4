//! Workers that die, hang, panic, or leave.

use crate::harness::{Cluster, Task, assert_same_results, coffee, wait_for};

/// Every task takes this many milliseconds longer, so that there is a middle to be killed in.
const SLOW: &str = "slow=25";

#[test]
fn undisturbed_the_files_are_those_of_run() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, "");
    let out = cluster.out("out");
    cluster.submit(coffee(), &out, &[]).succeeds();
    assert_same_results(coffee(), &out);
    cluster.assert_nothing_left(crate::harness::shared_broker().expect("the broker"));
}

#[test]
fn a_worker_killed_in_leaf_work() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    cluster.workers[0].kill_during(Task::Chunk);
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_worker_killed_in_inner_work() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    // The only worker owns everything; another comes when it is gone.
    cluster.workers[0].kill_during(Task::Inner);
    cluster.add_worker("");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_worker_killed_while_it_takes_over() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    cluster.workers[0].kill_during(Task::Inner);
    // The second reads the logs of the dead one's partitions from their start, and dies in the midst of it.
    let second = cluster.add_worker(SLOW);
    let second = &cluster.workers[second];
    second.kill_when("the second worker takes over", || {
        let entries = second.entries();
        let reads =
            |log: &str| entries.iter().any(|e| e["message"] == "a log is read" && e["log"] == log && e["from"] == 0);
        let (_, finished) = second.counts(Task::Inner);
        ["0", "1", "2", "results"].iter().all(|log| reads(log)) && finished == 0
    });
    cluster.add_worker("");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn all_workers_killed_at_once() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(3, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    wait_for("all workers work", || cluster.workers.iter().all(|w| w.counts(Task::Chunk).1 > 0).then_some(()));
    cluster.workers.iter().for_each(crate::harness::Process::kill);
    let job = cluster.only_job();
    // Without workers the job says why it cannot advance.
    wait_for("the job waits for workers", || {
        let state = cluster.state(&job)?;
        (state["waiting_for"]["code"] == "workers").then_some(())
    });
    assert!(client.is_alive());
    cluster.add_worker("");
    cluster.add_worker("");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_worker_that_stands_still_and_wakes_up_later() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    let sleeper = &cluster.workers[0];
    wait_for("it works", || (sleeper.counts(Task::Chunk).1 > 0).then_some(()));
    sleeper.freeze();
    let asleep = sleeper.log();
    client.succeeds();
    assert_eq!(sleeper.log(), asleep, "it stood still until the job was done");
    assert_same_results(coffee(), &out);
    sleeper.thaw();
    // It finds its way back, and works on the next job.
    let before = sleeper.counts(Task::Chunk).0;
    let again = cluster.out("again");
    cluster.submit(coffee(), &again, &[]).succeeds();
    assert_same_results(coffee(), &again);
    assert!(sleeper.counts(Task::Chunk).0 > before, "it works again");
}

#[test]
fn a_worker_that_is_told_to_stop_finishes_what_it_has_begun() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, SLOW);
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    let leaving = &cluster.workers[0];
    wait_for("it works", || (leaving.counts(Task::Chunk).1 > 0).then_some(()));
    leaving.terminate();
    leaving.succeeds();
    let (begun, finished) = leaving.counts(Task::Chunk);
    assert_eq!(begun, finished, "every chunk it began is finished");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_chunk_that_kills_its_worker_fails_its_job_and_no_other() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "abort=transactions:3");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    // Somebody starts workers again as they die. In the end there is nothing left to die of.
    let mut deaths = 0;
    let status = wait_for("the job fails", || {
        if cluster.workers.last().is_some_and(|worker| !worker.is_alive()) {
            deaths += 1;
            cluster.add_worker("abort=transactions:3");
        }
        (!client.is_alive()).then(|| client.wait())
    });
    assert_eq!(status.code(), Some(1), "{}", client.log());
    let said = client.log();
    assert!(said.contains("chunk 3 of table transactions") && said.contains("kill"), "{said}");
    assert!((3..20).contains(&deaths), "{deaths} workers died");
    // The cluster lives: steam has no such chunk.
    let other = cluster.out("other");
    let steam = crate::harness::steam();
    cluster.submit(steam, &other, &[]).succeeds();
    assert_same_results(steam, &other);
}

#[test]
fn a_plan_that_kills_its_worker_fails_its_job_and_no_other() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "abort-plan=coffee");
    let client = cluster.submit(coffee(), &cluster.out("out"), &[]);
    let mut deaths = 0;
    let status = wait_for("the job fails", || {
        if cluster.workers.last().is_some_and(|worker| !worker.is_alive()) {
            deaths += 1;
            assert!(deaths < 20, "every worker that comes plans the job again, and dies of it");
            cluster.add_worker("abort-plan=coffee");
        }
        (!client.is_alive()).then(|| client.wait())
    });
    assert_eq!(status.code(), Some(1), "{}", client.log());
    assert!(client.log().contains("planning the job has killed 5 workers"), "{}", client.log());
    assert!((5..20).contains(&deaths), "{deaths} workers died");
    let (steam, other) = (crate::harness::steam(), cluster.out("other"));
    cluster.submit(steam, &other, &[]).succeeds();
    assert_same_results(steam, &other);
}

#[test]
fn a_task_that_panics_fails_its_job_and_not_its_worker() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "panic=transactions:2");
    let client = cluster.submit(coffee(), &cluster.out("out"), &[]);
    assert_eq!(client.wait().code(), Some(1), "{}", client.log());
    assert!(client.log().contains("chunk 2 of table transactions"), "{}", client.log());
    assert!(cluster.workers[0].is_alive());
    let other = cluster.out("other");
    cluster.submit(crate::harness::steam(), &other, &[]).succeeds();
    assert_same_results(crate::harness::steam(), &other);
}
