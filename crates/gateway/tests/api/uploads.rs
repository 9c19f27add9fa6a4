use std::io::Write;
use std::time::Duration;

use serde_json::json;
use tenaz_cluster::limits::QUEUED_CHUNKS;
use tenaz_cluster::{Control, Encoding};
use tenaz_core::{Fact, Promise, TableId, WorkloadText};
use tenaz_csv::{Chunk, Chunker};
use tokio::io::AsyncWriteExt;

use crate::common::worker::{Worker, id};
use crate::common::{SHOP, create, eventually, shop, with_broker};

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn chunks_come_in_any_order_and_repeats_are_harmless() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let table = format!("/v1/jobs/{job}/tables/sales");
        let chunk = |n: u64| format!("{table}/chunks/{n}");
        let named = gateway.with("Tenaz-File", "a%20b.csv").with("Tenaz-Byte", "7").with("Tenaz-Line", "3");
        let named = named.with("Tenaz-Records", "1");
        assert_eq!(named.put(&chunk(3), b"13,c\n").await.ok(200), json!({"chunk": 3, "status": "received"}));
        let compressed = gateway.with("Content-Encoding", "zstd").put(&chunk(1), &zstd(b"11,b\n")).await.ok(200);
        assert_eq!(compressed["status"], "received");
        assert_eq!(gateway.put(&chunk(3), b"13,c\n").await.ok(200), json!({"chunk": 3, "status": "duplicate"}));
        let missing = gateway.get(&format!("/v1/jobs/{job}/missing?table=sales&chunks=5")).await.ok(200);
        let expected = json!({"tables": [{"name": "sales", "closed": false, "missing": [[0, 1], [2, 3], [4, 5]]}]});
        assert_eq!(missing, expected);
        assert_eq!(
            gateway.get(&format!("/v1/jobs/{job}/missing?chunks.sales=2")).await.ok(200)["tables"][0]["missing"],
            json!([[0, 1]])
        );
        let finish = json!({"chunks": 4, "records": 4, "bytes": 25});
        let finished = gateway.post(&format!("{table}/finish"), &finish).await.ok(200);
        assert_eq!(finished, json!({"table": "sales", "chunks": 4, "missing": [[0, 1], [2, 3]]}));
        assert_eq!(gateway.post(&format!("{table}/finish"), &finish).await.ok(200), finished, "the same again");
        gateway.post(&format!("{table}/finish"), &json!({"chunks": 5, "bytes": 0})).await.problem(409, "contradiction");
        gateway.put(&chunk(4), b"1,x\n").await.problem(409, "contradiction");
        // The rest comes at once.
        let lz4_client = gateway.with("Content-Encoding", "lz4");
        let (zero, two) = (chunk(0), chunk(2));
        let body = lz4(b"10,a\n");
        let (zero, two) = tokio::join!(lz4_client.put(&zero, &body), gateway.put(&two, b"12,c\n"));
        assert_eq!((&zero.ok(200)["status"], &two.ok(200)["status"]), (&json!("received"), &json!("received")));
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["state"], "processing", "{state}");
        let sales =
            json!({"name": "sales", "chunks_received": 4, "closed": true, "chunks": 4, "records": 4, "bytes": 25});
        assert_eq!(state["tables"], json!([sales]));
        assert_eq!(state["spec"]["queries"], json!(["large"]));
        // What went into the queue is what was sent, each once.
        assert_eq!(worker.depth(&job, 0).await, Some(4));
        let mut taken = worker.take_chunks(&job, 0, 4).await;
        taken.sort_by_key(|(header, _)| header.number);
        let headers: Vec<_> =
            taken.iter().map(|(header, _)| (header.number, header.encoding, header.raw_bytes)).collect();
        use Encoding::{Identity, Lz4, Zstd};
        assert_eq!(headers, [(0, Lz4, 5), (1, Zstd, 5), (2, Identity, 5), (3, Identity, 5)]);
        assert_eq!(taken[0].1, body, "forwarded as it came");
        let (last, payload) = &taken[3];
        assert_eq!((last.table, last.file.as_str(), last.byte, last.line), (TableId(0), "a b.csv", 7, 3));
        assert_eq!((last.records, payload.as_slice()), (Some(1), &b"13,c\n"[..]));
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_number_is_taken_with_one_content_only() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let (gateway, second) = (deployment.gateway().await, deployment.gateway().await);
        let job = create(&gateway, &shop(&["large"])).await;
        let table = format!("/v1/jobs/{job}/tables/sales");
        let chunk = |n: u64| format!("{table}/chunks/{n}");
        gateway.put(&chunk(0), b"10,a\n").await.ok(200);
        // Until then it would take the chunk for a new one, which is harmless, and not what is tried here.
        eventually("the second gateway has read the receipt", || async {
            let known = second.get(&format!("{table}/digests")).await;
            known.status == 200 && !known.ok(200)["digests"][0].is_null()
        })
        .await;
        let as_zstd = second.with("Content-Encoding", "zstd");
        assert_eq!(as_zstd.put(&chunk(0), &zstd(b"10,a\n")).await.ok(200)["status"], "duplicate", "the same bytes");
        let plain = gateway.with("Content-Encoding", "identity");
        for (client, body) in [(&plain, b"10,b\n".to_vec()), (&as_zstd, zstd(b"10,b\n"))] {
            let conflict = client.put(&chunk(0), &body).await.problem(409, "chunk_conflict");
            assert_eq!((&conflict["table"], &conflict["chunk"]), (&json!("sales"), &json!(0)));
            let text = conflict["detail"].as_str().unwrap();
            assert!(text.contains("chunk 0 of table sales was sent twice with different bytes"), "{text}");
        }
        assert_eq!(worker.depth(&job, 0).await, Some(1), "nothing of it was published");
        let digests = second.get(&format!("{table}/digests")).await.ok(200);
        let digest = |bytes: &[u8]| json!(tenaz_core::ChunkDigest::of(bytes));
        assert_eq!((&digests["digests"][0], &digests["digests"][1]), (&digest(b"10,a\n"), &json!(null)));
        // What the broker has lost must come again as it was.
        let lost = Fact::Lost { table: TableId(0), chunks: Promise::count(1) };
        worker.book.tell(&id(&job), &Control::Fact(lost)).await.unwrap();
        eventually("the loss is known", || async {
            let missing = gateway.get(&format!("/v1/jobs/{job}/missing?chunks.sales=1")).await.ok(200);
            missing["tables"][0]["missing"] == json!([[0, 1]])
        })
        .await;
        gateway.put(&chunk(0), b"10,b\n").await.problem(409, "chunk_conflict");
        assert_eq!(gateway.put(&chunk(0), b"10,a\n").await.ok(200)["status"], "received");
        // Two gateways at the same moment: whichever writes its receipt later finds out, and the job fails.
        let (one, two) = (chunk(1), chunk(1));
        let (one, two) = tokio::join!(gateway.put(&one, b"11,a\n"), second.put(&two, b"11,b\n"));
        assert!(one.status == 409 || two.status == 409, "{} {}", one.text(), two.text());
        eventually("the job has failed", || async {
            gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "failed"
        })
        .await;
        let error = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["error"].clone();
        assert_eq!(error["code"], "contradiction");
        assert!(error["text"].as_str().unwrap().contains("chunk 1 of table sales"), "{error}");
        gateway.stop().await;
        second.stop().await;
        worker.leave().await;
    });
}

