use std::io::Cursor;
use std::time::Duration;

use datafusion::arrow::ipc::reader::StreamReader;
use serde_json::{Value, json};
use tenaz_cluster::{Control, IndexedRows, ResultIndex};
use tenaz_core::limits::OFFSET_JUMP;
use tenaz_core::{Fact, QueryEnded, QueryId, QueryOutcome, TableId};

use crate::common::http::Client;
use crate::common::worker::{Worker, id};
use crate::common::{create, eventually, shop, with_broker};

#[test]
fn rows_appear_while_data_is_uploaded_and_the_end_is_explicit_in_every_format() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/results/large");
        let mut rows = gateway.open("GET", &path, b"").await;
        assert_eq!((rows.status, rows.headers["content-type"].as_str()), (200, "application/x-ndjson"));
        worker.write_rows(&job, 0, &[(11, "tea"), (12, "a \"mug\"\nof tea")]).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":11,"item":"tea"}}"#);
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":12,"item":"a \"mug\"\nof tea"}}"#);
        assert_eq!(gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"], "uploading");
        worker.write_rows(&job, 0, &[(11, "tea"), (12, "a \"mug\"\nof tea")]).await;
        worker.write_rows(&job, 1, &[(13, "milk")]).await;
        let end = worker.finish(&job, 3).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":13,"item":"milk"}}"#, "repeats are not told");
        assert_eq!(rows.line().await.unwrap(), r#"{"end":{"rows":3,"fingerprint":"f00d","ordered":false}}"#);
        assert_eq!(rows.line().await, None);

        let csv = gateway.with("Accept", "text/html, text/csv;q=0.9").get(&path).await;
        assert_eq!(csv.headers["content-type"], "text/csv");
        let expected =
            "n,item\n11,tea\n12,\"a \"\"mug\"\"\nof tea\"\n13,milk\n# end rows=3 fingerprint=f00d ordered=false\n";
        assert_eq!(csv.text(), expected);

        let document = gateway.get(&format!("{path}?format=json")).await.ok(200);
        assert_eq!(document["columns"][1], json!({"name": "item", "type": "text"}));
        assert_eq!(document["rows"].as_array().unwrap().len(), 3);
        assert_eq!(document["rows"][2], json!({"n": 13, "item": "milk"}));
        assert_eq!(document["end"]["rows"], 3);

        let arrow = gateway.with("Accept", "application/vnd.apache.arrow.stream").get(&path).await;
        let mut body = Cursor::new(arrow.body);
        let reader = StreamReader::try_new(&mut body, None).unwrap();
        assert_eq!(reader.schema().field(0).name(), "n");
        assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3);
        let rest = &body.get_ref()[body.position() as usize..];
        let rest: Value = serde_json::from_slice(rest).unwrap();
        assert_eq!(rest, json!({"end": {"rows": 3, "fingerprint": "f00d", "ordered": false}}));

        gateway.get(&format!("{path}?format=xml")).await.problem(400, "bad_request");
        gateway.get(&format!("/v1/jobs/{job}/results/small")).await.problem(404, "not_found");
        let done = || async { gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", done).await;
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["results"], json!({"queries": end.queries, "failed": [], "tables": end.tables}));
        assert_eq!((&state["progress"]["records"], &state["progress"]["rejected"]), (&json!(5), &json!(1)));
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_stream_ends_when_its_question_is_final_though_the_job_goes_on() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large", "turnover"])).await;
        let mut rows = gateway.open("GET", &format!("/v1/jobs/{job}/results/large"), b"").await;
        let open = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!((&open["questions"][0]["name"], &open["questions"][0]["state"]), (&json!("large"), &json!("open")));
        let outcome = QueryOutcome::Answered { rows: 1, fingerprint: "f00d".to_owned() };
        let end = QueryEnded { outcome, at_ms: 0 };
        // The word of the end may come before the rows do.
        let fact = Fact::QueryEnded { query: QueryId(0), end };
        worker.book.tell(&id(&job), &Control::Fact(fact)).await.unwrap();
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":11,"item":"tea"}}"#);
        assert_eq!(rows.line().await.unwrap(), r#"{"end":{"rows":1,"fingerprint":"f00d","ordered":false}}"#);
        assert_eq!(rows.line().await, None);
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["state"], "uploading");
        let question = &state["questions"][0];
        assert_eq!((&question["state"], &question["rows"]), (&json!("final"), &json!(1)));
        assert_eq!(question["final_at"], "1970-01-01T00:00:00.000Z");
        assert_eq!(state["questions"][1]["state"], "open");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_question_that_failed_is_named_in_its_stream_and_afterwards_as_a_problem() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/results/large");
        let mut rows = gateway.open("GET", &path, b"").await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        assert_eq!(rows.line().await.unwrap(), r#"{"row":{"n":11,"item":"tea"}}"#);
        worker.finish_without_answer(&job, "division by zero").await;
        let last: Value = serde_json::from_str(&rows.line().await.unwrap()).unwrap();
        let told =
            json!({"code": "query_failed", "class": "query", "state": "done", "text": "large: division by zero"});
        assert_eq!(last, json!({"error": told}));
        let done = || async { gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", done).await;
        let problem = gateway.get(&path).await.problem(422, "query_failed");
        assert_eq!((&problem["detail"], &problem["class"]), (&json!("large: division by zero"), &json!("query")));
        assert_eq!(problem["query"], "large");
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        let failed = json!([{"name": "large", "class": "query", "text": "division by zero"}]);
        assert_eq!(state["results"]["failed"], failed);
        let listed = gateway.get("/v1/jobs").await.ok(200);
        assert_eq!(listed["jobs"][0]["failed"], failed);
        gateway.stop().await;
        worker.leave().await;
    });
}

