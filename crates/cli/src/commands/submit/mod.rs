//! `tenaz submit`: a job on a cluster, from its files to its answers.
//!
//! ```text
//!  job.rs       which job: a new one, or one to go on with
//!  mod.rs       send and follow it, hand out its answers
//!  early.rs     fetch answers as they become final
//! ```

mod background;
mod early;
mod hint;
mod job;
mod waiting;

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tenaz_client::api::{JobState, Results};
use tenaz_client::{Compression, Error, Gateways, Glance, Settings, Submission, Until, UploadOptions, Wanted, limits};
use tenaz_core::{TableLedger, WorkloadText};
use tenaz_engine::{EdgeInput, Workload};
use tenaz_runtime::{Answer, Options, Outcome, RejectLine, TableReport, Workspace};

use crate::args::{CompressArg, OutputArgs, SubmitArgs, TimeArgs};
use crate::bad_records::BadRecords;
use crate::copies::Copies;
use crate::delivery::Delivery;
use crate::fetch::{Fetcher, check};
use crate::hand_out::HandOut;
use crate::outcome::{JobLeft, ReaderGone, stdout_failed};
use crate::progress::JobBars;
use crate::row_stream::RowStream;
use crate::screen::Screen;
use crate::secrets;
use crate::stop::StopSignal;
use crate::transport_args::TransportArgs;
use crate::verdict::Verdict;

use super::run::tell_repairs;
use background::Background;
use early::EarlyAnswers;
use job::Case;
use waiting::Waiting;

pub(crate) fn submit(args: &SubmitArgs, screen: &Screen) -> Result<()> {
    let started = Instant::now();
    let signal = StopSignal::new()?;
    let gateways = gateways(args, &signal)?;
    if let Some(job) = &args.cancel {
        delete(&gateways, job)?;
        screen.say(&format!("job {job} is ended and forgotten"));
        return Ok(());
    }
    let case = match &args.resume {
        None => job::new(args, &gateways, screen)?,
        Some(job) => job::resumed(args, &gateways, job)?,
    };
    conclude(case, args, &gateways, screen, started)
}

/// A job of a workload that has no file: its text is made here.
pub(crate) fn ask(args: &SubmitArgs, text: WorkloadText, copies: Copies, screen: &Screen) -> Result<()> {
    let started = Instant::now();
    let signal = StopSignal::new()?;
    let gateways = gateways(args, &signal)?;
    let workload = Workload::from_text(&text)?;
    let case = job::of_workload(args, workload.clone(), text, copies, &gateways, screen)?;
    let concluded = conclude(case, args, &gateways, screen, started);
    tell_repairs(&workload, screen);
    concluded
}

fn gateways(args: &SubmitArgs, signal: &StopSignal) -> Result<Arc<Gateways>> {
    Ok(Arc::new(Gateways::new(Settings {
        urls: args.gateway.clone(),
        token: secrets::token(args.token.as_deref(), args.token_file.as_deref())?,
        transport: args.transport.transport(),
        patience: args.patience,
        parallel: usize::from(args.parallel),
        stop: signal.flag(),
    })?))
}

/// A job to its end, or to a word about how to go on with it.
fn conclude(case: Case, args: &SubmitArgs, gateways: &Arc<Gateways>, screen: &Screen, started: Instant) -> Result<()> {
    let job = case.job.clone();
    match answer(case, args, gateways, screen, started) {
        Ok(Some(verdict)) => verdict.conclude(args.output.accept_rejects, screen),
        Ok(None) => Ok(()),
        Err(error) if error.is::<ReaderGone>() => {
            // Nobody reads on: nobody wants the job.
            if !args.keep && delete(gateways, &job).is_err() {
                screen.say(&hint::still_there(args, gateways, &job));
            }
            Err(error)
        }
        Err(error) if error.downcast_ref::<Error>().is_some_and(Error::is_end_of_job) => Err(error),
        Err(error) => Err(JobLeft { error, hint: hint::still_there(args, gateways, &job) }.into()),
    }
}

/// What is usual.
impl Default for SubmitArgs {
    fn default() -> Self {
        Self {
            workload: None,
            data: None,
            gateway: Vec::new(),
            query: Vec::new(),
            resume: None,
            cancel: None,
            detach: false,
            keep: false,
            time: TimeArgs::default(),
            output: OutputArgs::usual(),
            token: None,
            token_file: None,
            transport: TransportArgs::default(),
            strict: false,
            compress: None,
            parallel: limits::DEFAULT_PARALLEL as u16,
            patience: Duration::from_secs(60),
            memory: tenaz_runtime::limits::DEFAULT_MEMORY_BYTES,
            chunk_size: None,
            partitions: None,
        }
    }
}

/// All questions of the coffee workload about this data, with answers as files.
pub(crate) fn of_coffee(gateways: Vec<String>, data: PathBuf, out: PathBuf) -> SubmitArgs {
    let usual = SubmitArgs::default();
    let output = OutputArgs { out: Some(out), ..usual.output };
    SubmitArgs { workload: Some("coffee".to_owned()), data: Some(data), gateway: gateways, output, ..usual }
}

