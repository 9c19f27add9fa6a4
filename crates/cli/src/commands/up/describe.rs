//! From options to the description of a cluster on this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use anyhow::{Result, anyhow};
use tenaz_core::SupervisorId;
use tenaz_supervisor::config::{BackEnd, BrokerAddress, BrokerNode, Machine, Supervisor};
use tenaz_supervisor::{Config, config};

use crate::outcome::Usage;
use crate::supervision_args::DescriptionArgs;

/// What this machine is called in a description that `tenaz up` writes.
pub(super) const HERE: &str = "here";

/// Ports for processes that come back at the same place after each restart. Below the range from which the system takes ports
/// for outgoing connections, one of which might otherwise have it just then.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// Where the first gateway of a new cluster listens.
const FIRST_GATEWAY: u16 = 7400;

/// The cluster that the options describe, with free ports: a new one, or `before` with what the options change.
///
/// # Errors
/// An option makes no sense, or makes none for the cluster that is there.
pub(super) fn describe(wanted: &DescriptionArgs, before: Option<&Config>) -> Result<Config> {
    let (mut config, wanted) = match before {
        Some(before) => (before.clone(), wanted.clone()),
        None => (nothing(), with_defaults(wanted)),
    };
    let DescriptionArgs { workers, gateways, supervisors, broker, prefix, port, threads } = wanted;
    if let Some(prefix) = prefix {
        tenaz_cluster::Names::new(&prefix).map_err(|e| Usage(e.to_string()))?;
        config.prefix = prefix;
    }
    if let Some(workers) = workers {
        only_machine(&mut config)?.workers = u32::from(workers);
    }
    if let Some(threads) = threads {
        set_option(&mut only_machine(&mut config)?.worker_options, "--threads", threads.to_string());
    }
    if let Some(port) = port {
        let machine = only_machine(&mut config)?;
        let (count, ip) = (machine.gateways.len(), gateway_ip(machine));
        if machine.gateways.first().is_none_or(|first| first.port() != port) {
            machine.gateways.clear();
        }
        set_gateways(&mut config, gateways.map_or(count, usize::from), SocketAddr::new(ip, port))?;
    } else if let Some(gateways) = gateways {
        let machine = only_machine(&mut config)?;
        let port = machine.gateways.first().map_or(FIRST_GATEWAY, SocketAddr::port);
        let first = SocketAddr::new(gateway_ip(machine), port);
        set_gateways(&mut config, usize::from(gateways), first)?;
    }
    if let Some(supervisors) = supervisors {
        set_supervisors(&mut config, usize::from(supervisors))?;
    }
    if let Some(broker) = broker {
        let address = BrokerAddress::new(&broker)
            .map_err(|error| Usage(format!("{error}; write amqp://user:password@host:5672/vhost")))?;
        (config.broker, config.broker_node) = (Some(address), None);
    } else if config.broker.is_none() && config.broker_node.is_none() {
        let port = Ports::beside(&config).somewhere(IpAddr::V4(Ipv4Addr::LOCALHOST))?.port();
        config.broker_node = Some(BrokerNode { machine: HERE.to_owned(), port });
    }
    // What supervisors could not read must not take the place of what they can.
    Config::parse(&config.to_toml(), "cluster.toml").map_err(|error| Usage(error.to_string()))?;
    Ok(config)
}

/// A cluster without processes on this machine.
fn nothing() -> Config {
    Config {
        name: "tenaz".to_owned(),
        prefix: "tenaz".to_owned(),
        broker: None,
        broker_node: None,
        key_file: "key".into(),
        supervision: config::Supervision::default(),
        restarts: config::Restarts::default(),
        machines: vec![Machine::new(HERE, IpAddr::V4(Ipv4Addr::LOCALHOST))],
        supervisors: Vec::new(),
    }
}

fn with_defaults(wanted: &DescriptionArgs) -> DescriptionArgs {
    DescriptionArgs {
        workers: wanted.workers.or(Some(2)),
        gateways: wanted.gateways.or(Some(1)),
        supervisors: wanted.supervisors.or(Some(3)),
        ..wanted.clone()
    }
}

