//! The engine of a real worker in the simulator's cluster: real SQL over tables of a dozen rows, messages as they travel, and
//! whatever may be killed, lost, doubled or late. The answers must be those of the embedded job, byte for byte.

use std::any::Any;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tenaz_cluster::{ChunkHeader, Encoding, LogMessage, ResultEnd, frame, unframe};
use tenaz_core::{ChunkDigest, FailedQuery, Header, JobId, QueryId, TableId, Topology, WorkloadText};
use tenaz_engine::{JobPlan, Workload};
use tenaz_sim::{LogBytes, Mutation, Options as SimOptions, RealChunk, RealEngine, RealJob, Report};
use tenaz_vitals::WorkerMetrics;

use super::board::Board;
use super::engine::ClusterEngine;
use super::fault::Faults;
use crate::cluster::results::{ResultEvent, ResultsFold, kind};
use crate::cluster::rows::RowsHeader;
use crate::format::Format;
use crate::job_rows::{JobRows, QuestionFaults, Resources};
use crate::spool::{Budget, Spool};
use crate::{Answer, DataSet, Observer, Options, Progress, RejectLine, Workspace};

/// Bytes of rows at rest, and of what tasks compute with: little is needed.
const MEMORY_BYTES: usize = 64 << 20;

const TABLES: &str = r#"
name = "tiny"

[[table]]
name = "shops"
files = "shops.csv"
role = "dimension"
columns = [{ name = "shop", type = "int" }, { name = "city", type = "text" }]

[[table]]
name = "sales"
files = "sales.csv"
role = "fact"
columns = [
    { name = "id", type = "int" },
    { name = "shop", type = "int" },
    { name = "item", type = "text" },
    { name = "price", type = "decimal(10,2)" },
]

[[table]]
name = "visits"
files = "visits.csv"
role = "fact"
columns = [{ name = "shop", type = "int" }, { name = "visitor", type = "text" }]
"#;

/// The tables as text. One record of the sales is bad.
const DATA: [(&str, &str); 3] = [
    ("shops", "shop,city\n1,Ipoh\n2,Klang\n3,Ipoh\n4,\n"),
    (
        "sales",
        "id,shop,item,price\n1,1,tea,4.50\n2,2,tea,4.50\n3,1,milk,2.25\n4,3,bread,3.10\n5,2,\"tea, iced\",5.00\n\
         6,9,tea,4.50\n7,x,tea,4.50\n8,3,milk,2.25\n9,1,tea,4.75\n10,2,,1.00\n11,1,bread,3.10\n12,3,tea,0.05\n",
    ),
    ("visits", "shop,visitor\n1,ann\n1,bob\n2,ann\n3,cem\n3,ann\n1,ann\n2,dee\n4,bob\n1,cem\n2,bob\n"),
];

/// The questions of each job, by name.
const JOBS: [&[(&str, &str)]; 4] = [
    &[
        (
            "by_city",
            "SELECT city, sum(price) AS total, count(*) AS n FROM sales s JOIN shops d ON d.shop = s.shop GROUP BY city",
        ),
        ("top", "SELECT id, price FROM sales ORDER BY price DESC, id LIMIT 4"),
    ],
    &[
        ("pairs", "SELECT s.id, v.visitor FROM sales s JOIN visits v ON v.shop = s.shop WHERE s.price > 3"),
        ("visitors", "SELECT shop, count(DISTINCT visitor) AS people, avg(shop) AS mean FROM visits GROUP BY shop"),
    ],
    &[
        ("running", "SELECT id, sum(price) OVER (PARTITION BY item ORDER BY id) AS so_far FROM sales"),
        ("often", "SELECT shop FROM visits GROUP BY shop HAVING count(*) > 1"),
        ("cheap", "SELECT id, item FROM sales WHERE price < 3"),
    ],
    &[
        ("leaf_fails", "SELECT id, 10 / (id - 9) AS q FROM sales"),
        ("inner_fails", "SELECT shop, 1 / (count(*) - 3) AS q FROM visits GROUP BY shop"),
        ("above_fails", "SELECT sum(q) AS q FROM (SELECT shop, 1 / (count(*) - 3) AS q FROM visits GROUP BY shop) x"),
        ("fine", "SELECT max(price) AS dearest, (SELECT count(*) FROM shops) AS shops FROM sales"),
    ],
];

