//! SQL that is made to hurt: it is answered, or refused with the limit that it passes; it never ends the process, and it ends when it is told to.
#![allow(clippy::unwrap_used)]

mod program;

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use program::{Finished, command};

/// Longer than any of these takes to be planned by a debug build on a loaded machine; before they had limits most took longer, or
/// ended the process.
const PLANNED_WITHIN: Duration = Duration::from_secs(60);
/// A first Ctrl-C ends the work within a second; the rest is for the process to go home on a loaded machine.
const STOPPED_WITHIN: Duration = Duration::from_millis(2500);
/// Bytes that no refused query may need.
const MEMORY: u64 = 1 << 30;

struct Asked {
    _data: tempfile::TempDir,
    child: Child,
}

/// Begins to ask `sql` of a table t with the columns id, a and name.
fn ask(sql: &str) -> Asked {
    let data = tempfile::tempdir().unwrap();
    let rows: String = (0..20_000).map(|n| format!("{n},{},n{}\n", n % 7, n % 13)).collect();
    fs::write(data.path().join("t.csv"), format!("id,a,name\n{rows}")).unwrap();
    let file = data.path().join("question.sql");
    fs::write(&file, sql).unwrap();
    let table = data.path().join("t.csv");
    let args = ["sql", "--quiet", "--format", "csv", "--data", table.to_str().unwrap(), "-f", file.to_str().unwrap()];
    let child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Asked { _data: data, child }
}

impl Asked {
    /// What came of it, if it ends in time; if not, it is killed.
    fn within(self, limit: Duration) -> Option<Finished> {
        let (done, ended) = mpsc::channel();
        let id = self.child.id();
        let wait = std::thread::spawn(move || done.send(Finished::new(self.child.wait_with_output().unwrap())));
        let finished = ended.recv_timeout(limit).ok();
        if finished.is_none() {
            send("KILL", id);
        }
        let _ = wait.join().unwrap();
        finished
    }
}

fn send(signal: &str, process: u32) {
    let sent = std::process::Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status().unwrap();
    assert!(sent.success());
}

#[track_caller]
fn answer(sql: &str) -> String {
    let finished = ask(sql).within(PLANNED_WITHIN).expect("it is answered in time");
    finished.must(0).text().to_owned()
}

#[track_caller]
fn refusal(sql: &str) -> String {
    let finished = ask(sql).within(PLANNED_WITHIN).expect("it is refused in time");
    assert!(finished.code.is_some_and(|code| code == 1 || code == 2), "{:?}: {}", finished.code, finished.err);
    finished.err
}

fn chain(with: &str, terms: usize, term: impl Fn(usize) -> String) -> String {
    (0..terms).map(term).collect::<Vec<_>>().join(with)
}

#[test]
fn long_chains_of_or_and_and_are_answered() {
    let count = |condition: String| answer(&format!("SELECT count(*) AS n FROM t WHERE {condition}"));
    assert_eq!(count(chain(" OR ", 1900, |n| format!("id={n}"))), "n\n1900\n");
    assert_eq!(count(chain(" OR ", 600, |n| format!("(id={n} AND a<7)"))), "n\n600\n");
    assert_eq!(count(chain(" AND ", 600, |n| format!("(id<>{n} OR a>6)"))), "n\n19400\n");
}

#[test]
fn a_list_of_ten_thousand_values_is_answered() {
    let values = chain(",", 10_000, |n| n.to_string());
    assert_eq!(answer(&format!("SELECT count(*) AS n FROM t WHERE id IN ({values})")), "n\n10000\n");
}

#[test]
fn a_chain_of_two_hundred_additions_is_answered() {
    assert_eq!(answer(&format!("SELECT max({}) AS m FROM t", chain("+", 200, |_| "a".to_owned()))), "m\n1200\n");
}

#[test]
fn a_hundred_joins_are_answered() {
    let joins = chain(" ", 100, |n| format!("JOIN t t{} ON t{}.id = t{n}.id", n + 1, n + 1));
    assert_eq!(answer(&format!("SELECT count(*) AS n FROM t t0 {joins}")), "n\n20000\n");
}

