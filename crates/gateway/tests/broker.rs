//! Brokers that crash or block. Every test has a node of its own.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::http::Client;
use common::worker::{Worker, id};
use common::{Deployment, create, eventually, fresh_dir, run, shop, soon, start_node, start_node_with};
use futures::StreamExt;
use serde_json::json;
use tenaz_cluster::Control;
use tenaz_core::limits::SILENT_QUEUE_MS;
use tenaz_core::{ChunkDigest, Fact, Log, Partition, Promise, QueueAction, TableId};
use tenaz_rabbit::node::{NodeOptions, PrivateNode};

const CHUNKS: u64 = 120;
const SENDERS: u64 = 4;
const KILL_AFTER: u64 = 30;

/// Sends a share of the chunks, one after the other, each until it is received. Counts those.
async fn send_share(clients: [Client; 2], job: String, sender: u64, received: &AtomicU64) {
    for number in (sender..CHUNKS).step_by(SENDERS as usize) {
        let path = format!("/v1/jobs/{job}/tables/sales/chunks/{number}");
        let client = &clients[(number / SENDERS % 2) as usize];
        let answer = client.put(&path, format!("{number},a\n").as_bytes()).await.ok(200);
        assert!(answer["status"] == "received" || answer["status"] == "duplicate", "{answer}");
        received.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until the broker would know the job's queues again after a crash.
async fn recorded(node: &PrivateNode, deployment: &Deployment, job: &str) {
    let queue = deployment.names.chunks(&id(job), 0);
    node.wait_until_recorded(&[&queue]).await.unwrap();
}

#[test]
fn uploads_wait_while_the_broker_is_killed_and_restarted_and_nothing_is_lost() {
    run(async {
        let Some(mut node) = start_node("gateway-killed").await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let patient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.broker_wait = Duration::from_secs(100);
        };
        let (first, second) = (deployment.gateway_with(patient).await, deployment.gateway_with(patient).await);
        let job = create(&first, &shop(&["large"])).await;
        recorded(&node, &deployment, &job).await;
        let received = AtomicU64::new(0);
        let sending = (0..SENDERS)
            .map(|sender| send_share([first.client.clone(), second.client.clone()], job.clone(), sender, &received));
        let chaos = async {
            let enough = || async { received.load(Ordering::SeqCst) >= KILL_AFTER };
            eventually("enough is uploaded", enough).await;
            let before = node.pid().unwrap();
            node.kill().await.unwrap();
            let away = || async { first.get("/readyz").await.status == 503 };
            eventually("the gateway knows", away).await;
            first.get("/readyz").await.problem(503, "broker_away");
            assert!(received.load(Ordering::SeqCst) < CHUNKS, "killed too late");
            node.restart().await.unwrap();
            assert_ne!(node.pid().unwrap(), before);
        };
        tokio::join!(futures::future::join_all(sending), chaos);
        let finish = json!({"chunks": CHUNKS, "records": CHUNKS, "bytes": 1});
        let path = format!("/v1/jobs/{job}/tables/sales/finish");
        let finished = second.post(&path, &finish).await.ok(200);
        assert_eq!(finished["missing"], json!([]), "every receipt is there");
        // Every chunk is in the queue. One whose confirm was in doubt may be there twice.
        let mut taken = BTreeSet::new();
        while taken.len() < CHUNKS as usize {
            for (header, payload) in worker.take_chunks(&job, 0, 1).await {
                assert_eq!(payload, format!("{},a\n", header.number).into_bytes());
                taken.insert(header.number);
            }
        }
        assert_eq!(taken, (0..CHUNKS).collect());
        let state = first.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["state"], "processing");
        first.stop().await;
        second.stop().await;
        worker.leave().await;
    });
}

