//! Workers over a real broker, fed without a gateway: the answers are those of the embedded mode.
#![allow(clippy::print_stderr, reason = "a skipped test says so")]

mod staged;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use staged::Nobody;
use tenaz_cluster::{
    Book, ChunkHeader, Control, Encoding, JobSpec, Link, LinkSettings, LogMessage, Membership, Names, Patience,
    ResultEnd, Role, create_job, frame, read_log,
};
use tenaz_core::{
    ChunkDigest, End, Fact, FaultClass, JobCard, JobId, Lineage, Log, Partition, Promise, Source, TableId, WorkloadText,
};
use tenaz_csv::Chunker;
use tenaz_engine::{JobPlan, Workload};
use tenaz_generate::{Dataset, generate};
use tenaz_rabbit::Consumer;
use tenaz_rabbit::node::{NodeOptions, PrivateNode};
use tenaz_runtime::cluster::{Faults, ResultEvent, ResultsFold, Worker, WorkerSettings, encode, plan_digest};
use tenaz_runtime::{DataSet, Options, Progress};
use tokio_util::sync::CancellationToken;

async fn link(node: &PrivateNode, name: &str) -> Link {
    let names = Names::new("test").expect("a good prefix");
    let settings = LinkSettings { broker: node.settings(), names, connection_name: name.to_owned() };
    Link::open(settings).await.expect("a link")
}

fn worker(link: Link, stop: &CancellationToken) -> tokio::task::JoinHandle<()> {
    worker_with(link, stop, WorkerSettings::default())
}

fn worker_with(link: Link, stop: &CancellationToken, settings: WorkerSettings) -> tokio::task::JoinHandle<()> {
    let settings = WorkerSettings { threads: 1, ..settings };
    let stop = stop.clone();
    tokio::spawn(async move { Worker::run(link, settings, stop).await.expect("the worker works") })
}

/// A job's id, by a number of the test's own.
fn job_id(number: u32) -> JobId {
    let [a, b] = [std::process::id(), number].map(u32::to_be_bytes);
    JobId::from_bytes([a, b].concat().try_into().expect("eight bytes"))
}

/// A workload with its data, planned once.
struct Case {
    workload: Workload,
    text: WorkloadText,
    plan: Arc<JobPlan>,
    dir: tempfile::TempDir,
    /// Rows and fingerprint of each right answer.
    expected: Vec<(u64, String)>,
}

/// The coffee workload with a little data.
fn coffee() -> Case {
    let _ = tracing_subscriber::fmt().with_env_filter("tenaz=debug,info").with_test_writer().try_init();
    let (workload, text) = Workload::load_with_text("coffee").expect("a bundled workload");
    let plan = Arc::new(JobPlan::new(&workload).expect("a plan"));
    let dir = tempfile::tempdir().expect("a directory");
    let options = tenaz_generate::Options { scale: 0.001, seed: 3, threads: 2 };
    generate(Dataset::Coffee, dir.path(), &options, &|_| {}).expect("data");
    let expected = embedded(&workload, &plan, dir.path());
    Case { workload, text, plan, dir, expected }
}

/// Creates a job and sends all its chunks, each `copies` times.
async fn submit(link: &Link, book: &Book, id: JobId, case: &Case, partitions: u16, copies: usize) -> JobId {
    let topology = case.plan.topology(partitions).expect("a topology");
    create(link, book, id.clone(), (&case.workload, &case.text, &case.plan), partitions).await;
    let files = DataSet::find(case.dir.path(), &case.workload, &case.plan).expect("the files");
    for scan in &case.plan.scans {
        let wave = topology.wave_of(scan.table).expect("the table is read");
        let queue = link.names().chunks(&id, wave);
        let (chunks, records) = send_table(link, &queue, &case.workload, &files, scan.table, copies).await;
        let fact = Fact::TableClosed {
            table: scan.table,
            chunks: Promise::count(chunks),
            records: Some(records),
            bytes: files.table_bytes(usize::from(scan.table.0)),
        };
        book.tell(&id, &Control::Fact(fact)).await.expect("a fact");
    }
    id
}

