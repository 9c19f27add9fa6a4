//! `tenaz submit` against gateways that do what real ones cannot be brought to: cut streams, lie about fingerprints, vanish.
//! The rows they serve are those of `tenaz run` on the same files, so the files written must be the same, too.
#![allow(clippy::unwrap_used)]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod program;
mod shop;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::arrow::ipc::reader::FileReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use fake::{Asked, Reply, Server};
use program::{Finished, command, files, run_coffee, summary, tenaz};
use serde_json::{Value, json};
use shop::{Shop, TRANSACTIONS, transaction};
use tenaz_core::ChunkDigest;

const JOB: &str = "00000000000000ff";
const AT: &str = "2024-02-02 12:00:00";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Transactions of two months, some of them bad.
fn shop() -> Shop {
    let shop = Shop::new();
    for month in ["202401", "202402"] {
        let line = |n: usize| match n % 50 {
            49 => format!("bad {month} {n}"),
            _ => transaction(&format!("{month}-{n}"), "1", "1.0", &format!("{}.5", 70 + n % 20), AT),
        };
        shop.lines(&format!("transactions/transactions_{month}.csv"), TRANSACTIONS, (0..600).map(line));
    }
    shop
}

/// A cluster that has the answers already, and gives them once all data is there.
struct Cluster {
    results: tempfile::TempDir,
    request: Option<Value>,
    keys: Vec<String>,
    chunks: BTreeMap<(String, u64), Vec<u8>>,
    closed: BTreeMap<String, Value>,
    deleted: bool,
    /// What is wrong with the next streams of rows.
    faults: Vec<Fault>,
}

enum Fault {
    /// Cut after so many parts in a hundred.
    CutAt(usize),
    WrongFingerprint,
    Failed(&'static str),
    /// The question cannot be answered, though the job is done.
    QuestionFailed,
}

type Shared = Arc<Mutex<Cluster>>;

fn cluster(shop: &Shop, faults: Vec<Fault>) -> Shared {
    let results = tempfile::tempdir().unwrap();
    run_coffee(shop.path(), results.path(), &["--query", "q1", "--format", "arrow"]).must(0);
    let (request, keys, chunks, closed) = (None, Vec::new(), BTreeMap::new(), BTreeMap::new());
    Arc::new(Mutex::new(Cluster { results, request, keys, chunks, closed, deleted: false, faults }))
}

fn gateway(cluster: &Shared) -> Server {
    let cluster = Arc::clone(cluster);
    Server::start(move |asked| cluster.lock().unwrap().answer(asked))
}

impl Cluster {
    fn answer(&mut self, asked: &Asked) -> Reply {
        let path = asked.path.split('?').next().unwrap().to_owned();
        let words: Vec<&str> = path.split('/').skip(2).collect();
        match (asked.method.as_str(), words.as_slice()) {
            ("POST", ["jobs"]) => {
                self.keys.push(asked.header("idempotency-key").to_owned());
                self.request = Some(serde_json::from_slice(&asked.body).unwrap());
                let made = json!({"job": JOB, "workload": "coffee", "state": "uploading", "partitions": 1,
                    "chunk_bytes": 4096, "tables": ["transactions"], "queries": []});
                Reply::json(201, &made.to_string())
            }
            (_, ["jobs", job, ..]) if *job != JOB || self.request.is_none() => Reply::problem(404, "not_found", None),
            ("GET", ["jobs", _]) => Reply::json(200, &self.state().to_string()),
            ("DELETE", ["jobs", _]) => {
                self.deleted = true;
                Reply::json(202, "{\"state\":\"cancelled\"}")
            }
            ("GET", ["jobs", _, "missing"]) => {
                let chunks = match asked.path.split_once("chunks=") {
                    Some((_, chunks)) => chunks.parse().unwrap(),
                    None => self.closed.get("transactions").map_or(0, |closed| closed["chunks"].as_u64().unwrap()),
                };
                let is_there = |n: &u64| self.chunks.contains_key(&("transactions".to_owned(), *n));
                let missing: Vec<[u64; 2]> = (0..chunks).filter(|n| !is_there(n)).map(|n| [n, n + 1]).collect();
                let closed = self.closed.contains_key("transactions");
                let missing = json!({"tables": [{"name": "transactions", "closed": closed, "missing": missing}]});
                Reply::json(200, &missing.to_string())
            }
            ("GET", ["jobs", _, "tables", table, "digests"]) => {
                let from: u64 = asked.path.split_once("from=").unwrap().1.parse().unwrap();
                let end = self.chunks.keys().filter(|(of, _)| of == table).map(|(_, n)| n + 1).max().unwrap_or(0);
                let chunk = |n| self.chunks.get(&((*table).to_owned(), n));
                let digests: Vec<Option<ChunkDigest>> =
                    (from..end).map(|n| chunk(n).map(|body| ChunkDigest::of(body))).collect();
                Reply::json(200, &json!({"digests": digests}).to_string())
            }
            ("PUT", ["jobs", _, "tables", table, "chunks", n]) => {
                self.chunks.insert(((*table).to_owned(), n.parse().unwrap()), asked.body.clone());
                Reply::json(200, "{\"chunk\":0,\"status\":\"received\"}")
            }
            ("POST", ["jobs", _, "tables", table, "finish"]) => {
                self.closed.insert((*table).to_owned(), serde_json::from_slice(&asked.body).unwrap());
                Reply::json(200, "{}")
            }
            ("GET", ["jobs", _, "results", "q1"]) => self.rows(),
            ("GET", ["jobs", _, "rejects"]) => Reply::bytes(self.rejects()),
            _ => panic!("{asked:?}"),
        }
    }

