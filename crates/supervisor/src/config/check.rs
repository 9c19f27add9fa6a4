//! From the file's text to a [`Config`], with every mistake named by line, column and cure.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Component, Path};

use toml::Spanned;

use super::file::{ClusterFile, SupervisorEntry};
use super::here::Here;
use super::{BackEnd, BrokerAddress, BrokerNode, Config, ConfigError, Machine, Supervisor};
use crate::limits::{MAX_MACHINES, MAX_SUPERVISORS};

pub(super) fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
    let here = Here { file, text };
    let parsed: ClusterFile = toml::from_str(text).map_err(|e| here.syntax(&e))?;
    let name = here.name("the cluster name", &parsed.name)?;
    let prefix = match &parsed.prefix {
        Some(prefix) => here.name("the prefix", prefix)?,
        None => "tenaz".to_owned(),
    };
    let machines = here.machines(&name, &parsed)?;
    let supervisors = here.supervisors(&parsed.supervisor, &machines)?;
    let broker_node = here.broker_node(&parsed, &machines)?;
    let broker = here.broker(&parsed)?;
    let config = Config {
        name,
        prefix,
        broker,
        broker_node,
        key_file: here.key_file(parsed.key_file.as_ref())?.into(),
        supervision: here.supervision(&parsed.supervision)?,
        restarts: here.restarts(&parsed.restarts)?,
        machines,
        supervisors,
    };
    here.everyone_is_watched(&config, &parsed)?;
    here.no_port_twice(&parsed)?;
    Ok(config)
}

