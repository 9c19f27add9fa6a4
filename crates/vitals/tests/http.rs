//! What a process serves about itself.

#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tenaz_core::{Incarnation, ProcessRole};
use tenaz_vitals::{Error, Identity, METRICS_CONTENT_TYPE, Vitals, VitalsSettings, probe};

const PATIENCE: Duration = Duration::from_secs(60);

fn settings() -> VitalsSettings {
    VitalsSettings {
        identity: Identity {
            cluster: "00000000000000aa".parse().unwrap(),
            name: "worker-3".parse().unwrap(),
            role: ProcessRole::Worker,
            incarnation: Incarnation(4),
        },
        key: None,
        supervisors: Vec::new(),
        every: Duration::from_millis(500),
        http: Some("127.0.0.1:0".parse().unwrap()),
    }
}

/// Status, content type, body.
async fn get(addr: SocketAddr, path: &'static str) -> (u16, String, String) {
    let asked = tokio::task::spawn_blocking(move || {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent.get(format!("http://{addr}{path}")).call().unwrap();
        let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        (answer.status().as_u16(), kind.unwrap_or_default(), answer.body_mut().read_to_string().unwrap())
    });
    asked.await.unwrap()
}

#[tokio::test]
async fn a_process_says_how_it_is() {
    let vitals = Vitals::start(settings()).await.unwrap();
    let addr = vitals.http_addr().unwrap();
    let pulse = vitals.pulse();
    let (status, kind, body) = get(addr, "/healthz").await;
    assert_eq!((status, kind.as_str()), (200, "application/json"));
    let says = r#"{"status":"up","name":"worker-3","role":"worker","incarnation":4,"pulse":1,"ready":false}"#;
    assert_eq!(body, says);
    assert_eq!(get(addr, "/healthz").await.2, says, "nothing has turned since");

    assert_eq!(get(addr, "/readyz").await.2, r#"{"status":"not ready"}"#);
    assert_eq!(get(addr, "/readyz").await.0, 503);
    vitals.set_ready(true);
    let (status, _, body) = get(addr, "/readyz").await;
    assert_eq!((status, body.as_str()), (200, r#"{"status":"ready"}"#));
    pulse.beat();
    let probed = probe(addr, PATIENCE).await.unwrap();
    assert_eq!(
        (probed.name.as_str(), probed.incarnation, probed.pulse, probed.ready),
        ("worker-3", Incarnation(4), 2, true)
    );
    vitals.set_draining();
    let (status, _, body) = get(addr, "/readyz").await;
    assert_eq!((status, body.as_str()), (503, r#"{"status":"draining"}"#));
    assert_eq!(get(addr, "/healthz").await.0, 200, "up until it ends");

    vitals.metrics().worker().chunks.inc_by(2);
    let (status, kind, body) = get(addr, "/metrics").await;
    assert_eq!((status, kind.as_str()), (200, METRICS_CONTENT_TYPE));
    assert!(body.contains("\ntenaz_chunks_total 2\n") && body.ends_with("# EOF\n"), "{body}");
    assert_eq!(get(addr, "/").await.0, 404);
    assert_eq!(get(addr, "/v1/jobs").await.0, 404);
    drop(vitals);
    let gone = async {
        while TcpStream::connect(addr).is_ok() {
            tokio::task::yield_now().await
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("it ends when it is dropped");
}

#[tokio::test]
async fn clients_that_say_nothing_do_not_keep_others_from_asking() {
    let vitals = Vitals::start(settings()).await.unwrap();
    let addr = vitals.http_addr().unwrap();
    let _silent: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(addr).unwrap()).collect();
    let probed = probe(addr, PATIENCE).await.unwrap();
    assert_eq!(probed.name.as_str(), "worker-3");
}

#[tokio::test]
async fn what_is_none_of_ours_is_said_to_be_so() {
    let vitals = Vitals::start(settings()).await.unwrap();
    let taken = vitals.http_addr().unwrap();
    let error = Vitals::start(VitalsSettings { http: Some(taken), ..settings() }).await.unwrap_err();
    assert!(matches!(error, Error::Listen { .. }), "{error}");
    let without_key = VitalsSettings { supervisors: vec!["127.0.0.1:1".into()], http: None, ..settings() };
    assert!(matches!(Vitals::start(without_key).await.unwrap_err(), Error::NoKey));

    let long = "x".repeat(100_000);
    for (answer, says) in [
        ("HTTP/1.1 500 Oops\r\n\r\n", "500 Oops"),
        ("HTTP/1.1 200 OK\r\n\r\nhello", "not readable"),
        ("HTTP/1.1 200 OK\r\n\r\n{\"status\":\"up\"}", "name"),
        ("SSH-2.0\r\n", "no HTTP"),
        ("", "no HTTP"),
        (long.as_str(), "no HTTP"),
    ] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let answer = answer.to_owned();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let _ = socket.read(&mut [0; 1000]);
            let _ = socket.write_all(answer.as_bytes());
        });
        let error = probe(addr, PATIENCE).await.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        server.join().unwrap();
    }
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = probe(silent.local_addr().unwrap(), Duration::from_millis(50)).await.unwrap_err().to_string();
    assert!(error.contains("no answer within 50ms"), "{error}");
}