#[test]
fn what_is_too_large_or_broken_is_refused() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let table = format!("/v1/jobs/{job}/tables/sales");
        let chunk = format!("{table}/chunks/0");
        let as_zstd = gateway.with("Content-Encoding", "zstd");
        as_zstd.put(&chunk, &zstd(&vec![b'0'; 200 << 20])).await.problem(413, "too_large");
        as_zstd.put(&chunk, &zstd(&vec![b'0'; 7 << 20])).await.problem(413, "too_large");
        as_zstd.put(&chunk, b"1,a\n").await.problem(422, "unprocessable");
        as_zstd.put(&chunk, &zstd(b"11,a\n11,b\n")[..12]).await.problem(422, "unprocessable");
        gateway.put(&chunk, &vec![b'\n'; (8 << 20) + 1]).await.problem(413, "too_large");
        // Refused by its head alone, before anything is sent.
        let socket = gateway.begin("PUT", &chunk, 1 << 40).await;
        assert_eq!(crate::common::http::Stream::read(socket).await.status, 413);
        gateway.with("Content-Encoding", "gzip").put(&chunk, b"x").await.problem(422, "unprocessable");
        gateway.with("Content-Encoding", "br").put(&chunk, b"x").await.problem(415, "unsupported_encoding");
        gateway.put(&format!("{table}/chunks/4294967296"), b"1,a\n").await.problem(400, "bad_request");
        gateway.put(&format!("{table}/chunks/one"), b"1,a\n").await.problem(400, "bad_request");
        let unread =
            gateway.put(&format!("/v1/jobs/{job}/tables/unread/chunks/0"), b"1\n").await.problem(404, "not_found");
        assert!(unread["detail"].as_str().unwrap().contains("sales"), "{unread}");
        gateway.with("Tenaz-File", &"x".repeat(1500)).put(&chunk, b"1,a\n").await.problem(413, "too_large");
        gateway.with("Tenaz-Line", "x").put(&chunk, b"1,a\n").await.problem(400, "bad_request");
        let key = gateway.with("Idempotency-Key", &"k".repeat(201));
        key.post("/v1/jobs", &shop(&["large"])).await.problem(413, "too_large");
        gateway.post(&format!("{table}/finish"), &json!({})).await.problem(400, "bad_request");
        gateway
            .post(&format!("{table}/finish"), &json!({"chunks": 1u64 << 40, "bytes": 0}))
            .await
            .problem(413, "too_large");
        assert_eq!(worker.depth(&job, 0).await, Some(0), "nothing of it was published");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_table_without_records_is_one_empty_chunk() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/tables/sales/finish");
        for _ in 0..2 {
            let finished = gateway.post(&path, &json!({"chunks": 0, "records": 0, "bytes": 0})).await.ok(200);
            assert_eq!(finished, json!({"table": "sales", "chunks": 1, "missing": []}));
        }
        let taken = worker.take_chunks(&job, 0, 1).await;
        assert_eq!((taken[0].0.number, taken[0].0.records, taken[0].1.len()), (0, Some(0), 0));
        assert_eq!(worker.depth(&job, 0).await, Some(0));
        assert_eq!(gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"], "processing");
        gateway.stop().await;
        worker.leave().await;
    });
}