/// An answer as it is told and as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    name: String,
    rows: u64,
    fingerprint: String,
    csv: String,
}

impl Told {
    fn of(answer: &Answer) -> Self {
        let mut bytes = Vec::new();
        let mut writer = Format::Csv.writer(&mut bytes);
        writer.begin(&answer.schema).expect("a vector takes anything");
        for batch in answer.batches() {
            writer.rows(&batch.expect("rows at rest are read")).expect("a vector takes anything");
        }
        writer.end().expect("a vector takes anything");
        drop(writer);
        let csv = String::from_utf8(bytes).expect("CSV is text");
        Self { name: answer.name.clone(), rows: answer.rows, fingerprint: answer.fingerprint.clone(), csv }
    }
}

/// What the embedded job says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Expected {
    answers: Vec<Told>,
    failed: Vec<FailedQuery>,
    /// (name, records, accepted, rejected) of every table that is read.
    tables: Vec<(String, u64, u64, u64)>,
}

struct Nobody;

impl Observer for Nobody {
    fn rows(&self, _: QueryId, _: &datafusion::arrow::record_batch::RecordBatch) {}
    fn reject(&self, _: &RejectLine) {}
}

/// A job of the simulated cluster.
struct Simulated {
    workload: Workload,
    plan: Arc<JobPlan>,
    partitions: u16,
    chunks: Vec<Vec<RealChunk>>,
    expected: Expected,
    budget: Arc<Budget>,
    /// Answers whose rows were compared, and not only their fingerprints.
    compared: AtomicUsize,
}

impl Simulated {
    /// The job `index`, cut into chunks of `records`.
    fn new(index: usize, partitions: u16, records: usize) -> Self {
        let mut toml = TABLES.to_owned();
        for (name, sql) in JOBS[index] {
            toml.push_str(&format!("\n[[query]]\nname = \"{name}\"\nsql = \"{sql}\"\n"));
        }
        let text = WorkloadText { file: "tiny.toml".to_owned(), toml, sql: BTreeMap::new(), now: None };
        let workload = Workload::from_text(&text).expect("a workload");
        let plan = Arc::new(JobPlan::new(&workload).expect("a plan"));
        let expected = embedded(&workload, &plan);
        let is_read = |table: usize| plan.scans.iter().any(|scan| usize::from(scan.table.0) == table);
        let chunks = |(table, of): (usize, &tenaz_engine::Table)| match is_read(table) {
            true => chunks(TableId(table as u16), &of.name, records),
            false => Vec::new(),
        };
        let chunks = workload.tables.iter().enumerate().map(chunks).collect();
        let budget = Budget::new(MEMORY_BYTES, std::env::temp_dir());
        let compared = AtomicUsize::new(0);
        Self { workload, plan, partitions, chunks, expected, budget, compared }
    }

    /// What a reader of the results log makes of it.
    fn read(&self, results: &[LogBytes]) -> Result<Vec<Told>, String> {
        let mut fold = ResultsFold::new(Arc::clone(&self.plan), &self.topology(), "results".to_owned());
        let workspace = Workspace::new(&Options::default()).map_err(|error| error.to_string())?;
        let mut rows: Vec<Spool> = self.plan.queries.iter().map(|_| workspace.spool()).collect();
        for (offset, LogBytes { is_early, bytes }) in results.iter().enumerate() {
            let kind = if *is_early { kind::EARLY } else { kind::ROWS }.to_owned();
            let message = LogMessage { offset: offset as u64, kind, body: bytes.to_vec() };
            for event in fold.take(&message).map_err(|error| error.to_string())? {
                if let ResultEvent::Rows(query, batch) = event {
                    rows[usize::from(query.0)].append(batch).map_err(|error| error.to_string())?;
                }
            }
        }
        let is_answered = |name: &str| self.expected.answers.iter().any(|answer| answer.name == name);
        let asked = self.plan.queries.iter().zip(rows).filter(|(query, _)| is_answered(&query.name));
        let told = asked.map(|(query, rows)| workspace.answer(query, rows).map(|answer| Told::of(&answer)));
        told.collect::<Result<_, _>>().map_err(|error| error.to_string())
    }
}

