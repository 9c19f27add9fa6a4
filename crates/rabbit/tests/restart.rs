//! Brokers that crash, block or disappear. Every test has a node of its own.
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use common::{connect, eventually, id, insist, is_running, run, start_node};
use tenaz_rabbit::{
    Backoff, BrokerSettings, Connection, Consumer, Error, Offset, Publisher, QueueSpec, StreamReader, StreamSpec,
    Target, node::NodeOptions,
};

const MESSAGES: u32 = 600;
const KILL_AFTER: u32 = 200;

async fn open_publisher(settings: &BrokerSettings) -> Publisher {
    insist(async || Publisher::open(&Connection::open(settings, "publisher").await?).await).await
}

/// Publishes to both, one message after another, until each is confirmed. Returns how often it had to reconnect.
async fn publish_all(settings: &BrokerSettings, progress: &AtomicU32) -> u32 {
    let mut publisher = open_publisher(settings).await;
    let mut losses = 0;
    for number in 0..MESSAGES {
        for target in [Target::Queue("work"), Target::Queue("log")] {
            while let Err(error) = publisher.publish(target, vec![7; 1000], &id(number)).await {
                assert!(error.is_temporary(), "{error}");
                tokio::time::sleep(Backoff::new().next_delay()).await;
                if error.is_lost() {
                    losses += 1;
                    publisher = open_publisher(settings).await;
                }
            }
        }
        progress.store(number + 1, Ordering::SeqCst);
    }
    losses
}

/// Reads until everything was seen, and begins anew where it was after every loss.
async fn read_log(settings: &BrokerSettings) -> (BTreeSet<String>, u32) {
    let (mut seen, mut next, mut losses) = (BTreeSet::new(), 0, 0);
    while seen.len() < MESSAGES as usize {
        let open =
            async || StreamReader::open(&Connection::open(settings, "reader").await?, "log", Offset::Next(next)).await;
        let mut reader = insist(open).await;
        while seen.len() < MESSAGES as usize {
            match reader.next().await {
                Ok(message) => {
                    assert!(message.offset >= next, "offset {} came after {next}", message.offset);
                    next = message.offset + 1;
                    seen.insert(message.properties.message_id.unwrap());
                }
                Err(error) => {
                    assert!(error.is_temporary(), "{error}");
                    losses += 1;
                    break;
                }
            }
        }
    }
    (seen, losses)
}

/// The files of a stream.
fn files_of(dir: &Path, stream: &str) -> Vec<PathBuf> {
    let list = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let nodes = list(&dir.join("mnesia")).map(|node| node.join("stream"));
    let streams = nodes.flat_map(|node| list(&node).collect::<Vec<_>>());
    streams
        .filter(|path| name(path).starts_with(&format!("__{stream}_")))
        .flat_map(|path| list(&path).collect::<Vec<_>>())
        .collect()
}

/// As measured: killed after the index was made, and before its segment was.
#[test]
fn a_node_that_was_killed_while_it_began_a_segment_comes_back_with_the_stream() {
    run(async {
        let Some(mut node) = start_node("rabbit-segments").await else { return };
        let connection = connect(&node.settings()).await;
        let names = ["without-segment", "empty-segment", "untouched"];
        for name in names {
            let spec = StreamSpec { name: name.to_owned(), max_length_bytes: None, max_age: None, segment_bytes: None };
            connection.declare_stream(&spec).await.unwrap();
        }
        let publisher = Publisher::open(&connection).await.unwrap();
        publisher.publish(Target::Queue("untouched"), vec![7; 10], &id(0)).await.unwrap();
        node.kill().await.unwrap();
        for name in &names[..2] {
            let files = files_of(node.dir(), name);
            assert_eq!(files.len(), 2, "{files:?}");
            for file in files {
                let is_segment = file.extension().is_some_and(|extension| extension == "segment");
                match is_segment && *name == "without-segment" {
                    true => std::fs::remove_file(&file).unwrap(),
                    false => std::fs::write(&file, b"").unwrap(),
                }
            }
        }
        node.restart().await.unwrap();
        let publisher = open_publisher(&node.settings()).await;
        for name in names {
            let publish = async || match publisher.publish(Target::Queue(name), vec![7; 10], &id(1)).await {
                // The node is still looking at its streams.
                Err(Error::Unroutable { target }) => Err(Error::NotReady { name: target, detail: String::new() }),
                done => done,
            };
            insist(publish).await;
        }
        let reading = Connection::open(&node.settings(), "reader").await.unwrap();
        let mut reader = StreamReader::open(&reading, "untouched", Offset::First).await.unwrap();
        for number in 0..2 {
            assert_eq!(reader.next().await.unwrap().properties.message_id, id(number).message_id);
        }
    });
}

