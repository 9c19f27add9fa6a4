//! What the client does when gateways drop connections, are busy, are behind, or talk nonsense.
#![allow(clippy::unwrap_used)]

mod fake;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fake::{Reply, Server};
use tenaz_client::api::{NewJob, WorkloadText};
use tenaz_client::{Error, Flow, Gateways, Settings, Transport, read_end};
use tenaz_core::{Classified, FaultClass};

fn gateways(servers: &[&Server], patience_ms: u64) -> Gateways {
    let settings = Settings {
        urls: servers.iter().map(|server| server.url.clone()).collect(),
        token: Some("secret".to_owned()),
        transport: Transport::default(),
        patience: Duration::from_millis(patience_ms),
        parallel: 2,
        stop: Arc::new(AtomicBool::new(false)),
    };
    Gateways::new(settings).unwrap()
}

fn new_job() -> NewJob {
    let workload = WorkloadText { file: "w.toml".to_owned(), toml: String::new(), sql: Default::default(), now: None };
    let (partitions, chunk_bytes) = (None, None);
    let (workload, data_bytes) = (workload.into(), Some(1));
    NewJob { workload, queries: vec![], strict: false, data_bytes, partitions, chunk_bytes, files: vec![] }
}

const MADE: &str = r#"{"job":"00ff","workload":"w","state":"uploading","partitions":1,"chunk_bytes":1024,"tables":["t"],"queries":[]}"#;
const JOB: &str = r#"{"job":"00ff","workload":"w","state":"processing","partitions":1,"chunk_bytes":1024,
    "spec":{"workload":{"file":"w.toml","toml":"","sql":{}},"queries":[],"strict":false,"files":[]},
    "tables":[],"progress":{"chunks":0,"chunks_known":0,"bytes":0,"records":0,"rejected":0,"answers":0},
    "waiting_for":{"code":"workers","text":"no workers"},"error":null,"results":null}"#;

#[test]
fn a_job_whose_answer_got_lost_is_asked_for_again_elsewhere_with_the_same_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let server = |first: bool| {
        let keys = Arc::clone(&keys);
        Server::start(move |asked| {
            assert!(asked.is("POST", "/v1/jobs") && asked.header("authorization") == "Bearer secret");
            let mut keys = keys.lock().unwrap();
            keys.push((first, asked.header("idempotency-key").to_owned()));
            // Whichever is asked first makes the job and dies before it can say so.
            if keys.len() == 1 { Reply::Drop } else { Reply::json(200, MADE) }
        })
    };
    let (one, two) = (server(true), server(false));
    let made = gateways(&[&one, &two], 5000).create(&new_job(), || "my key".to_owned()).unwrap();
    assert_eq!((made.job.as_str(), made.chunk_bytes, made.tables), ("00ff", 1024, vec!["t".to_owned()]));
    let keys = keys.lock().unwrap();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0].0, keys[1].0, "the second attempt goes to the other gateway");
    assert!(keys.iter().all(|(_, key)| key == "my key"));
}

/// Its logs cannot be made, because a broker was killed while it made them: gateways say so, or die of other causes meanwhile.
#[test]
fn a_job_that_can_never_be_created_is_created_under_another_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let server = Server::start(move |asked| {
        let key = asked.header("idempotency-key").to_owned();
        let is_cursed = key == "key 1";
        seen.lock().unwrap().push(key);
        if is_cursed { Reply::problem(503, "broker_away", None) } else { Reply::json(201, MADE) }
    });
    let mut made = 0;
    let next_key = || {
        made += 1;
        format!("key {made}")
    };
    let patient = gateways(&[&server], 60_000).create(&new_job(), next_key).unwrap();
    assert_eq!((patient.job.as_str(), made), ("00ff", 2));
    let keys = keys.lock().unwrap();
    assert!(keys.len() > 3 && keys[..keys.len() - 1].iter().all(|key| key == "key 1"), "{keys:?}");
}

/// A lone broker's power was cut: the registry has lost that the job is complete, and all who knew it have died.
#[test]
fn a_job_that_gateways_call_unfinished_for_long_is_created_again_under_its_key() {
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&keys);
    let server = Server::start(move |asked| {
        let mut keys = seen.lock().unwrap();
        if asked.is("POST", "/v1/jobs") {
            keys.push(asked.header("idempotency-key").to_owned());
            return Reply::json(201, MADE);
        }
        if keys.len() < 2 { Reply::problem(503, "being_created", Some(1)) } else { Reply::json(200, JOB) }
    });
    let gateways = gateways(&[&server], 60_000);
    gateways.create(&new_job(), || "my key".to_owned()).unwrap();
    gateways.job("00ff").unwrap();
    assert_eq!(*keys.lock().unwrap(), ["my key", "my key"]);
}

#[test]
fn other_keys_do_not_make_the_client_more_patient() {
    let server = Server::start(|_| Reply::problem(503, "broker_away", None));
    let mut keys = 0;
    let started = Instant::now();
    let next_key = || {
        keys += 1;
        keys.to_string()
    };
    let error = gateways(&[&server], 300).create(&new_job(), next_key).unwrap_err();
    assert!(matches!(error, Error::Away { .. }), "{error}");
    assert!(keys == 1 && started.elapsed() < Duration::from_secs(10), "{keys} keys");
}

#[test]
fn the_first_gateway_is_chosen_at_random() {
    let first_asked = |_| {
        let (one, two) = (Server::start(|_| Reply::json(200, JOB)), Server::start(|_| Reply::json(200, JOB)));
        gateways(&[&one, &two], 100).current_url() == one.url
    };
    let ones = (0..64).map(first_asked).filter(|is_one| *is_one).count();
    assert!((1..64).contains(&ones), "{ones}");
}

