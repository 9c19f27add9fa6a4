use std::time::Duration;

use sha2::{Digest, Sha256};
use tenaz_core::ProcessRole;
use tenaz_gateway::{Error, Gateway, GatewaySettings};
use tenaz_vitals::{Identity, Vitals, VitalsSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::common::http::Stream;
use crate::common::worker::Worker;
use crate::common::{create, eventually, shop, soon, with_broker};

fn tokens(pairs: &[(&str, &str)]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    write_tokens(file.path(), pairs);
    file
}

fn write_tokens(path: &std::path::Path, pairs: &[(&str, &str)]) {
    let hex = |token: &str| Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: String = pairs.iter().map(|(tenant, token)| format!("{tenant}:{}\n", hex(token))).collect();
    std::fs::write(path, lines).unwrap();
}

#[test]
fn a_tenant_sees_only_its_own_jobs() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let file = tokens(&[("ana", "secret-a"), ("bob", "secret-b")]);
        let gateway = deployment.gateway_with(|settings| settings.tokens_file = Some(file.path().to_owned())).await;
        let bearer = |token: &str| gateway.with("Authorization", &format!("Bearer {token}"));
        let (ana, bob) = (bearer("secret-a"), bearer("secret-b"));
        let refused = gateway.get("/v1/jobs").await;
        refused.problem(401, "unauthorized");
        assert_eq!(refused.headers["www-authenticate"], "Bearer");
        bearer("secret").get("/v1/jobs").await.problem(401, "unauthorized");
        gateway.with("Authorization", "Basic secret-a").get("/v1/jobs").await.problem(401, "unauthorized");
        assert_eq!(gateway.get("/healthz").await.status, 200);
        let key = "same key";
        let made = ana.with("Idempotency-Key", key).post("/v1/jobs", &shop(&["large"])).await.ok(201);
        let job = made["job"].as_str().unwrap();
        for path in ["", "/missing", "/results/large", "/events", "/rejects"] {
            bob.get(&format!("/v1/jobs/{job}{path}")).await.problem(404, "not_found");
        }
        bob.delete(&format!("/v1/jobs/{job}")).await.problem(404, "not_found");
        bob.put(&format!("/v1/jobs/{job}/tables/sales/chunks/0"), b"1,a\n").await.problem(404, "not_found");
        assert_eq!(bob.get("/v1/jobs").await.ok(200)["jobs"].as_array().unwrap().len(), 0);
        assert_eq!(ana.get("/v1/jobs").await.ok(200)["jobs"].as_array().unwrap().len(), 1);
        let other = bob.with("Idempotency-Key", key).post("/v1/jobs", &shop(&["large"])).await.ok(201);
        assert_ne!(other["job"], made["job"], "keys of tenants do not meet");
        write_tokens(file.path(), &[("ana", "secret-a"), ("carol", "secret-c")]);
        eventually("the new tokens count", || async { bearer("secret-c").get("/v1/jobs").await.status == 200 }).await;
        bob.get("/v1/jobs").await.problem(401, "unauthorized");
        let metrics = gateway.get("/metrics").await;
        assert_eq!(metrics.status, 200, "scrapers have no token");
        assert!(metrics.text().contains("tenaz_jobs{state=\"uploading\"} 2"), "{}", metrics.text());
        for secret in [job, "ana", "bob", "shop", "secret"] {
            assert!(!metrics.text().contains(secret), "{secret}: {}", metrics.text());
        }
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn an_empty_deleted_or_damaged_file_revokes_at_once_and_streams_end() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let file = tokens(&[("ana", "secret-a"), ("bob", "secret-b")]);
        let gateway = deployment.gateway_with(|settings| settings.tokens_file = Some(file.path().to_owned())).await;
        let bearer = |token: &str| gateway.with("Authorization", &format!("Bearer {token}"));
        let (ana, bob) = (bearer("secret-a"), bearer("secret-b"));
        let made = ana.post("/v1/jobs", &shop(&["large"])).await.ok(201);
        let job = made["job"].as_str().unwrap();
        for wrong in ["", "ana:damaged\n"] {
            let mut events = ana.open("GET", &format!("/v1/jobs/{job}/events"), b"").await;
            assert_eq!(events.status, 200);
            std::fs::write(file.path(), wrong).unwrap();
            ana.get("/v1/jobs").await.problem(401, "unauthorized");
            bob.get("/v1/jobs").await.problem(401, "unauthorized");
            assert!(
                soon("an open stream ends with its token", events.is_cut_off()).await,
                "not as if it were complete"
            );
            write_tokens(file.path(), &[("ana", "secret-a"), ("bob", "secret-b")]);
            assert_eq!(ana.get("/v1/jobs").await.status, 200);
        }
        std::fs::remove_file(file.path()).unwrap();
        ana.get("/v1/jobs").await.problem(401, "unauthorized");
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn a_token_is_good_for_its_scope_and_until_it_expires() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let hex = |token: &str| Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines = [
            format!("ana:{}", hex("all")),
            format!("ana:{} scope=read", hex("read")),
            format!("ana:{} expires=2020-01-01", hex("old")),
            format!("ops:{} scope=operate expires=2200-01-01T00:00:00Z", hex("operate")),
        ];
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let gateway = deployment.gateway_with(|settings| settings.tokens_file = Some(file.path().to_owned())).await;
        let bearer = |token: &str| gateway.with("Authorization", &format!("Bearer {token}"));
        let made = bearer("all").post("/v1/jobs", &shop(&["large"])).await.ok(201);
        let job = made["job"].as_str().unwrap();
        let (reader, operator) = (bearer("read"), bearer("operate"));
        bearer("old").get("/v1/jobs").await.problem(401, "unauthorized");
        assert_eq!(reader.get(&format!("/v1/jobs/{job}")).await.status, 200);
        reader.post("/v1/jobs", &shop(&["large"])).await.problem(403, "forbidden");
        reader.delete(&format!("/v1/jobs/{job}")).await.problem(403, "forbidden");
        let jobs = operator.get("/v1/jobs").await.ok(200);
        assert_eq!((&jobs["jobs"][0]["job"], &jobs["jobs"][0]["tenant"]), (&job.into(), &"ana".into()));
        operator.post("/v1/jobs", &shop(&["large"])).await.problem(403, "forbidden");
        operator.get(&format!("/v1/jobs/{job}/results/large")).await.problem(403, "forbidden");
        operator.delete(&format!("/v1/jobs/{job}")).await.ok(202);
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn limits_are_shown_and_say_which_they_are_when_they_are_reached() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment
            .gateway_with(|settings| {
                for limit in ["open-jobs-per-tenant=1", "partitions=2", "job-time=2s"] {
                    settings.limits.set(limit).unwrap();
                }
            })
            .await;
        let mut request = shop(&["large"]);
        let job = create(&gateway, &request).await;
        let shown = gateway.get("/v1/limits").await.ok(200);
        assert_eq!((&shown["tenant"], &shown["used"]["open-jobs-per-tenant"]), (&"public".into(), &1.into()));
        let names: Vec<&str> = shown["limits"].as_array().unwrap().iter().flat_map(|l| l["name"].as_str()).collect();
        assert!(names.contains(&"job-time") && names.contains(&"open-jobs-per-tenant"), "{names:?}");
        let refused = gateway.post("/v1/jobs", &request).await.problem(429, "too_many_jobs");
        assert!(refused["detail"].as_str().unwrap().contains("open-jobs-per-tenant is 1"), "{refused}");
        request["partitions"] = 3.into();
        let refused = gateway.post("/v1/jobs", &request).await.problem(413, "too_large");
        assert!(refused["detail"].as_str().unwrap().contains("limit partitions of 2"), "{refused}");
        eventually("the job is ended when its time is over", || async {
            gateway.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"] == "failed"
        })
        .await;
        let state = gateway.get(&format!("/v1/jobs/{job}")).await.ok(200).to_string();
        assert!(state.contains("job_time") && state.contains("limit job-time of 2 s"), "{state}");
        gateway.stop().await;
        let slow = deployment.gateway_with(|settings| settings.limits.requests_per_second = 1).await;
        let mut refused = slow.get("/v1/jobs").await;
        for _ in 0..20 {
            refused = slow.get("/v1/jobs").await;
        }
        let refused = refused.problem(503, "busy");
        assert!(refused["detail"].as_str().unwrap().contains("requests-per-second of 1"), "{refused}");
        assert_eq!(slow.get("/healthz").await.status, 200, "probes are not counted");
        slow.stop().await;
        worker.leave().await;
    });
}