/// RabbitMQ by itself writes names to disk half a second later, or more.
#[test]
fn names_of_new_queues_are_on_disk_at_once() {
    run(async {
        let Some(mut node) = start_node("rabbit-recording").await else { return };
        let connection = connect(&node.settings()).await;
        let names: Vec<String> = (0..8).map(|number| format!("queue-{number}")).collect();
        let mut soonest = Duration::MAX;
        for name in &names {
            let spec = QueueSpec { name: name.clone(), max_length: None, max_length_bytes: None };
            connection.declare_queue(&spec).await.unwrap();
            let declared = Instant::now();
            node.wait_until_recorded(&[name]).await.unwrap();
            soonest = soonest.min(declared.elapsed());
        }
        // One of eight: a busy machine may be slow now and then.
        assert!(soonest < Duration::from_millis(250), "{soonest:?}");
        node.kill().await.unwrap();
        node.restart().await.unwrap();
        let publisher = open_publisher(&node.settings()).await;
        for name in &names {
            insist(async || publisher.publish(Target::Queue(name), vec![7; 10], &id(1)).await).await;
        }
    });
}

#[test]
fn no_confirmed_message_is_lost_when_the_broker_is_killed() {
    run(async {
        let Some(mut node) = start_node("killed").await else { return };
        let settings = node.settings();
        let connection = connect(&settings).await;
        connection.declare_queue(&QueueSpec::new("work")).await.unwrap();
        connection.declare_stream(&StreamSpec::new("log")).await.unwrap();
        node.wait_until_recorded(&["work"]).await.unwrap();
        let progress = AtomicU32::new(0);
        let chaos = async {
            eventually("enough is published", || async { progress.load(Ordering::SeqCst) >= KILL_AFTER }).await;
            let before = node.pid().unwrap();
            node.kill().await.unwrap();
            assert!(connection.closed().await.is_lost());
            assert!(!is_running(before));
            assert!(progress.load(Ordering::SeqCst) < MESSAGES, "killed too late");
            node.restart().await.unwrap();
            assert_ne!(node.pid().unwrap(), before);
        };
        let (losses, (read, reader_losses), ()) =
            tokio::join!(publish_all(&settings, &progress), read_log(&settings), chaos);
        assert!(losses > 0 && reader_losses > 0, "the kill was not noticed");
        let all: BTreeSet<String> = (0..MESSAGES).map(|number| number.to_string()).collect();
        assert_eq!(read, all);
        // What was in doubt was sent again, so there may be more than one of some.
        let connection = connect(&settings).await;
        let mut consumer = Consumer::open(&connection, "work", 50).await.unwrap();
        let mut taken = BTreeSet::new();
        while taken.len() < all.len() {
            let delivery = tokio::time::timeout(common::DEADLINE, consumer.next()).await.expect("all of them").unwrap();
            taken.insert(delivery.properties.message_id.unwrap());
            consumer.ack(delivery.tag).await.unwrap();
        }
        assert_eq!(taken, all);
        node.stop().await.unwrap();
        assert!(matches!(Connection::open(&settings, "test").await, Err(Error::Unreachable { .. })));
    });
}

#[test]
fn publishing_waits_while_the_broker_has_an_alarm() {
    run(async {
        let Some(node) = start_node("alarmed").await else { return };
        let settings = node.settings();
        let (sending, receiving) = (connect(&settings).await, connect(&settings).await);
        sending.declare_queue(&QueueSpec::new("work")).await.unwrap();
        let publisher = Publisher::open(&sending).await.unwrap();
        publisher.publish(Target::Queue("work"), vec![1], &id("before")).await.unwrap();
        let mut consumer = Consumer::open(&receiving, "work", 1).await.unwrap();
        node.ctl(&["set_vm_memory_high_watermark", "absolute", "1"]).await.unwrap();
        let waiting = {
            let publisher = publisher.clone();
            tokio::spawn(async move {
                for number in 0..20 {
                    publisher.publish(Target::Queue("work"), vec![1], &id(number)).await?;
                }
                Ok::<_, Error>(())
            })
        };
        eventually("the connection is blocked", || async { sending.is_blocked() }).await;
        // Longer than the broker waits for heartbeats (three of 5 s).
        tokio::time::sleep(std::time::Duration::from_secs(17)).await;
        assert!(!waiting.is_finished() && sending.is_open());
        // Consuming goes on, on its own connection.
        let delivery = consumer.next().await.unwrap();
        consumer.ack(delivery.tag).await.unwrap();
        assert!(!receiving.is_blocked());
        node.ctl(&["set_vm_memory_high_watermark", "absolute", "4GB"]).await.unwrap();
        waiting.await.unwrap().unwrap();
        eventually("the alarm is over", || async { !sending.is_blocked() }).await;
    });
}

