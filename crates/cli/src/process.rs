//! What all long-running processes have in common: a runtime, a log, signals, the link to the broker.

use std::io::IsTerminal;

use anyhow::Result;
use tenaz_cluster::{Link, LinkSettings, Names, Patience};
use tenaz_rabbit::BrokerSettings;
use tokio_util::sync::CancellationToken;

use crate::cluster_args::{BrokerArgs, LogFormat};
use crate::outcome::Usage;

/// Runs a process until it ends or is told to stop.
pub(crate) fn run<F>(args: &BrokerArgs, work: impl FnOnce(CancellationToken) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    start_log(args)?;
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

/// Connects to the broker.
pub(crate) async fn link(args: &BrokerArgs, what: &str) -> Result<Link> {
    let mut broker: BrokerSettings = args.broker.parse().map_err(|e: tenaz_rabbit::Error| Usage(e.to_string()))?;
    broker.credentials_file.clone_from(&args.credentials_file);
    broker.ca_file.clone_from(&args.ca_file);
    let names = Names::new(&args.prefix).map_err(|e| Usage(e.to_string()))?;
    let connection_name = format!("tenaz {what} {}", std::process::id());
    Ok(Link::open(LinkSettings { broker, names, connection_name }).await?)
}

/// How long things may stay.
pub(crate) fn patience(args: &BrokerArgs) -> Patience {
    Patience { idle: args.expire, results: args.keep }
}

fn start_log(args: &BrokerArgs) -> Result<()> {
    // The AMQP client logs as errors what is expected here, such as a queue that is gone.
    let filter = tracing_subscriber::EnvFilter::try_new(format!("lapin=off,{}", args.log))
        .map_err(|e| Usage(format!("--log {:?} is no filter: {e}; write error, warn, info or debug", args.log)))?;
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
