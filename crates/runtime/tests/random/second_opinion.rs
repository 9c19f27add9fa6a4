//! DuckDB, in one Python process for all cases of a thread (`tests/second_opinion/duckdb_answers.py`).

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::tables::duck_type;
use super::value::{Answer, Value};
use crate::staged::Rows;

/// A case that takes DuckDB longer than this is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The Python that has DuckDB: `scripts/second-opinion` makes it.
pub fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TENAZ_SECOND_OPINION_PYTHON").map(PathBuf::from);
    let made = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/second-opinion/bin/python"));
    [named, Some(made)].into_iter().flatten().find(|python| python.exists())
}

/// The process, which is started when it is asked and again when it has ended.
pub struct SecondOpinion {
    python: PathBuf,
    running: Option<Running>,
    tables: Json,
    is_loaded: bool,
}

struct Running {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl SecondOpinion {
    pub fn new(python: PathBuf) -> Self {
        Self { python, running: None, tables: Json::Null, is_loaded: false }
    }

    /// The tables of the queries to come.
    pub fn load(&mut self, tables: &[Rows]) {
        let table = |table: &Rows| {
            let columns: Vec<Json> = table.columns.iter().map(|(name, kind)| json!([name, duck_type(kind)])).collect();
            json!({"name": table.name, "columns": columns, "rows": table.rows})
        };
        self.tables = tables.iter().map(table).collect();
        self.is_loaded = false;
    }

    /// Sends queries; [`receive`](Self::receive) waits for the answers, so that both sides work at the same time.
    pub fn send(&mut self, queries: &[String]) {
        let running = match &mut self.running {
            Some(running) => running,
            None => {
                self.is_loaded = false;
                self.running.insert(Running::start(&self.python))
            }
        };
        let mut case = json!({"queries": queries});
        if !self.is_loaded {
            case["tables"] = self.tables.clone();
            self.is_loaded = true;
        }
        // If the process has ended, there will be no answer either.
        let _ = writeln!(running.input, "{case}").and_then(|()| running.input.flush());
    }

    pub fn receive(&mut self, queries: usize) -> Vec<Result<Answer, String>> {
        let running = self.running.as_ref().expect("queries were sent");
        let Ok(line) = running.answers.recv_timeout(PATIENCE) else {
            self.stop();
            return vec![Err("DuckDB did not answer".to_owned()); queries];
        };
        let json: Json = serde_json::from_str(&line).expect("the script writes JSON");
        if json["restart"] == true {
            self.stop();
        }
        json["answers"].as_array().expect("a list of answers").iter().map(answer).collect()
    }

    /// One query over tables that are loaded.
    pub fn ask(&mut self, query: &str) -> Result<Answer, String> {
        self.send(&[query.to_owned()]);
        self.receive(1).remove(0)
    }

    fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _ = running.process.kill();
            let _ = running.process.wait();
        }
    }
}

impl Drop for SecondOpinion {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Running {
    fn start(python: &PathBuf) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/second_opinion/duckdb_answers.py");
        let mut process = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the Python of the second opinion starts");
        let input = process.stdin.take().expect("it is piped");
        let output = BufReader::new(process.stdout.take().expect("it is piped"));
        let (send, answers) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Self { process, input, answers }
    }
}

fn answer(json: &Json) -> Result<Answer, String> {
    if let Some(error) = json["error"].as_str() {
        return Err(error.to_owned());
    }
    let rows = json["rows"].as_array().expect("rows or an error");
    Ok(rows.iter().map(|row| row.as_array().expect("a row").iter().map(Value::from_json).collect()).collect())
}
