//! The registry over a real broker: long texts, writing jobs down again, and a log that has lost its end.
#![allow(clippy::print_stderr, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenaz_cluster::{Book, Janitor, JobSpec, Link, LinkSettings, Membership, Names, Patience, Role, create_job};
use tenaz_core::{End, FaultClass, JobCard, JobId, Log, RegistryEvent, WorkloadText};
use tenaz_rabbit::node::{NodeOptions, PrivateNode};
use tenaz_rabbit::{Backoff, Offset, StreamReader, StreamSpec};

/// Longer than anything takes on a loaded machine; only a bug gets there.
const DEADLINE: Duration = Duration::from_secs(60);
const LONG: usize = 5 << 20;

fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(DEADLINE * 3, test).await.expect("the test hangs") });
    runtime.shutdown_timeout(Duration::from_secs(1));
}

async fn start_node(name: &str) -> Option<PrivateNode> {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    match PrivateNode::start(NodeOptions::new(dir, name)).await {
        Ok(node) => Some(node),
        Err(error @ tenaz_rabbit::Error::NotInstalled { .. }) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while !is_so() {
        assert!(tokio::time::Instant::now() < deadline, "not so: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What every process of a cluster has.
struct Process {
    link: Link,
    book: Arc<Book>,
    membership: Arc<Membership>,
}

impl Process {
    async fn start(node: &PrivateNode) -> Self {
        let names = Names::new("test").unwrap();
        let settings = LinkSettings { broker: node.settings(), names, connection_name: "test".to_owned() };
        let mut backoff = Backoff::new();
        let link = loop {
            match Link::open(settings.clone()).await {
                Ok(link) => break link,
                // A broker that has just started is still looking at its streams.
                Err(error) if error.is_temporary() => tokio::time::sleep(backoff.next_delay()).await,
                Err(error) => panic!("{error}"),
            }
        };
        let book = tokio::time::timeout(DEADLINE, Book::open(&link)).await.expect("a book").unwrap();
        let membership = Membership::join(&link, Role::Worker, Membership::new_id().unwrap(), |_| {});
        Janitor::start(&link, &book, &membership, Patience::default());
        Self { link, book, membership }
    }

    /// So many processes, each of which has heard of all others.
    async fn start_all(node: &PrivateNode, count: usize) -> Vec<Self> {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(Self::start(node).await);
        }
        eventually("all have heard of each other", || all.iter().all(|p| p.membership.seen().len() == count - 1)).await;
        all
    }

    fn knows(&self, job: &JobId) -> bool {
        self.book.view(job, |_| ()).is_some()
    }

    fn reason(&self, job: &JobId) -> Option<String> {
        let end = self.book.view(job, |view| view.end.clone()).flatten()?;
        let End::Failed { reason, .. } = end else { panic!("{end:?}") };
        Some(reason.to_string())
    }

    /// Everything that is in the registry's log up to a mark that is written now: (bytes, event).
    async fn registry(&self) -> Vec<(usize, RegistryEvent)> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let here = RegistryEvent::Mark { number: NEXT.fetch_add(1, Ordering::Relaxed) };
        self.book.write(&here).await.unwrap();
        let session = self.link.session().await;
        let name = self.link.names().registry();
        let mut reader = StreamReader::open(&session.reading, &name, Offset::First).await.unwrap();
        let mut events = Vec::new();
        loop {
            let message = tokio::time::timeout(DEADLINE, reader.next()).await.expect("the mark").unwrap();
            let event = serde_json::from_slice(&message.body).unwrap();
            if event == here {
                return events;
            }
            events.push((message.body.len(), event));
        }
    }
}

fn card(n: u8) -> JobCard {
    JobCard {
        id: JobId::from_bytes([n; 8]),
        tenant: "public".to_owned(),
        workload: "coffee".to_owned(),
        partitions: 1,
        waves: 1,
        tables: BTreeSet::new(),
        spec_digest: String::new(),
        build: Default::default(),
        plan_digest: String::new(),
        created_ms: 0,
    }
}

async fn create(process: &Process, numbers: impl IntoIterator<Item = u8>) {
    for n in numbers {
        process.book.write(&RegistryEvent::Created { card: card(n) }).await.unwrap();
    }
}

#[test]
fn long_texts_of_failed_jobs_are_cut_before_they_are_written() {
    run(async {
        let Some(node) = start_node("registry-texts").await else { return };
        let process = Process::start(&node).await;
        create(&process, [1, 2]).await;
        for n in [1, 2] {
            let end =
                End::Failed { code: "task".to_owned(), reason: "x".repeat(LONG).into(), class: FaultClass::Query };
            process.book.write(&RegistryEvent::Ended { id: card(n).id, end }).await.unwrap();
        }
        let bytes: usize = process.registry().await.iter().map(|(bytes, _)| bytes).sum();
        assert!(bytes < 64 << 10, "{bytes} bytes are in the registry");
        for n in [1, 2] {
            eventually("the end is known", || process.reason(&card(n).id).is_some()).await;
            let reason = process.reason(&card(n).id).unwrap();
            assert!(reason.starts_with("xx") && reason.contains("cut"), "a text of {} bytes", reason.len());
        }
    });
}

/// As another version may have written them. Each of them makes every job's last mention old at once.
#[test]
fn long_texts_in_the_log_are_cut_when_read_and_jobs_are_written_again_by_one_process_each() {
    run(async {
        let Some(node) = start_node("registry-again").await else { return };
        let processes = Process::start_all(&node, 3).await;
        let jobs: Vec<JobId> = (1..=4).map(|n| card(n).id).collect();
        create(&processes[0], 1..=4).await;
        for id in &jobs[..2] {
            let body = format!(
                r#"{{"event":"ended","id":"{id}","end":{{"state":"failed","code":"task","reason":"{}"}}}}"#,
                "x".repeat(LONG)
            );
            let link = &processes[0].link;
            link.publish(&link.names().registry(), "registry", body.into_bytes().into()).await.unwrap();
        }
        let written_again = async || {
            let events = processes[0].registry().await.into_iter();
            let stills = events.filter(|(_, event)| matches!(event, RegistryEvent::Still { .. }));
            stills.map(|(bytes, event)| (bytes, serde_json::to_string(&event).unwrap())).collect::<Vec<_>>()
        };
        let is_there = |stills: &[(usize, String)]| {
            jobs.iter().all(|id| stills.iter().any(|(_, event)| event.contains(id.as_str())))
        };
        while !is_there(&written_again().await) {}
        // Events that all processes read while nothing has to be written again.
        for n in 10..60 {
            create(&processes[0], [n]).await;
        }
        eventually("all have read that", || processes.iter().all(|process| process.knows(&card(59).id))).await;
        let stills = written_again().await;
        // A job may be written once for each of the long texts.
        assert!(stills.len() <= 2 * jobs.len(), "{} jobs were written again {} times", jobs.len(), stills.len());
        assert!(stills.iter().all(|(bytes, _)| *bytes < 8 << 10), "with a long text");
        assert!(processes[2].reason(&jobs[1]).unwrap().len() < 8 << 10);
    });
}

/// The directory in which a private node keeps a stream.
fn stream_dir(node: &PrivateNode, stream: &str) -> PathBuf {
    let list = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let nodes = list(&node.dir().join("mnesia")).into_iter().map(|node| node.join("stream"));
    let mut streams = nodes.filter(|dir| dir.is_dir()).flat_map(|dir| list(&dir));
    let name = format!("__{}_", stream.replace('.', "_"));
    streams.find(|dir| dir.file_name().unwrap().to_string_lossy().starts_with(&name)).expect("the stream is on disk")
}

fn copy_files(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Streams are not fsynced: a power cut takes the end of the log, and its offsets are used again for other events.
#[test]
fn jobs_are_known_to_all_after_a_power_cut_took_the_end_of_the_registry() {
    run(async {
        let Some(mut node) = start_node("registry-power").await else { return };
        let processes = Process::start_all(&node, 2).await;
        create(&processes[0], [1]).await;
        eventually("the first is known", || processes.iter().all(|process| process.knows(&card(1).id))).await;
        let stream = stream_dir(&node, &processes[0].link.names().registry());
        let copy = node.dir().join("before");
        copy_files(&stream, &copy);
        create(&processes[0], 2..=20).await;
        let id = card(1).id;
        processes[0].book.write(&RegistryEvent::Ended { id: id.clone(), end: End::Cancelled }).await.unwrap();
        let has_ended = |process: &Process| process.book.view(&id, |view| view.end.is_some()).unwrap_or(false);
        eventually("all is known", || processes.iter().all(has_ended)).await;

        node.kill().await.unwrap();
        copy_files(&copy, &stream);
        node.restart().await.unwrap();

        let late = Process::start(&node).await;
        create(&late, [30]).await;
        eventually("what takes the place of what was lost is read by all", || {
            processes.iter().chain([&late]).all(|process| process.knows(&card(30).id))
        })
        .await;
        eventually("what was lost is written again", || (1..=20).all(|n| late.knows(&card(n).id)) && has_ended(&late))
            .await;
    });
}

/// A worker that comes later reads in the control log what a job asks.
#[test]
fn what_a_job_asks_is_written_again_when_its_control_log_has_lost_it() {
    run(async {
        let Some(node) = start_node("control-power").await else { return };
        let process = Process::start(&node).await;
        let spec = JobSpec {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            workload: WorkloadText { file: String::new(), toml: String::new(), sql: BTreeMap::new(), now: None },
            queries: Vec::new(),
            partitions: 1,
            chunk_bytes: 1,
            strict: false,
            files: Vec::new(),
        };
        let card = JobCard { spec_digest: spec.digest(), ..card(1) };
        create_job(&process.link, &process.book, &card, &spec).await.unwrap();
        let knows_spec = |process: &Process| process.book.view(&card.id, |view| view.spec.is_some()) == Some(true);
        eventually("the spec is read", || knows_spec(&process)).await;

        // The log loses all that it had, and is read from its start with the next connection.
        let session = process.link.session().await;
        let control = process.link.names().log(&card.id, Log::Control);
        session.reading.delete_queue(&control).await.unwrap();
        session.reading.declare_stream(&StreamSpec::new(control)).await.unwrap();
        session.give_up("the test wants another one");

        let late = Process::start(&node).await;
        eventually("a process that comes later reads it, too", || knows_spec(&late)).await;
    });
}
