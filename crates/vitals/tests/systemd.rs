//! What systemd hears of a process.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenaz_core::ProcessRole;
use tenaz_vitals::{Identity, Vitals, VitalsSettings};

const PATIENCE: Duration = Duration::from_secs(60);

/// The process itself: it beats; at the first byte it stands still, at the second it beats again, at the third it ends.
#[test]
#[ignore = "started by the test below"]
fn process() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let settings = VitalsSettings {
        identity: Identity::alone(ProcessRole::Worker),
        key: None,
        supervisors: Vec::new(),
        every: Duration::from_millis(500),
        http: None,
    };
    let vitals = runtime.block_on(Vitals::start(settings)).unwrap();
    let pulse = vitals.pulse();
    vitals.set_ready(true);
    let (stands, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let beating = {
        let (stands, ended) = (Arc::clone(&stands), Arc::clone(&ended));
        std::thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                if !stands.load(Ordering::SeqCst) {
                    pulse.beat();
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        })
    };
    let mut stdin = std::io::stdin();
    for still in [true, false] {
        stdin.read_exact(&mut [0]).unwrap();
        stands.store(still, Ordering::SeqCst);
        println!("\nstands: {still}");
    }
    stdin.read_exact(&mut [0]).unwrap();
    vitals.set_draining();
    ended.store(true, Ordering::SeqCst);
    beating.join().unwrap();
}

#[test]
fn systemd_hears_that_a_process_is_ready_turns_stands_still_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let hear = |patience: Duration| {
        socket.set_read_timeout(Some(patience)).unwrap();
        let mut buffer = [0; 256];
        socket.recv(&mut buffer).ok().map(|length| String::from_utf8(buffer[..length].to_vec()).unwrap())
    };
    let limit = Duration::from_millis(200);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process", "--ignored", "--nocapture"])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", limit.as_micros().to_string())
        .env_remove("WATCHDOG_PID")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut order = |word: &str| {
        stdin.write_all(b".").unwrap();
        assert!(word.is_empty() || said.by_ref().any(|line| line.unwrap() == word));
    };
    let mut words = vec![hear(PATIENCE).unwrap()];
    while words.len() < 4 {
        words.push(hear(PATIENCE).unwrap());
    }
    // The watchdog may be heard before the process is ready.
    assert!(words.contains(&"READY=1\n".to_owned()), "{words:?}");
    assert!(words.iter().filter(|word| *word == "WATCHDOG=1\n").count() == 3, "{words:?}");

    order("stands: true");
    // What was on its way, and one word for the last beats.
    while hear(limit * 2).is_some() {}
    assert_eq!(hear(limit * 2), None, "a process that stands still is silent");
    order("stands: false");
    assert_eq!(hear(PATIENCE).as_deref(), Some("WATCHDOG=1\n"));
    order("");
    while hear(PATIENCE).unwrap() != "STOPPING=1\n" {}
    assert!(child.wait().unwrap().success());
}
