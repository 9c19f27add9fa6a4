//! SQL of one tenant that is made to hurt, beside the honest job of another: it is refused, or ends when it is cancelled, and the
//! processes of the cluster live on.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Cluster, assert_same_results, coffee, wait_for};

const TABLE: &str = r#"
name = "hostile"

[[table]]
name = "t"
files = "t*.csv"
role = "fact"
columns = [{ name = "id", type = "int" }, { name = "a", type = "int" }]

[[query]]
name = "q"
title = "Hostile"
"#;

/// A cancelled job gives its threads back within a second; the rest is for the news to travel on a loaded machine.
const FREED_WITHIN: Duration = Duration::from_secs(5);

/// The deadline of an honest job beside everything at once, on two cores that the attackers share with it.
const HONEST_WITHIN: Duration = Duration::from_secs(60);

fn call(method: &str, url: &str, body: &[u8]) -> (u16, Value) {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let request = ureq::http::Request::builder().method(method).uri(url).body(body).expect("a request");
    let mut answer = agent.run(request).expect("the gateway answers");
    (answer.status().as_u16(), answer.body_mut().read_json().unwrap_or_default())
}

fn create(gateway: &str, sql: &str) -> (u16, Value) {
    let toml = format!("{TABLE}sql = \"\"\"{sql}\"\"\"\n");
    let request = json!({"workload": {"file": "hostile.toml", "toml": toml}, "partitions": 1});
    call("POST", &format!("{gateway}/v1/jobs"), request.to_string().as_bytes())
}

/// Creates a job and sends all its data.
fn begin(gateway: &str, sql: &str) -> String {
    let (status, made) = create(gateway, sql);
    assert_eq!(status, 201, "{made}");
    let job = made["job"].as_str().expect("an id").to_owned();
    let mut rows = String::from("id,a\n");
    for n in 0..5000 {
        writeln!(rows, "{n},{}", n % 7).expect("a string takes it");
    }
    let (status, sent) = call("PUT", &format!("{gateway}/v1/jobs/{job}/tables/t/data"), rows.as_bytes());
    assert!(status == 200 || status == 201, "{status} {sent}");
    job
}

#[test]
fn a_job_that_would_never_end_ends_when_it_is_cancelled_and_an_honest_one_is_answered() {
    let Some(cluster) = Cluster::shared() else { return };
    // One worker with one thread: while that is held, nobody else is served.
    let cluster = cluster.start(1, 1, "");
    let gateway = cluster.gateway_urls();
    for sql in [
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) AS c FROM r WHERE n > (SELECT min(a) FROM t)",
        "SELECT count(*) AS c FROM generate_series(1, 100000000000) g(v) WHERE v > (SELECT min(a) FROM t)",
        "SELECT count(*) AS c FROM t x, t y, t z WHERE x.a + y.a + z.a < 0",
    ] {
        let job = begin(&gateway, sql);
        let worker = &cluster.workers[0];
        let before = worker.busy();
        wait_for("the worker computes", || (worker.busy() > before + Duration::from_secs(3)).then_some(()));
        let state = cluster.state(&job).expect("the job");
        assert_eq!(state["state"], "processing", "it has not ended by itself: {state}");
        let (status, _) = call("POST", &format!("{gateway}/v1/jobs/{job}/cancel"), b"");
        assert_eq!(status, 202);
        let cancelled = Instant::now();
        // Its thread is free when it takes no processor time any more.
        let mut last = worker.busy();
        wait_for("the worker's thread is free", || {
            std::thread::sleep(Duration::from_millis(500));
            let now = worker.busy();
            let is_idle = now - last < Duration::from_millis(150);
            last = now;
            is_idle.then_some(())
        });
        assert!(cancelled.elapsed() < FREED_WITHIN, "{sql} held its thread for {:?}", cancelled.elapsed());
    }
    let out = cluster.out("honest");
    let client = cluster.submit(coffee(), &out, &[]);
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn sql_that_killed_gateways_is_refused_or_planned_in_time() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(1, 1, "");
    let gateway = cluster.gateway_urls();
    let chain =
        |with: &str, terms: usize, term: &dyn Fn(usize) -> String| (0..terms).map(term).collect::<Vec<_>>().join(with);
    let sum = format!("SELECT {} AS s FROM t", chain("+", 2500, &|_| "a".to_owned()));
    let any = format!("SELECT count(*) AS n FROM t WHERE {}", chain(" OR ", 1900, &|n| format!("id={n}")));
    let wide =
        format!("SELECT {} FROM t", chain(", ", 100, &|n| format!("{} AS c{n}", chain("+", 250, &|_| "a".to_owned()))));
    let began = Instant::now();
    for (sql, wanted, says) in [
        (sum.as_str(), 422, "the limit is 256"),
        (any.as_str(), 201, ""),
        ("SELECT max(repeat('a', 100000000)) AS r FROM t", 201, ""),
        (wide.as_str(), 422, "as often as it stands inside others"),
    ] {
        let (status, answer) = create(&gateway, sql);
        assert_eq!(status, wanted, "{answer}");
        assert!(answer["detail"].as_str().unwrap_or_default().contains(says), "{answer}");
    }
    assert!(began.elapsed() < Duration::from_secs(90), "{:?}", began.elapsed());
    assert!(cluster.gateways[0].is_alive() && cluster.workers[0].is_alive());
    assert!(cluster.gateways[0].peak_memory_bytes() < 1 << 30);
    let out = cluster.out("honest");
    let client = cluster.submit(coffee(), &out, &[]);
    client.succeeds();
    assert_same_results(coffee(), &out);
}

