//! From options to the description of a cluster on this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use anyhow::{Result, anyhow};
use tenaz_core::SupervisorId;
use tenaz_supervisor::config::{BrokerAddress, BrokerNode, Machine, Supervisor};
use tenaz_supervisor::{Config, config};

use crate::outcome::Usage;
use crate::supervision_args::UpArgs;

/// What this machine is called in a description that `tenaz up` writes.
pub(super) const HERE: &str = "here";

/// Ports for processes that come back at the same place after each restart. Below the range from which the system takes ports
/// for outgoing connections, one of which might otherwise have it just then.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// The cluster that the options describe, with free ports.
pub(super) fn describe(args: &UpArgs) -> Result<Config> {
    let broker = args
        .broker
        .as_deref()
        .map(BrokerAddress::new)
        .transpose()
        .map_err(|error| Usage(format!("{error}; write amqp://user:password@host:5672/vhost")))?;
    let prefix = args.prefix.as_deref().unwrap_or("tenaz");
    tenaz_cluster::Names::new(prefix).map_err(|e| Usage(e.to_string()))?;
    let mut ports = Ports::default();
    let gateways =
        (0..args.gateways.unwrap_or(1)).map(|_| ports.from(args.port.unwrap_or(7400))).collect::<Result<Vec<_>>>()?;
    let mut machine = Machine::new(HERE, IpAddr::V4(Ipv4Addr::LOCALHOST));
    machine.workers = u32::from(args.workers.unwrap_or(2));
    machine.gateways = gateways;
    if let Some(threads) = args.threads {
        machine.worker_options = vec!["--threads".to_owned(), threads.to_string()];
    }
    let supervisors = (1..=args.supervisors.unwrap_or(3))
        .map(|id| Ok(Supervisor { id: SupervisorId(id), machine: HERE.to_owned(), listen: ports.somewhere()? }));
    let supervisors = supervisors.collect::<Result<Vec<_>>>()?;
    let broker_node = match broker {
        Some(_) => None,
        None => Some(BrokerNode { machine: HERE.to_owned(), port: ports.somewhere()?.port() }),
    };
    Ok(Config {
        name: "tenaz".to_owned(),
        prefix: prefix.to_owned(),
        broker,
        broker_node,
        key_file: "key".into(),
        supervision: config::Supervision::default(),
        restarts: config::Restarts::default(),
        machines: vec![machine],
        supervisors,
    })
}

/// Free ports on the loopback interface, each given once.
#[derive(Debug, Default)]
struct Ports {
    given: Vec<u16>,
}

impl Ports {
    /// The first free one from here on.
    fn from(&mut self, first: u16) -> Result<SocketAddr> {
        let last = first.saturating_add(1000);
        let found = (first..=last).find(|port| self.is_free(*port));
        let port = found.ok_or_else(|| anyhow!("no port from {first} to {last} is free on 127.0.0.1; try --port"))?;
        self.given.push(port);
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Any: where it begins to look is chance, so that clusters that start at the same moment rarely meet.
    fn somewhere(&mut self) -> Result<SocketAddr> {
        let chance = chance();
        let first = PORTS.start + chance % (PORTS.end - PORTS.start - 1000);
        self.from(first)
    }

    fn is_free(&self, port: u16) -> bool {
        let address = (Ipv4Addr::LOCALHOST, port);
        !self.given.contains(&port) && TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
    }
}

fn chance() -> u16 {
    use std::hash::{BuildHasher, Hasher};
    // Seeded by the operating system, anew with every call.
    std::collections::hash_map::RandomState::new().build_hasher().finish() as u16
}

/// Whether the ports that the processes of this machine will listen on are free.
pub(super) fn check_ports(config: &Config, machine: &str) -> Result<()> {
    for process in config.processes().iter().filter(|process| process.machine == machine) {
        if let Some(listen) = process.listen
            && let Err(error) = TcpListener::bind(listen)
        {
            let cure =
                "stop whoever uses it, change it in cluster.toml, or give options such as --port to get other ports";
            return Err(anyhow!("{} cannot listen on {listen} ({error}): {cure}", process.name));
        }
    }
    Ok(())
}
