//! `tenaz up`: a whole cluster on this machine.
//!
//! ```text
//!  describe.rs    from options to a description, with free ports
//!  mod.rs         starts the supervisors, who start the rest; waits until all of it is ready
//!  live.rs        shows what happens until Ctrl-C, or until `tenaz down` elsewhere has ended it all
//!  happenings.rs  what happens, as lines for people
//! ```

mod describe;
pub(crate) mod happenings;
mod live;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tenaz_core::{ProcessRole, ProcessState};
use tenaz_supervisor::executor::OrderResult;
use tenaz_supervisor::home::{DEFAULT_DIR, UpLock};
use tenaz_supervisor::status::Status;
use tenaz_supervisor::{Config, Executor, Home};

use crate::commands::{down, status};
use crate::outcome::Usage;
use crate::process;
use crate::screen::Screen;
use crate::supervision_args::UpArgs;

/// How long all processes together may take until they are ready.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// By then a supervisor that can run does.
const SUPERVISORS_WITHIN: Duration = Duration::from_secs(5);
/// How often is looked whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(crate) fn up(args: &UpArgs, screen: &Screen) -> Result<()> {
    process::run_quietly(async |stop| {
        let dir = args.cluster.cluster.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DIR));
        let started = start(args, &dir, screen).await?;
        let ready = tokio::select! {
            ready = wait_until_ready(&started, screen) => ready,
            () = stop.cancelled() => Err(tenaz_client::Error::Stopped.into()),
        };
        if let Err(error) = ready {
            screen.say("stopping what was started");
            down::stop_in_order(&started.home, Some(&started.config), down::Wish::default(), screen).await?;
            return Err(error);
        }
        if args.detach {
            let dir = started.home.dir().display();
            screen.say(&format!(
                "It runs on. Look at it with: tenaz status --cluster {dir}, end it with: tenaz down --cluster {dir}"
            ));
            return Ok(());
        }
        screen.say("Ctrl-C stops it all.");
        match live::show(&started, screen, &stop).await {
            live::Over::Stopped => {
                down::stop_in_order(&started.home, Some(&started.config), down::Wish::default(), screen).await
            }
            live::Over::TakenDown => {
                screen.say("The cluster was taken down by another command.");
                Ok(())
            }
        }
    })
}

/// A cluster that was started here.
pub(crate) struct Started {
    pub(crate) home: Home,
    pub(crate) config: Config,
    pub(crate) machine: String,
    /// Starts supervisors, and reaps those that are this process's children.
    executor: Executor,
    _lock: UpLock,
}

/// Starts the supervisors of this machine; they do the rest.
pub(crate) async fn start(args: &UpArgs, dir: &Path, screen: &Screen) -> Result<Started> {
    let mut home = Home::create(dir)?;
    let Some(lock) = home.lock_up()? else { bail!(already_up(&home)) };
    let running = home.running();
    let unwatched = !running.is_empty() && !running.iter().any(|member| member.role == ProcessRole::Supervisor);
    if !running.is_empty() && !unwatched {
        bail!(already_up(&home));
    }
    let before = home.config_path().exists().then(|| Config::read(&home.config_path()));
    let before = before.transpose().map_err(|error| {
        let cure = "correct it, or remove it to describe the cluster anew";
        Usage(format!("{error}; what it says cannot be kept: {cure}"))
    })?;
    let config = match (&args.config, &before) {
        _ if unwatched => home.config()?,
        (Some(file), _) => Config::read(file).map_err(|error| Usage(error.to_string()))?,
        (None, before) => describe::describe(&args.described, before.as_ref())?,
    };
    refuse_less_protection(&home, before.as_ref(), &config)?;
    for warning in config.warnings() {
        screen.say(&format!("note: {warning}"));
    }
    let machine = this_machine(args, &config)?;
    if unwatched {
        screen.say("The cluster runs without supervisors: starting them.");
        if args.described.mentions_anything() {
            screen.say("note: it goes on as it is; options can change it after `tenaz down`");
        }
    } else {
        check_broker(&config, &machine).await?;
        describe::check_ports(&config, &machine)?;
    }
    match &args.config {
        _ if unwatched => {}
        // Written by people: it stays as it is.
        Some(file) if std::fs::canonicalize(file).ok() == Some(home.config_path()) => {}
        Some(file) => {
            let key = file.parent().unwrap_or(Path::new("")).join(&config.key_file);
            home.adopt(file, &config, &key)?;
        }
        // Nothing has changed, so that comments of people stay, too.
        None if before.as_ref() == Some(&config) => {}
        None => home.write_config(&config)?,
    }
    home.reopen()?;
    let executor = Executor::open(&home, &config, &machine)?;
    let started = Started { home, config, machine, executor, _lock: lock };
    started.revive_supervisors().await?;
    Ok(started)
}

/// Refuses a description that would let strangers into a cluster that keeps them out.
fn refuse_less_protection(home: &Home, before: Option<&Config>, after: &Config) -> Result<()> {
    let lost = before.map(|before| before.protections_lost(after)).unwrap_or_default();
    if lost.is_empty() {
        return Ok(());
    }
    let (dir, file) = (home.dir().display(), home.config_path());
    let (lost, file) = (lost.join("; "), file.display());
    let cure = format!("to do that on purpose, change {file} itself, and run `tenaz up --cluster {dir}`");
    Err(Usage(format!("the cluster in {dir} would lose protection: {lost}. Nothing was changed; {cure}")).into())
}

