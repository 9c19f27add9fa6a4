//! The systemd back-end: with programs that pretend to be `systemctl` and `journalctl` for what is asked and understood, and with
//! the real ones where systemd runs the machine.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tenaz_core::{Ending, Incarnation, ProcessName, ProcessRole};
use tenaz_supervisor::backend::systemd::Systemd;
use tenaz_supervisor::backend::{Backend as _, BackendError, Found};

const PATIENCE: Duration = Duration::from_secs(60);
const LIFE: Incarnation = Incarnation(1_794_800_973_828);
const NEXT: Incarnation = Incarnation(1_794_800_973_829);
const SHOW: &str = "--no-pager --no-ask-password show --timestamp=us+utc -p \
    Id,LoadState,ActiveState,SubState,Restart,MainPID,ExecMainStatus,ExecMainCode,ExecMainStartTimestamp --";

fn name(text: &str) -> ProcessName {
    text.parse().unwrap()
}

/// Programs that write down how they were called, and answer with the files `shown`, `said` and `lines`.
struct Pretended {
    dir: tempfile::TempDir,
}

impl Pretended {
    fn new(shown: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pretended = Self { dir };
        pretended.program(
            "systemctl",
            r#"case "$*" in
                *" show "*) cat "$here/shown" ;;
                *) if [ -e "$here/said" ]; then cat "$here/said" >&2; exit 1; fi ;;
            esac"#,
        );
        pretended.program("journalctl", r#"cat "$here/lines""#);
        pretended.shows(shown);
        pretended
    }

    fn program(&self, called: &str, does: &str) {
        let path = self.path(called);
        let text = format!("#!/bin/sh\nhere=$(dirname \"$0\")\necho \"{called} $*\" >> \"$here/asked\"\n{does}\n");
        // Written under another name: a file that is open for writing, maybe in a child of another test, cannot be run.
        let status = Command::new("install").arg("-m755").arg("/dev/stdin").arg(&path).stdin(Stdio::piped()).spawn();
        let mut install = status.unwrap();
        std::io::Write::write_all(&mut install.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(install.wait().unwrap().success());
        assert_ne!(fs::metadata(&path).unwrap().permissions().mode() & 0o111, 0);
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    fn shows(&self, text: &str) {
        fs::write(self.path("shown"), text).unwrap();
    }

    fn systemd(&self, units: &[&str], user: bool) -> Systemd {
        let units: Vec<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
        Systemd::new(&units, user).unwrap().using(self.path("systemctl"), self.path("journalctl"))
    }

    /// Takes out how the programs were called since the last time.
    fn asked(&self) -> Vec<String> {
        let asked = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let _ = fs::remove_file(self.path("asked"));
        asked.lines().map(str::to_owned).collect()
    }
}

fn block(id: &str, active: &str, pid: u32, (code, status): (i32, i32), started: &str) -> String {
    format!(
        "Restart=no\nMainPID={pid}\nExecMainStartTimestamp={started}\nExecMainCode={code}\nExecMainStatus={status}\n\
         Id={id}\nLoadState=loaded\nActiveState={active}\nSubState=x\n"
    )
}

const STARTED: &str = "Mon 2026-11-16 03:49:33.828594 UTC";

fn running(pid: u32) -> String {
    block("tenaz-worker@1.service", "active", pid, (0, 0), STARTED)
}

fn ended(code: i32, status: i32) -> String {
    block("tenaz-worker@1.service", "failed", 0, (code, status), STARTED)
}

#[tokio::test]
async fn processes_are_the_units_that_are_named() {
    let blocks = [
        block("tenaz-worker@1.service", "active", 4711, (0, 0), STARTED),
        block("tenaz-worker@2.service", "failed", 0, (2, 9), STARTED),
        block("tenaz-worker@3.service", "inactive", 0, (0, 0), ""),
        block("tenaz-gateway@8080.service", "failed", 0, (1, 75), STARTED),
        block("tenaz-gateway@8081.service", "failed", 0, (3, 11), STARTED),
        block("two-worker@1.service", "inactive", 0, (1, 0), STARTED),
        block("ssh.service", "active", 1, (0, 0), STARTED),
        "Id=tenaz-worker@9.service\nLoadState=not-found\nActiveState=inactive\nMainPID=0\n".to_owned(),
    ];
    let pretended = Pretended::new(&blocks.join("\n"));
    let systemd = pretended.systemd(&["tenaz-worker@1.service", "tenaz-gateway@8080.service"], false);
    let found = systemd.inspect().await.unwrap();
    let asked = pretended.asked();
    assert_eq!(asked, [format!("systemctl {SHOW} tenaz-gateway@8080.service tenaz-worker@1.service")]);

    let seen: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.role, f.incarnation, f.pid, f.ended)).collect();
    let (worker, gateway) = (ProcessRole::Worker, ProcessRole::Gateway);
    assert_eq!(
        seen,
        [
            ("gateway-8080", gateway, LIFE, None, Some(Ending::Exited(75))),
            ("gateway-8081", gateway, LIFE, None, Some(Ending::Signalled(11))),
            ("two-worker-1", worker, LIFE, None, Some(Ending::Exited(0))),
            ("worker-1", worker, LIFE, Some(4711), None),
            ("worker-2", worker, LIFE, None, Some(Ending::Signalled(9))),
            ("worker-3", worker, Incarnation(0), None, None),
        ]
    );
    assert_eq!(found[3].log.as_deref(), Some("journalctl -u tenaz-worker@1.service"));
}