#[test]
fn an_open_door_needs_tokens() {
    with_broker(async |deployment| {
        let link = deployment.link().await;
        let open = GatewaySettings::new("0.0.0.0:0".parse().unwrap());
        let error = Gateway::start(link.clone(), open.clone()).await.unwrap_err();
        assert!(matches!(error, Error::Unsafe(_)) && error.to_string().contains("tokens file"), "{error}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "ana:secret\n").unwrap();
        let wrong = GatewaySettings { tokens_file: Some(file.path().to_owned()), ..open };
        let error = Gateway::start(link.clone(), wrong).await.unwrap_err();
        assert!(error.to_string().contains(":1: "), "{error}");
        link.close().await;
    });
}

#[test]
fn web_sites_cannot_use_a_gateway_without_tokens() {
    with_broker(async |deployment| {
        let gateway = deployment.gateway().await;
        gateway.with("Origin", "https://example.com").get("/v1/jobs").await.problem(403, "forbidden");
        gateway.with("Host", "example.com").get("/v1/jobs").await.problem(403, "forbidden");
        let own = format!("http://{}", gateway.address);
        assert_eq!(gateway.with("Origin", &own).get("/v1/jobs").await.status, 200);
        gateway.stop().await;
    });
}

#[test]
fn slow_clients_are_let_go() {
    with_broker(async |deployment| {
        let worker = Worker::join(&deployment).await;
        let gateway = deployment
            .gateway_with(|settings| {
                settings.limits.idle = Duration::from_millis(300);
                settings.limits.upload_memory_bytes = 9 << 20;
                settings.limits.connections = 4;
            })
            .await;
        let job = create(&gateway, &shop(&["large"])).await;
        let path = format!("/v1/jobs/{job}/tables/sales/chunks/0");
        // The body never comes: the request is answered, and its memory is free again.
        let socket = gateway.begin("PUT", &path, 8 << 20).await;
        let mut stream = Stream::read(socket).await;
        assert_eq!(stream.status, 408);
        assert!(String::from_utf8(stream.rest().await).unwrap().contains("request_timeout"));
        // The head never comes: all slots are taken by such clients, and free again after a while.
        let mut lazy = Vec::new();
        for _ in 0..4 {
            let mut socket = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
            socket.write_all(b"GET / HT").await.unwrap();
            lazy.push(socket);
        }
        assert_eq!(gateway.put(&path, b"11,a\n").await.ok(200)["status"], "received");
        for mut socket in lazy {
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest).await;
        }
        gateway.stop().await;
        worker.leave().await;
    });
}

