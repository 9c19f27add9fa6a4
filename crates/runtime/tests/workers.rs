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
    Book, ChunkHeader, Control, Encoding, JobSpec, Link, LinkSettings, LogMessage, Names, ResultEnd, create_job, frame,
    read_log,
};
use tenaz_core::{Fact, JobCard, JobId, Log, Promise, TableId};
use tenaz_csv::Chunker;
use tenaz_engine::{JobPlan, Workload};
use tenaz_generate::{Dataset, generate};
use tenaz_rabbit::node::{NodeOptions, PrivateNode};
use tenaz_runtime::cluster::{ResultEvent, ResultsFold, Worker, WorkerSettings};
use tenaz_runtime::{DataSet, Options, Progress};
use tokio_util::sync::CancellationToken;

async fn link(node: &PrivateNode, name: &str) -> Link {
    let names = Names::new("test").expect("a good prefix");
    let settings = LinkSettings { broker: node.settings(), names, connection_name: name.to_owned() };
    Link::open(settings).await.expect("a link")
}

fn worker(link: Link, stop: &CancellationToken) -> tokio::task::JoinHandle<()> {
    let settings = WorkerSettings { threads: 1, ..WorkerSettings::default() };
    let stop = stop.clone();
    tokio::spawn(async move { Worker::run(link, settings, stop).await.expect("the worker works") })
}

/// Creates a job and sends all its chunks, each `copies` times.
async fn submit(link: &Link, book: &Book, name: &str, data: &Path, partitions: u16, copies: usize) -> JobId {
    let (workload, files) = Workload::load_with_text(name).expect("a bundled workload");
    let plan = JobPlan::new(&workload).expect("a plan");
    let topology = plan.topology(partitions).expect("a topology");
    let spec = JobSpec {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        workload: files,
        queries: Vec::new(),
        partitions,
        chunk_bytes: 64 << 10,
        strict: false,
        files: Vec::new(),
    };
    let id = JobId::from_bytes(std::process::id().to_be_bytes().repeat(2).try_into().expect("eight bytes"));
    let card = JobCard {
        id: id.clone(),
        tenant: "public".to_owned(),
        workload: name.to_owned(),
        partitions,
        waves: topology.waves().len() as u16,
        tables: plan.scans.iter().map(|scan| scan.table).collect(),
        spec_digest: spec.digest(),
        created_ms: 0,
    };
    create_job(link, book, &card, &spec).await.expect("a job");
    let files = DataSet::find(data, &workload, &plan).expect("the files");
    for scan in &plan.scans {
        let (chunks, records) = send_table(link, &id, &workload, &files, scan.table, copies).await;
        let wave = topology.wave_of(scan.table);
        assert!(wave.is_some());
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

async fn send_table(
    link: &Link,
    job: &JobId,
    workload: &Workload,
    data: &DataSet,
    table: TableId,
    copies: usize,
) -> (u64, u64) {
    let layout = &workload.tables[usize::from(table.0)].layout;
    let plan = JobPlan::new(workload).expect("a plan");
    let wave = plan.topology(1).expect("a topology").wave_of(table).expect("the table is read");
    let queue = link.names().chunks(job, wave);
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
            };
            let body: Arc<[u8]> = frame(&header, &[&chunk.data]).into();
            for _ in 0..copies {
                link.publish(&queue, "chunk", Arc::clone(&body)).await.expect("a chunk is taken");
            }
            number += 1;
            records += chunk.records;
        }
    }
    (number, records)
}

/// Reads the results to their end: (rows told per query, the end).
async fn results(link: &Link, name: &str, job: &JobId, partitions: u16) -> (BTreeMap<u16, u64>, ResultEnd) {
    let workload = Workload::load(name).expect("a bundled workload");
    let plan = Arc::new(JobPlan::new(&workload).expect("a plan"));
    let topology = plan.topology(partitions).expect("a topology");
    let log = link.names().log(job, Log::Results);
    let mut fold = ResultsFold::new(plan, &topology, log.clone());
    let mut told = BTreeMap::new();
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
                        return (told, end);
                    }
                    ResultEvent::Account(..) | ResultEvent::Rejects(..) => {}
                }
            }
        }
    }
}

fn embedded(name: &str, data: &Path) -> Vec<(u64, String)> {
    let workload = Workload::load(name).expect("a bundled workload");
    let plan = JobPlan::new(&workload).expect("a plan");
    let files = DataSet::find(data, &workload, &plan).expect("the files");
    let progress = Progress::new(workload.tables.len());
    let outcome = tenaz_runtime::run(&workload, &plan, files, &Options::default(), &progress, &Nobody);
    outcome.expect("answers").answers.iter().map(|a| (a.rows, a.fingerprint.clone())).collect()
}

#[test]
fn workers_give_the_answers_of_the_embedded_mode_whatever_is_sent_twice() {
    let _ = tracing_subscriber::fmt().with_env_filter("tenaz=debug,info").with_test_writer().try_init();
    let data = tempfile::tempdir().expect("a directory");
    let options = tenaz_generate::Options { scale: 0.001, seed: 3, threads: 2 };
    generate(Dataset::Coffee, data.path(), &options, &|_| {}).expect("data");
    let expected = embedded("coffee", data.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let dir = tempfile::tempdir().expect("a directory");
        let node = match PrivateNode::start(NodeOptions::new(dir.path(), "workers")).await {
            Ok(node) => node,
            Err(tenaz_rabbit::Error::NotInstalled { .. }) => return eprintln!("skipped: RabbitMQ is not installed"),
            Err(error) => panic!("{error}"),
        };
        let stop = CancellationToken::new();
        let workers = [worker(link(&node, "one").await, &stop), worker(link(&node, "two").await, &stop)];
        let client = link(&node, "client").await;
        let book = Book::open(&client).await.expect("the book");
        let job = submit(&client, &book, "coffee", data.path(), 3, 2).await;
        let (told, end) = tokio::time::timeout(Duration::from_secs(60), results(&client, "coffee", &job, 3))
            .await
            .expect("the job ends");
        let found: Vec<(u64, String)> = end.queries.iter().map(|q| (q.rows, q.fingerprint.clone())).collect();
        assert_eq!(found, expected);
        for (index, query) in end.queries.iter().enumerate() {
            assert_eq!(told.get(&(index as u16)).copied().unwrap_or(0), query.rows, "rows told of {}", query.name);
        }
        assert!(end.tables.iter().all(|table| table.records == table.accepted + table.rejected && table.records > 0));
        stop.cancel();
        for worker in workers {
            worker.await.expect("the worker leaves");
        }
        client.close().await;
        drop(node);
    });
}