/// What an attacker does until it is told to stop; it counts what it has done.
fn attack(stop: &AtomicBool, mut once: impl FnMut() -> bool) -> u32 {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        done += u32::from(once());
    }
    done
}

#[test]
fn floods_and_bombs_beside_an_honest_job_change_nothing_for_it() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 2, "");
    let gateways = cluster.gateway_urls();
    let gateway = gateways.split(',').next().expect("a gateway").to_owned();
    let address = gateway.strip_prefix("http://").expect("a URL").to_owned();
    let stop = AtomicBool::new(false);
    let bomb = {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        gzip.write_all(&vec![b'1'; 64 << 20]).expect("memory takes it");
        gzip.finish().expect("memory takes it")
    };
    let rejects = format!("id,a\n{}", "not,a number\n".repeat(100_000));
    let counts = std::thread::scope(|scope| {
        let _stops = StopAtEnd(&stop);
        // The registry: jobs that are made and cancelled.
        let flood = scope.spawn(|| {
            attack(&stop, || {
                let (status, made) = create(&gateway, "SELECT count(*) AS n FROM t");
                let Some(job) = made["job"].as_str().filter(|_| status == 201) else { return false };
                call("DELETE", &format!("{gateway}/v1/jobs/{job}"), b"").0 == 202
            })
        });
        // A hundred thousand bad records, again and again.
        let spoiled = scope.spawn(|| {
            attack(&stop, || {
                let (status, made) = create(&gateway, "SELECT count(*) AS n FROM t");
                let Some(job) = made["job"].as_str().filter(|_| status == 201) else { return false };
                let (sent, _) = call("PUT", &format!("{gateway}/v1/jobs/{job}/tables/t/data"), rejects.as_bytes());
                call("DELETE", &format!("{gateway}/v1/jobs/{job}"), b"");
                sent < 300
            })
        });
        // A body that becomes a thousand times as large.
        let exploded = scope.spawn(|| {
            let (_, made) = create(&gateway, "SELECT count(*) AS n FROM t");
            let job = made["job"].as_str().expect("an id").to_owned();
            attack(&stop, || put_gzip(&format!("{gateway}/v1/jobs/{job}/tables/t/chunks/0"), &bomb) >= 400)
        });
        // Sockets that say half a word or nothing.
        let silent = scope.spawn(|| {
            let mut held = std::collections::VecDeque::new();
            attack(&stop, || {
                let Ok(mut socket) = std::net::TcpStream::connect(&address) else { return false };
                if held.len() % 2 == 0 {
                    let _ = socket.write_all(b"PUT /v1/jo");
                }
                held.push_back(socket);
                if held.len() > 600 {
                    held.pop_front();
                }
                std::thread::sleep(Duration::from_millis(1));
                true
            })
        });
        let out = cluster.out("honest");
        let client = cluster.submit(coffee(), &out, &["--patience", "60"]);
        let began = Instant::now();
        let status = client.wait();
        let took = began.elapsed();
        stop.store(true, Ordering::Relaxed);
        let counts = [flood, spoiled, exploded, silent].map(|attacker| attacker.join().expect("an attacker"));
        assert!(status.success(), "{}", client.log());
        assert!(took < HONEST_WITHIN, "the honest job took {took:?}");
        assert_same_results(coffee(), &out);
        counts
    });
    assert!(counts.iter().all(|count| *count > 0), "every attack was made: {counts:?}");
    assert!(cluster.gateways.iter().chain(&cluster.workers).all(|process| process.is_alive()));
    assert!(cluster.gateways[0].peak_memory_bytes() < 1 << 30);
}

/// Ends the attackers however the test ends: their threads are waited for.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How a body in gzip is answered.
fn put_gzip(url: &str, body: &[u8]) -> u16 {
    let config = ureq::Agent::config_builder().timeout_global(Some(Duration::from_secs(60)));
    let agent: ureq::Agent = config.http_status_as_error(false).build().into();
    let answer = agent.put(url).header("Content-Encoding", "gzip").send(body);
    // A gateway that refuses may not read everything.
    answer.map_or(413, |answer| answer.status().as_u16())
}
