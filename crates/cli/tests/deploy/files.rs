//! The deployment files, as values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

/// How one process is started, according to a file.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The file, and where in it.
    pub from: String,
    /// What `tenaz` is given.
    pub args: Vec<String>,
    /// What is in its environment by this file's own words for this process.
    pub env: BTreeMap<String, String>,
    /// What is in its environment because all processes are told.
    pub shared: BTreeMap<String, String>,
    /// How long it has between SIGTERM and SIGKILL, in seconds.
    pub grace_s: u64,
}

impl Launch {
    pub fn role(&self) -> &str {
        &self.args[0]
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.shared.get(name).or_else(|| self.env.get(name)).map(String::as_str)
    }

    /// An option on the command line, or else its variable.
    pub fn setting(&self, option: &str, variable: &str) -> Option<&str> {
        let at = self.args.iter().position(|arg| arg == option);
        at.map(|at| self.args[at + 1].as_str()).or_else(|| self.variable(variable))
    }

    /// The port on which it answers `/healthz` and `/readyz`.
    pub fn health_port(&self) -> u16 {
        let address = self.setting("--http", "TENAZ_HTTP");
        port(address.unwrap_or_else(|| panic!("{}: nobody can ask it for its health", self.from)))
    }

    /// The port on which a gateway serves clients.
    pub fn client_port(&self) -> u16 {
        port(self.setting("--listen", "TENAZ_LISTEN").unwrap_or_else(|| panic!("{}: no client reaches it", self.from)))
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub fn text(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn port(address: &str) -> u16 {
    address.rsplit(':').next().unwrap().parse().unwrap_or_else(|_| panic!("{address} has no port"))
}

/// `20s`, `2m`
pub fn seconds(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        _ => panic!("{text} is no time"),
    };
    number.parse::<u64>().unwrap() * unit
}

/// `512M`, `2g`, `2Gi`
pub fn bytes(text: &str) -> u64 {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_lowercase().trim_end_matches(['i', 'b']) {
        "m" => 20,
        "g" => 30,
        unit => panic!("{text}: unit {unit:?}"),
    };
    digits.parse::<u64>().unwrap() << shift
}

pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item.as_str().unwrap_or_else(|| panic!("{item}")).to_owned()).collect()
}

fn map(object: &Value) -> BTreeMap<String, String> {
    let entries = object.as_object().into_iter().flatten();
    entries
        .map(|(key, value)| (key.clone(), value.as_str().unwrap_or_else(|| panic!("{key}: {value}")).to_owned()))
        .collect()
}

pub fn compose() -> Value {
    serde_saphyr::from_str(&text("deploy/compose.yaml")).unwrap()
}

/// The services of compose.yaml that run tenaz.
pub fn compose_launches() -> Vec<(String, Launch, Value)> {
    let compose = compose();
    let services = compose["services"].as_object().unwrap();
    let ours = services.iter().filter(|(_, service)| service["image"].as_str().unwrap().starts_with("tenaz:"));
    ours.map(|(name, service)| {
        let launch = Launch {
            from: format!("compose.yaml, {name}"),
            args: strings(&service["command"]),
            env: map(&service["environment"]),
            shared: BTreeMap::new(),
            grace_s: seconds(service["stop_grace_period"].as_str().unwrap()),
        };
        (name.clone(), launch, service.clone())
    })
    .collect()
}

pub fn kubernetes() -> Vec<Value> {
    serde_saphyr::from_multiple(&text("deploy/kubernetes/tenaz.yaml")).unwrap()
}

/// The deployments of tenaz.yaml: name, launch, the whole deployment.
pub fn kubernetes_launches() -> Vec<(String, Launch, Value)> {
    let deployments = kubernetes().into_iter().filter(|object| object["kind"] == "Deployment");
    deployments
        .map(|deployment| {
            let name = deployment["metadata"]["name"].as_str().unwrap().to_owned();
            let pod = &deployment["spec"]["template"]["spec"];
            let container = &pod["containers"][0];
            let env = container["env"].as_array().unwrap().iter();
            let env = env.map(|e| (e["name"].as_str().unwrap().to_owned(), e["value"].as_str().unwrap().to_owned()));
            let launch = Launch {
                from: format!("kubernetes/tenaz.yaml, {name}"),
                args: strings(&container["args"]),
                env: env.collect(),
                shared: BTreeMap::new(),
                grace_s: pod["terminationGracePeriodSeconds"].as_u64().unwrap(),
            };
            (name, launch, deployment)
        })
        .collect()
}

/// A cluster.toml of this folder.
pub fn cluster(path: &str) -> toml::Table {
    text(path).parse().unwrap()
}

/// Where the supervisors of a cluster.toml listen, in the order of their ids.
pub fn listens(cluster: &toml::Table) -> Vec<String> {
    let supervisors = cluster["supervisor"].as_array().unwrap();
    let mut found: Vec<(i64, String)> =
        supervisors.iter().map(|s| (s["id"].as_integer().unwrap(), s["listen"].as_str().unwrap().to_owned())).collect();
    found.sort();
    found.into_iter().map(|(_, listen)| listen).collect()
}

/// The units that systemd/cluster.toml names.
pub fn units() -> Vec<String> {
    let cluster = cluster("deploy/systemd/cluster.toml");
    let units = cluster["machine"][0]["systemd"]["units"].as_array().unwrap();
    units.iter().map(|unit| unit.as_str().unwrap().to_owned()).collect()
}

/// All values of a key in a unit file.
pub fn unit_values(text: &str, key: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines.map(str::to_owned).collect()
}

/// The units, with their file's text.
pub fn systemd_launches() -> Vec<(String, Launch, String)> {
    let shared = variables(text("deploy/systemd/tenaz.env").lines().filter(|line| !line.starts_with('#')));
    let launch = |unit: String| {
        let (template, rest) = unit.split_once('@').unwrap();
        let instance = rest.strip_suffix(".service").unwrap();
        let text = text(&format!("deploy/systemd/{template}@.service"));
        // What systemd makes of these: the instance, and the directory of credentials.
        let told = |value: &String| value.replace("%i", instance).replace("%d", "/run/credentials/unit");
        let env: Vec<String> = unit_values(&text, "Environment").iter().map(told).collect();
        let exec = unit_values(&text, "ExecStart");
        assert_eq!(exec.len(), 1, "{unit}");
        let exec = told(&exec[0]);
        let mut words = exec.split_whitespace();
        assert_eq!(words.next(), Some("/usr/local/bin/tenaz"), "{unit}");
        let launch = Launch {
            from: format!("systemd, {unit}"),
            args: words.map(str::to_owned).collect(),
            env: variables(env.iter().map(String::as_str)),
            shared: shared.clone(),
            grace_s: seconds(&unit_values(&text, "TimeoutStopSec")[0]),
        };
        (unit, launch, text)
    };
    units().into_iter().map(launch).collect()
}

fn variables<'a>(lines: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let pairs = lines.filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Every process of every file.
pub fn launches() -> Vec<Launch> {
    let all = compose_launches().into_iter().map(|(_, launch, _)| launch);
    let all = all.chain(kubernetes_launches().into_iter().map(|(_, launch, _)| launch));
    all.chain(systemd_launches().into_iter().map(|(_, launch, _)| launch)).collect()
}
