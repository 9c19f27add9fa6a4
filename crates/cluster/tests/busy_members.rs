//! Members stay members while their process has much to send.
#![allow(clippy::unwrap_used)]

#[path = "../../rabbit/tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Instant;

use common::{Cable, eventually, run, start_node};
use tenaz_cluster::limits::SILENCE;
use tenaz_cluster::{Link, LinkSettings, Membership, Names, Role};
use tenaz_rabbit::{BrokerSettings, QueueSpec};
use tokio::task::JoinSet;

const SENT_BYTES_PER_SECOND: usize = 1 << 20;

async fn link(broker: &BrokerSettings, name: &str) -> Link {
    let names = Names::new("beats").unwrap();
    Link::open(LinkSettings { broker: broker.clone(), names, connection_name: name.to_owned() }).await.unwrap()
}

#[test]
fn a_worker_whose_outputs_fill_its_connection_for_longer_than_the_silence_is_never_believed_dead() {
    run(async {
        let Some(node) = start_node("heartbeats").await else { return };
        let cable = Cable::to(&node.settings()).await;
        let (busy, other) = (link(&cable.settings, "busy").await, link(&node.settings(), "other").await);
        let worker = Membership::join(&busy, Role::Worker, Membership::new_id().unwrap(), |_| {});
        let observer = Membership::join(&other, Role::Gateway, Membership::new_id().unwrap(), |_| {});
        let is_heard = || observer.everybody(|members| members.is_alive(worker.me()));
        eventually("the worker is heard", || async { is_heard() }).await;
        other.session().await.reading.declare_queue(&QueueSpec::new("outputs")).await.unwrap();

        cable.limit_sending(SENT_BYTES_PER_SECOND as u64);
        let began = Instant::now();
        let mut outputs = JoinSet::new();
        for _ in 0..2 * SILENCE.as_secs() {
            let (busy, output) = (busy.clone(), Arc::from(vec![7; SENT_BYTES_PER_SECOND]));
            outputs.spawn(async move { busy.publish("outputs", "rows", output).await });
        }
        let mut changes = observer.changes();
        while !outputs.is_empty() {
            tokio::select! {
                sent = outputs.join_next() => sent.unwrap().unwrap().unwrap(),
                changed = changes.changed() => changed.unwrap(),
            }
            assert!(is_heard(), "believed dead after {:?} of sending", began.elapsed());
        }
        assert!(began.elapsed() > SILENCE, "the outputs were gone too soon to prove anything");
        assert_eq!(busy.session().await.epoch, 1, "the link was renewed");
    });
}
