//! `tenaz run`

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use datafusion::arrow::record_batch::RecordBatch;
use indicatif::HumanCount;
use tenaz_core::{FailedQuery, QueryId};
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::{Answer, DataSet, Observer, Options, Progress, RejectLine};

use crate::args::{EngineArgs, OutputArgs, RunArgs};
use crate::bad_records::BadRecords;
use crate::copies::Copies;
use crate::delivery::Delivery;
use crate::hand_out::{HandOut, Target};
use crate::progress;
use crate::row_stream::RowStream;
use crate::screen::Screen;
use crate::stop::StopSignal;
use crate::verdict::Verdict;

pub(crate) fn run(args: &RunArgs, screen: &Screen) -> Result<()> {
    let mut workload = Workload::load(&args.workload)?.select(&args.query)?;
    args.time.fix(&mut workload);
    let answered = answer(&workload, &args.data, &args.output, &Copies::default(), &args.engine, screen)?;
    tell_repairs(&workload, screen);
    answered.verdict.conclude(args.output.accept_rejects, screen)
}

/// What was repaired while the files were read, by table.
pub(crate) fn tell_repairs(workload: &Workload, screen: &Screen) {
    for table in &workload.tables {
        for (what, count) in table.format.repairs.told() {
            screen.say(&format!("{}: {what}: {}", table.name, HumanCount(count)));
        }
    }
}

/// The reason of records whose encoding is another.
const NOT_UTF8: &str = "not_utf8";

/// What came of a job besides its answers.
pub(crate) struct Answered {
    /// The columns whose values made records bad.
    pub(crate) misfits: Misfits,
    /// Records were rejected because of their encoding.
    pub(crate) not_utf8: bool,
    /// Records were rejected because of the number of their fields, and because of their quotes.
    ragged: bool,
    misquoted: bool,
    pub(crate) verdict: Verdict,
}

impl Answered {
    /// The options that read records which no type could have helped.
    pub(crate) fn cures(&self) -> Vec<&'static str> {
        let cures = [
            (self.ragged, "records with too few or too many fields: --lenient pads or cuts them, and counts them"),
            (self.misquoted, "records with broken quotes: --lenient takes them literally, and --quote none all quotes"),
        ];
        cures.into_iter().filter(|(is_so, _)| *is_so).map(|(_, cure)| cure).collect()
    }
}

/// The columns whose values made records bad, by table: how many records each.
pub(crate) type Misfits = BTreeMap<(String, String), u64>;

/// Answers all queries of a workload and hands the answers out.
pub(crate) fn answer(
    workload: &Workload,
    data: &Path,
    output: &OutputArgs,
    copies: &Copies,
    engine: &EngineArgs,
    screen: &Screen,
) -> Result<Answered> {
    let (target, mark) = (Target::new(workload, output, copies)?, output.decimal_mark());
    let plan = JobPlan::new(workload)?;
    let data = DataSet::find(data, workload, &plan)?;
    let files = (0..workload.tables.len()).flat_map(|table| data.files(table));
    target.spare(workload, copies, files.map(|file| file.path.as_path()))?;
    let out = target.prepare()?;
    copies.prepare()?;
    let signal = StopSignal::new()?;
    let stop = signal.flag();
    let progress = Progress::new(workload.tables.len());
    let watcher = Watcher {
        progress: &progress,
        bad: BadRecords::new(screen, engine.strict),
        misfits: Mutex::default(),
        stream: RowStream::new(&target, &plan, mark)?,
        delivery: Delivery::new((&target, mark), copies, out, screen),
    };
    let options = options(engine);
    let outcome = progress::while_watching(screen, &plan, &data, &progress, &stop, || {
        tenaz_runtime::run(workload, &plan, data.clone(), &options, &progress, &watcher)
    });
    let own_failure = || watcher.stream.as_ref().and_then(RowStream::failure).or_else(|| watcher.delivery.failure());
    let outcome = outcome.map_err(|error| own_failure().unwrap_or(error.into()))?;
    watcher.delivery.failure().map_or(Ok(()), Err)?;
    let job = job_id();
    let Watcher { bad, misfits, stream, delivery, .. } = watcher;
    let (out, delivered) = delivery.finish();
    let stream = stream.as_ref();
    let hand_out = HandOut { job: &job, workload, target: &target, copies, mark, stream, bad: &bad, delivered };
    let verdict = hand_out.hand_out(&outcome, out, screen)?;
    let has = |reason: &str| outcome.tables.iter().any(|table| table.reasons.contains_key(reason));
    let (ragged, misquoted) = (has("field_count"), has("text_after_quote") || has("quote_never_closed"));
    let misfits = misfits.into_inner().unwrap_or_default();
    Ok(Answered { misfits, not_utf8: has(NOT_UTF8), ragged, misquoted, verdict })
}

/// How the embedded engine runs.
pub(crate) fn options(args: &EngineArgs) -> Options {
    let defaults = Options::default();
    Options {
        threads: args.threads.unwrap_or(defaults.threads),
        chunk_bytes: args.chunk_size,
        partitions: args.partitions,
        memory_bytes: args.memory,
        strict: args.strict,
        ..defaults
    }
}

/// A name for this run: when it ended and which process it was.
fn job_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("run-{:x}-{:x}", now.as_micros(), std::process::id())
}

/// Looks on while the job runs: streams rows, shows the first bad records.
struct Watcher<'a> {
    /// Rows that nobody can read are not worth the work.
    progress: &'a Progress,
    bad: BadRecords<'a>,
    misfits: Mutex<Misfits>,
    stream: Option<RowStream>,
    delivery: Delivery<'a>,
}

impl Observer for Watcher<'_> {
    fn wants_rows(&self) -> bool {
        self.stream.as_ref().is_some_and(RowStream::is_unordered)
    }

    fn rows(&self, query: QueryId, batch: &RecordBatch) {
        if self.stream.as_ref().is_some_and(|stream| !stream.rows(query, batch)) {
            self.progress.stop();
        }
    }

    fn question_final(&self, query: QueryId, answer: &Answer) {
        let is_told = self.stream.as_ref().is_none_or(|stream| stream.question_final(query, answer));
        if !is_told || !self.delivery.answer(answer) {
            self.progress.stop();
        }
    }

    fn question_failed(&self, query: QueryId, failed: &FailedQuery) {
        if self.stream.as_ref().is_some_and(|stream| !stream.question_failed(query, failed)) {
            self.progress.stop();
        }
        self.delivery.failed(failed);
    }

    fn reject(&self, line: &RejectLine) {
        if let (Some(column), Ok(mut misfits)) = (&line.column, self.misfits.lock()) {
            *misfits.entry((line.table.clone(), column.clone())).or_default() += 1;
        }
        self.bad.show(line);
    }
}