/// A broker that nobody tells to write down its queues at once mostly comes back with one that confirms nothing.
#[test]
fn a_queue_that_does_not_come_back_in_order_is_made_anew() {
    run(async {
        let name = "gateway-forgetful";
        let options = NodeOptions { record_names: false, ..NodeOptions::new(fresh_dir(name), name) };
        let Some(mut node) = start_node_with(options).await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let patient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.broker_wait = Duration::from_secs(100);
        };
        let gateway = deployment.gateway_with(patient).await;
        let job = create(&gateway, &shop(&["large"])).await;
        node.kill().await.unwrap();
        node.restart().await.unwrap();
        let path = |number: u64| format!("/v1/jobs/{job}/tables/sales/chunks/{number}");
        assert_eq!(gateway.put(&path(0), b"11,a\n").await.ok(200)["status"], "received");
        let taken = worker.take_chunks(&job, 0, 1).await;
        assert_eq!(taken[0].0.number, 0);
        // And if it is not there at all.
        let card = worker.book.view(&id(&job), |view| view.card.clone()).unwrap();
        tenaz_cluster::delete_chunks(&worker.link, &card, 0).await.unwrap();
        assert_eq!(gateway.put(&path(1), b"12,a\n").await.ok(200)["status"], "received");
        assert_eq!(worker.take_chunks(&job, 0, 1).await[0].0.number, 1);
        gateway.stop().await;
        worker.leave().await;
    });
}

/// The queue's server is gone, so that it refuses everything though it is empty. Each gateway is gone before it could be sure of anything. What it saw is in the job's control log, where the next one goes on.
#[test]
fn a_dead_queue_is_made_anew_by_gateways_that_live_for_seconds() {
    const LIFE_MS: u64 = 3_000;
    run(async {
        let Some(node) = start_node("gateway-short-lives").await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let patient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.broker_wait = Duration::from_secs(100);
            settings.limits.queue_wait = Duration::from_secs(100);
        };
        let first = deployment.gateway().await;
        let job = create(&first, &shop(&["large"])).await;
        first.stop().await;
        let queue = deployment.names.chunks(&id(&job), 0);
        let code = format!(
            "{{ok, Q}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<\"/\">>, queue, <<\"{queue}\">>)), \
             ra:stop_server(quorum_queues, amqqueue:get_pid(Q))."
        );
        assert_eq!(node.ctl(&["eval", &code]).await.unwrap().trim(), "ok");
        let silence = || worker.book.view(&id(&job), |view| view.facts.queue_silence(0)).unwrap();
        let mut lives = 0;
        loop {
            lives += 1;
            let gateway = deployment.gateway_with(patient).await;
            let (client, path) = (gateway.client.clone(), format!("/v1/jobs/{job}/tables/sales/chunks/0"));
            let sending = tokio::spawn(async move { client.put(&path, b"11,a\n").await });
            let before = silence().total_ms();
            let is_over = || async {
                let now = silence();
                sending.is_finished() || now.round() == 0 && now.total_ms() >= before + LIFE_MS
            };
            eventually("the chunk is taken, or the gateway has seen enough", is_over).await;
            if sending.is_finished() {
                sending.await.unwrap().ok(200);
                gateway.stop().await;
                break;
            }
            sending.abort();
            soon("closing a link", gateway.link.close()).await;
            soon("ending a gateway", gateway.gateway.shutdown(Duration::ZERO)).await;
        }
        let made_anew_once = QueueAction::after(1);
        eventually("it was made anew", || async { silence().round() >= made_anew_once }).await;
        assert_eq!(silence().round(), made_anew_once, "once");
        assert!(lives > 1, "the first gateway lived for too long to prove anything");
        assert_eq!(worker.take_chunks(&job, 0, 1).await[0].0.number, 0);
        worker.leave().await;
    });
}

