//! `tenaz demo --chaos`: a cluster that is beaten while it works.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use tenaz_core::{ChaosSettings, ProcessRole};
use tenaz_supervisor::chaos::{self as beating, Chaos, StrikeRecord};
use tokio_util::sync::CancellationToken;

use crate::args::DemoArgs;
use crate::commands::up::happenings::{Happenings, sentence};
use crate::commands::{chaos, down, run, submit, up};
use crate::process;
use crate::screen::Screen;
use crate::supervision_args::{ClusterArgs, DescriptionArgs, UpArgs};

/// How often somebody is struck, on average.
const STRIKE_EVERY_MS: u64 = 1_000;
/// How often is looked what the supervisors have done about it.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(100);

pub(super) fn demo(args: &DemoArgs, screen: &Screen) -> Result<()> {
    // Before anything is made: without a broker there is nothing to show.
    tenaz_rabbit::node::find_installed()?;
    let dir = tempfile::Builder::new().prefix("tenaz-demo-").tempdir().context("no place for the demo's data")?;
    let (data, calm) = (dir.path().join("data"), dir.path().join("calm"));
    screen.say("tenaz demo --chaos: the questions are answered on this machine first, undisturbed.\n");
    super::generate(args, &data, screen)?;
    run::run(&super::run_args(args, &data, Some(calm.clone())), screen)?;
    let expected = fingerprints(&calm)?;
    process::run_quietly(async |stop| {
        screen.say("\nNow a small cluster: a broker, three workers, two gateways, three supervisors.");
        let started = up::start(&up_args(dir.path()), &dir.path().join("cluster"), screen).await?;
        let beaten = tokio::select! {
            beaten = beat(args, &started, dir.path(), &expected, screen, &stop) => beaten,
            () = stop.cancelled() => Err(tenaz_client::Error::Stopped.into()),
        };
        screen.say("\nThe cluster is taken down:");
        let drain = std::time::Duration::from_secs(2);
        let wish = down::Wish { discards_jobs: true, drain, tells_what_stays: false };
        down::stop_in_order(&started.home, Some(&started.config), wish, screen).await?;
        beaten
    })
}

/// Runs the workload again and again while processes are struck, and compares every answer.
async fn beat(
    args: &DemoArgs,
    started: &up::Started,
    dir: &Path,
    expected: &BTreeMap<String, String>,
    screen: &Screen,
    stop: &CancellationToken,
) -> Result<()> {
    up::wait_until_ready(started, screen).await?;
    let seconds = args.duration.as_secs();
    screen.say(&format!("\n{seconds} s of chaos (x struck, - ended, + started again, * leads):"));
    let over = stop.child_token();
    let strikes = strike(args, started, screen, over.clone());
    let jobs = async {
        let mut jobs = 0;
        while !over.is_cancelled() {
            jobs += 1;
            let out = dir.join(format!("job-{jobs}"));
            submit_once(started, dir, &out).await?;
            let found = fingerprints(&out)?;
            if found != *expected {
                bail!("job {jobs} has other fingerprints than the undisturbed run: {found:?} instead of {expected:?}");
            }
            screen.say(&format!("= job {jobs} is done: the fingerprints are those of the undisturbed run"));
        }
        Ok(jobs)
    };
    let (struck, jobs) = tokio::join!(strikes, jobs);
    let (struck, jobs) = (struck?, jobs?);
    screen.say(&format!("\n{struck} strikes, {jobs} jobs, the same answers:"));
    for (query, fingerprint) in expected {
        screen.say(&format!("  {query}  {fingerprint}"));
    }
    Ok(())
}

/// Strikes, and shows what is done about it. Returns how often it has struck.
async fn strike(args: &DemoArgs, started: &up::Started, screen: &Screen, over: CancellationToken) -> Result<usize> {
    let mut happenings = Happenings::from_now(started.home.events_path());
    let settings = ChaosSettings {
        every_ms: STRIKE_EVERY_MS,
        duration_ms: Some(args.duration.as_millis() as u64),
        roles: ProcessRole::ALL.to_vec(),
        ..ChaosSettings::default()
    };
    let plan = Chaos { seed: args.seed, settings, ..Chaos::default() };
    let mut struck = 0;
    let record = |record: &StrikeRecord| {
        struck += usize::from(record.hit);
        screen.say(&chaos::in_words(record));
    };
    let mut beating = Box::pin(beating::run(&started.home, &plan, record, over.clone()));
    let done = loop {
        tokio::select! {
            done = &mut beating => break done,
            () = tokio::time::sleep(LOOK_EVERY) => {
                happenings.news().iter().filter_map(sentence).for_each(|text| screen.say(&text));
            }
        }
    };
    drop(beating);
    over.cancel();
    done?;
    Ok(struck)
}

async fn submit_once(started: &up::Started, dir: &Path, out: &Path) -> Result<()> {
    let gateways = started.config.machines.iter().flat_map(|machine| machine.gateways.iter());
    let gateways = gateways.map(|gateway| format!("http://{gateway}")).collect();
    let job = submit::of_coffee(gateways, dir.join("data"), out.to_owned());
    let quiet = Screen::new(true);
    tokio::task::spawn_blocking(move || submit::submit(&job, &quiet)).await?
}

fn fingerprints(out: &Path) -> Result<BTreeMap<String, String>> {
    let path: PathBuf = out.join("summary.json");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let summary: Value = serde_json::from_str(&text)?;
    let queries = summary["queries"].as_object().context("the summary has no queries")?;
    let fingerprint = |answer: &Value| answer["fingerprint"].as_str().unwrap_or_default().to_owned();
    Ok(queries.iter().map(|(name, answer)| (name.clone(), fingerprint(answer))).collect())
}

fn up_args(dir: &Path) -> UpArgs {
    UpArgs {
        cluster: ClusterArgs { cluster: Some(dir.join("cluster")) },
        described: DescriptionArgs {
            workers: Some(3),
            gateways: Some(2),
            supervisors: Some(3),
            threads: Some(1),
            ..DescriptionArgs::default()
        },
        config: None,
        machine: None,
        detach: false,
    }
}