    fn forget_data(&mut self) {
        self.chunks.clear();
        self.closed.clear();
    }

    fn state(&self) -> Value {
        let request = self.request.as_ref().unwrap();
        let summary = summary(self.results.path());
        let query = &summary["queries"]["q1"];
        let table = &summary["tables"]["transactions"];
        let results = json!({
            "queries": [{"name": "q1", "rows": query["rows"], "fingerprint": query["fingerprint"], "ordered": false}],
            "tables": [{"name": "transactions", "records": table["records"], "accepted": table["accepted"],
                "rejected": table["rejected"], "reasons": table["rejected_by_reason"], "bytes": table["bytes"]}],
        });
        let fails = self.faults.iter().find_map(|fault| match fault {
            Fault::Failed(class) => Some(class),
            _ => None,
        });
        let question_fails = self.faults.iter().any(|fault| matches!(fault, Fault::QuestionFailed));
        let results = if question_fails {
            json!({"queries": [], "failed": [{"name": "q1", "class": "query", "text": "division by zero"}],
                "tables": results["tables"]})
        } else {
            results
        };
        let chunks = self.closed.get("transactions").map_or(u64::MAX, |closed| closed["chunks"].as_u64().unwrap());
        let (state, results, error) = match ((self.chunks.len() as u64) < chunks, fails) {
            (true, _) => ("uploading", Value::Null, Value::Null),
            (_, Some(class)) => {
                let error = json!({"code": "task", "text": "chunk 3 of transactions is cursed", "class": class});
                ("failed", Value::Null, error)
            }
            (_, None) => ("done", results, Value::Null),
        };
        json!({"job": JOB, "workload": "coffee", "state": state, "partitions": 1, "chunk_bytes": 4096,
            "spec": {"workload": request["workload"], "queries": request["queries"], "strict": false,
                "files": request["files"]},
            "tables": [], "waiting_for": null, "error": error, "results": results})
    }

