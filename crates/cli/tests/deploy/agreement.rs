//! What several files say about the same thing is the same.

use serde_json::Value;

use super::files::{
    bytes, cluster, compose, compose_launches, kubernetes, kubernetes_launches, launches, listens, port, seconds,
    strings, systemd_launches, text, unit_values, units,
};

/// Processes of each kind, in every file that has them.
const WORKERS: u64 = 3;
const GATEWAYS: u64 = 2;
const SUPERVISORS: usize = 3;

#[test]
fn whoever_is_told_to_stop_has_time_to_finish() {
    for launch in launches() {
        if launch.role() == "supervisor" {
            continue;
        }
        let drain = launch.variable("TENAZ_DRAIN").unwrap_or_else(|| panic!("{}: no TENAZ_DRAIN", launch.from));
        assert!(launch.grace_s > seconds(drain) + 5, "{}: {} s for a drain of {drain}", launch.from, launch.grace_s);
    }
}

#[test]
fn the_numbers_of_processes_are_the_same_everywhere() {
    let services = compose_launches();
    let count = |role: &str| services.iter().filter(|(_, launch, _)| launch.role() == role).count();
    assert_eq!((count("worker"), count("gateway"), count("supervisor")), (1, GATEWAYS as usize, SUPERVISORS));
    assert_eq!(compose()["services"]["worker"]["deploy"]["replicas"], WORKERS);

    for (name, launch, deployment) in kubernetes_launches() {
        let expected = if launch.role() == "worker" { WORKERS } else { GATEWAYS };
        assert_eq!(deployment["spec"]["replicas"], expected, "{name}");
        assert_ne!(launch.role(), "supervisor", "Kubernetes restarts by itself");
    }

    let units = units();
    let count = |role: &str| units.iter().filter(|unit| unit.starts_with(&format!("tenaz-{role}@"))).count();
    assert_eq!((count("worker"), count("gateway")), (WORKERS as usize, GATEWAYS as usize));
    assert_eq!(count("supervisor"), SUPERVISORS);
    // The README enables just these.
    let readme = text("deploy/README.md");
    for (role, instances) in [("worker", "1,2,3"), ("gateway", "8080,8081"), ("supervisor", "1,2,3")] {
        assert!(readme.contains(&format!("tenaz-{role}@{{{instances}}}")), "{role}");
        for instance in instances.split(',') {
            assert!(units.contains(&format!("tenaz-{role}@{instance}.service")), "{role} {instance}");
        }
    }
}

#[test]
fn supervisors_find_containers_by_their_labels() {
    let cluster = cluster("deploy/cluster.toml");
    let machine = &cluster["machine"][0];
    assert_eq!(machine["back-end"].as_str(), Some("docker"));
    let docker = &machine["docker"];
    let (key, value) = docker["label"].as_str().unwrap().split_once('=').unwrap();
    for (name, launch, service) in compose_launches() {
        let labels = &service["labels"];
        assert_eq!(labels[key], value, "{name}");
        assert_eq!(labels["tenaz.role"], launch.role(), "{name}");
        // One service, one container: it has a name of its own, also in heartbeats. Many containers have their hostnames.
        let scaled = service["deploy"]["replicas"].is_number();
        assert_eq!(labels["tenaz.process"].as_str(), (!scaled).then_some(name.as_str()), "{name}");
        if launch.role() == "gateway" {
            assert_eq!(launch.variable("TENAZ_NAME"), Some(name.as_str()));
        }
    }
    assert!(compose()["services"]["rabbitmq"]["labels"].is_null(), "the broker is the engine's to restart");
    let socket = docker["socket"].as_str().unwrap();
    for (name, launch, service) in compose_launches() {
        let has =
            service["volumes"].as_array().into_iter().flatten().filter_map(Value::as_str).any(|v| v.contains(socket));
        assert_eq!(has, launch.role() == "supervisor", "{name}: only supervisors have the engine's socket");
    }
}

