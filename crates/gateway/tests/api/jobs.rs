use std::time::Duration;

use serde_json::json;
use tenaz_cluster::Patience;
use tenaz_core::{BuildId, JobId, Log, Partition, RegistryEvent};

use crate::common::worker::{Worker, id};
use crate::common::{create, eventually, shop, soon, with_broker};

#[test]
fn the_same_key_gives_the_same_job_at_every_gateway() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let (first, second) = (deployment.gateway().await, deployment.gateway().await);
        let request = shop(&["large", "turnover"]);
        let key = |client: &crate::common::http::Client| client.with("Idempotency-Key", "monday");
        let made = key(&first).post("/v1/jobs", &request).await.ok(201);
        assert_eq!(made["workload"], "shop");
        assert_eq!(made["state"], "uploading");
        assert_eq!(made["partitions"], 1);
        assert_eq!(made["chunk_bytes"], 1 << 20);
        assert_eq!(
            made["tables"],
            json!(["items", "sales"]),
            "those that others wait for first, unread ones not at all"
        );
        assert_eq!(made["queries"][0]["title"], "Large sales");
        let columns = json!([{"name": "n", "type": "int"}, {"name": "item", "type": "text"}]);
        assert_eq!(made["queries"][0]["columns"], columns);
        assert_eq!(made["queries"][1]["ordered"], true);
        let job = made["job"].as_str().unwrap();
        // The other gateway learns of it by itself.
        eventually("the second gateway knows", || async { second.get(&format!("/v1/jobs/{job}")).await.status == 200 })
            .await;
        assert_eq!(key(&second).post("/v1/jobs", &request).await.ok(200), made);
        key(&second).post("/v1/jobs", &shop(&["large"])).await.problem(409, "other_request");
        let other = create(&first, &request).await;
        assert_ne!(other, job, "without a key it is another job");
        let listed = second.get("/v1/jobs").await.ok(200);
        assert!(listed["jobs"].as_array().unwrap().iter().any(|line| line["job"] == job), "{listed}");
        first.stop().await;
        second.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_job_of_another_build_is_left_to_gateways_of_that_build() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let ours = create(&gateway, &shop(&["large"])).await;
        let mut card = worker.book.view(&id(&ours), |view| view.card.clone()).unwrap();
        card.id = JobId::from_bytes([7; 8]);
        card.build = BuildId::new("another");
        worker.book.write(&RegistryEvent::Created { card: card.clone() }).await.unwrap();
        let told = gateway.get(&format!("/v1/jobs/{}", card.id)).await.problem(503, "other_build");
        assert!(told["detail"].as_str().unwrap().contains("build another"), "{told}");
        let chunk = format!("/v1/jobs/{}/tables/sales/chunks/0", card.id);
        gateway.put(&chunk, b"11,a\n").await.problem(503, "other_build");
        gateway.get(&format!("/v1/jobs/{ours}")).await.ok(200);
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_request_that_cannot_be_answered_says_why() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let wrong = |toml: &str| json!({"workload": {"file": "my.toml", "toml": toml}});
        let broken = crate::common::SHOP.replace("SELECT n, item", "SELECT n, itme");
        let sql = gateway.post("/v1/jobs", &wrong(&broken)).await.problem(422, "unprocessable");
        assert!(sql["detail"].as_str().unwrap().contains("item"), "{sql}");
        let toml = gateway.post("/v1/jobs", &wrong("name = 7")).await.problem(422, "unprocessable");
        assert!(toml["detail"].as_str().unwrap().starts_with("my.toml:1"), "{toml}");
        let query = gateway.post("/v1/jobs", &shop(&["lage"])).await.problem(422, "unprocessable");
        assert!(query["detail"].as_str().unwrap().contains("did you mean large"), "{query}");
        gateway.post("/v1/jobs", &json!({"workload": "tea"})).await.problem(422, "unprocessable");
        gateway.post("/v1/jobs", &json!({"workload": "coffee", "colour": 1})).await.problem(400, "bad_request");
        gateway.post("/v1/jobs", &json!({"workload": "coffee", "partitions": 0})).await.problem(400, "bad_request");
        gateway.send("POST", "/v1/jobs", b"{").await.problem(400, "bad_request");
        gateway.get("/v1/nothing").await.problem(404, "not_found");
        gateway.get("/v1/jobs/0123456789abcdef").await.problem(404, "not_found");
        gateway.get("/v1/jobs/%ff").await.problem(400, "bad_request");
        let wrong = gateway.delete("/v1/jobs").await;
        wrong.problem(405, "method_not_allowed");
        assert!(wrong.headers["allow"].contains("POST"));
        assert_eq!(gateway.get("/v1/jobs").await.ok(200), json!({"jobs": []}), "nothing was made");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_job_is_taken_only_when_the_cluster_can_take_it() {
    with_broker(async |deployment| {
        let gateway = deployment
            .gateway_with(|settings| {
                settings.limits.worker_wait = Duration::from_millis(1);
                settings.limits.open_jobs_per_tenant = 2;
                settings.limits.data_bytes = 1 << 30;
            })
            .await;
        gateway.post("/v1/jobs", &shop(&[])).await.problem(503, "no_workers");
        let worker = Worker::join(&deployment).await;
        eventually("a worker is known", || async { gateway.get("/readyz").await.ok(200)["workers"] == 1 }).await;
        let mut large = shop(&["large"]);
        large["data_bytes"] = json!((1u64 << 30) + 1);
        gateway.post("/v1/jobs", &large).await.problem(413, "too_large");
        let first = create(&gateway, &shop(&["large"])).await;
        create(&gateway, &shop(&["large"])).await;
        gateway.post("/v1/jobs", &shop(&["large"])).await.problem(429, "too_many_jobs");
        gateway.post(&format!("/v1/jobs/{first}/cancel"), &json!({})).await.ok(202);
        create(&gateway, &shop(&["large"])).await;
        // A job that is there says what it waits for when the workers are gone.
        worker.leave().await;
        let waits = || async {
            let jobs = gateway.get("/v1/jobs").await.ok(200);
            let open = jobs["jobs"].as_array().unwrap().iter().find(|job| job["state"] == "uploading").unwrap().clone();
            let state = gateway.get(&format!("/v1/jobs/{}", open["job"].as_str().unwrap())).await.ok(200);
            state["waiting_for"]["code"] == "workers"
        };
        eventually("it waits for workers", waits).await;
        gateway.stop().await;
    });
}

