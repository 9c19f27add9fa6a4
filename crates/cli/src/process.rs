//! What all long-running processes have in common: a runtime, a log, signals, the link to the broker.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use tenaz_cluster::{Link, LinkSettings, Names, Patience};
use tenaz_core::{Incarnation, ProcessName, ProcessRole};
use tenaz_rabbit::BrokerSettings;
use tenaz_vitals::{ClusterId, Identity, Key, Vitals, VitalsSettings};
use tokio_util::sync::CancellationToken;

use crate::cluster_args::{BrokerArgs, LogArgs, LogFormat, VitalsArgs};
use crate::outcome::Usage;
use crate::screen::Screen;

/// Runs a process until it ends or is told to stop. `--quiet` leaves nothing but errors in its log.
pub(crate) fn run<F>(log: &LogArgs, screen: &Screen, work: impl FnOnce(CancellationToken) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    start_log(log, screen.is_quiet())?;
    run_quietly(work)
}

/// The same for a command that speaks to people and writes no log.
pub(crate) fn run_quietly<F>(work: impl FnOnce(CancellationToken) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        let stop = CancellationToken::new();
        stop_on_signals(&stop)?;
        work(stop).await
    });
    // Tasks that still wait for the broker must not keep the process.
    runtime.shutdown_background();
    done
}

/// Runs something async to its end.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    Ok(done)
}

/// Connects to the broker.
pub(crate) async fn link(args: &BrokerArgs, what: &str) -> Result<Link> {
    crate::secrets::warnings(std::env::args_os().skip(1)).into_iter().for_each(|text| tracing::warn!("{text}"));
    let mut broker: BrokerSettings = args.broker.parse().map_err(|e: tenaz_rabbit::Error| Usage(e.to_string()))?;
    broker.credentials_file.clone_from(&args.credentials_file);
    broker.ca_file.clone_from(&args.ca_file);
    let names = Names::new(&args.prefix).map_err(|e| Usage(e.to_string()))?;
    let connection_name = format!("tenaz {what} {}", std::process::id());
    Ok(Link::open(LinkSettings { broker, names, connection_name }).await?)
}

/// Begins to show the process to supervisors, and on `http` to everybody.
pub(crate) async fn vitals(args: &VitalsArgs, role: ProcessRole, http: Option<SocketAddr>) -> Result<Arc<Vitals>> {
    let usage = |error: tenaz_vitals::Error| Usage(error.to_string());
    let supervisors: Vec<String> = args.supervisors.iter().filter(|addr| !addr.is_empty()).cloned().collect();
    // A key that is not needed is not read: it may well be there for others.
    let key = match &args.key_file {
        Some(path) if !supervisors.is_empty() => Some(Key::read(path).map_err(usage)?),
        None if !supervisors.is_empty() => {
            let text = "--supervisors needs --key-file: heartbeats are sealed with the cluster's key, the file `key` in its directory";
            return Err(Usage(text.to_owned()).into());
        }
        _ => None,
    };
    let alone = Identity::alone(role);
    let identity = Identity {
        cluster: args.cluster_id.clone().or_else(|| key.as_ref().map(ClusterId::of)).unwrap_or(alone.cluster),
        name: args.name.clone().unwrap_or_else(|| default_name(role)),
        role,
        incarnation: args.incarnation.map_or(alone.incarnation, Incarnation),
    };
    start_vitals(VitalsSettings { identity, key, supervisors, every: args.heartbeat_every, http }).await
}

/// The same for a process that knows its name and its cluster by itself.
pub(crate) async fn start_vitals(settings: VitalsSettings) -> Result<Arc<Vitals>> {
    let vitals = Vitals::start(settings).await.map_err(|error| match error {
        tenaz_vitals::Error::Setting { .. } => anyhow::Error::from(Usage(error.to_string())),
        error => error.into(),
    })?;
    let identity = vitals.identity();
    let http = vitals.http_addr().map(|addr| format!("http://{addr}"));
    tracing::info!(name = %identity.name, incarnation = identity.incarnation.0, http, "the process is up");
    Ok(vitals)
}

/// Its role, its machine, and its process id. In a container it is the first process, and the name of the machine is the
/// container's, by which the engine and its supervisors know it.
fn default_name(role: ProcessRole) -> ProcessName {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(32).collect();
    let pid = std::process::id();
    if pid == 1
        && let Ok(name) = host.parse()
    {
        return name;
    }
    let name = if host.is_empty() { format!("{role}-{pid}") } else { format!("{role}-{host}-{pid}") };
    name.parse().unwrap_or_else(|_| ProcessName::numbered(role, pid))
}

/// How long things may stay.
pub(crate) fn patience(args: &BrokerArgs) -> Patience {
    Patience { idle: args.expire, results: args.keep }
}

fn start_log(args: &LogArgs, is_quiet: bool) -> Result<()> {
    let wanted = if is_quiet { "error" } else { &args.log };
    // The AMQP client logs as errors what is expected here, such as a queue that is gone.
    let filter = tracing_subscriber::EnvFilter::try_new(format!("lapin=off,{wanted}"))
        .map_err(|e| Usage(format!("--log {wanted:?} is no filter: {e}; write error, warn, info or debug")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    match args.log_format {
        LogFormat::Text => log.with_target(false).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
    Ok(())
}

fn stop_on_signals(stop: &CancellationToken) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = stop.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.is_cancelled() {
                // The second one means it.
                std::process::exit(130);
            }
            stop.cancel();
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use tenaz_supervisor::command::{MARKS, ProcessCommand};
    use tenaz_supervisor::{Config, Home};

    use super::*;
    use crate::args::Cli;

    const CLUSTER: &str = "name = \"test\"\nbroker-node = { machine = \"here\", port = 5673 }\n\
        [[machine]]\nname = \"here\"\naddress = \"127.0.0.1\"\nworkers = 1\ngateways = [\"127.0.0.1:7400\"]\n\
        [[supervisor]]\nid = 1\nmachine = \"here\"\nlisten = \"127.0.0.1:7501\"\n";

    /// What a supervisor tells a process by its environment and its command line is what the process can be told.
    #[test]
    fn a_process_has_an_option_for_everything_that_supervisors_tell_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let home = Home::create(dir.path()).expect("a home");
        let config = Config::parse(CLUSTER, "cluster.toml").expect("a description");
        let specs = config.processes();
        assert_eq!(specs.len(), ProcessRole::ALL.len(), "one of each role");
        for spec in specs {
            let command = ProcessCommand::new("tenaz".into(), &home, &config, &spec, Incarnation(1));
            let command = command.expect("a command");
            let cli = Cli::command();
            let role = cli.find_subcommand(spec.role.as_str()).expect("a subcommand");
            let known: Vec<_> = role.get_arguments().filter_map(clap::Arg::get_env).collect();
            for (name, _) in command.environment.iter().filter(|(name, _)| !MARKS.contains(name)) {
                assert!(known.contains(&name.as_ref()), "{}: {name} has no effect", spec.role);
            }
            let line = std::iter::once("tenaz".into()).chain(command.arguments);
            // The broker's address, with its password, is in the environment.
            let needed = match spec.role {
                ProcessRole::Worker | ProcessRole::Gateway => vec!["--broker", "amqp://localhost"],
                ProcessRole::Supervisor | ProcessRole::Broker => Vec::new(),
            };
            let parsed = Cli::command().try_get_matches_from(line.chain(needed.into_iter().map(Into::into)));
            assert!(parsed.is_ok(), "{}: {}", spec.role, parsed.expect_err("seen"));
        }
    }
}