impl RealJob for Simulated {
    fn topology(&self) -> Topology {
        self.plan.topology(self.partitions).expect("the plan has a topology")
    }

    fn tables(&self) -> &[Vec<RealChunk>] {
        &self.chunks
    }

    fn engine(&self) -> Box<dyn RealEngine> {
        let resources = Resources {
            threads: 1,
            memory_bytes: MEMORY_BYTES,
            temp_dir: std::env::temp_dir(),
            budget: Arc::clone(&self.budget),
            show_early: true,
            keep_answers: false,
            question_faults: QuestionFaults::of_worker(BTreeSet::new()),
        };
        let (workload, plan) = (Cow::Owned(self.workload.clone()), Cow::Owned((*self.plan).clone()));
        Box::new(ClusterEngine {
            id: JobId::from_bytes([7; 8]),
            strict: false,
            rows: JobRows::new(workload, plan, self.partitions, resources).expect("rows"),
            board: Arc::new(Board::default()),
            faults: Faults::default(),
            metrics: WorkerMetrics::default(),
            failing_chunks: Mutex::default(),
        })
    }

    fn header(&self, message: &[u8]) -> Result<Header, String> {
        unframe::<RowsHeader>("a log", message).map(|framed| framed.header.id).map_err(|error| error.to_string())
    }

    fn judge(&self, end: &dyn Any, results: Option<&[LogBytes]>) -> Result<(), String> {
        let end: &ResultEnd = end.downcast_ref().ok_or("the end is of another kind")?;
        let told: Vec<(&str, u64, &str)> =
            end.queries.iter().map(|query| (query.name.as_str(), query.rows, query.fingerprint.as_str())).collect();
        let right = self.expected.answers.iter();
        let right: Vec<(&str, u64, &str)> =
            right.map(|answer| (answer.name.as_str(), answer.rows, answer.fingerprint.as_str())).collect();
        if told != right {
            return Err(format!("{told:?} were told, and {right:?} are right"));
        }
        if end.failed != self.expected.failed {
            return Err(format!("{:?} failed, and {:?} should", end.failed, self.expected.failed));
        }
        let counts =
            |table: &tenaz_cluster::TableEnd| (table.name.clone(), table.records, table.accepted, table.rejected);
        let tables: Vec<_> = end.tables.iter().map(counts).collect();
        if tables != self.expected.tables {
            return Err(format!("{tables:?} were counted, and {:?} are right", self.expected.tables));
        }
        if let Some(results) = results {
            let read = self.read(results)?;
            self.compared.fetch_add(read.len(), Ordering::Relaxed);
            if read != self.expected.answers {
                return Err(format!("{read:?} can be read, and {:?} are right", self.expected.answers));
            }
        }
        Ok(())
    }
}

/// The chunks of a table, as a gateway puts them into the work queue.
fn chunks(table: TableId, name: &str, records: usize) -> Vec<RealChunk> {
    let file = format!("{name}.csv");
    let text = DATA.iter().find(|(of, _)| *of == name).map_or("", |(_, text)| text);
    let (header, body) = text.split_once('\n').expect("a header");
    let lines: Vec<&str> = body.split_inclusive('\n').collect();
    let mut byte = header.len() as u64 + 1;
    let chunk = |(number, lines): (usize, &[&str])| {
        let data = lines.concat().into_bytes();
        let digest = ChunkDigest::of(&data);
        let (line, bytes) = ((number * records) as u64 + 2, data.len() as u64);
        let (number, records) = (number as u64, Some(lines.len() as u64));
        let encoding = Encoding::Identity;
        let header =
            ChunkHeader { table, number, file: file.clone(), byte, line, records, encoding, raw_bytes: bytes, digest };
        byte += bytes;
        RealChunk { records: lines.len() as u64, digest, message: frame(&header, &[&data]) }
    };
    lines.chunks(records).enumerate().map(chunk).collect()
}