#[test]
fn what_is_too_large_to_plan_is_refused_with_limit_and_cure() {
    let doubled = |n: usize| format!("c{n} AS (SELECT x.a FROM c{m} x JOIN c{m} y ON x.a = y.a)", m = n - 1);
    let doubled: Vec<String> = (1..30).map(doubled).collect();
    for (sql, limit) in [
        (format!("SELECT {} AS s FROM t", chain("+", 2500, |_| "a".to_owned())), "the limit is 256"),
        (format!("SELECT {} AS s FROM t", chain("+", 40_000, |_| "a".to_owned())), "the limit is 65536"),
        (chain(" UNION ALL ", 3000, |n| format!("SELECT {n} AS a")), "the limit is 256"),
        (format!("SELECT count(*) AS n FROM {}", chain(", ", 400, |n| format!("t t{n}"))), "the limit is 256"),
        (
            format!("WITH c0 AS (SELECT a FROM t), {} SELECT count(*) AS n FROM c29", doubled.join(", ")),
            "the limit is 256",
        ),
        (format!("SELECT 1 AS n FROM t GROUP BY CUBE({})", chain(",", 20, |n| format!("id+{n}"))), "the limit is 1024"),
    ] {
        let error = refusal(&sql);
        assert!(error.contains(limit), "{error}");
    }
}

#[test]
fn values_that_are_too_large_are_refused_before_they_are_made() {
    for call in [
        "repeat('a', 100000000)",
        "repeat(name, 100000000)",
        "lpad(name, 2000000000)",
        "array_length(range(1, 100000000000))",
        "levenshtein(repeat('a', 10000000), repeat('b', 10000000))",
    ] {
        let asked = ask(&format!("SELECT max({call}) AS m FROM t"));
        let watch = Memory::of(asked.child.id());
        let finished = asked.within(PLANNED_WITHIN).expect("it is refused in time");
        assert_eq!(finished.code, Some(1), "{}", finished.err);
        assert!(finished.err.contains("would make about") && finished.err.contains("the limit"), "{}", finished.err);
        let peak = watch.peak();
        assert!(peak < MEMORY, "{call} took {peak} bytes");
    }
}

/// The optimizer computes what is constant, and a plan holds what it computed: up to a bound, and what is beyond is computed when it is needed.
#[test]
fn large_constants_do_not_pile_up_in_a_plan() {
    let many = chain("+", 200, |n| format!("length(repeat('{n}', 4000000))"));
    let asked = ask(&format!("SELECT max(a) * 0 + {many} AS n FROM t"));
    let watch = Memory::of(asked.child.id());
    let bytes: usize = (0..200).map(|n: usize| n.to_string().len() * 4_000_000).sum();
    assert_eq!(asked.within(PLANNED_WITHIN).expect("it is answered in time").must(0).text(), format!("n\n{bytes}\n"));
    let peak = watch.peak();
    assert!(peak < MEMORY, "it took {peak} bytes");
}

/// The most memory that a process has taken, looked at until it ends.
struct Memory(std::thread::JoinHandle<u64>);

impl Memory {
    fn of(process: u32) -> Self {
        Self(std::thread::spawn(move || {
            let mut peak = 0;
            while let Some(now) = resident_bytes(process) {
                peak = peak.max(now);
                std::thread::sleep(Duration::from_millis(5));
            }
            peak
        }))
    }

    fn peak(self) -> u64 {
        self.0.join().unwrap()
    }
}

fn resident_bytes(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// The processor time that a process has taken.
fn busy(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 10))
}

#[test]
fn a_first_signal_ends_every_kind_of_endless_work() {
    for sql in [
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) AS c FROM r",
        "SELECT count(*) AS c FROM generate_series(1, 100000000000)",
        "SELECT count(*) AS c FROM t x, t y, t z WHERE x.a + y.a + z.a < 0",
        "SELECT count(*) AS c FROM t x JOIN t y ON x.a = y.a AND x.id * y.id < 0 JOIN t z ON z.a = x.a AND z.id + y.id < x.id",
        "SELECT count(*) AS c FROM t x, t y, t z",
    ] {
        for signal in ["INT", "TERM"] {
            let asked = ask(sql);
            let process = asked.child.id();
            // Two seconds of processor time: it was planned, and computes.
            while busy(process).expect("it has not ended by itself") < Duration::from_secs(2) {
                std::thread::sleep(Duration::from_millis(10));
            }
            let told = Instant::now();
            send(signal, process);
            let finished = asked.within(Duration::from_secs(20)).unwrap_or_else(|| panic!("it does not end: {sql}"));
            let took = told.elapsed();
            assert_eq!(finished.code, Some(130), "{sql}: {}", finished.err);
            assert!(took < STOPPED_WITHIN, "{sql} took {took:?} to end");
        }
    }
}