/// What is easy to know before anything is started.
async fn check_broker(config: &Config, machine: &str) -> Result<()> {
    if config.broker_node.as_ref().is_some_and(|node| node.machine == machine) {
        tenaz_rabbit::node::find_installed()?;
    }
    if let Some(broker) = &config.broker {
        let settings = broker.url().parse().map_err(|e: tenaz_rabbit::Error| Usage(e.to_string()))?;
        let connection = tenaz_rabbit::Connection::open(&settings, "tenaz up").await;
        connection.map_err(tenaz_cluster::Error::from)?.close().await;
    }
    Ok(())
}

impl Started {
    /// Starts those supervisors of this machine that do not run.
    pub(crate) async fn revive_supervisors(&self) -> Result<()> {
        for supervisor in self.config.supervisors.iter().filter(|supervisor| supervisor.machine == self.machine) {
            match self.executor.revive_supervisor(supervisor.id).await {
                // Another supervisor may have been faster.
                OrderResult::Done | OrderResult::OutOfDate(_) => {}
                other => bail!("{} did not start: {other}", supervisor.name()),
            }
        }
        Ok(())
    }

    /// Whether any supervisor of this machine runs.
    pub(crate) fn is_watched(&self) -> bool {
        self.home.running().iter().any(|member| member.role == ProcessRole::Supervisor)
    }
}

fn already_up(home: &Home) -> String {
    let dir = home.dir().display();
    let gateways = home.config().map(|config| {
        config.machines.iter().flat_map(|m| m.gateways.iter()).map(|g| format!("http://{g}")).collect::<Vec<_>>()
    });
    let at = match gateways.unwrap_or_default().join(", ") {
        gateways if gateways.is_empty() => String::new(),
        gateways => format!(", with gateways at {gateways}"),
    };
    format!(
        "a cluster is already up in {dir}{at}: `tenaz status --cluster {dir}` shows it, `tenaz down --cluster {dir}` ends it"
    )
}

fn this_machine(args: &UpArgs, config: &Config) -> Result<String> {
    let names: Vec<&str> = config.machines.iter().map(|machine| machine.name.as_str()).collect();
    match (&args.machine, names.as_slice()) {
        (Some(named), _) if names.contains(&named.as_str()) => Ok(named.clone()),
        (Some(named), _) => {
            Err(Usage(format!("the file has no machine {named:?}; it has {}", names.join(", "))).into())
        }
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Usage(format!("say with --machine which one this is: {}", names.join(", "))).into()),
    }
}

/// Waits until every process of this machine is ready, and says where the gateways are.
pub(crate) async fn wait_until_ready(started: &Started, screen: &Screen) -> Result<()> {
    let began = Instant::now();
    let deadline = began + READY_WITHIN;
    screen.say(&format!("Starting the cluster in {}", started.home.dir().display()));
    let shown = live::Spinner::new(screen, "starting");
    loop {
        let now = status::ask(&started.home, &started.config).await;
        if let Ok(now) = &now {
            if let Some(given_up) = now.processes.iter().find(|process| process.given_up.is_some()) {
                drop(shown);
                screen.say(&status::why_given_up(given_up));
                bail!("{} does not start", given_up.name);
            }
            shown.say(&summary(now));
            let mine = || now.processes.iter().filter(|process| process.machine == started.machine);
            let expected = started.config.processes().iter().filter(|p| p.machine == started.machine).count();
            if now.leader.is_some() && mine().count() >= expected && mine().all(|p| p.state == ProcessState::Ready) {
                drop(shown);
                announce(started, now, screen);
                return Ok(());
            }
        }
        if now.is_err() && began.elapsed() > SUPERVISORS_WITHIN && !started.is_watched() {
            drop(shown);
            bail!("no supervisor stays up; see {}", started.home.dir().join("logs").display());
        }
        if Instant::now() > deadline {
            drop(shown);
            let state = now.map_or_else(|error| error.to_string(), |now| summary(&now));
            let logs = started.home.dir().join("logs");
            return Err(anyhow::anyhow!("{state}")).context(format!(
                "the cluster is not ready after {} s; see {}",
                READY_WITHIN.as_secs(),
                logs.display()
            ));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn summary(now: &Status) -> String {
    let waiting: Vec<String> = now
        .processes
        .iter()
        .filter(|process| process.state != ProcessState::Ready)
        .map(|process| format!("{} {}", process.name, process.state))
        .collect();
    match waiting.as_slice() {
        [] => "ready".to_owned(),
        waiting => {
            format!("{} of {} ready; {}", now.processes.len() - waiting.len(), now.processes.len(), waiting.join(", "))
        }
    }
}

fn announce(started: &Started, now: &Status, screen: &Screen) {
    let leader = status::leader(now).map_or(String::new(), |leader| format!("; {leader} leads"));
    screen.say(&format!(
        "The cluster in {} is up: {} processes{leader}",
        started.home.dir().display(),
        now.processes.len()
    ));
    let urls: Vec<&str> = now.gateways.iter().map(|gateway| gateway.url.as_str()).collect();
    for url in &urls {
        screen.say(&format!("  gateway  {url}"));
    }
    if !urls.is_empty() {
        screen.say(&format!("  try      tenaz submit coffee --data DIR --gateway {} --out results", urls.join(",")));
    }
}