/// Sends what is missing, waits for the answers, and hands them out. None: the job goes on without us.
fn answer(
    mut case: Case,
    args: &SubmitArgs,
    gateways: &Arc<Gateways>,
    screen: &Screen,
    started: Instant,
) -> Result<Option<Verdict>> {
    let workspace = Workspace::new(&Options { memory_bytes: args.memory, ..Options::default() })?;
    let running = AtomicBool::new(true);
    let fetcher = Arc::new(Fetcher { gateways: Arc::clone(gateways), job: case.job.clone(), workspace, running });
    let mark = args.output.decimal_mark();
    let stream = if args.detach { None } else { RowStream::new(&case.target, &case.plan, mark)?.map(Arc::new) };
    let (upload, out) = (case.upload.take(), case.out.take());
    let delivery = Delivery::new((&case.target, mark), &case.copies, out, screen);
    let mut early = EarlyAnswers::begin(&fetcher, stream.as_ref(), &delivery, &case.plan.queries);
    let results = match upload {
        None => case.results.clone(),
        Some(tables) => follow(&case, tables, args, gateways, screen, |glance| {
            if let (Some(job), false) = (&glance.job, args.detach) {
                early.look(job)?;
            }
            stream.as_ref().and_then(|stream| stream.failure()).map_or(Ok(()), Err)
        })?,
    };
    fetcher.running.store(false, Ordering::Relaxed);
    if args.detach {
        screen.say(&hint::still_there(args, gateways, &case.job));
        return writeln!(stdout(), "{}", case.job).map(|()| None).map_err(stdout_failed);
    }
    let results = results.ok_or_else(|| Error::Fault("the job is done, and its results are not told".to_owned()))?;
    let failed = results.failed.clone();
    // Rows that came early of a question which then failed are no answer, and why they ended is told already.
    let answers: Vec<Answer> = match early.finish(gateways, &failed) {
        Ok(answers) => answers,
        Err(error) => return Err(stream.as_ref().and_then(|stream| stream.failure()).unwrap_or(error)),
    };
    let (out, delivered) = delivery.finish();
    for answer in &answers {
        let told = results.queries.iter().find(|query| query.name == answer.name);
        told.map_or(Ok(()), |told| check(answer, told.rows, Some(&told.fingerprint)))?;
    }
    let tables = tables(&case, &results)?;
    let count = tables.iter().map(|table| table.counts.rejected).sum();
    let rejects = Background::start(move || Ok((fetcher.rejects(count)?, fetcher.workspace.spilled_bytes())));
    let (rejects, spilled_bytes) = rejects.wait(gateways)?;
    let outcome = Outcome { answers, failed, tables, rejects, elapsed: started.elapsed(), spilled_bytes };
    let bad = BadRecords::new(screen, false);
    for batch in outcome.rejects.iter().flat_map(|rejects| rejects.batches()) {
        RejectLine::from_rows(&batch?).for_each(|line| bad.show(&line));
    }
    let hand_out = HandOut {
        job: &case.job,
        workload: &case.workload,
        target: &case.target,
        mark,
        copies: &case.copies,
        stream: stream.as_deref(),
        bad: &bad,
        delivered,
    };
    let verdict = hand_out.hand_out(&outcome, out, screen)?;
    if !args.keep && delete(gateways, &case.job).is_err() {
        screen.say(&format!("job {} could not be forgotten; it expires by itself", case.job));
    }
    Ok(Some(verdict))
}

/// Sends and follows the job until it is done, or, detached, until the cluster has all data.
fn follow(
    case: &Case,
    tables: Vec<Wanted>,
    args: &SubmitArgs,
    gateways: &Arc<Gateways>,
    screen: &Screen,
    mut look: impl FnMut(&Glance) -> Result<()>,
) -> Result<Option<Results>> {
    let bytes = tables.iter().map(|wanted| wanted.table.bytes()).sum();
    let compression = match args.compress {
        Some(CompressArg::None) => Compression::None,
        Some(CompressArg::Lz4) => Compression::Lz4,
        Some(CompressArg::Zstd) => Compression::Zstd,
        None => Compression::for_gateways(&args.gateway),
    };
    let options = UploadOptions { chunk_bytes: case.chunk_bytes, parallel: args.parallel.into(), compression };
    let submission = Submission::start(Arc::clone(gateways), &case.job, tables, options);
    let until = if args.detach { Until::Uploaded } else { Until::Done };
    let mut bars = JobBars::new(screen, bytes);
    let mut waiting = Waiting::default();
    let done = submission.wait(until, |glance| {
        bars.draw(glance, waiting.look(glance, screen));
        if screen.is_reader_gone() {
            return Err(ReaderGone.into());
        }
        look(glance)
    })?;
    Ok(done.filter(|job| job.state == JobState::Done).and_then(|job| job.results.clone()))
}

/// The account of every table, as `tenaz run` gives it.
fn tables(case: &Case, results: &Results) -> Result<Vec<TableReport>> {
    let report = |table: &tenaz_client::api::TableEnd| {
        let counts = TableLedger { records: table.records, accepted: table.accepted, rejected: table.rejected };
        if counts.records != counts.accepted + counts.rejected {
            let text = format!(
                "table {}: {} records, and {} accepted + {} rejected; the answers are withheld",
                table.name, counts.records, counts.accepted, counts.rejected
            );
            return Err(Error::Fault(text).into());
        }
        let files: Vec<u64> = case.files.iter().filter(|f| f.table == table.name).map(|f| f.bytes).collect();
        let bytes = if files.is_empty() { table.bytes } else { files.iter().sum() };
        Ok(TableReport { name: table.name.clone(), counts, bytes, is_partial: false, reasons: table.reasons.clone() })
    };
    results.tables.iter().map(report).collect()
}

fn delete(gateways: &Arc<Gateways>, job: &str) -> Result<()> {
    let (asked, job) = (Arc::clone(gateways), job.to_owned());
    Background::start(move || Ok(asked.delete(&job)?)).wait(gateways)
}