/// Messages of results logs that a gateway has read.
async fn results_messages(gateway: &Client) -> u64 {
    let metrics = gateway.get("/metrics").await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix("tenaz_results_messages_total "));
    line.unwrap_or_else(|| panic!("no such metric: {metrics}")).parse().unwrap()
}

#[test]
fn a_done_job_with_many_chunks_is_asked_about_without_reading_their_accounts() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let first = deployment.gateway().await;
        let job = create(&first, &shop(&["large"])).await;
        let mut index = ResultIndex { queries: vec![IndexedRows::default()], ..ResultIndex::default() };
        const MANY: u64 = 4 * OFFSET_JUMP;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        index.queries[0].note(0, 1);
        worker.write_accounts(&job, 2..1 + MANY).await;
        worker.write_rejects(&job, TableId(0), 1 + MANY, &[(3, "not_int")]).await;
        index.rejects.note(MANY, 1);
        worker.write_accounts(&job, 2 + MANY..1 + 2 * MANY).await;
        worker.write_rows(&job, 1, &[(12, "milk"), (13, "mug")]).await;
        index.queries[0].note(2 * MANY, 2);
        worker.write_accounts(&job, 1 + 2 * MANY..3 * MANY).await;
        index.read_to = 3 * MANY;
        let end = worker.finish_with(&job, 3, Some(index)).await;
        let done = || async { first.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", done).await;

        // A gateway that has just come, and knows nothing but the registry.
        let gateway = deployment.gateway().await;
        let line = gateway.get("/v1/jobs").await.ok(200)["jobs"][0].clone();
        assert_eq!(line["progress"]["chunks"], line["progress"]["chunks_known"], "{line}");
        assert_eq!((&line["state"], &line["progress"]["records"]), (&json!("done"), &json!(5)));
        assert_eq!(results_messages(&gateway).await, 0, "a list of jobs reads no results");
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["results"], json!({"queries": end.queries, "failed": [], "tables": end.tables}));
        let sales =
            json!({"name": "sales", "chunks_received": 2, "closed": true, "chunks": 2, "records": 5, "bytes": 50});
        assert!(state["tables"].as_array().unwrap().contains(&sales), "without a single receipt: {}", state["tables"]);
        let rows = gateway.get(&format!("/v1/jobs/{job}/results/large?format=csv")).await.text();
        assert_eq!(rows, "n,item\n11,tea\n12,milk\n13,mug\n# end rows=3 fingerprint=f00d ordered=false\n");
        let rejects = gateway.get(&format!("/v1/jobs/{job}/rejects?format=csv")).await.text();
        assert!(rejects.contains("not_int") && rejects.contains("# end rows=1 "), "{rejects}");
        let read = results_messages(&gateway).await;
        assert!(read < 10, "{read} messages were read for an end and three messages with rows");
        gateway.stop().await;
        first.stop().await;
        worker.leave().await;
    });
}

