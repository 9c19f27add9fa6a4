//! What dies is started again, and nobody who waits for an answer notices.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;

use crate::harness::{Upped, Wanted, assert_same_results, coffee, find, shared, shared_broker, wait_for};

/// Kills whoever `victims` names while a job is worked on, and sees them replaced and the job done.
fn kill_under_a_job(upped: &Upped, name: &str, victims: &[String]) {
    let (client, out) = upped.submit(coffee(), name);
    upped.wait_for_work();
    if name == "broker" {
        upped.wait_until_recorded();
    }
    let lives: Vec<u64> = victims.iter().map(|victim| upped.signal(victim, Signal::KILL)).collect();
    assert!(client.is_alive(), "the job was over before anybody was killed:\n{}", client.log_tail());
    for (victim, life) in victims.iter().zip(lives) {
        upped.wait_for_life_after(victim, life);
    }
    client.succeeds();
    assert_same_results(coffee(), &out);
    upped.wait_until_well();
}

#[test]
fn a_kill_of_every_role_under_a_job() {
    let wanted = Wanted { gateways: 2, worker_options: &["--faults", "slow=80"], ..Wanted::default() };
    let Some(mut upped) = Upped::start(&wanted) else { return };
    kill_under_a_job(&upped, "worker", &["worker-1".to_owned()]);
    kill_under_a_job(&upped, "gateway", &["gateway-1".to_owned()]);
    kill_under_a_job(&upped, "broker", &["broker-1".to_owned()]);
    let leader = upped.leader();
    kill_under_a_job(&upped, "leader", std::slice::from_ref(&leader));
    let survivor = upped.leader();
    let others: Vec<String> = (1..=3).map(|n| format!("supervisor-{n}")).filter(|name| *name != survivor).collect();
    kill_under_a_job(&upped, "others", &others);
    // The same again, but whoever leads is among the dead.
    let leader = upped.leader();
    let survivor = (1..=3).map(|n| format!("supervisor-{n}")).find(|name| *name != leader).expect("another one");
    let others: Vec<String> = (1..=3).map(|n| format!("supervisor-{n}")).filter(|name| *name != survivor).collect();
    kill_under_a_job(&upped, "leader-and-another", &others);
    let down = upped.down(&[]);
    assert!(down.status.success(), "{}", crate::harness::text(&down));
    assert_eq!(upped.census(), Vec::<u32>::new());
}

