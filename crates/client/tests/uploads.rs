//! What arrives, when connections drop, chunks get lost, clients die, and jobs fail.
#![allow(clippy::unwrap_used)]

mod fake;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake::{Asked, Reply, Server};
use tenaz_client::{
    Compression, Error, Gateways, Ranges, Settings, SourceFile, Submission, TableFiles, Transport, Until,
    UploadOptions, Wanted,
};
use tenaz_core::ChunkDigest;
use tenaz_csv::{Column, Kind, Layout};

/// What the gateways of one cluster have.
#[derive(Default)]
struct Cluster {
    chunks: BTreeMap<(String, u64), Asked>,
    closed: BTreeMap<String, (u64, u64)>,
    /// In the order of arrival.
    log: Vec<String>,
    puts: usize,
    /// Chunks that are confirmed and lost, each once.
    lose: Vec<(String, u64)>,
    failed: bool,
}

type Shared = Arc<Mutex<Cluster>>;

impl Cluster {
    fn missing(&self, table: &str) -> Vec<(u64, u64)> {
        let chunks = self.closed.get(table).map_or(0, |closed| closed.0);
        (0..chunks).filter(|n| !self.chunks.contains_key(&(table.to_owned(), *n))).map(|n| (n, n + 1)).collect()
    }

    fn answer(&mut self, asked: &Asked) -> Reply {
        let words: Vec<&str> = asked.path.split('/').skip(4).collect();
        match (asked.method.as_str(), words.as_slice()) {
            ("GET", []) => Reply::json(200, &self.state()),
            ("GET", ["missing"]) => {
                let tables = self.closed.keys().map(|table| {
                    format!("{{\"name\":\"{table}\",\"closed\":true,\"missing\":{:?}}}", self.missing(table))
                });
                let tables: Vec<String> = tables.collect();
                Reply::json(200, &format!("{{\"tables\":[{}]}}", tables.join(",")).replace('(', "[").replace(')', "]"))
            }
            ("GET", ["tables", table, page]) => {
                let from: u64 = page.strip_prefix("digests?from=").unwrap().parse().unwrap();
                let digests: Vec<String> = (from..from + 3).map(|n| self.digest(table, n)).collect();
                Reply::json(200, &format!("{{\"from\":{from},\"digests\":[{}]}}", digests.join(",")))
            }
            ("PUT", ["tables", table, "chunks", n]) => {
                if self.failed {
                    return Reply::problem(409, "already_ended", None);
                }
                let chunk = ((*table).to_owned(), n.parse().unwrap());
                self.puts += 1;
                self.log.push(format!("{table} {n}"));
                match self.lose.iter().position(|lost| *lost == chunk) {
                    Some(at) => drop(self.lose.remove(at)),
                    None => drop(self.chunks.insert(chunk, asked.clone())),
                }
                Reply::json(200, &format!("{{\"chunk\":{n},\"status\":\"received\"}}"))
            }
            ("POST", ["tables", table, "finish"]) => {
                let text = String::from_utf8(asked.body.clone()).unwrap();
                let number = |name: &str| {
                    let rest = text.split_once(&format!("\"{name}\":")).unwrap().1;
                    rest.split([',', '}']).next().unwrap().parse::<u64>().unwrap()
                };
                let before = self.closed.insert((*table).to_owned(), (number("chunks"), number("records")));
                assert!(before.is_none_or(|before| before == self.closed[*table]));
                self.log.push(format!("{table} closed"));
                Reply::json(200, "{}")
            }
            _ => panic!("{asked:?}"),
        }
    }

    fn digest(&self, table: &str, n: u64) -> String {
        let chunk = self.chunks.get(&(table.to_owned(), n));
        chunk.map_or("null".to_owned(), |asked| format!("\"{}\"", ChunkDigest::of(&asked.body)))
    }

