//! Which job: a new one, or one to go on with.

use std::sync::Arc;

use anyhow::Result;
use indicatif::HumanBytes;
use tenaz_client::api::{FileEntry, Job, JobState, NewJob, Results};
use tenaz_client::{
    Error, Gateways, SourceFile, TableFiles, Wanted, check_headers, check_job, check_manifest, manifest, random_key,
};
use tenaz_core::WorkloadText;
use tenaz_engine::{JobPlan, Workload};
use tenaz_runtime::DataSet;

use super::background::Background;
use crate::args::SubmitArgs;
use crate::copies::Copies;
use crate::hand_out::Target;
use crate::out_dir::OutDir;
use crate::outcome::Usage;
use crate::screen::Screen;

/// A job of the cluster, and what this machine knows of it.
pub(super) struct Case {
    pub(super) job: String,
    pub(super) workload: Workload,
    pub(super) plan: JobPlan,
    pub(super) target: Target,
    pub(super) copies: Copies,
    pub(super) out: Option<OutDir>,
    pub(super) chunk_bytes: u64,
    /// The files that the job is made of.
    pub(super) files: Vec<FileEntry>,
    /// What to send; none: the job is done.
    pub(super) upload: Option<Vec<Wanted>>,
    /// Of a job that is done.
    pub(super) results: Option<Results>,
}

/// Makes a job. Whatever can be wrong with workload and files is found before.
pub(super) fn new(args: &SubmitArgs, gateways: &Arc<Gateways>, screen: &Screen) -> Result<Case> {
    let name = args.workload.as_deref().ok_or_else(|| Usage("which workload?".to_owned()))?;
    let (workload, text) = Workload::load_with_text(name)?;
    let workload = workload.select(&args.query)?;
    of_workload(args, workload, text, Copies::default(), gateways, screen)
}

/// The same for a workload and its text.
pub(super) fn of_workload(
    args: &SubmitArgs,
    mut workload: Workload,
    mut text: WorkloadText,
    copies: Copies,
    gateways: &Arc<Gateways>,
    screen: &Screen,
) -> Result<Case> {
    args.time.fix(&mut workload);
    text.now = workload.time.map(|time| time.to_string());
    let target = Target::new(&workload, &args.output, &copies)?;
    let plan = JobPlan::new(&workload)?;
    let tables = tables(args, &workload, &plan)?;
    check_headers(&tables)?;
    target.spare(&workload, &copies, tables.iter().flat_map(|table| &table.files).map(|file| file.path.as_path()))?;
    let out = if args.detach { None } else { target.prepare()? };
    copies.prepare()?;
    let files = manifest(&tables)?;
    let asks_all = args.query.is_empty();
    let data_bytes = tables.iter().map(TableFiles::bytes).sum();
    let request = NewJob {
        workload: text.into(),
        queries: if asks_all { Vec::new() } else { workload.queries.iter().map(|q| q.name.clone()).collect() },
        strict: args.strict,
        data_bytes: Some(data_bytes),
        partitions: args.partitions,
        chunk_bytes: args.chunk_size.map(|bytes| bytes as u64),
        files: files.clone(),
    };
    let asked = Arc::clone(gateways);
    let made = Background::start(move || Ok(asked.create(&request, random_key)?)).wait(gateways)?;
    screen.say(&format!("job {}: {} in {} files", made.job, HumanBytes(data_bytes), files.len()));
    let tables = in_order(tables, &made.tables, gateways)?;
    let upload = tables.into_iter().map(|table| Wanted { table, missing: None }).collect();
    let (job, chunk_bytes) = (made.job, made.chunk_bytes);
    Ok(Case { job, workload, plan, target, copies, out, chunk_bytes, files, upload: Some(upload), results: None })
}

/// A job that somebody, somewhere, has begun. What it asks is known to the gateway.
pub(super) fn resumed(args: &SubmitArgs, gateways: &Arc<Gateways>, job: &str) -> Result<Case> {
    let (asked, name) = (Arc::clone(gateways), job.to_owned());
    let found = Background::start(move || Ok(asked.job(&name)?)).wait(gateways)?;
    check_job(&found)?;
    let spec = &found.spec;
    let workload = Workload::from_text(&spec.workload)?.select(&spec.queries)?;
    check_request(args, job, &workload)?;
    let target = Target::new(&workload, &args.output, &Copies::default())?;
    let plan = JobPlan::new(&workload)?;
    let upload = match found.state {
        JobState::Done => None,
        _ => Some(missing(args, gateways, &found, &workload, &plan)?),
    };
    let out = if args.detach { None } else { target.prepare()? };
    let (chunk_bytes, files) = (found.chunk_bytes, found.spec.files);
    let (copies, results) = (Copies::default(), found.results);
    Ok(Case { job: job.to_owned(), workload, plan, target, copies, out, chunk_bytes, files, upload, results })
}