    /// The rows in the order of the answer; after a fault, from the back, as another gateway might give them.
    fn rows(&mut self) -> Reply {
        let file = FileReader::try_new(File::open(self.results.path().join("q1.arrow")).unwrap(), None).unwrap();
        let schema = file.schema();
        let mut pieces: Vec<RecordBatch> = Vec::new();
        for batch in file.map(Result::unwrap) {
            pieces.extend((0..batch.num_rows()).step_by(10).map(|n| batch.slice(n, 10.min(batch.num_rows() - n))));
        }
        if matches!(self.faults.first(), Some(Fault::QuestionFailed)) {
            return Reply::problem(422, "query_failed", None);
        }
        let fault = if self.faults.is_empty() { None } else { Some(self.faults.remove(0)) };
        if fault.is_none() {
            pieces.reverse();
        }
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &schema).unwrap();
        pieces.iter().for_each(|piece| writer.write(piece).unwrap());
        writer.finish().unwrap();
        drop(writer);
        let mut query = summary(self.results.path())["queries"]["q1"].clone();
        match fault {
            Some(Fault::CutAt(percent)) => return Reply::Cut(bytes[..bytes.len() * percent / 100].to_vec()),
            Some(Fault::WrongFingerprint) => query["fingerprint"] = json!("00ff"),
            _ => {}
        }
        bytes.extend(format!("{}\n", json!({ "end": query })).into_bytes());
        Reply::bytes(bytes)
    }

