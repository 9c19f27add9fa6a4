//! Every key that `cluster.toml` may have changes something: what a process is started with, how it is kept alive, what its
//! back-end is told, or what people are shown.
//!
//! The keys are those that the reader itself names when it meets an unknown one. So a new key fails this test until there is
//! another value for it in [`OTHER_VALUES`], and until that value arrives somewhere.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tenaz_core::Incarnation;
use toml::{Table, Value};

use super::{BackEnd, Config, ConfigError};
use crate::command::ProcessCommand;
use crate::driver::reign::policy;
use crate::home::Home;
use crate::status::without_supervisors;

/// A cluster of child processes on two machines, with every key that such a cluster can have.
const PROCESSES: &str = r#"
name = "demo"
prefix = "tenaz"
key-file = "key"
broker-node = { machine = "here", port = 5673 }
[supervision]
heartbeat-every = "500ms"
hang-after = "3s"
start-within = "60s"
[restarts]
backoff = "500ms"
backoff-cap = "30s"
healthy-after = "10s"
failed-starts = 5
per-process = 30
per-cluster = 150
window = "10m"
[[machine]]
name = "here"
address = "127.0.0.1"
back-end = "processes"
workers = 1
gateways = ["127.0.0.1:7400"]
worker-options = ["--threads", "1"]
gateway-options = ["--drain", "1s"]
[[machine]]
name = "there"
address = "127.0.0.2"
[[supervisor]]
id = 1
machine = "here"
listen = "127.0.0.1:7501"
[[supervisor]]
id = 2
machine = "there"
listen = "127.0.0.2:7502"
[[supervisor]]
id = 3
machine = "here"
listen = "127.0.0.1:7503"
"#;

/// The same for Docker and systemd, and for a broker that others run.
const ENGINES: &str = r#"
name = "demo"
broker = "amqp://host"
[[machine]]
name = "a"
address = "127.0.0.1"
back-end = "docker"
docker = { socket = "/run/docker.sock", label = "a=b" }
[[machine]]
name = "b"
address = "127.0.0.2"
back-end = "systemd"
systemd = { units = ["tenaz-worker@1.service"], user = false }
[[machine]]
name = "c"
address = "127.0.0.3"
workers = 1
[[supervisor]]
id = 1
machine = "a"
listen = "127.0.0.1:7501"
[[supervisor]]
id = 2
machine = "b"
listen = "127.0.0.2:7501"
[[supervisor]]
id = 3
machine = "c"
listen = "127.0.0.3:7501"
"#;

/// Another value for each key, in TOML. Where a machine is renamed, so are all who mean it.
const OTHER_VALUES: [(&str, &str); 30] = [
    ("name", "\"other\""),
    ("prefix", "\"other\""),
    ("broker", "\"amqp://other\""),
    ("key-file", "\"other\""),
    ("broker-node.machine", "\"there\""),
    ("broker-node.port", "5674"),
    ("supervision.heartbeat-every", "\"600ms\""),
    ("supervision.hang-after", "\"4s\""),
    ("supervision.start-within", "\"61s\""),
    ("restarts.backoff", "\"600ms\""),
    ("restarts.backoff-cap", "\"31s\""),
    ("restarts.healthy-after", "\"11s\""),
    ("restarts.failed-starts", "6"),
    ("restarts.per-process", "31"),
    ("restarts.per-cluster", "151"),
    ("restarts.window", "\"11m\""),
    ("machine.name", "\"elsewhere\""),
    ("machine.address", "\"127.0.0.9\""),
    ("machine.back-end", "\"docker\""),
    ("machine.workers", "2"),
    ("machine.gateways", "[\"127.0.0.1:7401\"]"),
    ("machine.worker-options", "[\"--threads\", \"2\"]"),
    ("machine.gateway-options", "[\"--drain\", \"2s\"]"),
    ("machine.docker.socket", "\"/run/other.sock\""),
    ("machine.docker.label", "\"c=d\""),
    ("machine.systemd.units", "[\"tenaz-worker@2.service\"]"),
    ("machine.systemd.user", "true"),
    ("supervisor.id", "7"),
    ("supervisor.machine", "\"there\""),
    ("supervisor.listen", "\"127.0.0.1:7509\""),
];

