//! What the program is made of is what `deny.toml` allows: read with cargo alone, without a network.
#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates that are there in more than one version. A new one is looked at before this number is raised.
const DOUBLES: usize = 24;

fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--format-version", "1", "--locked", "--offline"]).current_dir(root());
    command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn list(config: &toml::Table, section: &str, key: &str) -> BTreeSet<String> {
    config[section][key].as_array().unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Whether a licence expression can be met with these licences: some alternative of every part that is required.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let expression = expression.replace('/', " OR ").replace(" or ", " OR ");
    let mut parts = Vec::new();
    let (mut depth, mut part) = (0, String::new());
    for word in expression.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        match word {
            "(" => depth += 1,
            ")" => depth -= 1,
            "AND" if depth == 0 => parts.push(std::mem::take(&mut part)),
            word => part = format!("{part} {word}"),
        }
    }
    parts.push(part);
    parts.iter().all(|part| part.split(" OR ").any(|licence| allowed.contains(licence.trim())))
}

#[test]
fn licences_sources_and_crates_are_those_that_are_allowed() {
    let config: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let (licences, banned) = (list(&config, "licenses", "allow"), list(&config, "bans", "deny"));
    let mut versions: BTreeMap<String, usize> = BTreeMap::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        *versions.entry(name.to_owned()).or_default() += 1;
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(is_allowed(licence, &licences), "{name} has licence {licence:?}, which deny.toml does not allow");
        assert!(!banned.contains(name), "{name} is not wanted: see deny.toml");
        match package["source"].as_str() {
            None => assert!(name == "tenaz" || name.starts_with("tenaz-"), "{name} has no source"),
            Some(source) => {
                assert!(source.starts_with("registry+") && source.contains("crates.io"), "{name} comes from {source}");
            }
        }
    }
    let doubles: Vec<_> = versions.iter().filter(|(_, versions)| **versions > 1).collect();
    assert!(doubles.len() <= DOUBLES, "more crates than before are there twice: {doubles:?}");
}

#[test]
fn a_licence_that_is_not_allowed_is_seen() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "ISC".to_owned()]);
    for good in ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "MIT AND ISC", "(GPL-3.0 OR MIT) AND ISC"] {
        assert!(is_allowed(good, &allowed), "{good}");
    }
    for bad in ["GPL-3.0", "MIT AND GPL-3.0", "(GPL-3.0 OR LGPL-3.0) AND MIT", "none"] {
        assert!(!is_allowed(bad, &allowed), "{bad}");
    }
}