#[test]
fn an_index_that_is_wrong_costs_time_and_no_row() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        worker.write_rows(&job, 1, &[(12, "milk")]).await;
        // As the owner of the results knew the log before it lost its tail: the second chunk was elsewhere, and so was the end.
        let mut index = ResultIndex { queries: vec![IndexedRows::default()], ..ResultIndex::default() };
        index.queries[0].note(0, 1);
        index.queries[0].note(OFFSET_JUMP * 2, 1);
        index.read_to = OFFSET_JUMP * 3;
        worker.finish_with(&job, 2, Some(index)).await;
        let done = || async { gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", done).await;
        let path = format!("/v1/jobs/{job}/results/large?format=csv");
        let all = "n,item\n11,tea\n12,milk\n# end rows=2 fingerprint=f00d ordered=false\n";
        assert_eq!(gateway.get(&path).await.text(), all);

        // And where the offsets exist, with other messages.
        let job = create(&gateway, &shop(&["large"])).await;
        worker.write_accounts(&job, 2..3).await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        worker.write_accounts(&job, 3..3 + 2 * OFFSET_JUMP).await;
        worker.write_rows(&job, 1, &[(12, "milk")]).await;
        let mut index = ResultIndex { queries: vec![IndexedRows::default()], ..ResultIndex::default() };
        index.queries[0].note(0, 1);
        index.queries[0].note(1, 1);
        index.read_to = 2 * OFFSET_JUMP;
        worker.finish_with(&job, 2, Some(index)).await;
        let done = || async { gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "done" };
        eventually("the job is done", done).await;
        let path = format!("/v1/jobs/{job}/results/large?format=csv");
        assert_eq!(gateway.get(&path).await.text(), all);
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_job_without_an_answer_ends_its_streams_with_the_reason() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/results/large");
        let mut rows = gateway.open("GET", &path, b"").await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        assert!(rows.line().await.unwrap().contains("tea"));
        gateway.delete(&format!("/v1/jobs/{job}")).await.ok(202);
        let last: Value = serde_json::from_str(&rows.line().await.unwrap()).unwrap();
        assert_eq!(last["error"]["code"], "cancelled");
        assert_eq!(rows.line().await, None);
        // Asked again, when the log may be gone already.
        assert_eq!(
            gateway.get(&format!("{path}?format=csv")).await.text(),
            "n,item\n# error code=cancelled the job was cancelled\n"
        );
        assert_eq!(gateway.get(&format!("{path}?format=json")).await.ok(200)["error"]["code"], "cancelled");
        let arrow = gateway.get(&format!("{path}?format=arrow")).await.body;
        let mut body = Cursor::new(arrow);
        assert_eq!(StreamReader::try_new(&mut body, None).unwrap().count(), 0);
        let rest = body.position() as usize;
        assert!(body.get_ref()[rest..].starts_with(br#"{"error":{"code":"cancelled""#));
        let rejects = gateway.get(&format!("/v1/jobs/{job}/rejects")).await.ok(200);
        assert_eq!(rejects["error"]["code"], "cancelled");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn bad_records_come_in_the_order_of_the_data() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/rejects?format=csv");
        let mut stream = gateway.open("GET", &path, b"").await;
        worker.write_rejects(&job, TableId(0), 1, &[(30, "third")]).await;
        worker.write_rejects(&job, TableId(0), 0, &[(10, "first"), (20, "second")]).await;
        worker.write_rejects(&job, TableId(0), 1, &[(30, "third")]).await;
        worker.finish(&job, 0).await;
        let mut lines = Vec::new();
        while let Some(line) = stream.line().await {
            lines.push(line);
        }
        let row = |line: u64, reason: &str| format!("sales,sales.csv,{line},{line},n,{reason},\"x,y\"");
        assert_eq!(lines[0], "table,file,line,byte,column,reason,text");
        assert_eq!(lines[1..4], [row(10, "first"), row(20, "second"), row(30, "third")]);
        assert!(lines[4].starts_with("# end rows=3 fingerprint=") && lines.len() == 5, "{lines:?}");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn events_go_on_at_another_gateway_where_they_were_cut() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let (first, second) = (deployment.gateway().await, deployment.gateway().await);
        let job = create(&first, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/events");
        let mut events = first.open("GET", &path, b"").await;
        assert_eq!(events.headers["content-type"], "text/event-stream");
        let (name, id, data) = events.event().await.unwrap();
        assert_eq!((name.as_str(), &data), ("state", &json!({"state": "uploading"})));
        assert!(id.is_some());
        first.put(&format!("/v1/jobs/{job}/tables/sales/chunks/0"), b"11,a\n").await.ok(200);
        let last = loop {
            let (name, id, data) = events.event().await.unwrap();
            if name == "table" && data["chunks_received"] == 1 {
                break id.unwrap();
            }
        };
        drop(events);
        // Cut off: meanwhile the table is finished. What was told is not told again.
        let mut same = second.with("Last-Event-ID", &last.to_string()).open("GET", &path, b"").await;
        first.post(&format!("/v1/jobs/{job}/tables/sales/finish"), &json!({"chunks": 1, "bytes": 5})).await.ok(200);
        let mut seen = Vec::new();
        while !seen.contains(&"state processing".to_owned()) || !seen.contains(&"table true".to_owned()) {
            let (name, id, data) = same.event().await.unwrap();
            match name.as_str() {
                "state" => seen.push(format!("state {}", data["state"].as_str().unwrap())),
                "table" => seen.push(format!("table {}", data["closed"])),
                _ => continue,
            }
            assert!(id.unwrap() > last, "{seen:?}");
        }
        assert!(!seen.contains(&"table false".to_owned()) && !seen.contains(&"state uploading".to_owned()), "{seen:?}");
        worker.finish(&job, 0).await;
        let end = loop {
            let (name, _, data) = same.event().await.unwrap();
            if name == "end" {
                break data;
            }
        };
        assert_eq!((&end["state"], &end["results"]["queries"][0]["name"]), (&json!("done"), &json!("large")));
        assert_eq!(same.event().await, None, "the stream ends after the end");
        second.with("Last-Event-ID", "x").get(&path).await.problem(400, "bad_request");
        first.stop().await;
        second.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_client_that_goes_away_frees_its_stream() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway_with(|settings| settings.limits.streams = 1).await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/results/large");
        let stream = gateway.open("GET", &path, b"").await;
        gateway.get(&path).await.problem(503, "busy");
        drop(stream);
        let free = || async { gateway.open("GET", &path, b"").await.status == 200 };
        eventually("the slot is free again", free).await;
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_gateway_that_shuts_down_finishes_its_streams_with_an_error_record() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let mut rows = gateway.open("GET", &format!("/v1/jobs/{job}/results/large"), b"").await;
        worker.write_rows(&job, 0, &[(11, "tea")]).await;
        assert!(rows.line().await.unwrap().contains("tea"));
        let address = gateway.address;
        let stopping = gateway.gateway.shutdown(Duration::from_secs(1));
        let reading = async {
            let last: Value = serde_json::from_str(&rows.line().await.unwrap()).unwrap();
            assert_eq!(last["error"]["code"], "shutting_down");
            assert_eq!(rows.line().await, None);
        };
        tokio::join!(stopping, reading);
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
        worker.leave().await;
    });
}
