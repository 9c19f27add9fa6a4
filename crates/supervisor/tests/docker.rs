//! The Docker back-end against recorded answers of the engine's API: what it asks, and what it makes of the answers.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod engine;

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole};
use tenaz_supervisor::backend::docker::Docker;
use tenaz_supervisor::backend::{Backend as _, BackendError};
use tokio::sync::Notify;

use engine::{Answer, Engine};

const LABEL: &str = "tenaz.cluster=demo";
const LIST: &str = r#"GET /containers/json?all=true&size=false&filters={"label":["tenaz.cluster=demo"]}"#;
/// The start of `demo-worker-1` below.
const LIFE: Incarnation = Incarnation(1_794_800_973_828);
const NEXT: Incarnation = Incarnation(1_794_800_973_829);

fn name(text: &str) -> ProcessName {
    text.parse().unwrap()
}

fn docker(engine: &Engine) -> Docker {
    Docker::new(engine.socket(), LABEL).unwrap()
}

/// An element of the list, in the documented shape.
fn listed(id: &str, called: &str, state: &str, labels: &str) -> String {
    format!(
        r#"{{"Id":"{id}","Names":["/{called}"],"Image":"tenaz","ImageID":"sha256:1","Command":"tenaz worker","Created":1794800000,
        "Ports":[],"Labels":{{"tenaz.cluster":"demo"{labels}}},"State":"{state}","Status":"Up 2 minutes",
        "HostConfig":{{"NetworkMode":"demo"}},"NetworkSettings":{{"Networks":{{}}}},"Mounts":[]}}"#
    )
}

fn inspected(called: &str, hostname: &str, state: &str) -> String {
    format!(
        r#"{{"Id":"x","Created":"2026-11-16T03:00:00.1Z","Path":"tenaz","Args":["worker"],"Name":"/{called}","RestartCount":0,
        "State":{{{state}}},"Config":{{"Hostname":"{hostname}","Labels":{{"tenaz.cluster":"demo"}}}}}}"#
    )
}

fn running(pid: u32) -> String {
    format!(
        r#""Status":"running","Running":true,"Paused":false,"Restarting":false,"OOMKilled":false,"Dead":false,"Pid":{pid},
        "ExitCode":0,"Error":"","StartedAt":"2026-11-16T03:49:33.828594413Z","FinishedAt":"0001-01-01T00:00:00Z""#
    )
}

fn exited(code: i32, oom: bool) -> String {
    format!(
        r#""Status":"exited","Running":false,"Paused":false,"Restarting":false,"OOMKilled":{oom},"Dead":false,"Pid":0,
        "ExitCode":{code},"Error":"","StartedAt":"2026-11-16T03:49:33.828594413Z","FinishedAt":"2026-11-16T03:50:00Z""#
    )
}

