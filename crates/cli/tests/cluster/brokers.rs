//! Brokers that die and come back, or do not.

use tenaz_rabbit::node::PrivateCluster;

use crate::harness::{Broker, Cluster, Task, assert_same_results, coffee, in_runtime, wait_for};

#[test]
fn the_only_broker_is_killed_in_mid_job_and_comes_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(broker) = Broker::start(dir.path(), "mortal") else { return };
    let cluster = Cluster::on(&broker.url()).start(2, 1, "slow=40");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    let job = cluster.only_job();
    let queue = |wave: u32| format!("{}.job.{job}.chunks.{wave}", cluster.prefix);
    broker.wait_until_recorded(&[&queue(0)]);
    wait_for("chunks are being worked on", || {
        cluster.workers.iter().all(|worker| worker.counts(Task::Chunk).1 > 2).then_some(())
    });
    broker.kill();
    assert!(client.is_alive(), "the job is not done");
    broker.restart();
    client.succeeds();
    assert_same_results(coffee(), &out);
    for worker in &cluster.workers {
        assert!(worker.log().contains("connected to the broker again"), "{}", worker.log_tail());
    }
}

#[test]
fn one_of_three_brokers_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut brokers = match in_runtime(PrivateCluster::start(dir.path(), 3)) {
        Ok(brokers) => brokers,
        Err(tenaz_rabbit::Error::NotInstalled { .. }) => return eprintln!("skipped: RabbitMQ is not installed"),
        Err(error) => panic!("{error}"),
    };
    let cluster = Cluster::on(&brokers.url()).start(2, 1, "slow=40");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    wait_for("chunks are being worked on", || {
        cluster.workers.iter().all(|worker| worker.counts(Task::Chunk).1 > 2).then_some(())
    });
    assert!(client.is_alive(), "the job is not done");
    let lost = brokers.node(0).expect("the first node");
    in_runtime(lost.kill()).expect("it dies");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn the_broker_forgets_who_takes_chunks() {
    let dir = tempfile::tempdir().expect("a directory");
    let Some(broker) = Broker::start(dir.path(), "forgetful") else { return };
    // rabbitmqctl needs seconds on a loaded machine, and the job must not be done before.
    let cluster = Cluster::on(&broker.url()).start(2, 1, "slow=150");
    let out = cluster.out("out");
    let client = cluster.submit(coffee(), &out, &[]);
    wait_for("chunks are being worked on", || {
        cluster.workers.iter().all(|worker| worker.counts(Task::Chunk).1 > 2).then_some(())
    });
    assert!(broker.forget_consumers_of_chunks() >= 2);
    assert!(client.is_alive(), "the job is not done");
    client.succeeds();
    assert_same_results(coffee(), &out);
    // The first that notices may do all the rest.
    let healed = |log: String| log.contains("chunks wait") && log.contains("connected to the broker again");
    assert!(cluster.workers.iter().any(|worker| healed(worker.log())), "{}", cluster.workers[0].log_tail());
}