#[tokio::test]
async fn units_that_a_pattern_has_matched_are_remembered() {
    let pretended = Pretended::new(&running(4711));
    let systemd = pretended.systemd(&["tenaz-*@*.service"], true);
    let found = systemd.inspect().await.unwrap();
    assert_eq!(found[0].log.as_deref(), Some("journalctl --user -u tenaz-worker@1.service"));
    systemd.inspect().await.unwrap();
    let first = format!("systemctl --user {SHOW} tenaz-*@*.service");
    assert_eq!(pretended.asked(), [first.clone(), format!("{first} tenaz-worker@1.service")]);
}

#[tokio::test]
async fn orders_are_for_the_life_that_is_meant() {
    let pretended = Pretended::new(&running(4711));
    let systemd = pretended.systemd(&["tenaz-worker@1.service"], false);
    let worker = name("worker-1");
    let acted = || {
        let asked = pretended.asked();
        let acts = asked.into_iter().filter(|asked| !asked.contains(" show "));
        acts.map(|act| act.replace("systemctl --no-pager --no-ask-password ", "")).collect::<Vec<_>>()
    };
    systemd.kill(&worker, LIFE).await.unwrap();
    assert_eq!(acted(), ["kill -s KILL -- tenaz-worker@1.service"]);
    systemd.stop(&worker, LIFE).await.unwrap();
    assert_eq!(acted(), ["stop --no-block -- tenaz-worker@1.service"]);
    for late in
        [systemd.kill(&worker, NEXT).await, systemd.stop(&worker, NEXT).await, systemd.start(&worker, NEXT).await]
    {
        assert!(matches!(late, Err(BackendError::OutOfDate { .. })), "{late:?}");
    }
    let unknown = systemd.kill(&name("worker-9"), LIFE).await;
    assert!(matches!(unknown, Err(BackendError::NoSuchProcess(_))), "{unknown:?}");

    pretended.shows(&ended(2, 9));
    systemd.kill(&worker, LIFE).await.unwrap();
    systemd.stop(&worker, LIFE).await.unwrap();
    let same = systemd.start(&worker, LIFE).await;
    assert!(matches!(same, Err(BackendError::OutOfDate { .. })), "{same:?}");
    assert_eq!(acted(), [""; 0], "nothing was done");
    systemd.start(&worker, NEXT).await.unwrap();
    assert_eq!(acted(), ["reset-failed -- tenaz-worker@1.service", "start -- tenaz-worker@1.service"]);
}

#[tokio::test]
async fn what_systemctl_says_comes_with_a_cure() {
    let pretended = Pretended::new(&running(4711));
    let systemd = pretended.systemd(&["tenaz-worker@1.service"], false);
    for (said, cure) in [
        ("Failed to kill unit tenaz-worker@1.service: Access denied\n", "50-tenaz.rules"),
        ("Failed to kill unit: Interactive authentication required.\n", "50-tenaz.rules"),
        ("Failed to kill unit tenaz-worker@1.service: Unit tenaz-worker@1.service not loaded.\n", "daemon-reload"),
        ("System has not been booted with systemd as init system (PID 1). Can't operate.\n", "processes"),
    ] {
        fs::write(pretended.path("said"), said).unwrap();
        let error = systemd.kill(&name("worker-1"), LIFE).await.unwrap_err().to_string();
        assert!(error.starts_with("killing tenaz-worker@1.service: "), "{error}");
        assert!(error.contains(said.trim()) && error.contains(cure), "{error}");
    }
}