impl Here<'_> {
    fn machines(&self, cluster: &str, parsed: &ClusterFile) -> Result<Vec<Machine>, ConfigError> {
        if parsed.machine.is_empty() {
            return Err(self.wrong(0..0, "there is no machine", "add a [[machine]] with name and address"));
        }
        if parsed.machine.len() > MAX_MACHINES {
            let problem = format!("{} machines are too many", parsed.machine.len());
            return Err(self.wrong(
                parsed.machine[MAX_MACHINES].span(),
                problem,
                format!("write at most {MAX_MACHINES}"),
            ));
        }
        let mut machines: Vec<Machine> = Vec::new();
        for entry in &parsed.machine {
            let machine = self.machine(cluster, entry)?;
            if machines.iter().any(|m| m.name == machine.name) {
                let problem = format!("machine {:?} is described twice", machine.name);
                return Err(self.wrong(entry.get_ref().name.span(), problem, "give each machine a name of its own"));
            }
            machines.push(machine);
        }
        Ok(machines)
    }

    fn supervisors(&self, entries: &[SupervisorEntry], machines: &[Machine]) -> Result<Vec<Supervisor>, ConfigError> {
        let names: Vec<&str> = machines.iter().map(|m| m.name.as_str()).collect();
        if entries.is_empty() {
            let cure = "add a [[supervisor]] with id, machine and listen; three bear the loss of one";
            return Err(self.wrong(0..0, "there is no supervisor", cure));
        }
        if entries.len() > MAX_SUPERVISORS {
            let problem = format!("{} supervisors are too many", entries.len());
            let at = entries[MAX_SUPERVISORS].id.span();
            return Err(self.wrong(at, problem, format!("write at most {MAX_SUPERVISORS}: 3 or 5 are usual")));
        }
        let mut found: Vec<Supervisor> = Vec::new();
        for entry in entries {
            let id = tenaz_core::SupervisorId(*entry.id.get_ref());
            if id.0 == 0 || found.iter().any(|s| s.id == id) {
                let problem = if id.0 == 0 { "0 is no id".to_owned() } else { format!("id {id} is there twice") };
                return Err(self.wrong(entry.id.span(), problem, "number supervisors from 1, each differently"));
            }
            let machine = self.one_of("machine", &entry.machine, &names)?.to_owned();
            let listen = self.listen(&entry.listen)?;
            if listen.ip().is_unspecified() {
                let problem = format!("{listen} is no place that others can reach");
                let cure = "write the address under which the other machines know this one";
                return Err(self.wrong(entry.listen.span(), problem, cure));
            }
            found.push(Supervisor { id, machine, listen });
        }
        found.sort_by_key(|supervisor| supervisor.id);
        Ok(found)
    }

    fn broker_node(&self, parsed: &ClusterFile, machines: &[Machine]) -> Result<Option<BrokerNode>, ConfigError> {
        let Some(entry) = &parsed.broker_node else { return Ok(None) };
        let node = entry.get_ref();
        let names: Vec<&str> = machines.iter().map(|m| m.name.as_str()).collect();
        let machine = self.one_of("machine", &node.machine, &names)?.to_owned();
        if *node.port.get_ref() == 0 {
            return Err(self.wrong(node.port.span(), "0 is no port", "write a port that is free, such as 5673"));
        }
        if machines.iter().any(|m| m.name == machine && m.back_end != BackEnd::Processes) {
            let problem = format!("machine {machine:?} does not run child processes");
            let cure = "name a machine whose back-end is \"processes\", or a broker of your own: broker = \"amqp://…\"";
            return Err(self.wrong(node.machine.span(), problem, cure));
        }
        // A private node has the usual guest account, so it listens on the loopback interface only.
        if let Some(far) = machines.iter().find(|m| m.name != machine && !m.address.is_loopback()) {
            let problem = format!("machine {:?} cannot reach a private node, which listens on 127.0.0.1", far.name);
            let cure = "run RabbitMQ yourself, and write broker = \"amqp://user:password@host:5672/%2f\"";
            return Err(self.wrong(entry.span(), problem, cure));
        }
        Ok(Some(BrokerNode { machine, port: *node.port.get_ref() }))
    }

    fn broker(&self, parsed: &ClusterFile) -> Result<Option<BrokerAddress>, ConfigError> {
        let url = "broker = \"amqp://user:password@host:5672/%2f\"";
        match (&parsed.broker, &parsed.broker_node) {
            (None, None) => {
                Err(self.wrong(0..0, "there is no broker", format!("add a line {url}, or a section [broker-node]")))
            }
            (Some(broker), Some(_)) => {
                Err(self.wrong(broker.span(), "there are two brokers", "keep either `broker` or [broker-node]"))
            }
            (Some(broker), None) => {
                let good = BrokerAddress::new(broker.get_ref());
                good.map(Some).map_err(|problem| self.wrong(broker.span(), problem, format!("write {url}")))
            }
            (None, Some(_)) => Ok(None),
        }
    }

    fn key_file(&self, key_file: Option<&Spanned<String>>) -> Result<String, ConfigError> {
        let Some(entry) = key_file else { return Ok("key".to_owned()) };
        let path = Path::new(entry.get_ref());
        let named = path.components().next_back().is_some_and(|last| matches!(last, Component::Normal(_)));
        if named && !entry.get_ref().contains('\0') {
            return Ok(entry.get_ref().clone());
        }
        let problem = format!("{:?} is no file", entry.get_ref());
        Err(self.wrong(entry.span(), problem, "write its name, relative to this file"))
    }

    /// Orders for a machine are executed by a supervisor of that machine.
    fn everyone_is_watched(&self, config: &Config, parsed: &ClusterFile) -> Result<(), ConfigError> {
        for (machine, entry) in config.machines.iter().zip(&parsed.machine) {
            let has_processes = machine.back_end != BackEnd::Processes
                || machine.workers > 0
                || !machine.gateways.is_empty()
                || config.broker_node.as_ref().is_some_and(|node| node.machine == machine.name);
            if has_processes && config.supervisors.iter().all(|s| s.machine != machine.name) {
                let problem = format!("machine {:?} has processes but no supervisor", machine.name);
                let cure = format!("add a [[supervisor]] with machine = {:?}", machine.name);
                return Err(self.wrong(entry.get_ref().name.span(), problem, cure));
            }
        }
        Ok(())
    }

    fn no_port_twice(&self, parsed: &ClusterFile) -> Result<(), ConfigError> {
        let mut taken: BTreeMap<SocketAddr, String> = BTreeMap::new();
        if let Some(node) = &parsed.broker_node {
            let port = *node.get_ref().port.get_ref();
            taken.insert(SocketAddr::from(([127, 0, 0, 1], port)), "the broker".to_owned());
        }
        let supervisors = parsed.supervisor.iter().map(|s| (format!("supervisor {}", s.id.get_ref()), &s.listen));
        let gateways = parsed.machine.iter().flat_map(|m| {
            let machine = m.get_ref();
            machine.gateways.iter().map(|g| (format!("a gateway of {:?}", machine.name.get_ref()), g))
        });
        for (who, listen) in supervisors.chain(gateways) {
            let address = self.listen(listen)?;
            // Two machines may both say 0.0.0.0: those are different places.
            if address.ip().is_unspecified() {
                continue;
            }
            if let Some(other) = taken.insert(address, who.clone()) {
                let problem = format!("{who} and {other} both listen on {address}");
                return Err(self.wrong(listen.span(), problem, "give each a port of its own"));
            }
        }
        Ok(())
    }
}