/// Makes a stream's record as a kill leaves it that comes between the table of queues and the coordinator of streams.
fn half_a_stream(whole: &str, half: &str) -> String {
    format!(
        r##"Name = rabbit_misc:r(<<"/">>, queue, <<"{half}">>),
        {{ok, Whole}} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"{whole}">>)),
        Format = {{rabbit_stream_queue, format_osiris_event, [Name]}},
        State = maps:without([leader_pid], (amqqueue:get_type_state(Whole))#{{
            name => "__half_1", reference => Name, event_formatter => Format}}),
        Arguments = [{{<<"x-queue-type">>, longstr, <<"stream">>}}],
        Options = #{{user => <<"guest">>}},
        Queue = amqqueue:new(Name, none, true, false, none, Arguments, <<"/">>, Options, rabbit_stream_queue),
        element(1, rabbit_amqqueue:internal_declare(amqqueue:set_type_state(Queue, State), false))."##
    )
}

/// Its stream stays `down` for ever. A client that gives the job up finds that another one can be made.
#[test]
fn a_job_whose_logs_cannot_be_made_can_be_made_under_another_key() {
    run(async {
        let Some(mut node) = start_node("gateway-half").await else { return };
        let deployment = Deployment::on(node.settings());
        let impatient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.broker_wait = Duration::from_secs(4);
        };
        let (worker, gateway) = (Worker::join(&deployment).await, deployment.gateway_with(impatient).await);
        let with_key = |key| gateway.client.with("Idempotency-Key", key);
        let with_key = &with_key;
        let is_made = |key| async move { with_key(key).post("/v1/jobs", &shop(&["large"])).await.status < 300 };
        let job = create(&with_key("cursed"), &shop(&["large"])).await;
        // Cancelled, then forgotten: the key gives the same id again.
        for _ in 0..2 {
            gateway.delete(&format!("/v1/jobs/{job}")).await.ok(202);
        }
        let log = deployment.names.log(&id(&job), Log::Partition(Partition(0)));
        let code = half_a_stream(&deployment.names.registry(), &log);
        assert_eq!(node.ctl(&["eval", &code]).await.unwrap().trim(), "created");
        node.kill().await.unwrap();
        node.restart().await.unwrap();
        eventually("all are connected again", || is_made("before")).await;
        for _ in 0..3 {
            with_key("cursed").post("/v1/jobs", &shop(&["large"])).await.problem(503, "broker_away");
        }
        let states = node.ctl(&["-q", "list_queues", "name", "state"]).await.unwrap();
        assert!(states.lines().any(|line| line.contains(&log) && line.contains("down")), "{states}");
        eventually("another key makes another job", || is_made("fresh")).await;
        gateway.stop().await;
        worker.leave().await;
    });
}