    fn state(&self) -> String {
        let whole = self.closed.len() == 2 && self.closed.keys().all(|table| self.missing(table).is_empty());
        let (state, error) = match (self.failed, whole) {
            (true, _) => ("failed", "{\"code\":\"task\",\"text\":\"division by zero\",\"class\":\"query\"}"),
            (_, true) => ("done", "null"),
            _ => ("uploading", "null"),
        };
        format!(
            "{{\"job\":\"j\",\"state\":\"{state}\",\"chunk_bytes\":64,\"spec\":{{\"workload\":{{\"file\":\"\",\"toml\":\"\"}}}},\"error\":{error}}}"
        )
    }
}

/// A gateway of the cluster with a fault of its own: what it gives is the answer, after the cluster has heard.
fn gateway(cluster: &Shared, fault: impl Fn(&Asked) -> Option<Reply> + Send + Sync + 'static) -> Server {
    let cluster = Arc::clone(cluster);
    Server::start(move |asked| {
        let reply = cluster.lock().unwrap().answer(asked);
        fault(asked).unwrap_or(reply)
    })
}

fn gateways(servers: &[&Server]) -> Arc<Gateways> {
    let settings = Settings {
        urls: servers.iter().map(|server| server.url.clone()).collect(),
        token: None,
        transport: Transport::default(),
        patience: Duration::from_secs(20),
        parallel: 3,
        stop: Arc::new(AtomicBool::new(false)),
    };
    Arc::new(Gateways::new(settings).unwrap())
}

fn text(table: &str, records: usize) -> String {
    (0..records).fold("a,b\n".to_owned(), |text, n| format!("{text}{table} {n},\"line\n{n}\"\n"))
}

fn table(dir: &Path, name: &str, files: &[usize]) -> TableFiles {
    let file = |(index, records): (usize, &usize)| {
        let (name, text) = (format!("{name} {index}.csv"), text(name, *records));
        let path = dir.join(&name);
        std::fs::write(&path, &text).unwrap();
        SourceFile { path, name, bytes: text.len() as u64, constants: Vec::new() }
    };
    let layout = Arc::new(Layout::new(vec![Column::new("a", Kind::Text), Column::new("b", Kind::Text)]));
    let format = tenaz_source::FileFormat { has_header: true, ..Default::default() };
    TableFiles { name: name.to_owned(), layout, format, files: files.iter().enumerate().map(file).collect() }
}

fn whole(table: TableFiles) -> Wanted {
    Wanted { table, missing: None }
}

const OPTIONS: UploadOptions = UploadOptions { chunk_bytes: 64, parallel: 3, compression: Compression::None };

fn submit(servers: &[&Server], tables: Vec<Wanted>) -> Result<u64, Error> {
    let submission = Submission::start(gateways(servers), "j", tables, OPTIONS);
    let mut sent = 0;
    submission.wait(Until::Done, |glance| {
        sent = glance.sent_bytes;
        Ok::<(), Error>(())
    })?;
    Ok(sent)
}

/// The files as they come out of the chunks.
fn received(cluster: &Cluster, table: &str, file: &str) -> String {
    let chunks = cluster.chunks.iter().filter(|((t, _), asked)| t == table && asked.header("tenaz-file") == file);
    let mut text = "a,b\n".to_owned();
    for (_, asked) in chunks {
        assert_eq!(asked.header("tenaz-byte"), text.len().to_string());
        assert_eq!(asked.header("tenaz-line"), (text.matches('\n').count() + 1).to_string());
        let body = String::from_utf8(asked.body.clone()).unwrap();
        assert_eq!(asked.header("tenaz-records"), (body.matches('\n').count() / 2).to_string());
        text.push_str(&body);
    }
    text
}

