//! The image is built from what is there, with the toolchain of this tree, and is not run by root.

use super::files::{compose_launches, kubernetes_launches, root, text};

/// The instructions of the Dockerfile, without comments, with continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let lines: Vec<String> =
        text("Dockerfile").lines().filter(|l| !l.trim_start().starts_with('#')).map(str::to_owned).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim().is_empty());
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

fn of(word: &str) -> Vec<String> {
    instructions().into_iter().filter(|(found, _)| found == word).map(|(_, rest)| rest).collect()
}

#[test]
fn the_image_is_built_with_the_toolchain_of_this_tree() {
    let toolchain: toml::Table = text("rust-toolchain.toml").parse().unwrap();
    let channel = toolchain["toolchain"]["channel"].as_str().unwrap();
    assert_eq!(of("FROM"), [format!("rust:{channel}-slim-bookworm AS build"), "debian:bookworm-slim".to_owned()]);
}

#[test]
fn the_image_has_what_the_workspace_needs() {
    let copied = of("COPY");
    for needed in ["Cargo.toml", "Cargo.lock", "workloads", "crates"] {
        assert!(copied.iter().any(|line| line.split(' ').any(|word| word == needed)), "{needed} is not copied");
        assert!(root().join(needed).exists(), "{needed} is copied, and not there");
        let passed = text(".dockerignore").lines().any(|line| line == format!("!{needed}"));
        assert!(passed, ".dockerignore keeps {needed} away");
    }
    // Files outside of the crates that are compiled in are below `workloads`.
    let bundled = text("crates/engine/src/workload/bundled.rs");
    assert!(bundled.matches("\"../../../../").count() == bundled.matches("\"../../../../workloads/").count());
    assert!(of("RUN")[0].contains("cargo build --release --locked --package tenaz"));
}

#[test]
fn the_image_is_not_run_by_root_and_ends_when_it_is_told() {
    let user = of("USER");
    assert_eq!(user, ["10001:10001"]);
    assert_eq!(of("ENTRYPOINT"), [r#"["tenaz"]"#], "no shell in between: signals reach the program");
    assert_eq!(of("STOPSIGNAL"), ["SIGTERM"]);
    assert_eq!(of("HEALTHCHECK"), ["NONE"]);
    assert!(text("deploy/make-secrets").contains(&format!("chown {} ", user[0])), "secrets belong to another user");
    for (name, _, deployment) in kubernetes_launches() {
        let security = &deployment["spec"]["template"]["spec"]["securityContext"];
        for field in ["runAsUser", "runAsGroup", "fsGroup"] {
            assert_eq!(security[field], 10001, "{name}, {field}");
        }
    }
}

#[test]
fn all_files_run_the_image_of_this_version() {
    let image = concat!("tenaz:", env!("CARGO_PKG_VERSION"));
    for (name, _, service) in compose_launches() {
        assert_eq!(service["image"], image, "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
    }
    for (name, _, deployment) in kubernetes_launches() {
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], image, "{name}");
    }
    assert!(text("Dockerfile").contains(image));
}
