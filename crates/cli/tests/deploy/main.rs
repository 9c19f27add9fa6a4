//! The deployment files cannot rot: what they say is tried with the real program, and they agree with each other.
#![allow(clippy::print_stderr, clippy::unwrap_used, unreachable_pub)]

mod agreement;
mod files;
mod image;
mod trial;

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use sha2::{Digest as _, Sha256};

use trial::{Trial, help};

/// `EX_TEMPFAIL`: the broker is away, which is all that is wrong.
const AWAY: i32 = 75;

#[test]
fn every_command_line_is_understood() {
    let trial = Trial::new();
    for launch in files::launches() {
        let cluster = match launch.from.starts_with("systemd") {
            true => "deploy/systemd/cluster.toml",
            false => "deploy/cluster.toml",
        };
        let output = trial.run(&launch, cluster);
        let expected = if launch.role() == "supervisor" { 0 } else { AWAY };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{}: tenaz {}\n{said}", launch.from, launch.args.join(" "));
    }
}

#[test]
fn health_is_asked_for_in_words_that_the_program_knows() {
    let test = |service: &serde_json::Value| files::strings(&service["healthcheck"]["test"]);
    for (name, launch, service) in files::compose_launches() {
        let words = test(&service);
        assert_eq!(words[..3], ["CMD", "tenaz", "probe"], "{name}");
        assert_eq!(words[3], format!("http://127.0.0.1:{}/readyz", launch.health_port()), "{name}");
        let output = Command::new(env!("CARGO_BIN_EXE_tenaz")).args(["probe", "http://127.0.0.1:1/readyz"]).output();
        assert_eq!(output.unwrap().status.code(), Some(1), "nobody answers there");
    }
    assert_eq!(test(&files::compose()["services"]["rabbitmq"]), ["CMD", "rabbitmq-diagnostics", "-q", "ping"]);
}

#[test]
fn every_variable_is_one_that_its_process_knows() {
    for launch in files::launches() {
        let help = help(launch.role());
        for name in launch.env.keys() {
            assert!(
                help.contains(&format!("[env: {name}=")),
                "{}: `tenaz {}` has no {name}",
                launch.from,
                launch.role()
            );
        }
    }
    let all: String = ["worker", "gateway", "supervisor", "submit", "status"].iter().map(|role| help(role)).collect();
    for file in [
        "deploy/README.md",
        "deploy/compose.yaml",
        "deploy/make-secrets",
        "deploy/kubernetes/tenaz.yaml",
        "deploy/systemd/tenaz.env",
        "deploy/systemd/tenaz-worker@.service",
        "deploy/systemd/tenaz-gateway@.service",
        "deploy/systemd/tenaz-supervisor@.service",
    ] {
        for name in variables_in(&files::text(file)) {
            assert!(all.contains(&format!("[env: {name}")), "{file}: {name} is unknown");
        }
    }
}

/// All `TENAZ_…` in a text.
fn variables_in(text: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c: char| !part(c)).filter(|word| word.starts_with("TENAZ_"));
    words.map(str::to_owned).collect()
}

#[test]
fn secrets_are_made_once_and_belong_together() {
    let trial = Trial::new();
    let read = |name: &str| std::fs::read_to_string(trial.secret(name)).unwrap();
    let credentials = read("credentials");
    let password = credentials.trim_end().strip_prefix("tenaz:").unwrap();
    assert_eq!(password.len(), 48);
    let broker = read("rabbitmq.conf");
    assert!(broker.starts_with(&format!("default_user = tenaz\ndefault_pass = {password}\n")), "{broker}");
    assert!(broker.contains("listeners.tcp = none\n"), "nobody logs in in clear: {broker}");
    let key = read("cluster-key");
    assert!(key.trim_end().len() == 64 && key.trim_end().bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
    let hash: String = Sha256::digest(read("token").trim_end()).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(read("tokens"), format!("tenant:{hash}\n"));

    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(trial.secret("")), 0o700, "nobody gets past the directory");
    for name in ["credentials", "cluster-key", "heartbeat-key", "tokens", "token", "ca-key", "gateway-key"] {
        assert_eq!(mode(trial.secret(name)), 0o600, "{name}");
    }

    let again = Command::new(files::root().join("deploy/make-secrets")).arg(trial.secret("")).output().unwrap();
    assert_eq!(again.status.code(), Some(1), "what is there stays");
    assert_eq!(read("credentials"), credentials);
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let dir = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for name in ["tenaz-worker@.service", "tenaz-gateway@.service", "tenaz-supervisor@.service", "tenaz.target"] {
        // A program that is there: systemd looks.
        let text = files::text(&format!("deploy/systemd/{name}"));
        let path = dir.path().join(name);
        std::fs::write(&path, text.replace("/usr/local/bin/tenaz", env!("CARGO_BIN_EXE_tenaz"))).unwrap();
        paths.push(path);
    }
    let Ok(output) = Command::new("systemd-analyze").arg("verify").args(&paths).output() else {
        return eprintln!("skipped: systemd-analyze is not installed");
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim().is_empty(), "{said}");
}

#[test]
fn compose_finds_nothing_wrong_with_its_file() {
    let available = Command::new("docker").args(["compose", "version"]).output();
    if !available.is_ok_and(|output| output.status.success()) {
        return eprintln!("skipped: docker compose is not installed");
    }
    let file = files::root().join("deploy/compose.yaml");
    let output = Command::new("docker").args(["compose", "-f"]).arg(file).args(["config", "-q"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn kustomize_builds_the_base_and_the_overlay_changes_what_it_says() {
    let built = |folder: &str| -> Option<Vec<serde_json::Value>> {
        let output = Command::new("kubectl").arg("kustomize").arg(files::root().join(folder)).output().ok()?;
        assert!(output.status.success(), "{folder}: {}", String::from_utf8_lossy(&output.stderr));
        Some(serde_saphyr::from_multiple(&String::from_utf8(output.stdout).unwrap()).unwrap())
    };
    let (Some(base), Some(overlay)) = (built("deploy/kubernetes"), built("deploy/kubernetes-overlay")) else {
        return eprintln!("skipped: kubectl is not installed");
    };
    let names = |all: &[serde_json::Value]| -> BTreeSet<String> {
        all.iter().map(|one| format!("{} {}", one["kind"], one["metadata"]["name"])).collect()
    };
    assert_eq!(names(&base), names(&files::kubernetes()));
    assert_eq!(names(&overlay), names(&base));
    for (all, workers, url) in [(&base, 3, "https://gateway:8080"), (&overlay, 8, "https://tenaz.example.org")] {
        assert!(all.iter().all(|one| one["metadata"]["namespace"] == "tenaz"));
        let deployment =
            |name: &str| all.iter().find(|one| one["kind"] == "Deployment" && one["metadata"]["name"] == name).unwrap();
        assert_eq!(deployment("worker")["spec"]["replicas"], workers);
        let env = &deployment("gateway")["spec"]["template"]["spec"]["containers"][0]["env"];
        let urls: Vec<_> = env.as_array().unwrap().iter().filter(|one| one["name"] == "TENAZ_URL").collect();
        assert_eq!(urls[0]["value"], url);
    }
}
