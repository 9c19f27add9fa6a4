//! Workers that are alive and have too little: a worker whose disk is full stands back, and others do its work.

use crate::harness::{Cluster, DataSet, Process, SmallDisk, Task, assert_same_results, long_texts, pairs};

const JOBS: usize = 4;
const STANDS_BACK: &str = "this process cannot do the job's work and stands back";

/// Runs jobs beside a worker that is sick: all of them succeed, and it has tried.
fn outlast(cluster: &Cluster, sick: usize, data: &DataSet, why: &str) {
    for job in 0..JOBS {
        let out = cluster.out(&format!("out-{job}"));
        cluster.submit(data, &out, &["--partitions", "8"]).succeeds();
        assert_same_results(data, &out);
    }
    let log = cluster.workers[sick].log();
    let stood_back = log.lines().find(|line| line.contains(STANDS_BACK));
    let stood_back = stood_back.unwrap_or_else(|| panic!("it had nothing to do in {JOBS} jobs:\n{log}"));
    assert!(stood_back.contains(why), "{stood_back}");
    assert!(cluster.workers.iter().all(Process::is_alive));
}

#[test]
fn a_worker_whose_disk_is_full_stands_back_in_a_task_and_every_job_succeeds() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(2, 1, "");
    let Some(disk) = SmallDisk::mount(cluster.dir.path().join("small")) else { return };
    let sick = cluster.add_worker_on(&disk, &["--memory", "256K"]);
    cluster.wait_for_workers();
    outlast(&cluster, sick, long_texts(), "No space left on device");
}

/// Tasks have 64 MB to work with, however little may rest in memory.
#[test]
fn a_worker_with_hardly_any_memory_for_rows_at_rest_uses_its_disk_and_every_job_succeeds() {
    let Some(cluster) = Cluster::shared() else { return };
    let mut cluster = cluster.start(1, 1, "");
    let poor = cluster.add_worker_with(&["--memory", "1K"]);
    cluster.wait_for_workers();
    for job in 0..JOBS {
        let out = cluster.out(&format!("out-{job}"));
        cluster.submit(pairs(), &out, &["--partitions", "8"]).succeeds();
        assert_same_results(pairs(), &out);
    }
    assert!(cluster.workers[poor].counts(Task::Inner).1 > 0, "{}", cluster.workers[poor].log());
    assert!(!cluster.workers[poor].log().contains(STANDS_BACK));
}
