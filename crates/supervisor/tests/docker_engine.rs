//! The Docker back-end with a real engine and real containers: a private Podman service, which speaks the same API, or an
//! engine that is named by `TENAZ_TEST_DOCKER=/var/run/docker.sock`. Skips with a message where there is none.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod private_engine;

use std::path::Path;
use std::time::{Duration, Instant};

use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole};
use tenaz_supervisor::backend::docker::Docker;
use tenaz_supervisor::backend::{Backend as _, BackendError, Found};

use private_engine::PrivateEngine;

/// What runs in a container: says which life it is, and ends with 7 when it is asked to.
const POLITE: &str = "life=first; [ -e /lived ] && life=second; : > /lived; trap 'exit 7' TERM; \
    echo hello $life; echo world $life >&2; while :; do sleep 0.05; done";
/// Far more than any step needs, so that only what never happens fails.
const PATIENCE: Duration = Duration::from_secs(60);

fn name(text: &str) -> ProcessName {
    text.parse().unwrap()
}

/// Waits until a process is as it should be, woken by the engine's events.
async fn until(docker: &Docker, wanted: &ProcessName, what: &str, is: impl Fn(&Found) -> bool) -> Found {
    let begun = Instant::now();
    loop {
        let found = docker.inspect().await.unwrap().into_iter().find(|found| found.name == *wanted).unwrap();
        if is(&found) {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted} is never {what}: {found:?}");
        docker.changed().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_containers_are_seen_started_killed_and_stopped() {
    let Some(engine) = PrivateEngine::start().await else { return };
    let label = engine.label();
    let docker = Docker::new(engine.socket(), &label).unwrap();
    let worker = name("worker-1");
    let id = engine.container("polite", "worker", Some("worker-1"), &["/bin/sh", "-c", POLITE]).await;
    engine.foreign_container("stranger", &["/bin/sh", "-c", POLITE]).await;

    // Made, never started; what belongs to another cluster is not seen.
    let found = docker.inspect().await.unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].name.clone(), found[0].role), (worker.clone(), ProcessRole::Worker));
    assert_eq!((found[0].incarnation, found[0].pid, found[0].ended), (Incarnation(0), None, None));
    assert_eq!(found[0].alias.as_deref(), Some(&id[..12]), "the hostname, which the process sees, too");

    docker.start(&worker, Incarnation(1)).await.unwrap();
    let first = until(&docker, &worker, "running", Found::is_running).await;
    assert!(first.incarnation > Incarnation(1_500_000_000_000), "the time of its start: {first:?}");
    assert!(Path::new(&format!("/proc/{}", first.pid.unwrap())).exists());
    let again = docker.start(&worker, Incarnation(first.incarnation.0 + 1)).await;
    assert!(matches!(again, Err(BackendError::OutOfDate { .. })), "{again:?}");

    // An order for another life does nothing.
    let late = docker.kill(&worker, Incarnation(first.incarnation.0 - 1)).await;
    assert!(matches!(late, Err(BackendError::OutOfDate { .. })), "{late:?}");
    assert_eq!(until(&docker, &worker, "there", |_| true).await, first);

    docker.kill(&worker, first.incarnation).await.unwrap();
    let killed = until(&docker, &worker, "killed", |found| !found.is_running()).await;
    assert_eq!((killed.incarnation, killed.ended), (first.incarnation, Some(Ending::Signalled(9))));
    docker.kill(&worker, first.incarnation).await.unwrap();

    docker.start(&worker, Incarnation(first.incarnation.0 + 1)).await.unwrap();
    let second = until(&docker, &worker, "running", Found::is_running).await;
    assert!(second.incarnation > first.incarnation, "{second:?} after {first:?}");

    // Both streams. When it has written this, it listens to signals, too. (Podman's lines have whole seconds: those of a life that
    // ended just before may be among them.)
    let written = async {
        loop {
            let mut lines = docker.last_lines(&worker, 2).await;
            lines.sort();
            if lines == ["hello second", "world second"] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, written).await.unwrap();

    docker.stop(&worker, second.incarnation).await.unwrap();
    let stopped = until(&docker, &worker, "stopped", |found| !found.is_running()).await;
    assert_eq!(stopped.ended, Some(Ending::Exited(7)));

    // The stranger was never touched.
    let stranger = docker.start(&name("stranger"), Incarnation(1)).await;
    assert!(matches!(stranger, Err(BackendError::NoSuchProcess(_))), "{stranger:?}");

    engine.container("hasty", "gateway", None, &["/bin/sh", "-c", "exit 75"]).await;
    let hasty = name(&engine.called("hasty"));
    docker.start(&hasty, Incarnation(1)).await.unwrap();
    let ended = until(&docker, &hasty, "ended", |found| found.ended.is_some()).await;
    assert_eq!((ended.role, ended.ended), (ProcessRole::Gateway, Some(Ending::Exited(75))));

    engine.container("missing", "worker", None, &["/bin/no-such-program"]).await;
    let missing = name(&engine.called("missing"));
    let error = docker.start(&missing, Incarnation(1)).await.unwrap_err();
    assert!(matches!(error, BackendError::CannotStart { .. }), "{error:?}");
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_goes_away_is_an_error_and_not_an_endless_wait() {
    let Some(engine) = PrivateEngine::start().await else { return };
    if !engine.is_ours() {
        return eprintln!("skipped: an engine that others use is not ended");
    }
    let docker = Docker::new(engine.socket(), &engine.label()).unwrap();
    assert_eq!(docker.inspect().await.unwrap(), []);
    let (_dir, socket) = engine.end();
    let error = docker.inspect().await.unwrap_err().to_string();
    assert!(error.contains(&*socket.to_string_lossy()) && error.contains("nobody listens"), "{error}");
    tokio::time::timeout(PATIENCE, docker.changed()).await.unwrap();
    let lines = docker.last_lines(&name("worker-1"), 5).await;
    assert_eq!(lines.len(), 1, "the reason, for people: {lines:?}");
}
