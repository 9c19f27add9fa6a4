//! `tenaz broker`: a private RabbitMQ node as a process that supervisors can watch, kill and start again.
//!
//! The node is this process's child and dies with it, so whoever ends this process ends the broker. Its pulse is the
//! broker's: it beats as long as the broker answers, and stands still when the broker has not for a while.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anyhow::Result;
use tenaz_core::ProcessRole;
use tenaz_rabbit::node::{NodeOptions, NodeUser, PrivateNode};
use tenaz_supervisor::command::MARKS;
use tenaz_vitals::BrokerMetrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::process;
use crate::screen::Screen;
use crate::supervision_args::BrokerNodeArgs;

/// How often the broker is asked.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long it may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// A broker that has not answered for so long hangs. Far longer than for other processes: a busy broker may be slow, and
/// killing it interrupts everybody.
const PATIENCE: Duration = Duration::from_secs(10);
/// What a client says first. A broker that works answers with its `Connection.Start`.
const GREETING: &[u8] = b"AMQP\x00\x00\x09\x01";

pub(crate) fn broker(args: &BrokerNodeArgs, screen: &Screen) -> Result<()> {
    process::run(&args.log, screen, async |stop| {
        let vitals = process::vitals(&args.vitals, ProcessRole::Broker, args.http.http).await?;
        let marks = MARKS.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
        let users = args.users.iter().filter_map(|user| user.split_once(':'));
        let users = users.map(|(name, password)| NodeUser::of_prefix(name, password, &args.prefix)).collect();
        let options = NodeOptions { port: Some(args.port), marks, users, ..NodeOptions::new(&args.dir, "tenaz") };
        let (pulse, metrics) = (vitals.pulse(), vitals.metrics().broker());
        // A node that starts has its own deadline; until then this process is not hanging.
        let starting = async {
            loop {
                pulse.beat();
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        let mut node = tokio::select! {
            started = PrivateNode::start(options) => started?,
            () = starting => return Ok(()),
            () = stop.cancelled() => return Ok(()),
        };
        vitals.set_ready(true);
        metrics.up.set(1);
        tracing::info!(port = args.port, pid = node.pid(), "the broker is ready");
        let watched = watch(&mut node, args.port, &stop, &metrics, || pulse.beat()).await;
        metrics.up.set(0);
        vitals.set_draining();
        tracing::info!("stopping the broker");
        node.stop().await?;
        watched
    })
}

/// Returns when told to stop, or when the broker has ended.
async fn watch(
    node: &mut PrivateNode,
    port: u16,
    stop: &CancellationToken,
    metrics: &BrokerMetrics,
    beat: impl Fn(),
) -> Result<()> {
    let mut answered = Instant::now();
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(ASK_EVERY) => {}
        }
        if node.has_exited() {
            return Err(node.why_ended().into());
        }
        if answers(port).await {
            answered = Instant::now();
            metrics.checks_passed.inc();
            metrics.up.set(1);
        } else {
            metrics.checks_failed.inc();
            metrics.up.set(0);
        }
        if answered.elapsed() < PATIENCE {
            beat();
        }
    }
}

async fn answers(port: u16) -> bool {
    let ask = async {
        let mut stream = TcpStream::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        stream.write_all(GREETING).await?;
        let mut first = [0; 1];
        stream.read_exact(&mut first).await
    };
    matches!(tokio::time::timeout(ANSWER_WITHIN, ask).await, Ok(Ok(_)))
}