#[tokio::test]
async fn without_systemctl_the_error_says_what_to_use_instead() {
    let systemd = Systemd::new(&["tenaz-worker@1.service".to_owned()], false).unwrap();
    let systemd = systemd.using("/nonexistent/systemctl", "/nonexistent/journalctl");
    let error = systemd.inspect().await.unwrap_err().to_string();
    assert!(error.contains("/nonexistent/systemctl") && error.contains("back-end = \"processes\""), "{error}");
}

#[tokio::test]
async fn last_lines_are_those_of_the_latest_life() {
    let pretended = Pretended::new(&ended(1, 1));
    fs::write(pretended.path("lines"), "one\ntwo\nthree\n").unwrap();
    let systemd = pretended.systemd(&["tenaz-worker@1.service"], true);
    assert_eq!(systemd.last_lines(&name("worker-1"), 2).await, ["two", "three"]);
    let asked = pretended.asked();
    let expected = "journalctl --user -u tenaz-worker@1.service -n 2 -o cat --no-pager --since=@1794800973";
    assert_eq!(asked.last().unwrap(), expected);
}

/// Something that can be killed, and is if the test fails.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_end_of_a_main_process_is_told_before_systemd_shows_it_and_only_once() {
    let mut sleeper = Sleeper(Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap());
    let pretended = Pretended::new(&running(sleeper.0.id()));
    let systemd = pretended.systemd(&["tenaz-worker@1.service"], false);
    systemd.inspect().await.unwrap();
    sleeper.0.kill().unwrap();
    tokio::time::timeout(PATIENCE, systemd.changed()).await.unwrap();
    sleeper.0.wait().unwrap();
    // Its process is gone, and still shown: no reason to spin.
    let found = systemd.inspect().await.unwrap();
    assert!(found[0].is_running());
    tokio::time::timeout(PATIENCE, systemd.changed()).await.unwrap();
}

#[tokio::test]
async fn a_real_unit_is_started_killed_and_stopped() {
    if !Path::new("/run/systemd/system").exists() {
        return eprintln!("skipped: systemd does not run this machine");
    }
    let unit = format!("tenaz-test{}-worker@1.service", std::process::id());
    let file = PathBuf::from("/run/systemd/system").join(unit.replace("@1", "@"));
    let text = "[Service]\nExecStart=/bin/sh -c 'echo hello; exec sleep 1000'\n";
    if fs::write(&file, text).is_err() {
        return eprintln!("skipped: this user may not make units");
    }
    struct Clean(PathBuf, String);
    impl Drop for Clean {
        fn drop(&mut self) {
            let _ = Command::new("systemctl").args(["kill", "-s", "KILL", &self.1]).status();
            let _ = fs::remove_file(&self.0);
            let _ = Command::new("systemctl").arg("daemon-reload").status();
        }
    }
    let _clean = Clean(file, unit.clone());
    Command::new("systemctl").arg("daemon-reload").status().unwrap();
    let systemd = Systemd::new(&[unit], false).unwrap();
    let worker = name("worker-1");
    let until = async |is: fn(&Found) -> bool| {
        let look = async {
            loop {
                let found = systemd.inspect().await.unwrap().remove(0);
                if is(&found) {
                    return found;
                }
                systemd.changed().await;
            }
        };
        tokio::time::timeout(PATIENCE, look).await.unwrap()
    };
    assert_eq!(until(|_| true).await.incarnation, Incarnation(0));
    systemd.start(&worker, Incarnation(1)).await.unwrap();
    let first = until(Found::is_running).await;
    systemd.kill(&worker, first.incarnation).await.unwrap();
    assert_eq!(until(|found| !found.is_running()).await.ended, Some(Ending::Signalled(9)));
    systemd.start(&worker, Incarnation(first.incarnation.0 + 1)).await.unwrap();
    let second = until(Found::is_running).await;
    assert!(second.incarnation > first.incarnation);
    systemd.stop(&worker, second.incarnation).await.unwrap();
    assert_eq!(until(|found| !found.is_running()).await.ended, Some(Ending::Signalled(15)));
}

#[test]
fn the_cluster_of_units_is_one_that_supervisors_understand() {
    let text = include_str!("../../../deploy/systemd/cluster.toml");
    let config = tenaz_supervisor::Config::parse(text, "deploy/systemd/cluster.toml").unwrap();
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
    assert_eq!((config.supervisors.len(), config.majority()), (3, 2));
}
