//! Who is there, and what has happened.

use serde_json::{Value, json};

use crate::common::http::Client;
use crate::common::worker::Worker;
use crate::common::{create, eventually, shop, with_broker};

/// All events that a gateway has now, each with its id.
async fn events(gateway: &Client, after: Option<&str>) -> Vec<(String, Value)> {
    let path = after.map_or("/v1/cluster/events".to_owned(), |id| format!("/v1/cluster/events?last_event_id={id}"));
    let mut stream = gateway.open("GET", &path, b"").await;
    assert_eq!((stream.status, stream.headers["content-type"].as_str()), (200, "text/event-stream"));
    let (mut events, mut id) = (Vec::new(), String::new());
    loop {
        let line = stream.line().await.expect("the stream stays open");
        if line == ": all" {
            return events;
        }
        if let Some(found) = line.strip_prefix("id: ") {
            id = found.to_owned();
        } else if let Some(data) = line.strip_prefix("data: ") {
            events.push((id.clone(), serde_json::from_str(data).expect("JSON")));
        }
    }
}

fn count(events: &[(String, Value)], kind: &str, role: &str) -> usize {
    events.iter().filter(|(_, event)| event["kind"] == kind && event["role"] == role).count()
}

#[test]
fn comings_and_goings_are_told_once_by_every_gateway_and_after_an_id() {
    with_broker(async |deployment| {
        let (first, second) = (deployment.gateway().await, deployment.gateway().await);
        let worker = Worker::join(&deployment).await;
        let job = create(&first, &shop(&["large"])).await;
        let joined = || async { count(&events(&first, None).await, "joined", "worker") == 1 };
        eventually("the worker has joined", joined).await;
        let created = || async {
            let all = events(&first, None).await;
            all.iter().any(|(_, event)| event["kind"] == "job_created" && event["job"] == job)
        };
        eventually("the job was created", created).await;
        let cluster = first.get("/v1/cluster").await.ok(200);
        let members = cluster["members"].as_array().unwrap();
        // Both gateways are in this process, and have its name.
        let of = |role: &str| members.iter().filter(|member| member["role"] == role).count();
        assert_eq!((of("gateway"), of("worker")), (1, 1), "{cluster}");
        assert_eq!((&cluster["supervision"], &cluster["broker"]["state"]), (&json!("none"), &json!("up")));
        let gateway = members.iter().find(|member| member["role"] == "gateway").unwrap();
        assert!(gateway["memory_bytes"].as_u64() > Some(1 << 20) && gateway["threads"].as_u64() > Some(0), "{gateway}");
        assert_eq!(
            (&cluster["tenants"][0]["tenant"], &cluster["tenants"][0]["open_jobs"]),
            (&json!("public"), &json!(1))
        );
        let before = events(&first, None).await;
        let last = before.last().unwrap().0.clone();
        worker.leave().await;
        let left = || async { count(&events(&second, Some(&last)).await, "left", "worker") == 1 };
        eventually("the worker has left", left).await;
        let news = events(&second, Some(&last)).await;
        assert_eq!(count(&news, "joined", "worker"), 0, "what came before the id is not told again: {news:?}");
        assert_eq!(count(&news, "died", "worker"), 0, "it said that it leaves");
        first.stop().await;
        // Another gateway knows what the first has written, with the same ids.
        let third = deployment.gateway().await;
        let same = || async { events(&third, None).await.starts_with(&before) };
        eventually("a new gateway tells the same", same).await;
        third.get("/v1/cluster/events?last_event_id=x").await.problem(400, "bad_request");
        second.stop().await;
        third.stop().await;
    });
}