/// The answers of the same job on this machine.
fn embedded(workload: &Workload, plan: &JobPlan) -> Expected {
    let dir = tempfile::tempdir().expect("a temporary directory");
    write_tables(dir.path());
    let data = DataSet::find(dir.path(), workload, plan).expect("the files");
    let options = Options { threads: 1, partitions: Some(1), ..Options::default() };
    let progress = Progress::new(workload.tables.len());
    let outcome = crate::run(workload, plan, data, &options, &progress, &Nobody).expect("answers");
    let table = |table: &crate::TableReport| {
        let counts = &table.counts;
        (table.name.clone(), counts.records, counts.accepted, counts.rejected)
    };
    Expected {
        answers: outcome.answers.iter().map(Told::of).collect(),
        failed: outcome.failed,
        tables: outcome.tables.iter().map(table).collect(),
    }
}

fn write_tables(dir: &Path) {
    for (name, text) in DATA {
        std::fs::write(dir.join(format!("{name}.csv")), text).expect("write a table");
    }
}

/// What came of many seeds of one job.
fn run_seeds(job: &Arc<Simulated>, mutation: Mutation, seeds: impl Iterator<Item = u64>) -> Vec<Report> {
    let run = |seed| {
        let real: Arc<dyn RealJob> = Arc::<Simulated>::clone(job);
        tenaz_sim::run(&SimOptions { seed, real: Some(real), mutation, ..SimOptions::default() }).expect("a job")
    };
    seeds.map(run).collect()
}

/// Every job with its own way of being cut up: (job, partitions, records of a chunk).
const CUTS: [(usize, u16, usize); 8] =
    [(0, 2, 4), (1, 3, 3), (2, 2, 5), (3, 2, 4), (0, 3, 12), (1, 1, 4), (2, 3, 3), (3, 3, 12)];
/// Seeds of each of them.
const SEEDS: u64 = 50;

#[test]
fn real_rows_in_a_cluster_that_fails_in_every_way_are_those_of_the_embedded_job() {
    let reports: Vec<Vec<Report>> = std::thread::scope(|scope| {
        let run = |(at, (job, partitions, records)): (usize, (usize, u16, usize))| {
            let job = Arc::new(Simulated::new(job, partitions, records));
            let from = at as u64 * SEEDS;
            let reports = run_seeds(&job, Mutation::None, from..from + SEEDS);
            let done = reports.iter().filter(|report| report.conclusions > 0).count();
            assert!(done as u64 > SEEDS / 2, "job {at} was concluded in {done} runs only");
            assert!(job.compared.load(Ordering::Relaxed) > done / 2, "rows of job {at} were compared");
            reports
        };
        let started: Vec<_> = CUTS
            .into_iter()
            .enumerate()
            .collect::<Vec<_>>()
            .chunks(CUTS.len() / 2)
            .map(<[_]>::to_vec)
            .map(|share| scope.spawn(move || share.into_iter().flat_map(run).collect::<Vec<Report>>()))
            .collect();
        started.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    let reports: Vec<Report> = reports.into_iter().flatten().collect();
    let broken: Vec<String> = reports
        .iter()
        .filter_map(|report| Some(format!("seed {}: {}", report.seed, report.violation.as_ref()?)))
        .collect();
    assert!(broken.is_empty(), "{} of {} runs are broken:\n{}", broken.len(), reports.len(), broken.join("\n"));
    let fired: std::collections::BTreeSet<usize> =
        reports.iter().flat_map(|report| &report.fired).map(|fault| fault.kind()).collect();
    assert!(fired.len() >= 20, "only {} kinds of faults happened", fired.len());
}

/// The oracle is asked, and mistakes of the shell show in real rows as they do in the simulator's own.
#[test]
fn a_wrong_answer_of_real_rows_is_found() {
    let mut job = Simulated::new(0, 2, 4);
    job.expected.answers[0].csv = job.expected.answers[0].csv.replacen("Ipoh", "Ipho", 1);
    let reports = run_seeds(&Arc::new(job), Mutation::None, 0..5);
    let is_told = |report: &Report| report.violation.as_ref().is_some_and(|rule| rule.contains("can be read"));
    assert!(reports.iter().any(is_told), "{:?}", reports.iter().map(|report| &report.violation).collect::<Vec<_>>());
    let job = Arc::new(Simulated::new(1, 2, 4));
    for mutation in [Mutation::WrongLog, Mutation::AckBeforeConfirm, Mutation::RefusalIsConfirm] {
        let found = (0..40).find(|&seed| run_seeds(&job, mutation, seed..seed + 1)[0].violation.is_some());
        assert!(found.is_some(), "{mutation:?} was not found");
    }
}
