#![allow(clippy::unwrap_used)]

use std::time::Instant;

use rustix::process::Signal;

use super::*;
use crate::census;
use crate::lock::FileLock;
use crate::testing::*;

#[tokio::test]
async fn a_process_is_started_killed_and_its_signal_recorded() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    assert_eq!(look(&executor, "worker-1").await.found.incarnation, Incarnation(0));
    cluster.start(&executor, "worker-1", 1).await;
    let process = look(&executor, "worker-1").await;
    let pid = process.found.pid.unwrap();
    assert_eq!((process.found.ended, process.history.restarts), (None, 0));
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(!String::from_utf8_lossy(&words).contains("secret"), "passwords are not for ps");
    assert_eq!(executor.execute(term(1), &kill("worker-1", 1)).await, OrderResult::Done);
    executor.changed().await;
    until(async || look(&executor, "worker-1").await.found.ended == Some(Ending::Signalled(9))).await;
    cluster.start(&executor, "worker-1", 2).await;
    let process = look(&executor, "worker-1").await;
    assert!(process.found.is_running() && process.found.pid != Some(pid));
    assert_eq!((process.history.restarts, process.history.starts_unix_ms.len()), (1, 2));
    assert_eq!(process.history.endings[0].ending, Ending::Signalled(9));
    for word in ["started", "killed", "ended"] {
        assert!(cluster.events().contains(&format!("\"event\":\"{word}\"")), "{}", cluster.events());
    }
}

#[tokio::test]
async fn an_exit_code_is_known_to_every_executor_of_the_machine() {
    let cluster = TestCluster::new("exit-75");
    let (parent, other) = (cluster.executor(), cluster.executor());
    assert_eq!(parent.execute(term(1), &start("worker-2", 1)).await, OrderResult::Done);
    until(async || !look(&other, "worker-2").await.found.is_running()).await;
    assert_eq!(
        look(&other, "worker-2").await.found.ended,
        Some(Ending::Exited(75)),
        "never Unknown, even for a moment"
    );
    assert_eq!(look(&parent, "worker-2").await.found.ended, Some(Ending::Exited(75)));
    assert_eq!(other.last_lines(&name("worker-2"), 3).await, ["going with 75"]);
    let order = Order::GiveUp { name: name("worker-2"), reason: "it never got ready".to_owned() };
    assert_eq!(other.execute(term(1), &order).await, OrderResult::Done);
    let given_up = look(&parent, "worker-2").await.history.given_up.unwrap();
    assert_eq!(
        (given_up.reason.as_str(), given_up.last_lines),
        ("it never got ready", vec!["going with 75".to_owned()])
    );
}

#[tokio::test]
async fn a_start_for_which_the_disk_has_no_room_is_obstructed_and_not_a_failed_one() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    let log = cluster.home.log_path(&name("worker-1"));
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let result = executor.execute(term(1), &start("worker-1", 1)).await;
    assert!(matches!(&result, OrderResult::Obstructed(OutsideCause::NoDiskSpace, _)), "{result:?}");
    std::fs::remove_file(&log).unwrap();
    cluster.start(&executor, "worker-1", 1).await;
}

/// Whoever looks has read the record of a life that is over by now, and somebody else has begun the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_life_that_begins_while_others_look_is_not_called_dead() {
    const LIVES: u64 = 30;
    let cluster = TestCluster::new("wait");
    let parent = cluster.executor();
    let over = tokio_util::sync::CancellationToken::new();
    let lookers: Vec<_> = (0..3)
        .map(|_| {
            let (other, over) = (cluster.executor(), over.clone());
            tokio::spawn(async move {
                while !over.is_cancelled() {
                    look(&other, "worker-1").await;
                }
            })
        })
        .collect();
    for life in 1..=LIVES {
        cluster.start(&parent, "worker-1", life).await;
        assert_eq!(parent.execute(term(1), &kill("worker-1", life)).await, OrderResult::Done);
        let ended = until(async || look(&parent, "worker-1").await.found.ended == Some(Ending::Signalled(9)));
        assert!(tokio::time::timeout(PATIENCE / 2, ended).await.is_ok(), "{life}: {}", cluster.events());
    }
    over.cancel();
    for looker in lookers {
        looker.await.unwrap();
    }
    let events = cluster.events();
    assert_eq!(events.matches("\"event\":\"started\"").count(), LIVES as usize, "{events}");
    assert!(!events.contains("nobody saw how"), "{events}");
}