#[test]
fn all_chunks_arrive_with_their_places_and_tables_are_closed_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let server = gateway(&cluster, |_| None);
    let tables = vec![whole(table(dir.path(), "dim", &[3])), whole(table(dir.path(), "fact", &[40, 0, 25]))];
    let bytes: u64 = tables.iter().map(|wanted| wanted.table.bytes()).sum();
    assert!(submit(&[&server], tables).unwrap() <= bytes);
    let cluster = cluster.lock().unwrap();
    for (name, file, records) in [("dim", "dim%200.csv", 3), ("fact", "fact%200.csv", 40), ("fact", "fact%202.csv", 25)]
    {
        assert_eq!(received(&cluster, name, file), text(name, records));
    }
    assert_eq!((cluster.closed["dim"].1, cluster.closed["fact"].1), (3, 65));
    let numbers: Vec<u64> = cluster.chunks.keys().filter(|(t, _)| t == "fact").map(|(_, n)| *n).collect();
    assert_eq!(numbers, (0..cluster.closed["fact"].0).collect::<Vec<_>>());
    let place = |what: &str| cluster.log.iter().position(|line| line == what).unwrap();
    assert!(place("dim closed") < place("fact closed"));
}

#[test]
fn a_table_without_records_is_closed_with_no_chunks() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let server = gateway(&cluster, |_| None);
    let tables = vec![whole(table(dir.path(), "dim", &[0])), whole(table(dir.path(), "fact", &[1]))];
    submit(&[&server], tables).unwrap();
    assert_eq!(cluster.lock().unwrap().closed["dim"], (0, 0));
}

#[test]
fn dropped_connections_and_busy_gateways_cost_nothing_but_time() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let calls = Arc::new(Mutex::new(0));
    let faults = move |_: &Asked| {
        let mut calls = calls.lock().unwrap();
        *calls += 1;
        match *calls % 5 {
            0 => Some(Reply::Drop),
            1 => Some(Reply::problem(503, "queue_full", Some(0))),
            2 => Some(Reply::problem(500, "internal", None)),
            _ => None,
        }
    };
    let (one, two) = (gateway(&cluster, faults.clone()), gateway(&cluster, faults));
    let tables = vec![whole(table(dir.path(), "dim", &[3])), whole(table(dir.path(), "fact", &[30]))];
    submit(&[&one, &two], tables).unwrap();
    let cluster = cluster.lock().unwrap();
    assert_eq!(received(&cluster, "fact", "fact%200.csv"), text("fact", 30));
    assert!(cluster.puts > cluster.chunks.len(), "the faults fired: some chunks came twice");
}

#[test]
fn chunks_that_the_cluster_lost_are_read_and_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    cluster.lock().unwrap().lose = vec![("fact".to_owned(), 0), ("fact".to_owned(), 5), ("dim".to_owned(), 0)];
    let server = gateway(&cluster, |_| None);
    let tables = vec![whole(table(dir.path(), "dim", &[3])), whole(table(dir.path(), "fact", &[20, 20]))];
    submit(&[&server], tables).unwrap();
    let cluster = cluster.lock().unwrap();
    assert!(cluster.lose.is_empty(), "they were lost");
    assert_eq!(received(&cluster, "fact", "fact%200.csv"), text("fact", 20));
    assert_eq!(received(&cluster, "fact", "fact%201.csv"), text("fact", 20));
    assert_eq!(cluster.puts, cluster.chunks.len() + 3);
}

#[test]
fn a_resumed_upload_sends_only_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let server = gateway(&cluster, |_| None);
    let tables = || (table(dir.path(), "dim", &[3]), table(dir.path(), "fact", &[40]));
    let (dim, fact) = tables();
    submit(&[&server], vec![whole(dim), whole(fact)]).unwrap();
    let all = {
        let mut cluster = cluster.lock().unwrap();
        let all = cluster.chunks.clone();
        cluster.chunks.retain(|(table, number), _| table == "dim" || ![2, 3, 9].contains(number));
        cluster.log.clear();
        all
    };
    let (dim, fact) = tables();
    let missing = |ranges| Some(Ranges::new(ranges));
    let wanted = vec![
        Wanted { table: dim, missing: missing(vec![]) },
        Wanted { table: fact, missing: missing(vec![(2, 4), (9, 10)]) },
    ];
    submit(&[&server], wanted).unwrap();
    let cluster = cluster.lock().unwrap();
    let mut sent: Vec<&str> = cluster.log.iter().map(String::as_str).filter(|l| !l.contains("closed")).collect();
    sent.sort_unstable();
    assert_eq!(sent, ["fact 2", "fact 3", "fact 9"]);
    for (chunk, asked) in &all {
        assert_eq!(cluster.chunks[chunk].body, asked.body, "cut at the same places");
    }
}