/// Whoever repeats the whole command with --resume must not get another answer than the command says.
fn check_request(args: &SubmitArgs, job: &str, workload: &Workload) -> Result<()> {
    if let Some(Ok(named)) = args.workload.as_deref().map(Workload::load)
        && named.name != workload.name
    {
        let text = format!("job {job} asks workload {}, not {}", workload.name, named.name);
        return Err(Usage(text).into());
    }
    if let Some(now) = args.time.now.filter(|now| workload.time != Some(*now)) {
        let had = workload.time.map_or_else(|| "no time of its own".to_owned(), |time| format!("now() = {time}"));
        return Err(Usage(format!("job {job} has {had}, not {now}; leave --now out")).into());
    }
    let asked: Vec<&String> = workload.queries.iter().map(|query| &query.name).collect();
    if !args.query.is_empty() && !args.query.iter().eq(asked.iter().copied()) {
        let names: Vec<&str> = asked.iter().map(|name| name.as_str()).collect();
        return Err(Usage(format!("job {job} asks {}; leave --query out", names.join(","))).into());
    }
    Ok(())
}

/// What the cluster does not have of a job's files, which must be the files here.
fn missing(
    args: &SubmitArgs,
    gateways: &Arc<Gateways>,
    job: &Job,
    workload: &Workload,
    plan: &JobPlan,
) -> Result<Vec<Wanted>> {
    let tables = tables(args, workload, plan)?;
    if job.spec.files.is_empty() && !tables.is_empty() {
        let text = "its files are not known, because it was not begun by tenaz submit; \
                    whoever began it must go on with the upload";
        return Err(anyhow::anyhow!("job {} cannot be resumed: {text}", job.job));
    }
    check_manifest(&job.job, &job.spec.files, &tables)?;
    let (asked, job) = (Arc::clone(gateways), job.clone());
    let ask = move || {
        let closed = asked.missing(&job.job)?;
        let mut wanted = Vec::new();
        for table in tables {
            let found = match closed.iter().find(|found| found.name == table.name && found.closed) {
                Some(found) => found.clone(),
                None => asked.missing_of(&job.job, &table.name, table.most_chunks(job.chunk_bytes))?,
            };
            wanted.push(Wanted { table, missing: Some(found.missing) });
        }
        Ok(wanted)
    };
    Background::start(ask).wait(gateways)
}

/// The files of the tables that the queries read, in the order in which they should be sent.
fn tables(args: &SubmitArgs, workload: &Workload, plan: &JobPlan) -> Result<Vec<TableFiles>> {
    let dir = args.data.as_deref().ok_or_else(|| Usage("the job still needs data; add --data DIR".to_owned()))?;
    let data = DataSet::find(dir, workload, plan)?;
    let files = |table: usize| {
        let files = data.files(table).iter();
        files
            .map(|f| SourceFile {
                path: f.path.clone(),
                name: f.name.clone(),
                bytes: f.bytes,
                constants: f.constants(),
            })
            .collect()
    };
    let table = |index: usize| {
        let table = &workload.tables[index];
        TableFiles {
            name: table.name.clone(),
            layout: Arc::clone(&table.layout),
            format: table.format.clone(),
            files: files(index),
        }
    };
    Ok(plan.scans.iter().map(|scan| table(usize::from(scan.table.0))).collect())
}

/// The tables in the gateway's order.
fn in_order(mut tables: Vec<TableFiles>, names: &[String], gateways: &Gateways) -> Result<Vec<TableFiles>> {
    let place = |table: &TableFiles| names.iter().position(|name| *name == table.name);
    if tables.len() != names.len() || tables.iter().any(|table| place(table).is_none()) {
        let here: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        let (here, there) = (here.join(", "), names.join(", "));
        let what = format!("it asks for the tables {there}, and the queries read {here}; is it of another version?");
        return Err(Error::NotAGateway { url: gateways.current_url().to_owned(), what }.into());
    }
    tables.sort_by_key(place);
    Ok(tables)
}
