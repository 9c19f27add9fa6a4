//! `tenaz run`

use std::collections::BTreeMap;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use datafusion::arrow::record_batch::RecordBatch;
use indicatif::HumanCount;
use tenaz_core::QueryId;
use tenaz_engine::{EdgeInput, JobPlan, Workload};
use tenaz_runtime::format::{Format, RowWriter, TableWriter};
use tenaz_runtime::{Answer, DataSet, Observer, Options, Outcome, Progress, RejectLine, reject_schema};

use crate::args::{EngineArgs, OutputArgs, RunArgs};
use crate::out_dir::OutDir;
use crate::outcome::{Usage, stdout_failed};
use crate::screen::{Screen, printable};
use crate::summary::{Summary, closing_lines};
use crate::{progress, stop};

/// Bad records shown on the screen; all of them go to rejects.csv.
const SHOWN_REJECTS: u64 = 10;

pub(crate) fn run(args: &RunArgs, screen: &Screen) -> Result<()> {
    let workload = Workload::load(&args.workload)?.select(&args.query)?;
    answer(&workload, &args.data, &args.output, &args.engine, screen).map(drop)
}

/// The columns whose values made records bad, by table: how many records each.
pub(crate) type Misfits = BTreeMap<(String, String), u64>;

/// Answers all queries of a workload and hands the answers out.
pub(crate) fn answer(
    workload: &Workload,
    data: &Path,
    output: &OutputArgs,
    engine: &EngineArgs,
    screen: &Screen,
) -> Result<Misfits> {
    if workload.queries.is_empty() {
        let text = format!("workload {} asks nothing; add a [[query]] with name and sql to its file", workload.name);
        return Err(Usage(text).into());
    }
    let target = Target::new(workload, output)?;
    let plan = JobPlan::new(workload)?;
    let data = DataSet::find(data, workload, &plan)?;
    let out = match &target {
        Target::Dir(dir, _) => Some(OutDir::create(dir)?),
        _ => None,
    };
    let stop = stop::on_signal()?;
    let progress = Progress::new(workload.tables.len());
    let watcher = Watcher::new(&plan, &target, screen, &progress, engine.strict)?;
    let options = options(engine);
    let outcome = progress::while_watching(screen, &plan, &data, &progress, &stop, || {
        tenaz_runtime::run(workload, &plan, data.clone(), &options, &progress, &watcher)
    });
    let outcome = outcome.map_err(|error| watcher.failure().unwrap_or_else(|| error.into()))?;
    watcher.finish(&outcome)?;
    match (&target, out) {
        (Target::Dir(_, format), Some(out)) => write_files(out, *format, workload, &outcome)?,
        (Target::Screen(format), _) => show(&outcome, *format, output.rows)?,
        _ => {}
    }
    tell(&outcome, &watcher, output.out.as_deref(), screen);
    Ok(watcher.misfits.into_inner().unwrap_or_default())
}

fn options(args: &EngineArgs) -> Options {
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

/// Where answers go.
#[derive(Debug)]
enum Target {
    /// Files in a directory.
    Dir(std::path::PathBuf, Format),
    /// Everything to standard output, at the end.
    Screen(Format),
    /// The rows of the only query to standard output, as soon as they are known.
    Stream(Format),
}

impl Target {
    fn new(workload: &Workload, args: &OutputArgs) -> Result<Self> {
        if let Some(dir) = &args.out {
            let taken = |name: &str| ["rejects", "summary"].iter().any(|file| file.eq_ignore_ascii_case(name));
            if let Some(query) = workload.queries.iter().find(|q| taken(&q.name)) {
                let text =
                    format!("a query cannot be called {0:?}: --out writes a file of that name; rename it", query.name);
                return Err(Usage(text).into());
            }
            return Ok(Self::Dir(dir.clone(), args.format.unwrap_or(Format::Csv)));
        }
        let format = args.format.unwrap_or(Format::Table);
        if format.is_binary() && stdout().is_terminal() {
            let text = format!("{} is not for a terminal; add --out DIR or redirect standard output", format.name());
            return Err(Usage(text).into());
        }
        match format {
            Format::Table | Format::Markdown => Ok(Self::Screen(format)),
            _ if workload.queries.len() == 1 => Ok(Self::Stream(format)),
            _ => {
                let text = format!(
                    "{} answers do not fit into one {} stream; choose one with --query or a directory with --out",
                    workload.queries.len(),
                    format.name()
                );
                Err(Usage(text).into())
            }
        }
    }
}

/// Looks on while the job runs: streams rows, shows the first bad records.
struct Watcher<'a> {
    screen: &'a Screen,
    /// Rows that nobody can read are not worth the work.
    progress: &'a Progress,
    rejects: AtomicU64,
    /// A strict run names the first bad record when it fails.
    strict: bool,
    misfits: Mutex<Misfits>,
    stream: Option<Mutex<Stream>>,
}

/// Rows on their way to standard output.
struct Stream {
    writer: Box<dyn RowWriter + Send>,
    unordered: bool,
    error: Option<std::io::Error>,
}

impl<'a> Watcher<'a> {
    fn new(plan: &JobPlan, target: &Target, screen: &'a Screen, progress: &'a Progress, strict: bool) -> Result<Self> {
        let stream = match (target, plan.queries.first()) {
            (Target::Stream(format), Some(query)) => {
                let mut writer = format.writer(BufWriter::with_capacity(1 << 16, stdout()));
                writer.begin(&query.schema).map_err(stdout_failed)?;
                Some(Mutex::new(Stream { writer, unordered: !query.ordered, error: None }))
            }
            _ => None,
        };
        Ok(Self { screen, progress, rejects: AtomicU64::new(0), strict, misfits: Mutex::default(), stream })
    }