#[test]
fn a_cancelled_job_ends_and_a_deleted_one_leaves_nothing() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}");
        assert_eq!(worker.depth(&job, 0).await, Some(0));
        assert_eq!(gateway.delete(&path).await.ok(202)["state"], "cancelled");
        let state = gateway.get(&path).await.ok(200);
        assert_eq!((&state["state"], &state["error"]["code"]), (&json!("cancelled"), &json!("cancelled")));
        assert_eq!(gateway.post(&format!("{path}/cancel"), &json!({})).await.ok(202)["state"], "cancelled");
        let ended = gateway.put(&format!("{path}/tables/sales/chunks/0"), b"1,a\n").await.problem(409, "already_ended");
        assert_eq!(ended["state"], "cancelled");
        assert_eq!(gateway.delete(&path).await.ok(202)["state"], "cancelled");
        gateway.delete(&path).await.problem(404, "not_found");
        assert_eq!(worker.depth(&job, 0).await, None);
        let reading = worker.link.session().await;
        for log in [Log::Control, Log::Broadcast, Log::Results, Log::Partition(Partition(0))] {
            let log = worker.link.names().log(&id(&job), log);
            assert_eq!(reading.reading.queue_depth(&log).await.unwrap(), None, "{log}");
        }
        let done = create(&gateway, &shop(&["large"])).await;
        worker.finish(&done, 0).await;
        let ended = || async { gateway.get(&format!("/v1/jobs/{done}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", ended).await;
        gateway.post(&format!("/v1/jobs/{done}/cancel"), &json!({})).await.problem(409, "already_ended");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn waiting_for_an_answer_does_not_keep_a_job_without_data() {
    with_broker(async |deployment| {
        let patience = Patience { idle: Duration::from_secs(1), results: Duration::from_secs(600) };
        let worker = Worker::join_with(&deployment, patience).await;
        let gateway = deployment.gateway_with(|settings| settings.patience = patience).await;
        let job = create(&gateway, &shop(&["large"])).await;
        let mut rows = gateway.open("GET", &format!("/v1/jobs/{job}/results/large"), b"").await;
        let mut rejects = gateway.open("GET", &format!("/v1/jobs/{job}/rejects"), b"").await;
        let mut events = gateway.open("GET", &format!("/v1/jobs/{job}/events"), b"").await;
        for stream in [&mut rows, &mut rejects] {
            let last = soon("the end of a stream", stream.line()).await.unwrap();
            assert!(last.starts_with(r#"{"error":{"code":"expired""#), "{last}");
        }
        let mut last = soon("an event", events.event()).await.unwrap();
        while last.0 != "end" {
            last = soon("an event", events.event()).await.unwrap();
        }
        assert_eq!(last.2["state"], "expired");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_job_lives_as_long_as_its_client_asks_about_it() {
    with_broker(async |deployment| {
        let patience = Patience { idle: Duration::from_secs(2), results: Duration::from_secs(600) };
        let worker = Worker::join_with(&deployment, patience).await;
        let gateway = deployment.gateway_with(|settings| settings.patience = patience).await;
        let (followed, left) = (create(&gateway, &shop(&["large"])).await, create(&gateway, &shop(&["large"])).await);
        let state = async |job: &str| gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"].clone();
        let listed = || async {
            assert_eq!(state(&followed).await, "uploading");
            let jobs = gateway.get("/v1/jobs").await.ok(200);
            jobs["jobs"].as_array().unwrap().iter().any(|line| line["job"] == *left && line["state"] == "expired")
        };
        eventually("the job that nobody follows expires", listed).await;
        assert_eq!(state(&followed).await, "uploading");
        gateway.stop().await;
        worker.leave().await;
    });
}