#[test]
fn silent_sockets_make_room_for_clients_and_probes_have_a_place_of_their_own() {
    with_broker(async |deployment| {
        let file = tokens(&[("ana", "secret-a")]);
        let settings = VitalsSettings {
            identity: Identity::alone(ProcessRole::Gateway),
            key: None,
            supervisors: Vec::new(),
            every: Duration::from_secs(1),
            http: Some("127.0.0.1:0".parse().unwrap()),
        };
        let vitals = Vitals::start(settings).await.unwrap();
        let watched = vitals.http_addr().unwrap();
        let gateway = deployment
            .gateway_with(|settings| {
                settings.limits.connections = 8;
                settings.tokens_file = Some(file.path().to_owned());
                settings.vitals = Some(vitals);
            })
            .await;
        let ana = gateway.with("Authorization", "Bearer secret-a");
        // A client that has shown its token keeps its place, whatever comes.
        let mut silent = Vec::new();
        for _ in 0..64 {
            silent.push(tokio::net::TcpStream::connect(gateway.address).await.unwrap());
        }
        let begun = std::time::Instant::now();
        assert_eq!(ana.get("/v1/jobs").await.status, 200);
        assert_eq!(crate::common::http::Client::to(watched).get("/healthz").await.status, 200);
        // Without making room it would have waited for the strangers' time, at least.
        assert!(begun.elapsed() < tenaz_gateway::limits::STRANGER_PATIENCE, "{:?}", begun.elapsed());
        drop(silent);
        gateway.stop().await;
    });
}

#[test]
fn a_gateway_describes_itself() {
    with_broker(async |deployment| {
        let gateway = deployment.gateway().await;
        assert!(gateway.get("/").await.text().contains("curl -T"));
        assert_eq!(gateway.get("/v1/openapi.json").await.ok(200)["openapi"], "3.1.0");
        let health = gateway.get("/healthz").await.ok(200);
        assert_eq!(
            (&health["status"], &health["role"], &health["ready"]),
            (&"up".into(), &"gateway".into(), &true.into())
        );
        eventually("the pulse moves on", || async {
            gateway.get("/healthz").await.ok(200)["pulse"].as_u64() > health["pulse"].as_u64()
        })
        .await;
        gateway.get("/no/such/path").await.problem(404, "not_found");
        gateway.put("/v1/jobs", b"").await.problem(405, "method_not_allowed");
        let metrics = gateway.get("/metrics").await;
        assert_eq!(metrics.headers["content-type"], tenaz_vitals::METRICS_CONTENT_TYPE);
        for line in [
            "tenaz_http_requests_total{route=\"none\",method=\"GET\",status=\"4xx\"} 1",
            "tenaz_http_requests_total{route=\"/v1/jobs\",method=\"PUT\",status=\"4xx\"} 1",
            "tenaz_broker_reconnects_total 0",
        ] {
            assert!(metrics.text().lines().any(|found| found == line), "{line} is not in\n{}", metrics.text());
        }
        assert_eq!(gateway.get("/readyz").await.ok(200)["status"], "ready");
        gateway.stop().await;
    });
}
