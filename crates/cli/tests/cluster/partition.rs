//! A broker node that lives and cannot be reached. `scripts/nightly partition` runs this, with root.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tenaz_rabbit::node::{NodeNetwork, NodeOptions, PrivateCluster};

use crate::harness::{Cluster, CuttableLink, Task, assert_same_results, coffee, in_runtime, steam, wait_for};

const CUT_OFF_FOR: Duration = Duration::from_secs(30);

fn is_reachable(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok()
}

/// Two nodes here, the third behind the link.
fn three_nodes(dir: &std::path::Path, link: &CuttableLink) -> PrivateCluster {
    let node = |name: &str, network: NodeNetwork| {
        let extra_config = vec!["loopback_users = none".to_owned()];
        NodeOptions { network, extra_config, ..NodeOptions::new(dir.join(name), name) }
    };
    let here = NodeNetwork { address: link.here, namespace: None };
    let there = NodeNetwork { address: link.there, namespace: Some(link.namespace.clone()) };
    let nodes = vec![node("first", here.clone()), node("second", here), node("remote", there)];
    in_runtime(PrivateCluster::start_with(nodes)).expect("three nodes that know each other")
}

/// Every process may use all three nodes, but for one worker that knows only the one that is cut off.
#[test]
#[ignore = "takes root, network namespaces and two minutes: scripts/nightly partition"]
fn one_of_three_brokers_is_cut_off_for_thirty_seconds() {
    let dir = tempfile::tempdir().expect("a directory");
    let link = CuttableLink::new();
    let mut brokers = three_nodes(dir.path(), &link);
    let all = brokers.url();
    let remote = brokers.node(2).expect("the third node");
    let (remote_url, remote_address) = (remote.url(), SocketAddr::from((link.there, remote.port())));

    let mut cluster = Cluster::on(&remote_url);
    let stranded = cluster.add_worker("slow=100");
    cluster.url = all;
    let cluster = cluster.start(2, 2, "slow=100");
    let (before, during, after) = (cluster.out("before"), cluster.out("during"), cluster.out("after"));
    let first = cluster.submit(coffee(), &before, &[]);
    wait_for("chunks are being worked on", || {
        cluster.workers.iter().all(|worker| worker.counts(Task::Chunk).1 > 1).then_some(())
    });
    assert!(is_reachable(remote_address) && first.is_alive(), "{}", first.log_tail());

    link.cut();
    let cut = Instant::now();
    let second = cluster.submit(steam(), &during, &[]);
    assert!(!is_reachable(remote_address), "the link is cut");
    wait_for("the node has been away for long enough", || (cut.elapsed() >= CUT_OFF_FOR).then_some(()));
    link.mend();
    wait_for("the node can be reached again", || is_reachable(remote_address).then_some(()));

    first.succeeds();
    second.succeeds();
    assert_same_results(coffee(), &before);
    assert_same_results(steam(), &during);
    cluster.submit(coffee(), &after, &[]).succeeds();
    assert_same_results(coffee(), &after);
    let worker = &cluster.workers[stranded];
    worker.wait_for_log("connected to the broker again");
    assert!(cluster.workers.iter().chain(&cluster.gateways).all(|process| process.is_alive()));
}