#[tokio::test]
async fn a_second_executor_adopts_watches_and_kills() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let other = cluster.executor();
    assert!(look(&other, "worker-1").await.found.is_running());
    assert!(matches!(other.execute(term(1), &start("worker-1", 2)).await, OrderResult::OutOfDate(_)));
    assert_eq!(other.execute(term(1), &kill("worker-1", 1)).await, OrderResult::Done);
    other.changed().await;
    until(async || look(&other, "worker-1").await.found.ended == Some(Ending::Signalled(9))).await;
    assert_eq!(other.execute(term(1), &kill("worker-1", 1)).await, OrderResult::Done, "it has ended already");
    assert!(matches!(other.execute(term(1), &kill("worker-1", 2)).await, OrderResult::OutOfDate(_)));
    assert!(matches!(other.execute(term(1), &start("worker-1", 1)).await, OrderResult::OutOfDate(_)));
}

#[tokio::test]
async fn the_census_finds_a_process_whose_record_is_lost() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-1", 4).await;
    std::fs::remove_file(cluster.home.run("worker-1.json")).unwrap();
    let executor = cluster.executor();
    assert!(matches!(executor.execute(term(1), &start("worker-1", 5)).await, OrderResult::OutOfDate(_)), "no double");
    let found = look(&executor, "worker-1").await.found;
    assert_eq!((found.incarnation, found.is_running()), (Incarnation(4), true));
    // One that was never our child: nobody reads how it ends but init.
    cluster.start_strange(cluster.home.id().as_str(), "worker-2", 9, "worker");
    until(async || look(&executor, "worker-2").await.found.is_running()).await;
    assert_eq!(executor.execute(term(1), &kill("worker-2", 9)).await, OrderResult::Done);
    until(async || !look(&executor, "worker-2").await.found.is_running()).await;
    let ended = look(&executor, "worker-2").await.found.ended;
    assert!(matches!(ended, Some(Ending::Unknown | Ending::Signalled(9))), "{ended:?}");
}

#[tokio::test]
async fn a_pid_that_belongs_to_another_process_now_is_not_signalled() {
    let cluster = TestCluster::new("wait");
    let mut decoy = Decoy::start(None);
    let start_ticks = crate::kernel::Stat::of(decoy.pid()).unwrap().start_ticks;
    // Records that mean a stranger: with a wrong start time, and with the right one, but then the mark is missing.
    for (life, start_ticks) in [(1, start_ticks + 1), (2, start_ticks)] {
        cluster.start(&cluster.executor(), "worker-1", life).await;
        let mut record = cluster.home.records().read(&name("worker-1")).unwrap();
        record.life = Some(crate::records::Life { pid: decoy.pid(), start_ticks });
        cluster.home.records().write(&record).unwrap();
        let executor = cluster.executor();
        assert_eq!(executor.execute(term(1), &kill("worker-1", life)).await, OrderResult::Done);
        until(async || census::heads(cluster.home.id()).is_empty()).await;
        assert!(!look(&executor, "worker-1").await.found.is_running());
    }
    assert!(decoy.lives());
}

#[tokio::test]
async fn an_old_term_is_refused_by_every_executor_even_after_the_fence_was_read_from_disk() {
    let cluster = TestCluster::new("wait");
    cluster.start(&cluster.executor(), "worker-1", 1).await;
    let executor = cluster.executor();
    assert_eq!(executor.execute(term(5), &kill("worker-2", 0)).await, OrderResult::Done);
    let other = cluster.executor();
    assert_eq!(other.execute(term(4), &kill("worker-1", 1)).await, OrderResult::Fenced(term(5)));
    assert!(look(&other, "worker-1").await.found.is_running());
    assert!(cluster.events().contains("\"event\":\"refused\""));
    std::fs::write(cluster.home.run("fence.json"), "{\"rou").unwrap();
    assert_eq!(other.execute(term(4), &kill("worker-1", 1)).await, OrderResult::Done);
    assert!(cluster.events().contains("\"event\":\"fence_lost\""));
}