#[test]
fn one_of_two_restarts_and_not_both() {
    for (name, launch, service) in compose_launches() {
        let expected = if launch.role() == "supervisor" { "unless-stopped" } else { "no" };
        assert_eq!(service["restart"], expected, "{name}");
        // Dependants are stopped first, so that the end of all is not taken for a death.
        if launch.role() == "supervisor" {
            for other in ["worker", "gateway-1", "gateway-2"] {
                assert!(service["depends_on"][other].is_object(), "{name} does not depend on {other}");
            }
        }
    }
    for (unit, launch, text) in systemd_launches() {
        let expected = if launch.role() == "supervisor" { "always" } else { "no" };
        assert_eq!(unit_values(&text, "Restart"), [expected], "{unit}");
        assert_eq!(unit_values(&text, "KillSignal"), ["SIGTERM"], "{unit}");
        let after = unit_values(&text, "After").iter().any(|after| after == "tenaz.target");
        assert_eq!(after, launch.role() == "supervisor", "{unit}: supervisors are stopped first");
    }
}

#[test]
fn heartbeats_go_where_supervisors_listen() {
    let containers = listens(&cluster("deploy/cluster.toml"));
    let units = listens(&cluster("deploy/systemd/cluster.toml"));
    assert_eq!((containers.len(), units.len()), (SUPERVISORS, SUPERVISORS));
    for (name, launch, _) in compose_launches().iter().filter(|(_, launch, _)| launch.role() != "supervisor") {
        assert_eq!(launch.variable("TENAZ_SUPERVISORS"), Some(containers.join(",").as_str()), "{name}");
    }
    for (unit, launch, _) in systemd_launches() {
        assert_eq!(launch.variable("TENAZ_SUPERVISORS"), Some(units.join(",").as_str()), "{unit}");
    }
    // Supervisor N has the N-th address.
    let subnet = &compose()["networks"]["cluster"]["ipam"]["config"][0]["subnet"];
    let network = subnet.as_str().unwrap().strip_suffix("0/24").unwrap();
    for (name, launch, service) in compose_launches().iter().filter(|(_, launch, _)| launch.role() == "supervisor") {
        let id: usize = launch.setting("--id", "TENAZ_SUPERVISOR_ID").unwrap().parse().unwrap();
        assert_eq!(*name, format!("supervisor-{id}"));
        let address = service["networks"]["cluster"]["ipv4_address"].as_str().unwrap();
        assert!(address.starts_with(network), "{address} is not in {subnet}");
        assert_eq!(format!("{address}:{}", port(&containers[id - 1])), containers[id - 1]);
    }
    for path in ["deploy/cluster.toml", "deploy/systemd/cluster.toml"] {
        let address = cluster(path)["machine"][0]["address"].as_str().unwrap().to_owned();
        assert!(listens(&cluster(path))[0].starts_with(&address), "{path}");
    }
}