/// The machine that options mean. Where there are several, or where Docker or systemd knows what runs, they mean none.
fn only_machine(config: &mut Config) -> Result<&mut Machine> {
    let refused = match config.machines.as_slice() {
        [machine] if machine.back_end != BackEnd::Processes => {
            let kind = machine.back_end.as_str();
            format!("cluster.toml leaves it to {kind} what runs on {:?}: change it there", machine.name)
        }
        machines => format!("cluster.toml describes {} machines: change it there, not with options", machines.len()),
    };
    match config.machines.as_mut_slice() {
        [machine] if machine.back_end == BackEnd::Processes => Ok(machine),
        _ => Err(Usage(refused).into()),
    }
}

/// Gives an option of a command line this value, whatever value it has.
fn set_option(options: &mut Vec<String>, name: &str, value: String) {
    let assigned = format!("{name}=");
    match options.iter().position(|option| option == name || option.starts_with(&assigned)) {
        Some(at) if options[at] == name && at + 1 < options.len() => options[at + 1] = value,
        Some(at) => options[at] = format!("{assigned}{value}"),
        None => options.extend([name.to_owned(), value]),
    }
}

/// Where the gateways of a machine listen.
fn gateway_ip(machine: &Machine) -> IpAddr {
    machine.gateways.first().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), SocketAddr::ip)
}

/// Gateways that are there keep their places; new ones take the next free ports from `first` on.
fn set_gateways(config: &mut Config, count: usize, first: SocketAddr) -> Result<()> {
    let machine = only_machine(config)?;
    machine.gateways.truncate(count);
    let missing = count - machine.gateways.len();
    let mut ports = Ports::beside(config);
    let new = (0..missing).map(|_| ports.from(first.ip(), first.port())).collect::<Result<Vec<_>>>()?;
    only_machine(config)?.gateways.extend(new);
    Ok(())
}

/// Supervisors that are there keep their ids and places; the highest go first.
fn set_supervisors(config: &mut Config, count: usize) -> Result<()> {
    let machine = only_machine(config)?;
    let (name, ip) = (machine.name.clone(), machine.address);
    config.supervisors.truncate(count);
    let mut ports = Ports::beside(config);
    while config.supervisors.len() < count {
        let id = config.supervisors.iter().map(|known| known.id.0).max().unwrap_or(0) + 1;
        config.supervisors.push(Supervisor {
            id: SupervisorId(id),
            machine: name.clone(),
            listen: ports.somewhere(ip)?,
        });
    }
    Ok(())
}

/// Free ports of this machine, each given once.
#[derive(Debug)]
struct Ports {
    given: Vec<u16>,
}

impl Ports {
    /// Ports that no process of this description has, though none of them runs at the moment.
    fn beside(config: &Config) -> Self {
        let taken = config.processes().into_iter().filter_map(|process| process.listen);
        Self { given: taken.map(|listen| listen.port()).collect() }
    }

    /// The first free one from here on.
    fn from(&mut self, ip: IpAddr, first: u16) -> Result<SocketAddr> {
        let last = first.saturating_add(1000);
        let found = (first..=last).find(|port| self.is_free(ip, *port));
        let port = found.ok_or_else(|| anyhow!("no port from {first} to {last} is free on {ip}; try --port"))?;
        self.given.push(port);
        Ok(SocketAddr::from((ip, port)))
    }

    /// Any: where it begins to look is chance, so that clusters that start at the same moment rarely meet.
    fn somewhere(&mut self, ip: IpAddr) -> Result<SocketAddr> {
        let chance = chance();
        let first = PORTS.start + chance % (PORTS.end - PORTS.start - 1000);
        self.from(ip, first)
    }