async fn create(
    link: &Link,
    book: &Book,
    id: JobId,
    (workload, text, plan): (&Workload, &WorkloadText, &JobPlan),
    partitions: u16,
) {
    let topology = plan.topology(partitions).expect("a topology");
    let spec = JobSpec {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: text.clone(),
        queries: Vec::new(),
        partitions,
        chunk_bytes: 64 << 10,
        strict: false,
        files: Vec::new(),
    };
    let card = JobCard {
        id,
        tenant: "public".to_owned(),
        workload: workload.name.clone(),
        partitions,
        waves: topology.waves().len() as u16,
        tables: plan.scans.iter().map(|scan| scan.table).collect(),
        spec_digest: spec.digest(),
        build: tenaz_cluster::build_id(),
        plan_digest: plan_digest(plan),
        created_ms: 0,
    };
    create_job(link, book, &card, &spec).await.expect("a job");
}

async fn send_table(
    link: &Link,
    queue: &str,
    workload: &Workload,
    data: &DataSet,
    table: TableId,
    copies: usize,
) -> (u64, u64) {
    let layout = &workload.tables[usize::from(table.0)].layout;
    let (mut number, mut records) = (0, 0);
    for file in data.files(usize::from(table.0)) {
        let mut chunker = Chunker::new(File::open(&file.path).expect("a file"), layout, 64 << 10);
        while let Some(chunk) = chunker.next_chunk().expect("records") {
            let header = ChunkHeader {
                table,
                number,
                file: file.name.clone(),
                byte: chunk.byte,
                line: chunk.line,
                records: Some(chunk.records),
                encoding: Encoding::Identity,
                raw_bytes: chunk.data.len() as u64,
                digest: ChunkDigest::of(&chunk.data),
            };
            let body: Arc<[u8]> = frame(&header, &[&chunk.data]).into();
            for _ in 0..copies {
                link.publish(queue, "chunk", Arc::clone(&body)).await.expect("a chunk is taken");
            }
            number += 1;
            records += chunk.records;
        }
    }
    (number, records)
}

/// How many rows of an answer are in the messages that the end's index names for it.
fn rows_by_index(messages: &[LogMessage], end: &ResultEnd, query: u16, mut fold: ResultsFold) -> u64 {
    let index = end.index.as_ref().expect("workers write an index");
    let ranges = index.queries[usize::from(query)].at.ranges();
    let named =
        messages.iter().filter(|message| ranges.iter().any(|range| (range.0..range.1).contains(&message.offset)));
    let events = named.flat_map(|message| fold.take(message).expect("a message"));
    let rows = events.map(|event| match event {
        ResultEvent::Rows(of, batch) if of.0 == query => batch.num_rows() as u64,
        _ => 0,
    });
    rows.sum()
}

/// Reads the results to their end: (rows told per query, the end). The end's index must lead to the same rows.
async fn results(link: &Link, case: &Case, job: &JobId, partitions: u16) -> (BTreeMap<u16, u64>, ResultEnd) {
    let topology = case.plan.topology(partitions).expect("a topology");
    let log = link.names().log(job, Log::Results);
    let new_fold = || ResultsFold::new(Arc::clone(&case.plan), &topology, log.clone());
    let mut fold = new_fold();
    let mut told = BTreeMap::new();
    let mut read: Vec<LogMessage> = Vec::new();
    loop {
        let session = link.session().await;
        let (sender, mut messages) = tokio::sync::mpsc::channel::<LogMessage>(8);
        let (log, from) = (log.clone(), fold.next_offset());
        let reading = tokio::spawn(async move { read_log(&session, &log, from, &sender).await });
        while let Some(message) = messages.recv().await {
            for event in fold.take(&message).expect("a message") {
                match event {
                    ResultEvent::Rows(query, batch) => *told.entry(query.0).or_insert(0) += batch.num_rows() as u64,
                    ResultEvent::End(end) => {
                        reading.abort();
                        for query in 0..end.queries.len() as u16 {
                            let rows = end.queries[usize::from(query)].rows;
                            assert_eq!(rows_by_index(&read, &end, query, new_fold()), rows, "{:?}", end.index);
                        }
                        let index = end.index.as_ref().expect("workers write an index");
                        assert!((1..=message.offset).contains(&index.read_to), "the end is at {}", message.offset);
                        return (told, end);
                    }
                    ResultEvent::Account(..) | ResultEvent::Rejects(..) => {}
                }
            }
            read.push(message);
        }
    }
}