/// The process that writes all quorum queues to disk stands still, as it does while the disk does. The rest of the broker
/// answers.
#[test]
fn chunks_that_were_confirmed_outlast_a_disk_that_stands_still() {
    run(async {
        let Some(node) = start_node("gateway-stalled").await else { return };
        let mut broker = node.settings();
        broker.confirm_timeout = Duration::from_secs(1);
        let deployment = Deployment::on(broker);
        let worker = Worker::join(&deployment).await;
        let patient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.broker_wait = Duration::from_secs(100);
        };
        let gateway = deployment.gateway_with(patient).await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = |number: u64| format!("/v1/jobs/{job}/tables/sales/chunks/{number}");
        for number in 0..3 {
            gateway.put(&path(number), b"11,a\n").await.ok(200);
        }
        let before = gateway.link.session().await.epoch;
        assert_eq!(node.ctl(&["eval", "sys:suspend(ra_log_wal)."]).await.unwrap().trim(), "ok");
        let (client, late) = (gateway.client.clone(), path(3));
        let sending = tokio::spawn(async move { client.put(&late, b"11,a\n").await });
        // Many connections in a row have heard nothing of the queue: for longer than the silence that makes it suspect, at a second each.
        let enough = SILENT_QUEUE_MS / 1_000 + 3;
        let silent = || async { gateway.link.session().await.epoch >= before + enough };
        eventually("the gateway has connected again and again", silent).await;
        assert!(!sending.is_finished());
        assert_eq!(node.ctl(&["eval", "sys:resume(ra_log_wal)."]).await.unwrap().trim(), "ok");
        soon("the chunk that waited", sending).await.unwrap().ok(200);
        let mut taken = BTreeSet::new();
        while taken.len() < 4 {
            taken.extend(worker.take_chunks(&job, 0, 1).await.into_iter().map(|(header, _)| header.number));
        }
        assert_eq!(taken, (0..4).collect());
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_job_with_more_logs_than_a_worker_has_channels_for_is_refused_with_the_reason() {
    run(async {
        let options = NodeOptions::new(fresh_dir("gateway-channels"), "gateway-channels");
        let options = NodeOptions { extra_config: vec!["channel_max = 8".to_owned()], ..options };
        let Some(node) = start_node_with(options).await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let limit = worker.link.session().await.reading.max_channels();
        let asking_for = |partitions: usize| {
            let mut request = shop(&["large"]);
            request["partitions"] = partitions.into();
            request
        };
        let told = gateway.post("/v1/jobs", &asking_for(limit)).await.problem(413, "too_large");
        assert!(told["detail"].as_str().unwrap().contains("channel_max"), "{told}");
        create(&gateway, &asking_for(limit / 2)).await;
        let told = gateway.post("/v1/jobs", &asking_for(limit / 2)).await.problem(429, "too_many_jobs");
        assert!(told["detail"].as_str().unwrap().contains("other jobs use"), "{told}");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_stream_goes_on_where_it_was_when_the_broker_comes_back() {
    run(async {
        let Some(mut node) = start_node("gateway-stream").await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        // Creating a job may take longer than the other gateway has patience.
        let patient = deployment.gateway().await;
        let job = create(&patient, &shop(&["large"])).await;
        patient.stop().await;
        let gateway =
            deployment.gateway_with(|settings| settings.limits.broker_wait = Duration::from_millis(500)).await;
        recorded(&node, &deployment, &job).await;
        let mut rows = gateway.open("GET", &format!("/v1/jobs/{job}/results/large"), b"").await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":11,"item":"tea"}}"#);
        node.kill().await.unwrap();
        let path = format!("/v1/jobs/{job}/tables/sales/chunks/0");
        gateway.put(&path, b"11,a\n").await.problem(503, "broker_away");
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["waiting_for"]["code"], "broker", "{state}");
        node.restart().await.unwrap();
        worker.write_rows(&job, 1, &[(12, "milk")]).await;
        worker.finish(&job, 2).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":12,"item":"milk"}}"#);
        assert!(rows.line().await.unwrap().starts_with(r#"{"end":{"rows":2,"#));
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn while_the_broker_blocks_publishers_uploads_wait_and_new_jobs_are_refused() {
    run(async {
        let Some(node) = start_node("gateway-alarm").await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway_with(|settings| settings.limits.broker_wait = Duration::from_secs(5)).await;
        let job = create(&gateway, &shop(&["large"])).await;
        node.ctl(&["set_vm_memory_high_watermark", "absolute", "1"]).await.unwrap();
        let client = gateway.client.clone();
        let path = format!("/v1/jobs/{job}/tables/sales/chunks");
        let uploading = tokio::spawn(async move {
            for number in 0..20 {
                client.put(&format!("{path}/{number}"), b"11,a\n").await.ok(200);
            }
        });
        let blocked = || async { gateway.get("/readyz").await.ok(200)["broker_blocked"] == true };
        eventually("the broker blocks", blocked).await;
        gateway.post("/v1/jobs", &shop(&["large"])).await.problem(503, "broker_alarm");
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["waiting_for"]["code"], "broker");
        // Longer than a request waits for a broker that is away.
        tokio::time::sleep(Duration::from_secs(7)).await;
        assert!(!uploading.is_finished(), "it waits");
        node.ctl(&["set_vm_memory_high_watermark", "absolute", "4GB"]).await.unwrap();
        uploading.await.unwrap();
        gateway.stop().await;
        worker.leave().await;
    });
}

/// Writes down that a node that does not exist leads the queue, as it is for a moment after the leader's node has died, or
/// that this one does again.
async fn set_leader(node: &PrivateNode, queue: &str, leader: &str) {
    let code = format!(
        "Name = rabbit_misc:r(<<\"/\">>, queue, <<\"{queue}\">>), [_, Host] = string:split(atom_to_list(node()), \"@\"), \
         Node = list_to_atom(\"{leader}\" ++ \"@\" ++ Host), \
         Led = fun(Q) -> {{Id, _}} = amqqueue:get_pid(Q), amqqueue:set_pid(Q, {{Id, Node}}) end, \
         case erlang:function_exported(rabbit_db_queue, update, 2) of \
         true -> rabbit_db_queue:update(Name, Led); \
         false -> rabbit_misc:execute_mnesia_transaction(fun() -> rabbit_amqqueue:update(Name, Led) end) end, done."
    );
    let leader_is_set = node.ctl(&["eval", &code]).await.unwrap();
    assert_eq!(leader_is_set.trim(), "done");
}

#[test]
fn a_connection_over_which_an_empty_queue_refuses_everything_is_given_up() {
    run(async {
        let Some(node) = start_node("gateway-refuses").await else { return };
        let deployment = Deployment::on(node.settings());
        let _worker = Worker::join(&deployment).await;
        let impatient = |settings: &mut tenaz_gateway::GatewaySettings| {
            settings.limits.queue_wait = Duration::from_millis(100);
        };
        let gateway = deployment.gateway_with(impatient).await;
        let job = create(&gateway, &shop(&["large"])).await;
        let queue = deployment.names.chunks(&id(&job), 0);
        let own = node.ctl(&["eval", "node()."]).await.unwrap();
        let own = own.trim().trim_matches('\'').split('@').next().unwrap().to_owned();

        set_leader(&node, &queue, "gone").await;
        let path = format!("/v1/jobs/{job}/tables/sales/chunks/0");
        let refused = gateway.client.put(&path, b"1,a\n").await;
        // Version 4 looks for the leader itself.
        if gateway.link.session().await.reading.version().major < 4 {
            refused.problem(503, "queue_full");
        }
        set_leader(&node, &queue, &own).await;
        // The channel does not notice.
        let taken = || async { gateway.client.put(&path, b"1,a\n").await.status == 200 };
        eventually("the chunk is taken", taken).await;
        gateway.stop().await;
    });
}

/// A fresh gateway has to read all receipts of a job that is open; of a job that is done it needs none.
#[test]
#[ignore = "a measurement of a minute or two: run it with --ignored --nocapture"]
fn a_fresh_gateway_answers_about_jobs_with_two_hundred_thousand_receipts() {
    const RECEIPTS: u64 = 200_000;
    run(async {
        let Some(node) = start_node("gateway-receipts").await else { return };
        let deployment = Deployment::on(node.settings());
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        gateway.stop().await;
        let (worker_ref, id) = (&worker, &id(&job));
        let write = |number: u64| async move {
            let (chunks, digests) = (Promise::runs([(number, number + 1)]), vec![ChunkDigest(number)]);
            let fact = Fact::Uploaded { table: TableId(0), chunks, digests };
            worker_ref.book.tell(id, &Control::Fact(fact)).await.unwrap();
        };
        let began = Instant::now();
        futures::stream::iter(0..RECEIPTS).for_each_concurrent(64, write).await;
        eprintln!("{RECEIPTS} receipts were written in {:?}", began.elapsed());
        for state in ["open", "done"] {
            let began = Instant::now();
            let gateway = deployment.gateway().await;
            let up = began.elapsed();
            let path = format!("/v1/jobs/{job}");
            let answers = || async { gateway.get(&path).await.status == 200 };
            eventually("the gateway answers", answers).await;
            eprintln!("{state}: the gateway was up after {up:?} and answered after {:?}", began.elapsed());
            gateway.stop().await;
            if state == "open" {
                worker.finish(&job, 0).await;
            }
        }
        worker.leave().await;
    });
}