#[tokio::test]
async fn nothing_is_started_once_the_cluster_is_closed() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    cluster.home.close().unwrap();
    assert_eq!(executor.execute(term(1), &start("worker-1", 1)).await, OrderResult::Closed);
    assert_eq!(executor.revive_supervisor(SupervisorId(1)).await, OrderResult::Closed);
    cluster.home.reopen().unwrap();
    assert_eq!(executor.execute(term(1), &start("worker-1", 1)).await, OrderResult::Done);
}

#[tokio::test]
async fn a_supervisor_is_revived_unless_someone_has_its_name() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    let identity = cluster.home.hold_identity(&name("supervisor-1")).unwrap().unwrap();
    assert!(matches!(executor.revive_supervisor(SupervisorId(1)).await, OrderResult::OutOfDate(_)));
    assert_eq!(look(&executor, "supervisor-1").await.found.pid, Some(std::process::id()));
    let refused = executor.execute(term(1), &kill("supervisor-1", 0)).await;
    assert!(matches!(refused, OrderResult::Failed(_)), "it carries no mark: {refused:?}");
    drop(identity);
    assert_eq!(executor.revive_supervisor(SupervisorId(1)).await, OrderResult::Done);
    assert!(matches!(executor.revive_supervisor(SupervisorId(1)).await, OrderResult::OutOfDate(_)));
    assert!(matches!(executor.revive_supervisor(SupervisorId(2)).await, OrderResult::Failed(_)));
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_a_life_that_ended_with_its_reason_in_the_log() {
    let mut cluster = TestCluster::new("wait");
    cluster.program = cluster.dir().join("missing");
    let executor = cluster.executor();
    let OrderResult::Failed(text) = executor.execute(term(1), &start("worker-1", 1)).await else { panic!() };
    assert!(text.contains("missing cannot be started: No such file"), "{text}");
    let process = look(&executor, "worker-1").await;
    assert_eq!((process.found.incarnation, process.found.ended), (Incarnation(1), Some(Ending::Exited(127))));
    assert!(executor.last_lines(&name("worker-1"), 1).await[0].contains("cannot be started"));
}

#[tokio::test]
async fn an_order_does_not_wait_for_ever_for_the_lock() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    let held = FileLock::attempt(&cluster.home.run("lock")).unwrap().unwrap();
    let began = Instant::now();
    let OrderResult::Failed(text) = executor.execute(term(1), &start("worker-1", 1)).await else { panic!() };
    assert!(text.contains("has been locked for 5 s by"), "{text}");
    assert!(began.elapsed() < PATIENCE);
    assert!(executor.inspect().await.is_ok(), "looking needs no lock");
    drop(held);
    assert_eq!(executor.execute(term(1), &start("worker-1", 1)).await, OrderResult::Done);
}

#[tokio::test]
async fn a_process_of_the_cluster_that_was_stopped_with_the_lock_in_hand_is_killed() {
    let cluster = TestCluster::new("wait");
    let executor = cluster.executor();
    let mut holder = std::process::Command::new("flock");
    holder.arg(cluster.home.run("lock")).args(["sh", "-c", "echo up > held; read -r line"]);
    holder.current_dir(cluster.home.dir()).stdin(std::process::Stdio::piped());
    holder.env("TENAZ_CLUSTER_ID", cluster.home.id().as_str()).env("TENAZ_NAME", "supervisor-1");
    let mut holder = holder.env("TENAZ_INCARNATION", "1").spawn().unwrap();
    until(async || cluster.home.dir().join("held").exists()).await;
    // flock and the shell share the lock: both stop, as all threads of a supervisor would.
    for member in census::scan(cluster.home.id()) {
        member.target().unwrap().signal(Signal::STOP).unwrap();
    }
    let killed = tokio::task::spawn_blocking({
        let home = cluster.home.clone();
        move || home.lock()
    });
    until(async || cluster.events().contains("\"event\":\"killed\"")).await;
    // The shell has the same file open; a supervisor has no such child.
    for member in census::scan(cluster.home.id()) {
        member.target().map(|target| target.signal(Signal::KILL));
    }
    holder.wait().unwrap();
    assert!(killed.await.unwrap().is_ok());
    assert_eq!(executor.execute(term(1), &start("worker-1", 1)).await, OrderResult::Done);
}