    fn is_free(&self, ip: IpAddr, port: u16) -> bool {
        let address = (ip, port);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn described(wanted: &DescriptionArgs, before: Option<&Config>) -> Config {
        let config = describe(wanted, before).expect("it can be described");
        // What is written is what is read.
        assert_eq!(Config::parse(&config.to_toml(), "cluster.toml").expect("a good file"), config);
        config
    }

    /// A cluster with everything that options cannot say.
    fn by_hand() -> Config {
        let mut config = described(&DescriptionArgs { gateways: Some(2), ..DescriptionArgs::default() }, None);
        config.name = "mine".to_owned();
        config.restarts.failed_starts = 7;
        config.machines[0].worker_options = ["--memory", "1G", "--threads=4"].map(str::to_owned).to_vec();
        config.machines[0].gateway_options = ["--tokens", "/etc/tokens"].map(str::to_owned).to_vec();
        config
    }

    #[test]
    fn a_new_cluster_has_the_defaults_that_the_help_names() {
        let config = described(&DescriptionArgs::default(), None);
        let machine = &config.machines[0];
        assert_eq!((machine.workers, machine.gateways.len(), config.supervisors.len()), (2, 1, 3));
        assert!(config.broker_node.is_some() && machine.worker_options.is_empty());
    }

    #[test]
    fn another_port_leaves_the_gateways_where_they_listen() {
        let mut before = by_hand();
        before.machines[0].gateways =
            ["0.0.0.0:17400", "0.0.0.0:17401"].map(|a| a.parse().expect("an address")).to_vec();
        let wanted = DescriptionArgs { port: Some(18_500), ..DescriptionArgs::default() };
        let after = described(&wanted, Some(&before));
        let gateways = &after.machines[0].gateways;
        assert!(gateways.len() == 2 && gateways.iter().all(|gateway| gateway.ip().is_unspecified()), "{gateways:?}");
    }

    #[test]
    fn a_description_that_supervisors_could_not_read_is_refused() {
        let wanted = DescriptionArgs { workers: Some(512), ..DescriptionArgs::default() };
        assert!(describe(&wanted, Some(&by_hand())).is_err());
    }

    #[test]
    fn every_option_changes_what_it_names_and_nothing_else() {
        type Expect = fn(&mut Config, &Config);
        let cases: [(DescriptionArgs, Expect); 7] = [
            (DescriptionArgs { workers: Some(3), ..Default::default() }, |was, _| was.machines[0].workers = 3),
            (DescriptionArgs { prefix: Some("p".to_owned()), ..Default::default() }, |was, _| {
                was.prefix = "p".to_owned();
            }),
            (DescriptionArgs { threads: Some(2), ..Default::default() }, |was, _| {
                was.machines[0].worker_options[2] = "--threads=2".to_owned();
            }),
            (DescriptionArgs { broker: Some("amqp://b".to_owned()), ..Default::default() }, |was, is| {
                assert_eq!(is.broker.as_ref().map(BrokerAddress::url), Some("amqp://b"));
                (was.broker, was.broker_node) = (is.broker.clone(), None);
            }),
            (DescriptionArgs { gateways: Some(3), ..Default::default() }, |was, is| {
                assert!(
                    is.machines[0].gateways.len() == 3
                        && is.machines[0].gateways.starts_with(&was.machines[0].gateways)
                );
                was.machines[0].gateways.clone_from(&is.machines[0].gateways);
            }),
            (DescriptionArgs { supervisors: Some(5), ..Default::default() }, |was, is| {
                assert!(is.supervisors.len() == 5 && is.supervisors.starts_with(&was.supervisors));
                was.supervisors.clone_from(&is.supervisors);
            }),
            (DescriptionArgs { port: Some(18_400), ..Default::default() }, |was, is| {
                assert!(is.machines[0].gateways.len() == 2 && is.machines[0].gateways[0].port() >= 18_400);
                was.machines[0].gateways.clone_from(&is.machines[0].gateways);
            }),
        ];
        let before = by_hand();
        for (wanted, expect) in cases {
            let after = described(&wanted, Some(&before));
            assert_ne!(after, before, "{wanted:?}");
            let mut expected = before.clone();
            expect(&mut expected, &after);
            assert_eq!(after, expected, "{wanted:?}");
            assert_eq!(before.protections_lost(&after), Vec::<String>::new(), "{wanted:?}");
        }
        assert_eq!(described(&DescriptionArgs::default(), Some(&before)), before);
    }

    #[test]
    fn fewer_gateways_and_supervisors_are_the_first_of_those_that_were_there() {
        let before = by_hand();
        let wanted = DescriptionArgs { gateways: Some(1), supervisors: Some(1), ..Default::default() };
        let after = described(&wanted, Some(&before));
        assert_eq!(after.machines[0].gateways, before.machines[0].gateways[..1]);
        assert_eq!(after.supervisors, before.supervisors[..1]);
    }

    #[test]
    fn options_that_mean_no_machine_are_refused() {
        let mut several = by_hand();
        several.machines.push(Machine::new("there", IpAddr::V4(Ipv4Addr::LOCALHOST)));
        let wanted = DescriptionArgs { workers: Some(3), ..Default::default() };
        let error = describe(&wanted, Some(&several)).expect_err("which machine?");
        assert!(error.is::<Usage>() && error.to_string().contains("2 machines"), "{error}");
    }
}
