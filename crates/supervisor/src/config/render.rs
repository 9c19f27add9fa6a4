//! A `cluster.toml` with a word about every field.

use std::fmt::Write;

use tenaz_words::show_span;

use super::{BackEnd, Config, Machine};

const HEAD: &str = "\
# A tenaz cluster. `tenaz up` wrote this file; it may be changed while the cluster is down.
# For several machines: copy this directory's files cluster.toml, key and id to each of them, and run there
# `tenaz supervisor --cluster DIR --id N` for each supervisor that this file puts on that machine.

";

pub(super) fn render(config: &Config) -> String {
    let mut out = String::from(HEAD);
    // Writing to a String cannot fail.
    let _ = write(&mut out, config);
    out
}

fn write(out: &mut String, config: &Config) -> std::fmt::Result {
    writeln!(out, "name = {:<26} # what people call it: letters, digits, - and _", text(&config.name))?;
    writeln!(out, "prefix = {:<24} # what all names on the broker begin with", text(&config.prefix))?;
    match &config.broker {
        Some(broker) => {
            writeln!(out, "# where RabbitMQ is; several nodes of one cluster with commas")?;
            writeln!(out, "broker = {}", text(broker.url()))?;
        }
        None => writeln!(out, "# broker = \"amqp://user:password@host:5672/%2f\"   # instead of [broker-node]")?,
    }
    let key_file = config.key_file.display().to_string();
    writeln!(out, "key-file = {:<22} # the shared secret, relative to this file", text(&key_file))?;
    if let Some(node) = &config.broker_node {
        writeln!(
            out,
            "\n# A private RabbitMQ node that the cluster runs itself, reachable on 127.0.0.1 only.\n[broker-node]"
        )?;
        writeln!(out, "machine = {:<23} # on which machine", text(&node.machine))?;
        writeln!(out, "port = {:<26} # AMQP", node.port)?;
    }
    sections(out, config)?;
    for machine in &config.machines {
        self::machine(out, machine)?;
    }
    writeln!(out, "\n# Who watches. A majority of these must agree on a leader: use an odd number.")?;
    writeln!(out, "# listen: TCP for the other supervisors and `tenaz status`, UDP for heartbeats.")?;
    for supervisor in &config.supervisors {
        writeln!(out, "[[supervisor]]\nid = {}", supervisor.id)?;
        writeln!(out, "machine = {}", text(&supervisor.machine))?;
        writeln!(out, "listen = {}", text(&supervisor.listen.to_string()))?;
    }
    Ok(())
}

fn sections(out: &mut String, config: &Config) -> std::fmt::Result {
    let (supervision, restarts) = (&config.supervision, &config.restarts);
    let time = |time| text(&show_span(time));
    let count = |count: u32| count.to_string();
    let mut section = |title: &str, lines: &[(&str, String, &str)]| {
        writeln!(out, "\n[{title}]")?;
        for (name, value, comment) in lines {
            writeln!(out, "{:<33} # {comment}", format!("{name} = {value}"))?;
        }
        Ok(())
    };
    section(
        "supervision",
        &[
            (
                "heartbeat-every",
                time(supervision.heartbeat_every),
                "how often a process that supervisors start says that it lives",
            ),
            ("hang-after", time(supervision.hang_after), "no progress for so long: killed and replaced"),
            ("start-within", time(supervision.start_within), "not ready by then: a failed start"),
        ],
    )?;
    section(
        "restarts",
        &[
            ("backoff", time(restarts.backoff), "before the second restart, the first being immediate; doubles"),
            ("backoff-cap", time(restarts.backoff_cap), "the longest wait"),
            ("healthy-after", time(restarts.healthy_after), "ready for so long: the backoff begins anew"),
            ("failed-starts", count(restarts.failed_starts), "so many lives in a row that never got ready: given up"),
            ("per-process", count(restarts.per_process), "restarts of one process within `window`; more: given up"),
            ("per-cluster", count(restarts.per_cluster), "restarts of all processes within `window`"),
            ("window", time(restarts.window), "the time over which restarts are counted"),
        ],
    )
}

fn machine(out: &mut String, machine: &Machine) -> std::fmt::Result {
    writeln!(out, "\n[[machine]]\nname = {}", text(&machine.name))?;
    writeln!(out, "address = {:<23} # where the other machines reach it", text(&machine.address.to_string()))?;
    writeln!(
        out,
        "back-end = {:<22} # what runs its processes: processes, docker or systemd",
        text(machine.back_end.as_str())
    )?;
    match &machine.back_end {
        BackEnd::Processes => {
            writeln!(out, "workers = {}", machine.workers)?;
            let gateways: Vec<String> = machine.gateways.iter().map(ToString::to_string).collect();
            writeln!(out, "gateways = {}   # where they listen: one gateway each", list(&gateways))?;
        }
        BackEnd::Docker(docker) => {
            let socket = docker.socket.display().to_string();
            writeln!(out, "# the engine's socket, and the label of the containers that belong to this cluster")?;
            writeln!(out, "docker = {{ socket = {}, label = {} }}", text(&socket), text(&docker.label))?;
        }
        BackEnd::Systemd(systemd) => {
            writeln!(out, "# the units that belong to this cluster; user: of the user's systemd, not the system's")?;
            writeln!(out, "systemd = {{ units = {}, user = {} }}", list(&systemd.units), systemd.user)?;
        }
    }
    if machine.back_end != BackEnd::Processes {
        return Ok(());
    }
    writeln!(out, "worker-options = {}   # more options for each `tenaz worker`", list(&machine.worker_options))?;
    writeln!(out, "gateway-options = {}   # more options for each `tenaz gateway`", list(&machine.gateway_options))
}

/// A TOML string: quoted and escaped by the TOML writer.
fn text(value: &str) -> String {
    toml::Value::String(value.to_owned()).to_string()
}

fn list(values: &[String]) -> String {
    let values: Vec<String> = values.iter().map(|value| text(value)).collect();
    format!("[{}]", values.join(", "))
}