    fn rejects(&self) -> Vec<u8> {
        let mut reader = csv::Reader::from_path(self.results.path().join("rejects.csv")).unwrap();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let text = |column: usize| -> ArrayRef {
            Arc::new(lines.iter().map(|l| Some(&l[column]).filter(|t| !t.is_empty())).collect::<StringArray>())
        };
        let number = |column: usize| -> ArrayRef {
            Arc::new(lines.iter().map(|l| l[column].parse().ok()).collect::<Int64Array>())
        };
        let columns = vec![text(0), text(1), number(2), number(3), text(4), text(5), text(6)];
        let batch = RecordBatch::try_new(tenaz_runtime::reject_schema(), columns).unwrap();
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::try_new(&mut bytes, &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        drop(writer);
        bytes.extend(format!("{}\n", json!({"end": {"rows": lines.len()}})).into_bytes());
        bytes
    }
}

fn submit(shop: &Shop, url: &str, more: &[&str]) -> Finished {
    let mut args = vec!["submit", "coffee", "--query", "q1", "--data", text(shop.path()), "--gateway", url];
    args.extend(more);
    tenaz(args)
}

/// The result files, without what may differ.
fn comparable(out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = files(out);
    let mut summary: Value = serde_json::from_slice(&found.remove("summary.json").unwrap()).unwrap();
    let summary_map = summary.as_object_mut().unwrap();
    assert!(
        summary_map.remove("job").is_some()
            && summary_map.remove("elapsed_seconds").is_some()
            && summary_map.remove("final_at").is_some()
            && summary_map.remove("now").is_some()
    );
    found.insert("summary.json".to_owned(), summary.to_string().into_bytes());
    found
}

fn out(dir: &tempfile::TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

#[test]
fn a_question_that_failed_is_told_with_exit_1_and_the_job_is_forgotten() {
    let shop = shop();
    let cluster = cluster(&shop, vec![Fault::QuestionFailed]);
    let server = gateway(&cluster);
    let dir = tempfile::tempdir().unwrap();
    let sub = out(&dir, "submit");
    let finished = submit(&shop, &server.url, &["--out", text(&sub)]).must(1);
    assert!(finished.err.ends_with("tenaz: q1: division by zero\n"), "{}", finished.err);
    assert!(!finished.err.contains("is still there"), "{}", finished.err);
    assert!(!sub.join("q1.csv").exists());
    assert_eq!(summary(&sub)["failed"]["q1"], json!({"class": "query", "text": "division by zero"}));
    assert!(cluster.lock().unwrap().deleted);
    // As a stream: nothing that looks complete.
    cluster.lock().unwrap().forget_data();
    let finished = submit(&shop, &server.url, &["--format", "json"]).must(1);
    assert!(serde_json::from_slice::<Value>(&finished.out).is_err(), "{}", finished.text());
    assert!(finished.err.contains("tenaz: q1: division by zero"), "{}", finished.err);
}

#[test]
fn submit_writes_the_same_files_as_run_and_says_the_same() {
    let shop = shop();
    let cluster = cluster(&shop, vec![]);
    let server = gateway(&cluster);
    let dir = tempfile::tempdir().unwrap();
    for format in ["csv", "json", "arrow"] {
        let (run, sub) = (out(&dir, &format!("run-{format}")), out(&dir, &format!("submit-{format}")));
        let ran = run_coffee(shop.path(), &run, &["--query", "q1", "--format", format]).must(0);
        cluster.lock().unwrap().forget_data();
        let sent = submit(&shop, &server.url, &["--out", text(&sub), "--format", format]).must(0);
        assert_eq!(comparable(&run), comparable(&sub));
        assert_eq!(summary(&sub)["job"], JOB);
        let rejected =
            |err: &str| err.lines().filter(|l| l.starts_with("rejected:")).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(rejected(&ran.err).len(), 11);
        assert_eq!(rejected(&sent.err)[10], rejected(&ran.err)[10]);
        assert!(sent.err.starts_with(&format!("job {JOB}: ")), "{}", sent.err);
    }
    let cluster = cluster.lock().unwrap();
    assert!(cluster.deleted && cluster.chunks.len() > 10);
    let sent: usize = cluster.chunks.values().map(Vec::len).sum();
    let headers = 2 * (TRANSACTIONS.len() + 1);
    assert_eq!(cluster.closed["transactions"]["bytes"], json!(sent + headers));
    assert_eq!(cluster.closed["transactions"]["records"], json!(1200));
    let mut keys = cluster.keys.clone();
    keys.dedup();
    assert_eq!(keys.len(), 3, "every submission has a key of its own");
}

#[test]
fn rows_that_stream_to_standard_output_come_once_however_often_the_stream_is_cut() {
    let shop = shop();
    let cluster = cluster(&shop, vec![Fault::CutAt(60), Fault::CutAt(30), Fault::CutAt(97)]);
    let server = gateway(&cluster);
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let sent = submit(&shop, &server.url, &["--format", "csv"]).must(0);
    let ran = tenaz(["run", "coffee", "--query", "q1", "--data", text(shop.path()), "--format", "csv"]).must(0);
    assert_eq!(sorted(sent.text()), sorted(ran.text()));
    assert!(cluster.lock().unwrap().faults.is_empty(), "all cuts were made");
}

#[test]
fn rows_with_another_fingerprint_are_withheld() {
    let shop = shop();
    let cluster = cluster(&shop, vec![Fault::WrongFingerprint]);
    let server = gateway(&cluster);
    let dir = tempfile::tempdir().unwrap();
    let done = submit(&shop, &server.url, &["--quiet", "--out", text(&out(&dir, "o"))]).must(1);
    done.says(&["q1 has the fingerprint 00ff", "fault in tenaz", "withheld", "--resume 00000000000000ff goes on"]);
    assert_eq!(files(&out(&dir, "o")).len(), 0);
}

#[test]
fn a_failed_job_says_why_and_exits_by_the_class_of_its_end() {
    let shop = shop();
    for (class, code) in [("data", 1), ("query", 1), ("bug", 1), ("process", 75), ("broker", 75)] {
        let cluster = cluster(&shop, vec![Fault::Failed(class)]);
        let server = gateway(&cluster);
        submit(&shop, &server.url, &["--quiet"]).must(code).says(&["failed: chunk 3 of transactions is cursed"]);
    }
}

#[test]
fn a_job_goes_on_from_the_same_files_only_and_sends_what_is_missing() {
    let shop = shop();
    let cluster = cluster(&shop, vec![]);
    let server = gateway(&cluster);
    let dir = tempfile::tempdir().unwrap();
    let detached = submit(&shop, &server.url, &["--detach", "--quiet"]).must(0);
    assert_eq!(detached.text(), format!("{JOB}\n"));
    let all = {
        let mut cluster = cluster.lock().unwrap();
        assert!(!cluster.deleted);
        cluster.closed.clear();
        let all = cluster.chunks.clone();
        cluster.chunks.retain(|(_, number), _| *number != 3);
        all
    };
    let resume = |more: &[&str]| {
        let mut args = vec!["--quiet", "--resume", JOB];
        args.extend(more);
        submit(&shop, &server.url, &args)
    };
    let name = "transactions/transactions_202402.csv";
    let original = fs::read_to_string(shop.at(name)).unwrap();
    shop.file(name, original.replacen("202402-0", "202402-X", 1));
    resume(&[]).must(1).says(&["not the files of job", name, "another content"]);
    shop.file(name, &original);
    resume(&["--query", "q3"]).must(2).says(&["asks q1"]);
    let done = out(&dir, "done");
    resume(&["--out", text(&done), "--keep"]).must(0);
    assert!(cluster.lock().unwrap().chunks == all, "cut at the same places");
    assert_eq!(summary(&done)["tables"]["transactions"]["records"], 1200);
    // A job that is done needs no files at all.
    let again = out(&dir, "again");
    let args = ["submit", "--gateway", &server.url, "--resume", JOB, "--out", text(&again)];
    tenaz(args).must(0);
    assert_eq!(comparable(&done), comparable(&again));
    assert!(cluster.lock().unwrap().deleted);
}

#[test]
fn gateways_that_stay_away_exit_75_and_unknown_jobs_1() {
    let shop = shop();
    let away = "http://127.0.0.1:9";
    submit(&shop, away, &["--patience", "0.3"]).must(75).says(&[away, "try again later"]);
    submit(&shop, "localhost:80", &[]).must(2).says(&["does not begin with http://"]);
    let server = Server::start(|_| Reply::problem(404, "not_found", None));
    for what in ["--resume", "--cancel"] {
        tenaz(["submit", "--gateway", &server.url, what, "0f"]).must(1).says(&["there is no job 0f"]);
    }
    tenaz(["submit", "coffee", "--gateway", away]).must(2);
    tenaz(["submit", "coffee", "--data", "."]).must(2);
}

#[test]
fn a_wrong_header_is_found_before_a_job_is_made() {
    let shop = shop();
    shop.file("transactions/transactions_202403.csv", "a,b\n1,2\n");
    let server = Server::start(|_| panic!("nothing is asked"));
    submit(&shop, &server.url, &[]).must(1).says(&["transactions_202403.csv", "header"]);
}

#[cfg(unix)]
#[test]
fn ctrl_c_tells_how_to_go_on_and_how_to_end_the_job() {
    let shop = shop();
    let made = json!({"job": JOB, "chunk_bytes": 4096, "tables": ["transactions"]}).to_string();
    let server =
        Server::start(move |asked| if asked.is("POST", "/v1/jobs") { Reply::json(201, &made) } else { Reply::Hang });
    let args = ["submit", "coffee", "--query", "q1", "--data", text(shop.path()), "--gateway", &server.url];
    let mut child = command(args).stderr(Stdio::piped()).spawn().unwrap();
    let mut talk = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    talk.read_line(&mut line).unwrap();
    assert!(line.starts_with(&format!("job {JOB}: ")), "{line}");
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let mut rest = String::new();
    talk.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    let url = &server.url;
    let data = text(shop.path());
    let expected = format!(
        "tenaz: stopped; job {JOB} is still there: tenaz submit coffee --data {data} --gateway {url} --resume {JOB} goes on; \
         curl -X DELETE {url}/v1/jobs/{JOB} (or tenaz submit --gateway {url} --cancel {JOB}) ends it\n"
    );
    assert_eq!(rest, expected);
}