    /// The reason why standard output could not be written, if that is why the job was stopped.
    fn failure(&self) -> Option<anyhow::Error> {
        let mut stream = self.stream.as_ref()?.lock().ok()?;
        stream.error.take().map(stdout_failed)
    }

    /// Ends the stream. The rows of an ordered answer are only known now.
    fn finish(&self, outcome: &Outcome) -> Result<()> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        let Some(Ok(mut stream)) = self.stream.as_ref().map(Mutex::lock) else { return Ok(()) };
        if !stream.unordered {
            for batch in outcome.answers.iter().flat_map(Answer::batches) {
                stream.writer.rows(&batch?).map_err(stdout_failed)?;
            }
        }
        stream.writer.end().map_err(stdout_failed)
    }
}

impl Observer for Watcher<'_> {
    fn rows(&self, _: QueryId, batch: &RecordBatch) {
        let Some(Ok(mut stream)) = self.stream.as_ref().map(Mutex::lock) else { return };
        if stream.unordered && stream.error.is_none() {
            stream.error = stream.writer.rows(batch).err();
            if stream.error.is_some() {
                // Nobody reads on, or nothing can be written: no need to work on.
                self.progress.stop();
            }
        }
    }

    fn reject(&self, line: &RejectLine) {
        let count = self.rejects.fetch_add(1, Ordering::Relaxed);
        if let (Some(column), Ok(mut misfits)) = (&line.column, self.misfits.lock()) {
            *misfits.entry((line.table.clone(), column.clone())).or_default() += 1;
        }
        if count < SHOWN_REJECTS && !self.strict {
            let text = format!("rejected: {}: {}: {}", line.place(), line.reason_with_column(), line.text);
            self.screen.say(&printable(&text));
        }
    }
}

fn write_answer(answer: &Answer, writer: &mut dyn RowWriter) -> Result<()> {
    writer.begin(&answer.schema)?;
    for batch in answer.batches() {
        writer.rows(&batch?)?;
    }
    writer.end()?;
    Ok(())
}

fn write_files(mut out: OutDir, format: Format, workload: &Workload, outcome: &Outcome) -> Result<()> {
    for answer in &outcome.answers {
        let name = format!("{}.{}", answer.name, format.name());
        out.write(&name, |file| write_answer(answer, &mut *format.writer(file)))?;
    }
    match &outcome.rejects {
        None => out.remove("rejects.csv"),
        Some(rejects) => out.write("rejects.csv", |file| {
            let mut writer = Format::Csv.writer(file);
            writer.begin(&reject_schema())?;
            for batch in rejects.batches() {
                writer.rows(&batch?)?;
            }
            Ok(writer.end()?)
        })?,
    }
    let summary = Summary::new(&job_id(), &workload.name, outcome)?;
    out.write("summary.json", |file| {
        serde_json::to_writer_pretty(&mut *file, &summary)?;
        Ok(writeln!(file)?)
    })?;
    out.commit()
}

/// A name for this run: when it ended and which process it was.
fn job_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("run-{:x}-{:x}", now.as_micros(), std::process::id())
}

fn show(outcome: &Outcome, format: Format, rows: u64) -> Result<()> {
    let limit = (rows > 0).then_some(rows);
    for (index, answer) in outcome.answers.iter().enumerate() {
        let mut out = BufWriter::new(stdout());
        let title = if answer.title.is_empty() { &answer.name } else { &answer.title };
        let (space, mark) = (if index > 0 { "\n" } else { "" }, if format == Format::Markdown { "## " } else { "" });
        let shown = (|| -> Result<()> {
            writeln!(out, "{space}{mark}{}: {title}", answer.name)?;
            match format {
                Format::Table => write_answer(answer, &mut TableWriter::new(&mut out, limit))?,
                _ => {
                    writeln!(out)?;
                    write_answer(answer, &mut *format.writer(&mut out))?;
                }
            }
            if format == Format::Table {
                let plural = if answer.rows == 1 { "row" } else { "rows" };
                writeln!(out, "{} {plural}, {:.2} s", HumanCount(answer.rows), outcome.elapsed.as_secs_f64())?;
            }
            Ok(out.flush()?)
        })();
        shown.map_err(|error| match error.downcast::<std::io::Error>() {
            Ok(io) => stdout_failed(io),
            Err(other) => other,
        })?;
    }
    Ok(())
}

fn tell(outcome: &Outcome, watcher: &Watcher<'_>, out: Option<&Path>, screen: &Screen) {
    let rejects = watcher.rejects.load(Ordering::Relaxed);
    if rejects > SHOWN_REJECTS {
        let where_all =
            if out.is_some() { "rejects.csv has them all" } else { "--out DIR writes them all to rejects.csv" };
        screen.say(&format!("rejected: … and {} more; {where_all}", HumanCount(rejects - SHOWN_REJECTS)));
    }
    screen.say(&format!("\n{}", closing_lines(outcome)));
    let streamed = watcher.stream.as_ref().and_then(|s| s.lock().ok()).is_some_and(|s| s.unordered);
    if streamed {
        screen.say("rows were written as they became known; the fingerprint is that of the sorted answer (--out DIR)");
    }
    if let Some(dir) = out {
        screen.say(&format!("results are in {}", dir.display()));
    }
}