fn sales_file(records: usize) -> Vec<u8> {
    let lines = (0..records).map(|n| format!("{n},\"item, {}\nnew line\"\n", n % 7));
    std::iter::once("n,item\n".to_owned()).chain(lines).collect::<String>().into_bytes()
}

fn cut(file: &[u8], target: usize) -> Vec<Chunk> {
    let files =
        WorkloadText { file: "shop.toml".to_owned(), toml: SHOP.to_owned(), sql: Default::default(), now: None };
    let workload = tenaz_engine::Workload::from_text(&files).unwrap();
    let mut chunker = Chunker::new(file, &workload.tables[0].layout, target);
    std::iter::from_fn(|| chunker.next_chunk().unwrap()).collect()
}

#[test]
fn a_whole_file_is_cut_where_a_client_would_cut_it() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let mut request = shop(&["large"]);
        request["chunk_bytes"] = json!(2048);
        let job = create(&gateway, &request).await;
        let table = format!("/v1/jobs/{job}/tables/sales");
        let (first, second) = (sales_file(500), sales_file(300));
        let expected: Vec<(u64, Chunk)> = [(1u64, &first), (2, &second)]
            .into_iter()
            .flat_map(|(k, file)| cut(file, 2048).into_iter().map(move |chunk| ((k << 32) + chunk.number, chunk)))
            .collect();
        let chunks = cut(&first, 2048).len();
        let sent = gateway.put(&format!("{table}/files/1?name=july%202024.csv"), &first).await.ok(200);
        assert_eq!(sent, json!({"file": 1, "chunks": chunks, "records": 500, "bytes": first.len()}));
        assert_eq!(gateway.put(&format!("{table}/files/1?name=x"), &first).await.ok(200), sent, "the same again");
        gateway.post(&format!("{table}/finish"), &json!({"files": [1, 2]})).await.problem(409, "contradiction");
        let as_zstd = gateway.with("Content-Encoding", "zstd");
        let sent = as_zstd.put(&format!("{table}/files/2"), &zstd(&second)).await.ok(200);
        assert_eq!((&sent["records"], &sent["bytes"]), (&json!(300), &json!(second.len())));
        let other = gateway.put(&format!("{table}/files/1"), &second).await.problem(409, "chunk_conflict");
        assert_eq!(
            other["chunk"],
            json!((1u64 << 32) + cut(&second, 2048).len() as u64 - 1),
            "the last one is shorter"
        );
        gateway.put(&format!("{table}/files/0"), &second).await.problem(400, "bad_request");
        let header = gateway.put(&format!("{table}/files/3"), b"n,thing\n1,a\n").await.problem(422, "unprocessable");
        assert!(header["detail"].as_str().unwrap().contains("\"thing\""), "{header}");
        as_zstd.put(&format!("{table}/files/3"), &zstd(&vec![b'\n'; 64 << 20])).await.problem(413, "too_large");
        let finished = gateway.post(&format!("{table}/finish"), &json!({"files": [2, 1]})).await.ok(200);
        assert_eq!(finished, json!({"table": "sales", "chunks": expected.len(), "missing": []}));
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200);
        assert_eq!(state["state"], "processing");
        assert_eq!(
            (&state["tables"][0]["records"], &state["tables"][0]["bytes"]),
            (&json!(800), &json!(first.len() + second.len()))
        );
        assert_eq!(worker.depth(&job, 0).await, Some(expected.len() as u32), "repeats were not sent");
        let mut taken = worker.take_chunks(&job, 0, expected.len()).await;
        taken.sort_by_key(|(header, _)| header.number);
        for ((header, payload), (number, chunk)) in taken.iter().zip(&expected) {
            assert_eq!((header.number, header.byte, header.line), (*number, chunk.byte, chunk.line));
            assert_eq!((header.records, payload.as_slice()), (Some(chunk.records), chunk.data.as_slice()));
        }
        assert_eq!(taken[0].0.file, "july 2024.csv");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_file_whose_connection_is_cut_is_incomplete_until_it_is_sent_again() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway().await;
        let mut request = shop(&["large"]);
        request["chunk_bytes"] = json!(8192);
        let job = create(&gateway, &request).await;
        let table = format!("/v1/jobs/{job}/tables/sales");
        // Far more than a chunker may want to see before it knows where a record ends.
        let file = sales_file(20_000);
        let mut socket = gateway.begin("PUT", &format!("{table}/data"), file.len()).await;
        socket.write_all(&file[..file.len() / 2]).await.unwrap();
        let arrived = || async { worker.depth(&job, 0).await.unwrap() > 3 };
        eventually("some of it has arrived", arrived).await;
        drop(socket);
        gateway.post(&format!("{table}/finish"), &json!({"files": [1]})).await.problem(409, "contradiction");
        let sent = gateway.put(&format!("{table}/data"), &file).await.ok(200);
        let chunks = cut(&file, 8192).len();
        assert_eq!(sent["chunks"], chunks);
        assert_eq!((&sent["records"], &sent["missing"]), (&json!(20_000), &json!([])));
        assert_eq!(gateway.put(&format!("{table}/data"), &file).await.ok(200), sent, "the same again");
        gateway.stop().await;
        worker.leave().await;
    });
}