/// One worker, in this state; other requests get the other answer.
fn one_worker(state: String, other: impl Fn(&str) -> Answer + Send + Sync + 'static) -> Engine {
    Engine::start(Box::new(move |asked| match asked {
        "GET /containers/json" => {
            Answer::json(&format!("[{}]", listed("a1", "demo-worker-1", "running", r#","tenaz.role":"worker""#)))
        }
        "GET /containers/a1/json" => Answer::json(&inspected("demo-worker-1", "a1b2c3d4e5f6", &state)),
        asked => other(asked),
    }))
}

fn nothing_else(asked: &str) -> Answer {
    Answer::Body(500, format!(r#"{{"message":"unexpected: {asked}"}}"#))
}

#[tokio::test]
async fn processes_are_the_containers_with_the_label() {
    let engine = Engine::start(Box::new(|asked| match asked {
        "GET /containers/json" => {
            let role = |role: &str| format!(r#","tenaz.role":"{role}""#);
            let both = |role: &str, name: &str| format!(r#","tenaz.role":"{role}","tenaz.process":"{name}""#);
            let all = [
                listed("a1", "demo-worker-1", "running", &role("worker")),
                listed("a2", "demo-gateway-1", "exited", &both("gateway", "gateway-1")),
                listed("a3", "demo-gateway-2", "exited", &role("gateway")),
                listed("a4", "made-only", "created", &role("worker")),
                // Not to be used: no role, a role that is none, one that is going away, one that has gone.
                listed("b1", "no-role", "running", ""),
                listed("b2", "odd-role", "running", &role("king")),
                listed("b3", "going", "removing", &role("worker")),
                listed("b4", "gone", "exited", &role("worker")),
                // Two that claim one name.
                listed("c1", "twin-a", "exited", &both("worker", "twin")),
                listed("c2", "twin-b", "exited", &both("worker", "twin")),
                // Its name is none for a process.
                listed("d1d2d3d4d5d6d7d8", &"x".repeat(80), "exited", &role("worker")),
            ];
            Answer::json(&format!("[{}]", all.join(",")))
        }
        "GET /containers/a1/json" => Answer::json(&inspected("demo-worker-1", "a1b2c3d4e5f6", &running(4711))),
        "GET /containers/a2/json" => Answer::json(&inspected("demo-gateway-1", "gateway-1", &exited(75, false))),
        "GET /containers/a3/json" => Answer::json(&inspected("demo-gateway-2", "a3a3", &exited(0, true))),
        "GET /containers/a4/json" => Answer::json(&inspected(
            "made-only",
            "a4a4",
            r#""Status":"created","Running":false,"Pid":0,"ExitCode":0,"StartedAt":"0001-01-01T00:00:00Z""#,
        )),
        "GET /containers/b4/json" => Answer::Body(404, r#"{"message":"No such container: b4"}"#.to_owned()),
        asked if asked.starts_with("GET /containers/c") || asked.starts_with("GET /containers/d") => {
            Answer::json(&inspected("c", "", &exited(137, false)))
        }
        asked => nothing_else(asked),
    }));
    let found = docker(&engine).inspect().await.unwrap();

    let mut asked = engine.asked();
    assert_eq!(asked.remove(0), LIST);
    asked.sort();
    let inspected: Vec<&str> = asked.iter().filter_map(|a| a.strip_prefix("GET /containers/")).collect();
    assert!(inspected.iter().all(|a| a.ends_with("/json")), "{inspected:?}");
    assert_eq!(inspected.len(), 8, "{inspected:?}");

    let seen: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.role, f.incarnation, f.pid, f.ended)).collect();
    let (worker, gateway) = (ProcessRole::Worker, ProcessRole::Gateway);
    let killed = Some(Ending::Signalled(9));
    assert_eq!(
        seen,
        [
            ("d1d2d3d4d5d6", worker, LIFE, None, killed),
            ("demo-gateway-2", gateway, LIFE, None, killed),
            ("demo-worker-1", worker, LIFE, Some(4711), None),
            ("gateway-1", gateway, LIFE, None, Some(Ending::Exited(75))),
            ("made-only", worker, Incarnation(0), None, None),
            ("twin-a", worker, LIFE, None, killed),
            ("twin-b", worker, LIFE, None, killed),
        ]
    );
    let worker = &found[2];
    assert_eq!(worker.alias.as_deref(), Some("a1b2c3d4e5f6"), "its hostname, by which its heartbeats come");
    assert_eq!(worker.log.as_deref(), Some("docker logs demo-worker-1"));
    assert_eq!(found[3].alias, None, "its hostname is its name");
}

#[tokio::test]
async fn kill_and_stop_are_signals_to_the_life_that_is_meant() {
    let engine = one_worker(running(7), |asked| match asked {
        "POST /containers/a1/kill" => Answer::Body(204, String::new()),
        asked => nothing_else(asked),
    });
    let docker = docker(&engine);
    let worker = name("demo-worker-1");
    docker.kill(&worker, LIFE).await.unwrap();
    assert_eq!(engine.asked().last().unwrap(), "POST /containers/a1/kill?signal=SIGKILL");
    docker.stop(&worker, LIFE).await.unwrap();
    assert_eq!(engine.asked().last().unwrap(), "POST /containers/a1/kill?signal=SIGTERM");

    for late in [docker.kill(&worker, Incarnation(LIFE.0 - 1)).await, docker.stop(&worker, NEXT).await] {
        assert!(matches!(late, Err(BackendError::OutOfDate { .. })), "{late:?}");
    }
    assert!(matches!(docker.start(&worker, NEXT).await, Err(BackendError::OutOfDate { .. })), "it runs");
    let unknown = docker.kill(&name("worker-9"), LIFE).await;
    assert!(matches!(unknown, Err(BackendError::NoSuchProcess(_))), "{unknown:?}");
    assert!(engine.asked().iter().all(|asked| asked.starts_with("GET ")), "nothing was done");
}

#[tokio::test]
async fn what_has_ended_need_not_be_ended_but_can_be_started() {
    let engine = one_worker(exited(1, false), |asked| match asked {
        "POST /containers/a1/start" => Answer::Body(204, String::new()),
        asked => nothing_else(asked),
    });
    let docker = docker(&engine);
    let worker = name("demo-worker-1");
    docker.kill(&worker, LIFE).await.unwrap();
    docker.stop(&worker, LIFE).await.unwrap();
    let same = docker.start(&worker, LIFE).await;
    assert!(matches!(same, Err(BackendError::OutOfDate { .. })), "a life is not lived twice: {same:?}");
    assert!(engine.asked().iter().all(|asked| asked.starts_with("GET ")), "nothing was done");
    docker.start(&worker, NEXT).await.unwrap();
    assert_eq!(engine.asked().last().unwrap(), "POST /containers/a1/start");
}

#[tokio::test]
async fn a_container_that_ends_by_itself_before_it_is_killed_is_no_error() {
    let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let killed = ended.clone();
    let engine = Engine::start(Box::new(move |asked| match asked {
        "GET /containers/json" => {
            Answer::json(&format!("[{}]", listed("a1", "w", "running", r#","tenaz.role":"worker""#)))
        }
        "GET /containers/a1/json" if ended.load(std::sync::atomic::Ordering::SeqCst) => {
            Answer::json(&inspected("w", "h", &exited(0, false)))
        }
        "GET /containers/a1/json" => Answer::json(&inspected("w", "h", &running(7))),
        "POST /containers/a1/kill" => {
            killed.store(true, std::sync::atomic::Ordering::SeqCst);
            Answer::Body(409, r#"{"message":"container a1 is not running"}"#.to_owned())
        }
        asked => nothing_else(asked),
    }));
    docker(&engine).kill(&name("w"), LIFE).await.unwrap();
}

#[tokio::test]
async fn a_refused_signal_is_an_error_with_the_engines_words() {
    let engine = one_worker(running(7), |_| Answer::Body(500, r#"{"message":"operation not permitted"}"#.to_owned()));
    let error = docker(&engine).kill(&name("demo-worker-1"), LIFE).await.unwrap_err().to_string();
    assert!(error.starts_with("sending SIGKILL to demo-worker-1: "), "{error}");
    assert!(error.contains("(500): operation not permitted"), "{error}");
}

#[tokio::test]
async fn a_container_that_cannot_be_started_says_why() {
    let engine = one_worker(exited(127, false), |_| {
        Answer::Body(400, r#"{"message":"exec: \"tenaz\": executable file not found in $PATH"}"#.to_owned())
    });
    let error = docker(&engine).start(&name("demo-worker-1"), NEXT).await.unwrap_err();
    assert!(matches!(error, BackendError::CannotStart { .. }), "{error:?}");
    assert!(error.to_string().contains("executable file not found"), "{error}");
}

#[tokio::test]
async fn last_lines_are_those_of_the_latest_life() {
    // Frames of the multiplexed log: stream, three zeros, length, text.
    let frame = |stream: u8, text: &str| {
        let mut bytes = vec![stream, 0, 0, 0];
        bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
        String::from_utf8(bytes).unwrap()
    };
    let log = [
        frame(2, "2026-11-16T03:49:33.100000000Z of the life before\n"),
        frame(1, "2026-11-16T03:49:33.900000000Z one\n"),
        frame(2, "2026-11-16T03:49:34.000000000Z two words\r\n"),
        frame(2, "2026-11-16T03:49:35.000000000Z three\n"),
    ]
    .concat();
    let engine = one_worker(exited(1, false), move |asked| match asked {
        "GET /containers/a1/logs" => Answer::Body(200, log.clone()),
        asked => nothing_else(asked),
    });
    let docker = docker(&engine);
    assert_eq!(docker.last_lines(&name("demo-worker-1"), 10).await, ["one", "two words", "three"]);
    let asked = engine.asked();
    let query = asked.last().unwrap().strip_prefix("GET /containers/a1/logs?").unwrap();
    for part in ["stdout=true", "stderr=true", "tail=10", "since=1794800973", "timestamps=true", "follow=false"] {
        assert!(query.split('&').any(|found| found == part), "{part} is not in {query}");
    }
    assert_eq!(docker.last_lines(&name("demo-worker-1"), 1).await, ["three"]);
}

#[tokio::test]
async fn events_ring_once_each_and_a_wait_that_was_given_up_loses_none() {
    let bell = Arc::new(Notify::new());
    let far_ns = |n: u64| 4_000_000_000_000_000_000 + n;
    let event = |action: &str, at: u64| {
        format!(
            r#"{{"Type":"container","Action":"{action}","Actor":{{"ID":"a1","Attributes":{{"exitCode":"137"}}}},"scope":"local","time":{},"timeNano":{at}}}"#,
            at / 1_000_000_000
        ) + "\n"
    };
    // The second repeats what is known already: a stream that begins anew does that.
    let pieces = vec![event("die", far_ns(5)), event("die", far_ns(5)), event("start", far_ns(6))];
    let ring = bell.clone();
    let engine = one_worker(running(7), move |asked| match asked {
        "GET /events" => Answer::Pieces(ring.clone(), pieces.clone()),
        asked => nothing_else(asked),
    });
    let docker = docker(&engine);
    // Given up at once, many times: the stream stays open.
    for _ in 0..10 {
        tokio::select! {
            biased;
            () = docker.changed() => panic!("nothing happened yet"),
            () = tokio::task::yield_now() => {}
        }
    }
    bell.notify_one();
    let patience = Duration::from_secs(60);
    tokio::time::timeout(patience, docker.changed()).await.unwrap();
    bell.notify_one();
    let third = async {
        tokio::task::yield_now().await;
        bell.notify_one();
    };
    let ((), ()) = tokio::time::timeout(patience, async { tokio::join!(docker.changed(), third) }).await.unwrap();
    let asked: Vec<String> = engine.asked().into_iter().filter(|asked| asked.starts_with("GET /events")).collect();
    assert_eq!(asked.len(), 1, "{asked:?}");
    for part in [r#""label":["tenaz.cluster=demo"]"#, r#""type":["container"]"#, r#""start""#, r#""die""#, "since="] {
        assert!(asked[0].contains(part), "{part} is not in {}", asked[0]);
    }
}

#[tokio::test]
async fn without_events_the_caller_is_asked_to_look_anyway() {
    let engine = one_worker(running(7), |_| Answer::Nothing);
    tokio::time::timeout(Duration::from_secs(60), docker(&engine).changed()).await.unwrap();
}

async fn refusal(socket: &Path) -> String {
    let error = Docker::new(socket, LABEL).unwrap().inspect().await.unwrap_err().to_string();
    assert!(error.starts_with("listing the cluster's containers: "), "{error}");
    assert!(error.contains(&*socket.to_string_lossy()), "{error}");
    assert!(!error.contains("Error("), "a debug dump: {error}");
    error
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_an_error_with_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    let error = refusal(&socket).await;
    assert!(error.contains("there is no socket") && error.contains("systemctl start docker"), "{error}");

    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let error = refusal(&socket).await;
    assert!(error.contains("nobody listens") && error.contains("systemctl start docker"), "{error}");
}

#[tokio::test]
async fn a_socket_that_may_not_be_used_is_an_error_with_a_cure() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("docker.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    match std::os::unix::net::UnixStream::connect(&socket) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
        _ => return eprintln!("skipped: this user may use every socket"),
    }
    let error = refusal(&socket).await;
    assert!(error.contains("may not be used by this user") && error.contains("group_add"), "{error}");
}

#[tokio::test]
async fn an_engine_that_breaks_off_or_talks_nonsense_is_an_error() {
    let engine = Engine::start(Box::new(|_| Answer::Nothing));
    refusal(engine.socket()).await;
    let engine = Engine::start(Box::new(|_| Answer::json("[{")));
    refusal(engine.socket()).await;
}

#[tokio::test]
async fn a_label_that_would_match_other_clusters_is_refused() {
    for label in ["", "tenaz.cluster", "tenaz.cluster=", "=demo"] {
        let error = Docker::new(Path::new("/var/run/docker.sock"), label).unwrap_err().to_string();
        assert!(error.contains("tenaz.cluster=demo"), "{error}");
    }
}

#[test]
fn the_cluster_of_compose_is_one_that_supervisors_understand() {
    let text = include_str!("../../../deploy/cluster.toml");
    let config = tenaz_supervisor::Config::parse(text, "deploy/cluster.toml").unwrap();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    assert_eq!((config.supervisors.len(), config.majority()), (3, 2));
}