/// Everything that a description leads to, as text.
fn effects(text: &str) -> Result<String, ConfigError> {
    let config = Config::parse(text, "cluster.toml")?;
    // One for all, or each would differ by its key and its id.
    static HOME: OnceLock<(tempfile::TempDir, Home)> = OnceLock::new();
    let (_, home) = HOME.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::create(dir.path()).unwrap();
        (dir, home)
    });
    let mut found = format!("{:?} {}", policy(&config), without_supervisors(home, &config).cluster);
    for spec in config.processes() {
        let command = ProcessCommand::new("tenaz".into(), home, &config, &spec, Incarnation(1));
        found += &match command {
            Ok(command) => format!("\n{:?} {:?}", command.arguments, command.environment),
            Err(error) => format!("\n{error}"),
        };
    }
    // The executor takes these apart as a whole, and gives all of it to the back-end.
    let engines = config.machines.iter().filter(|machine| machine.back_end != BackEnd::Processes);
    found.extend(engines.map(|machine| format!("\n{:?}", machine.back_end)));
    Ok(found)
}

/// Calls `visit` with every table of a document, by the path of its keys.
fn tables(table: &mut Table, path: &str, visit: &mut dyn FnMut(&str, &mut Table)) {
    visit(path, table);
    for (key, value) in table {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            Value::Table(inner) => tables(inner, &path, visit),
            Value::Array(list) => {
                list.iter_mut().filter_map(Value::as_table_mut).for_each(|inner| tables(inner, &path, visit));
            }
            _ => {}
        }
    }
}

/// The document with the `number`th table changed, and the path of that table. `None`: there are fewer.
fn changed(base: &str, number: usize, change: impl Fn(&mut Table)) -> Option<(String, String)> {
    let mut document: Table = base.parse().unwrap();
    let (mut count, mut at) = (0, None);
    tables(&mut document, "", &mut |path, table| {
        if count == number {
            at = Some(path.to_owned());
            change(table);
        }
        count += 1;
    });
    Some((at?, document.to_string()))
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// All keys that the reader knows, by their paths.
fn known_keys() -> BTreeSet<String> {
    const UNKNOWN: &str = "qqqqqqqqqqqqqqqqqqqq";
    let mut known = BTreeSet::new();
    for base in [PROCESSES, ENGINES] {
        for number in 0.. {
            let unknown = |table: &mut Table| drop(table.insert(UNKNOWN.to_owned(), Value::Integer(1)));
            let Some((path, text)) = changed(base, number, unknown) else { break };
            let error = Config::parse(&text, "cluster.toml").unwrap_err().to_string();
            let (_, keys) = error.split_once("write one of ").unwrap_or_else(|| panic!("{path}: {error}"));
            known.extend(keys.split(", ").map(|key| join(&path, key)));
        }
    }
    known
}

/// Whether another value of this key, in any place that has it, leads to anything else.
fn has_an_effect(key: &str, value: &str) -> bool {
    let (path, name) = key.rsplit_once('.').unwrap_or(("", key));
    let value: Value = format!("x = {value}").parse::<Table>().unwrap()["x"].clone();
    let mut found = false;
    for base in [PROCESSES, ENGINES] {
        for number in 0.. {
            let was = std::cell::RefCell::new(None);
            let set = |table: &mut Table| *was.borrow_mut() = table.insert(name.to_owned(), value.clone());
            let Some((at, mut text)) = changed(base, number, set) else { break };
            if at != path {
                continue;
            }
            if let (true, Some(Value::String(old))) = (key == "machine.name", was.borrow().as_ref()) {
                text = text.replace(&format!("machine = {old:?}"), &format!("machine = {value}"));
            }
            found |= effects(&text).is_ok_and(|other| other != effects(base).unwrap());
        }
    }
    found
}

#[test]
fn every_key_of_the_description_has_an_effect() {
    let mut without: Vec<String> = Vec::new();
    for key in known_keys() {
        let value = OTHER_VALUES.iter().find(|(known, _)| *known == key).map(|(_, value)| *value);
        let is_table = OTHER_VALUES.iter().any(|(known, _)| known.starts_with(&format!("{key}.")));
        match value {
            Some(value) if has_an_effect(&key, value) => {}
            // What it is made of is tried one by one.
            None if is_table => {}
            Some(_) => without.push(format!("{key} changes nothing")),
            None => without.push(format!("{key} has no other value to try in this test")),
        }
    }
    assert_eq!(without, Vec::<String>::new());
    let stale: Vec<&str> =
        OTHER_VALUES.iter().map(|(key, _)| *key).filter(|key| !known_keys().contains(*key)).collect();
    assert_eq!(stale, Vec::<&str>::new(), "the reader does not know these any more");
}