/// Chunks of sales wait in their queue until the items are there.
#[test]
fn files_that_wait_for_another_table_leave_it_a_place_and_are_few() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway_with(|settings| settings.limits.files = 1).await;
        let mut request = shop(&["turnover"]);
        request["chunk_bytes"] = json!(1024);
        let job = create(&gateway, &request).await;
        const BEFORE: u32 = QUEUED_CHUNKS - 24;
        worker.put_chunks(&job, 1, BEFORE).await;
        let file = sales_file(20_000);
        let path = |number: u64| format!("/v1/jobs/{job}/tables/sales/files/{number}");
        let (client, body, first) = (gateway.client.clone(), file.clone(), path(1));
        let mut waiting = tokio::spawn(async move { client.put(&first, &body).await });
        let full = || async { worker.depth(&job, 1).await.unwrap() >= QUEUED_CHUNKS };
        eventually("the queue of the sales is full", full).await;
        let sent_back = || async {
            let refused = gateway.put(&path(2), &file).await.problem(503, "busy");
            refused["detail"].as_str().unwrap().contains("waits for items")
        };
        eventually("a second file is sent back for want of items", sent_back).await;
        let items = format!("/v1/jobs/{job}/tables/items/data");
        let taken = || async { gateway.put(&items, b"item,price\na,1.50\n").await.status == 200 };
        eventually("the items find a place", taken).await;
        assert!(!waiting.is_finished());
        // As workers do, once they know the items.
        let working = async {
            loop {
                worker.take_chunks(&job, 1, 64).await;
            }
        };
        let received = tokio::select! {
            received = &mut waiting => received.unwrap(),
            () = working => unreachable!("it has no end"),
        };
        assert_eq!(received.ok(200)["chunks"], cut(&file, 1024).len());
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_full_work_queue_asks_for_patience() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment.gateway_with(|settings| settings.limits.queue_wait = Duration::from_millis(200)).await;
        let job = create(&gateway, &shop(&["large"])).await;
        let queue = worker.link.names().chunks(&id(&job), 0);
        let fill = (0..QUEUED_CHUNKS + 8).map(|_| async {
            let session = worker.link.session().await;
            let properties = tenaz_rabbit::Properties::of_kind("chunk");
            session.publisher.publish(tenaz_rabbit::Target::Queue(&queue), vec![0; 8], &properties).await.is_ok()
        });
        futures::future::join_all(fill).await;
        let chunk = format!("/v1/jobs/{job}/tables/sales/chunks/0");
        // The broker lets a few more in than its limit before it notices.
        let refused = || async { gateway.put(&chunk, b"11,a\n").await.status == 503 };
        let number = std::cell::Cell::new(0);
        let mut full = refused().await;
        while !full {
            number.set(number.get() + 1);
            let path = format!("/v1/jobs/{job}/tables/sales/chunks/{}", number.get());
            full = gateway.put(&path, b"11,a\n").await.status == 503;
        }
        let path = format!("/v1/jobs/{job}/tables/sales/chunks/{}", number.get());
        gateway.put(&path, b"11,a\n").await.problem(503, "queue_full");
        let session = worker.link.session().await;
        let mut consumer = tenaz_rabbit::Consumer::open(&session.reading, &queue, 64).await.unwrap();
        let taking = async {
            loop {
                let delivery = consumer.next().await.unwrap();
                consumer.ack(delivery.tag).await.unwrap();
            }
        };
        let again = eventually("there is room again", || async { gateway.put(&path, b"11,a\n").await.status == 200 });
        tokio::select! {
            () = taking => {}
            () = again => {}
        }
        gateway.stop().await;
        worker.leave().await;
    });
}