/// A broker that hangs while its connections look fine must not hang everybody else.
#[test]
fn a_question_without_an_answer_ends_the_connection() {
    run(async {
        let Some(node) = start_node("silent").await else { return };
        let mut settings = node.settings();
        // So long that heartbeats notice nothing.
        settings.heartbeat = Duration::from_secs(600);
        settings.answer_timeout = Duration::from_secs(5);
        let connection = connect(&settings).await;
        let publisher = Publisher::open(&connection).await.unwrap();
        let broker = i32::try_from(node.pid().unwrap()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(broker, rustix::process::Signal::STOP).unwrap();
        let began = Instant::now();
        let unanswered = connection.declare_queue(&QueueSpec::new("work")).await;
        let waited = began.elapsed();
        let closed = connection.closed().await;
        let unsent = publisher.publish(Target::Queue("work"), vec![1], &id(1)).await;
        rustix::process::kill_process(broker, rustix::process::Signal::CONT).unwrap();
        let of_channel = |what: &str| what == "a new channel";
        assert!(
            matches!(&unanswered, Err(Error::Unanswered { what, seconds: 5 }) if of_channel(what)),
            "{unanswered:?}"
        );
        assert!(waited >= settings.answer_timeout, "{waited:?}");
        assert!(matches!(closed, Error::Lost(_)) && !connection.is_open());
        assert!(matches!(unsent, Err(Error::Lost(_))), "{unsent:?}");
        let again = insist(async || Connection::open(&settings, "again").await).await;
        insist(async || again.declare_queue(&QueueSpec::new("work")).await).await;
    });
}

#[test]
fn a_dropped_node_leaves_nothing_running() {
    run(async {
        let Some(node) = start_node("dropped").await else { return };
        let family = family(node.dir());
        assert!(family.contains(&node.pid().unwrap()), "the broker is not among {family:?}");
        let (port, epmd) = (node.port(), children("epmd"));
        assert!(!epmd.is_empty());
        drop(node);
        eventually("all are gone", || async { !family.iter().any(|pid| is_running(*pid)) }).await;
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    });
}

#[test]
fn a_node_dies_with_its_process_even_by_sigkill() {
    let helper = std::env::current_exe().unwrap();
    let mut child = Command::new(helper)
        .args(["--ignored", "--exact", "--nocapture", "helper_that_runs_a_node_for_ever"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let dir = lines
        .map_while(std::io::Result::ok)
        .find_map(|line| line.split_once("node in ").map(|(_, dir)| dir.to_owned()));
    let Some(dir) = dir else {
        child.kill().unwrap();
        child.wait().unwrap();
        return; // Not installed.
    };
    let family = family(std::path::Path::new(&dir));
    assert!(!family.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    run(eventually("all are gone", || async { !family.iter().any(|pid| is_running(*pid)) }));
}

#[test]
#[ignore = "run by another test"]
#[allow(clippy::print_stdout)]
fn helper_that_runs_a_node_for_ever() {
    run(async {
        let Some(node) = start_node("orphaned").await else { return };
        println!("node in {}", node.dir().display());
        std::future::pending::<()>().await;
    });
}

/// All processes of the node in this directory: broker, helpers, and the name server of the same parent.
fn family(dir: &std::path::Path) -> Vec<u32> {
    let mark = dir.canonicalize().unwrap().display().to_string();
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|p| p.file_name().to_str()?.parse().ok());
    let mut family: Vec<u32> = pids
        .filter(|pid| *pid != std::process::id())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&format!("RABBITMQ_MNESIA_BASE={mark}/"))
        })
        .collect();
    let parents: BTreeSet<u32> = family.iter().filter_map(|pid| parent(*pid)).collect();
    let epmds = all_named("epmd").into_iter().filter(|pid| parent(*pid).is_some_and(|p| parents.contains(&p)));
    family.extend(epmds.filter(|pid| parent(*pid) != Some(std::process::id())).collect::<Vec<_>>());
    family
}

fn children(name: &str) -> Vec<u32> {
    all_named(name).into_iter().filter(|pid| parent(*pid) == Some(std::process::id())).collect()
}

fn all_named(name: &str) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|p| p.file_name().to_str()?.parse().ok());
    pids.filter(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|found| found.trim() == name))
        .collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// What `tenaz broker` relies on: a node whose caller was killed comes back for the next caller, where clients look for it.
#[test]
fn a_node_comes_back_at_its_port_with_its_queues_for_another_caller() {
    run(async {
        let dir = common::fresh_dir("again");
        let Some(first) = common::start_node_with(NodeOptions::new(&dir, "again")).await else { return };
        let port = first.port();
        let connection = connect(&first.settings()).await;
        connection.declare_queue(&QueueSpec::new("stays")).await.unwrap();
        first.wait_until_recorded(&["stays"]).await.unwrap();
        drop(first);
        let mark = ("TENAZ_TEST_MARK".to_owned(), format!("again-{}", std::process::id()));
        let options = NodeOptions { port: Some(port), marks: vec![mark.clone()], ..NodeOptions::new(&dir, "again") };
        let mut second = common::start_node_with(options).await.expect("the first one was there");
        assert_eq!(second.port(), port);
        let depth = insist(async || Connection::open(&second.settings(), "looks").await?.queue_depth("stays").await);
        assert_eq!(depth.await, Some(0));
        assert!(!second.has_exited());
        let environment = std::fs::read(format!("/proc/{}/environ", second.pid().unwrap())).unwrap();
        let entry = format!("{}={}", mark.0, mark.1);
        assert!(environment.split(|byte| *byte == 0).any(|found| found == entry.as_bytes()), "the mark is there");
        second.kill().await.unwrap();
        assert!(second.has_exited());
    });
}