fn embedded(workload: &Workload, plan: &JobPlan, data: &Path) -> Vec<(u64, String)> {
    let files = DataSet::find(data, workload, plan).expect("the files");
    let progress = Progress::new(workload.tables.len());
    let outcome = tenaz_runtime::run(workload, plan, files, &Options::default(), &progress, &Nobody);
    outcome.expect("answers").answers.iter().map(|a| (a.rows, a.fingerprint.clone())).collect()
}

/// Runs a test with a broker of its own.
fn with_node(name: &str, extra_config: Vec<String>, test: impl AsyncFnOnce(&PrivateNode)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let options = NodeOptions { extra_config, ..NodeOptions::new(dir.path(), name) };
        match PrivateNode::start(options).await {
            Ok(node) => test(&node).await,
            Err(tenaz_rabbit::Error::NotInstalled { .. }) => eprintln!("skipped: RabbitMQ is not installed"),
            Err(error) => panic!("{error}"),
        }
    });
}

/// Ten jobs have 80 partitions, and a connection 24 channels.
#[test]
fn jobs_with_more_logs_than_a_connection_has_channels_all_finish_on_one_worker() {
    const PARTITIONS: u16 = 8;
    let case = coffee();
    with_node("channels", vec!["channel_max = 24".to_owned()], async |node| {
        let client = link(node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let submitted = (0..10).map(|n| submit(&client, &book, job_id(n), &case, PARTITIONS, 1));
        let jobs = futures::future::join_all(submitted).await;
        // The worker comes last, so that all jobs are open at once.
        let stop = CancellationToken::new();
        let worker = worker(link(node, "one").await, &stop);
        let ends = jobs
            .iter()
            .map(|job| tokio::time::timeout(Duration::from_secs(120), results(&client, &case, job, PARTITIONS)));
        let ends = futures::future::join_all(ends).await;
        let finished = ends.iter().filter(|end| end.is_ok()).count();
        assert_eq!(finished, jobs.len(), "jobs finished");
        for (_, end) in ends.into_iter().flatten() {
            let found: Vec<(u64, String)> = end.queries.iter().map(|q| (q.rows, q.fingerprint.clone())).collect();
            assert_eq!(found, case.expected);
        }
        stop.cancel();
        worker.await.expect("the worker leaves");
        client.close().await;
    });
}

#[test]
fn workers_give_the_answers_of_the_embedded_mode_whatever_is_sent_twice() {
    let case = coffee();
    with_node("workers", Vec::new(), async |node| {
        let stop = CancellationToken::new();
        let workers = [worker(link(node, "one").await, &stop), worker(link(node, "two").await, &stop)];
        let client = link(node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let job = submit(&client, &book, job_id(0), &case, 3, 2).await;
        let (told, end) = tokio::time::timeout(Duration::from_secs(60), results(&client, &case, &job, 3))
            .await
            .expect("the job ends");
        let found: Vec<(u64, String)> = end.queries.iter().map(|q| (q.rows, q.fingerprint.clone())).collect();
        assert_eq!(found, case.expected);
        for (index, query) in end.queries.iter().enumerate() {
            assert_eq!(told.get(&(index as u16)).copied().unwrap_or(0), query.rows, "rows told of {}", query.name);
        }
        assert!(end.tables.iter().all(|table| table.records == table.accepted + table.rejected && table.records > 0));
        stop.cancel();
        for worker in workers {
            worker.await.expect("the worker leaves");
        }
        client.close().await;
    });
}

/// How a job has ended, as soon as the registry says so.
async fn ended(book: &Book, job: &JobId) -> End {
    let end = book.wait(job, |view| view.end.clone());
    tokio::time::timeout(Duration::from_secs(120), end).await.expect("the job ends").expect("the job is there")
}

/// Asks again until there is an answer.
async fn until<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    let deadline = std::time::Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(std::time::Instant::now() < deadline, "in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn a_worker_that_cannot_work_leaves_its_jobs_to_others_and_says_why_if_there_are_none() {
    let case = coffee();
    with_node("sick", Vec::new(), async |node| {
        let client = link(node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let stop = CancellationToken::new();
        // Nobody can make a directory there.
        let sick = || WorkerSettings { temp_dir: "/proc/tenaz".into(), ..WorkerSettings::default() };
        let mut workers = vec![worker_with(link(node, "sick").await, &stop, sick())];
        let gateway = Membership::join(&client, Role::Gateway, Membership::new_id().expect("an id"), |_| {});
        let alone = submit(&client, &book, job_id(0), &case, 3, 1).await;
        let reason = until("the worker says what is wrong with it", || gateway.refusal(&alone)).await;
        assert!(reason.as_str().contains("/proc/tenaz"), "{reason}");
        match ended(&book, &alone).await {
            End::Failed { code, class, reason } => {
                assert_eq!((code.as_str(), class), ("unserved", FaultClass::Process), "{reason}");
                assert!(reason.as_str().contains("/proc/tenaz"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        let forgets = || gateway.refusal(&alone).is_none().then_some(());
        until("what has ended is not talked about any more", forgets).await;
        workers.push(worker(link(node, "healthy").await, &stop));
        for number in 1..4 {
            let job = submit(&client, &book, job_id(number), &case, 3, 1).await;
            let (_, end) = tokio::time::timeout(Duration::from_secs(120), results(&client, &case, &job, 3))
                .await
                .expect("the job ends");
            let found: Vec<(u64, String)> = end.queries.iter().map(|q| (q.rows, q.fingerprint.clone())).collect();
            assert_eq!(found, case.expected);
        }
        stop.cancel();
        for worker in workers {
            worker.await.expect("the worker leaves");
        }
        client.close().await;
    });
}

/// A reader that ends while its session lives would let the job wait for ever, so the job ends and says what cannot be read.
#[test]
fn a_job_whose_queue_cannot_be_read_ends_and_names_it() {
    let case = coffee();
    with_node("locked", Vec::new(), async |node| {
        let client = link(node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let job = job_id(0);
        create(&client, &book, job.clone(), (&case.workload, &case.text, &case.plan), 3).await;
        // Somebody else has the queue for himself alone.
        let queue = client.names().chunks(&job, 0);
        let session = client.session().await;
        session.reading.delete_queue(&queue).await.expect("the queue is deleted");
        let owner = Consumer::open_exclusive(&session.reading, &queue, None, 1).await.expect("an exclusive queue");
        let stop = CancellationToken::new();
        let worker = worker(link(node, "one").await, &stop);
        match ended(&book, &job).await {
            End::Failed { code, class, reason } => {
                assert_eq!((code.as_str(), class), ("unreadable", FaultClass::Broker), "{reason}");
                assert!(reason.as_str().contains("work queue 0 of the job cannot be read"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
        drop(owner);
        stop.cancel();
        worker.await.expect("the worker leaves");
        client.close().await;
    });
}

/// The first table whose chunks have rows for partition 0, and its name.
fn hashed_table(Case { workload, plan, .. }: &Case) -> (TableId, String) {
    let topology = plan.topology(3).expect("a topology");
    let is_hashed =
        |table| topology.destinations(Source::Chunk { table, number: 0 }).contains(&Log::Partition(Partition(0)));
    let table = plan.scans.iter().map(|scan| scan.table).find(|&table| is_hashed(table)).expect("a hashed table");
    (table, workload.tables[usize::from(table.0)].name.clone())
}

#[test]
fn a_chunk_in_two_versions_never_ends_with_a_fingerprint() {
    let case = coffee();
    let (table, name) = hashed_table(&case);
    with_node("versions", Vec::new(), async |node| {
        let client = link(node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        // One partition has the rows of another version of chunk 0: it stands in the log before any worker comes.
        let mixed = submit(&client, &book, job_id(0), &case, 3, 1).await;
        let source = Source::Chunk { table, number: 0 };
        let other = Lineage::of_chunk(ChunkDigest(1), 0);
        let log = client.names().log(&mixed, Log::Partition(Partition(0)));
        for message in encode(source, other, &[], Default::default()).expect("a message") {
            client.publish(&log, "rows", message.into()).await.expect("it is taken");
        }
        // Of chunk 0 of this job a gateway has taken in other bytes than those in the queue.
        let receipted = submit(&client, &book, job_id(1), &case, 3, 1).await;
        let fact = Fact::Uploaded { table, chunks: Promise::count(1), digests: vec![ChunkDigest(1)] };
        book.tell(&receipted, &Control::Fact(fact)).await.expect("a fact");
        let stop = CancellationToken::new();
        let worker = worker(link(node, "one").await, &stop);
        let named = format!("chunk 0 of table {name} was sent twice with different bytes (digests ");
        for (job, expected) in [(&mixed, &named), (&receipted, &named)] {
            let end = book.wait(job, |view| view.end.clone());
            let end = tokio::time::timeout(Duration::from_secs(60), end).await.expect("the job ends");
            match end {
                Some(End::Failed { code, reason, .. }) => {
                    assert_eq!(code, "contradiction");
                    assert!(reason.contains(expected) && reason.contains(" 0000000000000001"), "{reason}");
                }
                other => panic!("{expected}: {other:?}"),
            }
        }
        stop.cancel();
        worker.await.expect("the worker leaves");
        client.close().await;
    });
}

const ONE_TABLE: &str = r#"
name = "one"

[[table]]
name = "t"
files = "t.csv"
role = "fact"
columns = [{ name = "k", type = "int" }]

[[query]]
name = "q"
sql = "SELECT k, count(*) AS n FROM t GROUP BY k"
"#;

/// Uploads the only chunk of a job, as a client does that then goes away.
async fn send_only_chunk(link: &Link, book: &Book, job: &JobId) {
    let (table, records) = (TableId(0), b"1\n2\n");
    let header = ChunkHeader {
        table,
        number: 0,
        file: "t.csv".to_owned(),
        byte: 0,
        line: 2,
        records: Some(2),
        encoding: Encoding::Identity,
        raw_bytes: records.len() as u64,
        digest: ChunkDigest::of(records),
    };
    let body = frame(&header, &[records]);
    link.publish(&link.names().chunks(job, 0), "chunk", body.into()).await.expect("a chunk is taken");
    let uploaded = Fact::Uploaded { table, chunks: Promise::count(1), digests: vec![ChunkDigest::of(records)] };
    let closed = Fact::TableClosed { table, chunks: Promise::count(1), records: Some(2), bytes: records.len() as u64 };
    for fact in [uploaded, closed] {
        book.tell(job, &Control::Fact(fact)).await.expect("a fact");
    }
}

/// The task takes longer than a worker without work waits before it looks for what was lost, and then than a job may stay
/// that nobody uploads. The chunk is delivered and not acknowledged all the time, so no queue shows it.
#[test]
fn a_job_whose_client_has_gone_is_not_called_lost_during_one_long_task() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let node = match PrivateNode::start(NodeOptions::new(dir.path(), "long-task")).await {
            Ok(node) => node,
            Err(tenaz_rabbit::Error::NotInstalled { .. }) => return eprintln!("skipped: RabbitMQ is not installed"),
            Err(error) => panic!("{error}"),
        };
        // Everything is uploaded before there is a worker whose patience could end.
        let client = link(&node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let text =
            WorkloadText { file: "one.toml".to_owned(), toml: ONE_TABLE.to_owned(), sql: BTreeMap::new(), now: None };
        let workload = Workload::from_text(&text).expect("a workload");
        let (job, plan) = (job_id(0), JobPlan::new(&workload).expect("a plan"));
        create(&client, &book, job.clone(), (&workload, &text, &plan), 8).await;
        send_only_chunk(&client, &book, &job).await;
        let settings = WorkerSettings {
            faults: Faults { slow: Duration::from_secs(18), ..Faults::default() },
            patience: Patience { idle: Duration::from_secs(3), ..Patience::default() },
            drain: Duration::ZERO,
            ..WorkerSettings::default()
        };
        let stop = CancellationToken::new();
        let links = [link(&node, "one").await, link(&node, "two").await];
        let workers = links.map(|link| worker_with(link, &stop, settings.clone()));
        // The account of the chunk: its task is done.
        let (sender, mut results) = tokio::sync::mpsc::channel::<LogMessage>(8);
        let (session, log) = (client.session().await, client.names().log(&job, Log::Results));
        let reading = tokio::spawn(async move { read_log(&session, &log, 0, &sender).await });
        let end = tokio::select! {
            account = results.recv() => {
                assert!(account.is_some());
                book.view(&job, |view| view.end.clone()).expect("the job is there")
            }
            end = book.wait(&job, |view| view.end.clone()) => end,
            () = tokio::time::sleep(Duration::from_secs(60)) => panic!("the task does not end"),
        };
        let missing = book.view(&job, |view| view.facts.missing(TableId(0), None)).expect("the job is there");
        assert!(missing.is_empty(), "chunk {missing:?} was called lost while it was being worked on; end: {end:?}");
        assert_eq!(end, None, "the job has ended while its task was under way");
        reading.abort();
        stop.cancel();
        for worker in workers {
            worker.await.expect("the worker leaves");
        }
        client.close().await;
        drop(node);
    });
}