#[test]
fn jobs_need_no_supervisor() {
    let Some(url) = shared() else { return };
    let wanted = Wanted { broker: Some(&url), worker_options: &["--faults", "slow=40"], ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let (client, out) = upped.submit(coffee(), "alone");
    upped.wait_for_work();
    // Stopped before they are killed, so that none revives another.
    let pids: Vec<i32> = (1..=3).map(|n| upped.pid(&format!("supervisor-{n}"))).collect();
    let send = |signal: Signal| {
        for pid in &pids {
            let pid = rustix::process::Pid::from_raw(*pid).expect("a pid");
            rustix::process::kill_process(pid, signal).expect("the process is ours");
        }
    };
    send(Signal::STOP);
    send(Signal::KILL);
    client.succeeds();
    assert_same_results(coffee(), &out);
    let status = upped.status().expect("a status without supervisors");
    assert!(status["leader"].is_null());
    assert!(find(&status, "worker-1").is_some_and(|worker| worker["pid"].is_u64()), "{status:#}");
}

#[test]
fn a_worker_that_hangs_is_replaced_although_its_heartbeats_come() {
    let Some(url) = shared() else { return };
    let options = ["--faults", "hang=150"];
    let wanted = Wanted { workers: 1, broker: Some(&url), worker_options: &options, ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let life = upped.process("worker-1")["incarnation"].as_u64().expect("a life");
    let (client, out) = upped.submit(coffee(), "hanging");
    upped.wait_for_life_after("worker-1", life);
    let killed = wait_for("the kill is written down", || {
        upped.events().into_iter().find(|event| event["event"] == "killed" && event["name"] == "worker-1")
    });
    assert!(killed["because"].as_str().is_some_and(|because| because.contains("progress")), "{killed}");
    client.succeeds();
    assert_same_results(coffee(), &out);
}

#[test]
fn a_worker_that_is_stopped_is_replaced() {
    let Some(url) = shared() else { return };
    let wanted = Wanted { broker: Some(&url), ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let life = upped.signal("worker-2", Signal::STOP);
    upped.wait_for_life_after("worker-2", life);
}

#[test]
fn a_process_that_crashes_at_its_start_is_given_up_with_its_reason() {
    let Some(url) = shared() else { return };
    let restarts = "backoff = \"100ms\"\nbackoff-cap = \"200ms\"\nfailed-starts = 3";
    let options = ["--no-such-option"];
    let wanted = Wanted { workers: 1, broker: Some(&url), worker_options: &options, restarts, ..Wanted::default() };
    let mut upped = Upped::described(&wanted);
    // `tenaz up` says why and stops what it has started. (That `tenaz status` shows it is tested in crates/supervisor.)
    let up = upped.up();
    assert_eq!(up.status.code(), Some(1), "{}", crate::harness::text(&up));
    let said = String::from_utf8_lossy(&up.stderr).into_owned();
    assert!(said.contains("worker-1 is given up") && said.contains("exit code 2"), "{said}");
    assert!(said.contains("--no-such-option"), "its last lines are shown: {said}");
    assert_eq!(upped.census(), Vec::<u32>::new());
    let starts = upped.events().iter().filter(|e| e["event"] == "started" && e["name"] == "worker-1").count();
    assert_eq!(starts, 3, "an end to it after three failed starts");
    upped.down(&[]);
}

/// A file system of a few megabytes, gone with this value.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None`, with a message, where one may not be made.
    fn at(dir: &Path) -> Option<Self> {
        std::fs::create_dir_all(dir).expect("a directory");
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", "size=96m", "none"]).arg(dir).output();
        if made.is_ok_and(|made| made.status.success()) {
            return Some(Self(dir.to_owned()));
        }
        eprintln!("skipped: no file system can be mounted here (it takes root)");
        None
    }

    fn fill(&self) {
        let zeros = vec![0; 1 << 16];
        let mut file = std::fs::File::create(self.0.join("filling")).expect("a file");
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.0.join("filling")).expect("the file");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Whoever is still in it keeps it until the end.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_broker_whose_disk_is_full_is_tried_until_there_is_room() {
    if shared_broker().is_none() {
        return;
    }
    // A single start that failed by its own fault would be the last.
    let restarts = "backoff = \"100ms\"\nbackoff-cap = \"200ms\"\nfailed-starts = 1";
    let wanted = Wanted { workers: 0, gateways: 0, supervisors: 1, restarts, ..Wanted::default() };
    let mut upped = Upped::described(&wanted);
    let Some(disk) = SmallDisk::at(&upped.home.join("broker")) else { return };
    let up = upped.up();
    assert!(up.status.success(), "{}\n{}", crate::harness::text(&up), upped.logs());
    disk.fill();
    upped.signal("broker-1", Signal::KILL);
    let tried = |code: i64| {
        let tried = |event: &serde_json::Value| event["event"] == "ended" && event["name"] == "broker-1";
        upped.events().iter().filter(|event| tried(event) && event["exit_code"] == code).count()
    };
    wait_for("the broker says that the reason is not its own", || {
        assert_eq!(tried(1), 0, "it takes the blame itself:\n{}", upped.logs());
        (tried(75) >= 1).then_some(())
    });
    disk.make_room();
    upped.wait_until_well();
    let down = upped.down(&[]);
    assert!(down.status.success(), "{}", crate::harness::text(&down));
}