#[test]
fn gateways_are_reached_where_they_listen() {
    for (name, launch, service) in compose_launches().iter().filter(|(_, launch, _)| launch.role() == "gateway") {
        let published = strings(&service["ports"]);
        let mut parts = published[0].rsplit(':');
        let (inner, outer) = (parts.next().unwrap(), parts.next().unwrap());
        assert_eq!(inner, launch.client_port().to_string(), "{name}");
        assert!(launch.variable("TENAZ_URL").unwrap().ends_with(&format!(":{outer}")), "{name}");
        assert!(text("deploy/README.md").contains(launch.variable("TENAZ_URL").unwrap()), "{name}");
    }
    for (unit, launch, _) in systemd_launches().iter().filter(|(_, launch, _)| launch.role() == "gateway") {
        assert!(unit.contains(&format!("@{}.", launch.client_port())), "{unit}");
    }
    let objects = kubernetes();
    let service = objects.iter().find(|object| object["kind"] == "Service").unwrap();
    let gateways = kubernetes_launches().into_iter().find(|(name, ..)| name == "gateway").unwrap();
    let pod_labels = &gateways.2["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&service["spec"]["selector"], pod_labels);
    let url = gateways.1.variable("TENAZ_URL").unwrap();
    assert_eq!(url, format!("https://gateway:{}", service["spec"]["ports"][0]["port"]));
}

#[test]
fn kubernetes_asks_for_health_where_it_is_answered() {
    for (name, launch, deployment) in kubernetes_launches() {
        let pod = &deployment["spec"]["template"]["spec"];
        let container = &pod["containers"][0];
        let http = &container["ports"][0];
        assert_eq!((&http["name"], &http["containerPort"]), (&"http".into(), &launch.health_port().into()), "{name}");
        for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            let get = &container[probe]["httpGet"];
            assert_eq!((&get["path"], &get["port"]), (&path.into(), &"http".into()), "{name}, {probe}");
        }
        assert_eq!(deployment["spec"]["selector"]["matchLabels"], deployment["spec"]["template"]["metadata"]["labels"]);
        let budgets = kubernetes();
        let budget = budgets.iter().find(|o| o["kind"] == "PodDisruptionBudget" && o["metadata"]["name"] == *name);
        assert_eq!(budget.unwrap()["spec"]["selector"], deployment["spec"]["selector"], "{name}");
        let security = &container["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        let mounts: Vec<&str> =
            container["volumeMounts"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
        let volumes: Vec<&str> =
            pod["volumes"].as_array().unwrap().iter().map(|v| v["name"].as_str().unwrap()).collect();
        assert_eq!(mounts, volumes, "{name}");
    }
}

#[test]
fn memory_suffices_for_what_workers_are_told_to_use() {
    // Rows at rest, and twice that for what tasks compute with.
    let needs = |launch: &super::files::Launch| 3 * bytes(launch.variable("TENAZ_MEMORY").unwrap());
    for (name, launch, service) in compose_launches() {
        let limit = bytes(service["deploy"]["resources"]["limits"]["memory"].as_str().unwrap());
        assert!(launch.role() != "worker" || limit >= needs(&launch), "{name}");
    }
    for (name, launch, deployment) in kubernetes_launches() {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let limit = bytes(container["resources"]["limits"]["memory"].as_str().unwrap());
        assert!(launch.role() != "worker" || limit >= needs(&launch), "{name}");
    }
}

#[test]
fn nothing_travels_in_clear_and_no_worker_or_gateway_can_give_orders() {
    for launch in launches() {
        if launch.role() != "supervisor" {
            assert!(launch.variable("TENAZ_BROKER").unwrap().starts_with("amqps://"), "{}", launch.from);
            assert!(launch.variable("TENAZ_CA_FILE").is_some(), "{}: whose certificate is believed?", launch.from);
            let key = launch.variable("TENAZ_KEY_FILE").unwrap_or("heartbeat-key");
            assert!(key.ends_with("heartbeat-key"), "{}", launch.from);
        }
        if launch.role() == "gateway" {
            assert!(launch.variable("TENAZ_TLS_CERT").is_some(), "{}", launch.from);
            assert!(launch.variable("TENAZ_URL").is_none_or(|url| url.starts_with("https://")), "{}", launch.from);
        }
    }
    for path in ["deploy/cluster.toml", "deploy/systemd/cluster.toml"] {
        assert!(cluster(path)["broker"].as_str().unwrap().starts_with("amqps://"), "{path}");
    }
    for (name, launch, service) in compose_launches() {
        let has = service["secrets"].as_array().unwrap().iter().any(|secret| secret == "cluster-key");
        assert_eq!(has, launch.role() == "supervisor", "{name}");
    }
    for (unit, _, text) in systemd_launches() {
        assert!(!unit_values(&text, "LoadCredential").iter().any(|loaded| loaded.contains("cluster-key")), "{unit}");
    }
    for path in ["deploy/compose.yaml", "deploy/kubernetes/tenaz.yaml", "deploy/systemd/tenaz.env", "deploy/README.md"]
    {
        assert!(!text(path).contains("amqp://"), "{path}");
    }
}

#[test]
fn secrets_are_files_that_make_secrets_makes() {
    let script = text("deploy/make-secrets");
    let compose = compose();
    for (name, secret) in compose["secrets"].as_object().unwrap() {
        let file = secret["file"].as_str().unwrap().strip_prefix("secrets/").unwrap();
        assert!(script.contains(&format!("> \"$dir/{file}\"")), "{name}");
    }
    let used = |service: &Value| {
        service["secrets"].as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, launch, service) in compose_launches() {
        for secret in launch.env.values().filter_map(|value| value.strip_prefix("/run/secrets/")) {
            assert!(used(&service).iter().any(|used| used == secret), "{name} is not given {secret}");
        }
    }
    for (unit, launch, text) in systemd_launches() {
        for secret in launch.env.values().filter_map(|value| value.strip_prefix("/run/credentials/unit/")) {
            let loaded = format!("{secret}:/etc/tenaz/{secret}");
            assert!(unit_values(&text, "LoadCredential").contains(&loaded), "{unit} does not load {secret}");
        }
    }
    assert!(text(".gitignore").lines().any(|line| line == "/deploy/secrets"));
}