#[test]
fn a_full_queue_is_waited_for_beyond_all_patience() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0..4 => Reply::problem(503, "queue_full", Some(0)),
        _ => Reply::json(200, JOB),
    });
    let job = gateways(&[&server], 0).job("00ff").unwrap();
    assert_eq!(job.waiting_for.as_ref().map(|told| told.text.as_str()), Some("no workers"));
    assert_eq!(asked.load(Ordering::Relaxed), 5);
}

#[test]
fn a_gateway_that_asks_to_wait_is_obeyed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::problem(503, "broker_away", Some(1)),
        _ => Reply::json(200, JOB),
    });
    let started = Instant::now();
    gateways(&[&server], 10_000).job("00ff").unwrap();
    assert!(started.elapsed() >= Duration::from_millis(500), "half the time at least: {:?}", started.elapsed());
}

#[test]
fn patience_ends_with_a_temporary_error_that_says_why() {
    let server = Server::start(|_| Reply::problem(503, "broker_away", None));
    let error = gateways(&[&server], 300).job("00ff").unwrap_err();
    assert!(error.class() == FaultClass::Broker && error.to_string().contains("this is broker_away"), "{error}");
    let nobody = "http://127.0.0.1:9";
    let settings = Settings {
        urls: vec![nobody.to_owned()],
        token: None,
        transport: Transport::default(),
        patience: Duration::from_millis(200),
        parallel: 1,
        stop: Arc::new(AtomicBool::new(false)),
    };
    let error = Gateways::new(settings).unwrap().job("00ff").unwrap_err();
    assert!(error.class() == FaultClass::Broker && error.to_string().contains(nobody), "{error}");
}

#[test]
fn a_refusal_is_passed_on_at_once_with_its_code() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Reply::problem(422, "unprocessable", None)
    });
    let error = gateways(&[&server], 60_000).create(&new_job(), || "k".to_owned()).unwrap_err();
    assert!(matches!(&error, Error::Refused { status: 422, code, class: FaultClass::Query, detail }
        if code == "unprocessable" && detail == "this is unprocessable"));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[test]
fn something_else_at_the_address_is_named() {
    let server = Server::start(|_| Reply::json(404, "<html>"));
    let error = gateways(&[&server], 60_000).job("00ff").unwrap_err().to_string();
    assert!(error.contains(&server.url) && error.contains("404"), "{error}");
    let server = Server::start(|_| Reply::json(200, "{\"hello\":1}"));
    let error = gateways(&[&server], 60_000).job("00ff").unwrap_err().to_string();
    assert!(error.contains("not understood"), "{error}");
}

#[test]
fn an_unknown_job_is_said_to_be_gone_but_a_gateway_may_be_behind() {
    let server = Server::start(|_| Reply::problem(404, "not_found", None));
    let error = gateways(&[&server], 60_000).job("00ff").unwrap_err();
    assert!(matches!(error, Error::NoJob { .. }) && error.is_end_of_job());

    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        1 | 2 => Reply::problem(404, "not_found", None),
        _ => Reply::json(200, JOB),
    });
    let gateways = gateways(&[&server], 60_000);
    gateways.job("00ff").unwrap();
    gateways.job("00ff").unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[test]
fn an_answer_that_is_cut_off_is_asked_for_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |_| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Reply::Cut(JOB.as_bytes()[..50].to_vec()),
        _ => Reply::json(200, JOB),
    });
    gateways(&[&server], 10_000).job("00ff").unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[test]
fn a_stream_of_rows_that_is_cut_off_is_read_again_from_its_start() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = Server::start(move |asked| {
        assert!(asked.is("GET", "/v1/jobs/00ff/results/q1"));
        assert_eq!(asked.header("accept"), "application/vnd.apache.arrow.stream");
        match counted.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::Cut(b"rows".to_vec()),
            1 => Reply::bytes(b"rows without an end".to_vec()),
            2 => Reply::bytes(
                b"rows{\"error\":{\"code\":\"shutting_down\",\"text\":\"bye\",\"class\":\"process\"}}\n".to_vec(),
            ),
            _ => Reply::bytes(b"rows{\"end\":{\"rows\":7,\"fingerprint\":\"f\",\"ordered\":false}}\n".to_vec()),
        }
    });
    let mut starts = 0;
    let end = gateways(&[&server], 10_000).read_rows("00ff", "q1", |body| {
        starts += 1;
        let mut rows = [0; 4];
        body.read_exact(&mut rows).map_err(|e| Flow::<Error>::Cut(e.to_string()))?;
        assert_eq!(&rows, b"rows");
        read_end("00ff", body)
    });
    assert_eq!(end.unwrap().rows, 7);
    assert_eq!(starts, 4);
}

#[test]
fn a_wait_that_a_gateway_asks_for_does_not_keep_the_user_from_stopping() {
    let server = Server::start(|_| Reply::problem(503, "broker_away", Some(30)));
    let stop = Arc::new(AtomicBool::new(false));
    let settings = Settings {
        urls: vec![server.url.clone()],
        token: None,
        transport: Transport::default(),
        patience: Duration::from_secs(60),
        parallel: 1,
        stop: Arc::clone(&stop),
    };
    let gateways = Arc::new(Gateways::new(settings).unwrap());
    let asking = Arc::clone(&gateways);
    let asked = std::thread::spawn(move || asking.job("00ff"));
    while gateways.trouble().is_none() {
        std::thread::yield_now();
    }
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(asked.join().unwrap(), Err(Error::Stopped)));
}