#[test]
fn a_file_that_was_changed_before_it_is_resumed_is_named_with_its_chunk() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let server = gateway(&cluster, |_| None);
    let tables = || (table(dir.path(), "dim", &[3]), table(dir.path(), "fact", &[20, 40]));
    let (dim, fact) = tables();
    submit(&[&server], vec![whole(dim), whole(fact)]).unwrap();
    let (dim, fact) = tables();
    // As long as before, and cut at the same places: only the bytes differ.
    let file = &fact.files[1];
    std::fs::write(&file.path, text("fact", 40).replace("fact 30,", "fact 99,")).unwrap();
    let chunks = cluster.lock().unwrap().chunks.clone();
    let is_changed = |asked: &Asked| {
        asked.header("tenaz-file") == "fact%201.csv" && String::from_utf8_lossy(&asked.body).contains("fact 30,")
    };
    let ((_, number), _) = chunks.iter().find(|(_, asked)| is_changed(asked)).unwrap();
    let missing = |ranges| Some(Ranges::new(ranges));
    let wanted =
        vec![Wanted { table: dim, missing: missing(vec![]) }, Wanted { table: fact, missing: missing(vec![]) }];
    let error = submit(&[&server], wanted).unwrap_err().to_string();
    let expected = format!("fact 1.csv was changed since job j was begun: chunk {number} of table fact, from line ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_chunk_that_the_cluster_has_with_other_bytes_is_named_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    let conflict =
        |asked: &Asked| asked.is("PUT", "/tables/fact/chunks/2").then(|| Reply::problem(409, "chunk_conflict", None));
    let server = gateway(&cluster, conflict);
    let tables = vec![whole(table(dir.path(), "dim", &[3])), whole(table(dir.path(), "fact", &[20]))];
    let error = submit(&[&server], tables).unwrap_err().to_string();
    assert!(error.starts_with("fact 0.csv was changed since job j was begun: chunk 2 of table fact"), "{error}");
}

#[test]
fn a_job_that_fails_while_it_is_sent_ends_with_the_clusters_reason() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = Shared::default();
    cluster.lock().unwrap().failed = true;
    let server = gateway(&cluster, |_| None);
    let tables = vec![whole(table(dir.path(), "dim", &[3])), whole(table(dir.path(), "fact", &[30]))];
    let error = submit(&[&server], tables).unwrap_err();
    assert_eq!(error.to_string(), "job j failed: division by zero");
}

#[test]
fn the_user_can_stop_while_a_gateway_hangs() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(|_| Reply::Hang);
    let stop = Arc::new(AtomicBool::new(false));
    let settings = Settings {
        urls: vec![server.url.clone()],
        token: None,
        transport: Transport::default(),
        patience: Duration::from_secs(60),
        parallel: 3,
        stop: Arc::clone(&stop),
    };
    let gateways = Arc::new(Gateways::new(settings).unwrap());
    let submission = Submission::start(gateways, "j", vec![whole(table(dir.path(), "fact", &[30]))], OPTIONS);
    let mut ticks = 0;
    let stopped = submission.wait(Until::Done, |_| {
        ticks += 1;
        stop.store(ticks > 3, std::sync::atomic::Ordering::Relaxed);
        Ok::<(), Error>(())
    });
    assert!(matches!(stopped, Err(Error::Stopped)));
    assert_eq!(ticks, 4);
}
