#![allow(clippy::unwrap_used)]

use super::*;

const FULL: &str = r#"
name = "demo"
prefix = "tenaz"
key-file = "key"
[broker-node]
machine = "here"
port = 5673
[supervision]
heartbeat-every = "500ms"
[restarts]
window = "10m"
[[machine]]
name = "here"
address = "127.0.0.1"
back-end = "processes"
workers = 2
gateways = ["127.0.0.1:7400", "127.0.0.1:7401"]
worker-options = ["--threads", "1"]
[[supervisor]]
id = 2
machine = "here"
listen = "127.0.0.1:7502"
[[supervisor]]
id = 1
machine = "here"
listen = "127.0.0.1:7501"
"#;

fn error(text: &str) -> String {
    Config::parse(text, "cluster.toml").unwrap_err().to_string()
}

#[test]
fn a_file_becomes_processes_in_the_order_of_their_start() {
    let config = Config::parse(FULL, "cluster.toml").unwrap();
    let names: Vec<String> = config.processes().iter().map(|p| p.name.to_string()).collect();
    assert_eq!(names, ["supervisor-1", "supervisor-2", "broker-1", "worker-1", "worker-2", "gateway-1", "gateway-2"]);
    assert_eq!(config.processes()[3].options, ["--threads", "1"]);
    assert_eq!(config.processes()[6].listen, Some("127.0.0.1:7401".parse().unwrap()));
    assert_eq!((config.majority(), config.supervision.hang_after), (2, Duration::from_secs(3)));
    assert_eq!(config.warnings().len(), 1, "two supervisors are no better than one");
}

#[test]
fn the_file_that_is_written_is_read_as_the_same_cluster() {
    let config = Config::parse(FULL, "cluster.toml").unwrap();
    assert_eq!(Config::parse(&config.to_toml(), "again").unwrap(), config);
    let text = r#"
name = "far"
broker = "amqp://u:p\"q@host:5672/%2f"
[[machine]]
name = "a"
address = "10.0.0.1"
back-end = "docker"
[[machine]]
name = "b"
address = "10.0.0.2"
back-end = "systemd"
systemd = { units = ["tenaz-worker@1.service"], user = true }
[[supervisor]]
id = 1
machine = "a"
listen = "10.0.0.1:7500"
[[supervisor]]
id = 2
machine = "b"
listen = "10.0.0.2:7500"
"#;
    let far = Config::parse(text, "cluster.toml").unwrap();
    assert_eq!(far.processes().len(), 2, "Docker and systemd know what they have");
    assert!(matches!(&far.machines[0].back_end, BackEnd::Docker(d) if d.label == "tenaz.cluster=far"));
    assert_eq!(Config::parse(&far.to_toml(), "again").unwrap(), far);
}

#[test]
fn every_field_of_a_written_file_has_a_word_about_it() {
    let written = Config::parse(FULL, "cluster.toml").unwrap().to_toml();
    let told = |line: &str| line.is_empty() || line.starts_with(['#', '[']) || line.contains(" # ");
    let obvious = ["workers", "name = \"here\"", "id = ", "machine = \"here\"", "listen = "];
    let bare: Vec<&str> =
        written.lines().filter(|line| !told(line) && !obvious.iter().any(|o| line.starts_with(o))).collect();
    assert_eq!(bare, Vec::<&str>::new());
}

#[test]
fn mistakes_are_named_with_place_and_cure() {
    let with = |from: &str, to: &str| error(&FULL.replacen(from, to, 1));
    let cases = [
        (
            with("heartbeat-every", "heartbeet-every"),
            "9:1: `heartbeet-every` is not known here; did you mean `heartbeat-every`?",
        ),
        (with("\"500ms\"", "\"500\""), "9:19: \"500\" is no time; write one such as 500ms, 90s, 10m or 2h"),
        (with("\"500ms\"", "\"2s\""), "9:19: hang-after 3s is less than 3 heartbeats of 2s; raise"),
        (
            with("\"processes\"", "\"procesess\""),
            "15:12: there is no back-end \"procesess\"; did you mean \"processes\"?",
        ),
        (
            with("machine = \"here\"\nlisten", "machine = \"hree\"\nlisten"),
            "21:11: there is no machine \"hree\"; did you mean \"here\"?",
        ),
        (with("id = 1", "id = 2"), "24:6: id 2 is there twice"),
        (with(":7502", ":7400"), "17:13: a gateway of \"here\" and supervisor 2 both listen on 127.0.0.1:7400"),
        (with(":7502", ":0"), "22:10: \"127.0.0.1:0\" would be another port"),
        (with("\"--threads\"", "\"--broker=x\""), "18:19: \"--broker=x\" is set by the supervisors"),
        (with("name = \"demo\"\n", ""), "`name` is missing; add a line `name = …` here"),
        (with("name = \"demo\"", "name = \"de mo\""), "2:8: the cluster name \"de mo\" is not usable"),
        (with("[broker-node]\nmachine = \"here\"\nport = 5673\n", ""), "1:1: there is no broker; add"),
        (with("prefix = \"tenaz\"", "broker = \"amqp://a\""), "3:10: there are two brokers; keep"),
        (with("workers = 2", "workers = -2"), "16:11: "),
        (with("workers = 2", "workers = 2000"), "2000 workers and 2 gateways are too many for one machine"),
        (
            with("workers = 2", "docker = { label = \"a=b\" }"),
            "16:10: `docker` is set, but the back-end is \"processes\"",
        ),
        (with("window = \"10m\"", "per-process = 0"), "11:15: 0 would forbid every start"),
        (with("window = \"10m\"", "backoff = \"1h\""), "11:11: backoff 1h is longer than backoff-cap 30s"),
        (with("name = \"demo\"", "name = demo"), "2:8: "),
    ];
    for (found, expected) in cases {
        assert!(found.contains(expected), "{found}\n  should contain {expected}");
    }
}

#[test]
fn a_machine_with_processes_needs_a_supervisor_and_a_way_to_the_broker() {
    let lonely = format!("{FULL}[[machine]]\nname = \"there\"\naddress = \"127.0.0.2\"\nworkers = 1\n");
    assert!(error(&lonely).contains("machine \"there\" has processes but no supervisor"), "{}", error(&lonely));
    let far = lonely.replace("127.0.0.2", "10.0.0.9");
    assert!(error(&far).contains("machine \"there\" cannot reach a private node"), "{}", error(&far));
}

#[test]
fn options_for_processes_that_others_start_are_refused() {
    let docker = FULL.replace("back-end = \"processes\"", "back-end = \"docker\"").replace("workers = 2\n", "");
    let docker = docker.replace("gateways = [\"127.0.0.1:7400\", \"127.0.0.1:7401\"]\n", "");
    let error = error(&docker);
    assert!(error.contains("has options for its processes, but docker starts them"), "{error}");
}
