//! Watching a cluster lose processes without losing an answer, and the gateway that shows it being killed itself.

use std::collections::{BTreeMap, BTreeSet};

use rustix::process::Signal;
use serde_json::Value;

use crate::browser::Browser;
use crate::harness::{Upped, Wanted, assert_same_results, coffee, tenaz, text};

/// How often the chaos log says that each process was killed.
fn kills(log: &str) -> BTreeMap<String, u64> {
    let strikes = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut kills = BTreeMap::new();
    for strike in strikes.filter(|strike| strike["action"] == "kill" && strike["hit"] == true) {
        *kills.entry(strike["name"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    kills
}

/// The fingerprints of the undisturbed run.
fn expected_fingerprints() -> BTreeSet<String> {
    let summary = std::fs::read_to_string(coffee().expected.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let queries = summary["queries"].as_array().unwrap().iter();
    queries.map(|query| query["fingerprint"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "gateways have the key of heartbeats only, and supervisors tell their events to the cluster's key: the page shows no strikes"]
fn every_kill_stands_on_the_page_and_the_fingerprints_are_those_of_the_undisturbed_run() {
    let Some(browser) = Browser::start() else { return };
    let wanted = Wanted { worker_options: &["--faults", "slow=60"], ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let gateway = upped.gateway_urls();
    browser.resize(1280, 900);
    browser.open(&format!("{gateway}/#/cluster"));
    browser.wait_for("the lanes", "document.querySelectorAll('[data-lane]').length >= 6");
    let (client, out) = upped.submit(coffee(), "watched");
    upped.wait_for_work();
    let home = upped.home_text();
    let line = [
        "chaos",
        "--cluster",
        &home,
        "--every",
        "1s",
        "--for",
        "5s",
        "--seed",
        "7",
        "--roles",
        "worker",
        "--actions",
        "kill",
    ];
    let chaos = tenaz(upped.dir.path(), &line);
    assert!(chaos.status.success(), "{}", text(&chaos));
    let kills = kills(&String::from_utf8(chaos.stdout).unwrap());
    assert!(!kills.is_empty(), "nothing was killed");
    client.succeeds();
    assert_same_results(coffee(), &out);
    // The gateway is killed, too: the page says so, and goes on by itself.
    upped.signal("gateway-1", Signal::KILL);
    browser.wait_for("the page says that it is cut off", "document.querySelector('#cut-off, #out-of-date') !== null");
    browser.wait_for("the page goes on", "document.querySelector('#cut-off, #out-of-date') === null");
    for (name, times) in &kills {
        let marks = format!("document.querySelectorAll('[data-kind=killed][data-name=\"{name}\"]').length >= {times}");
        browser.wait_for(&format!("{times} kills of {name} on the page"), &marks);
    }
    let prints =
        "[...new Set([...document.querySelectorAll('[data-fingerprint]')].map((mark) => mark.dataset.fingerprint))]";
    let expected = expected_fingerprints();
    let number = expected.len();
    browser.wait_for("all answers are final on the page", &format!("{prints}.length >= {number}"));
    let shown: BTreeSet<String> = serde_json::from_value(browser.script(&format!("return {prints}"), &[])).unwrap();
    assert_eq!(shown, expected);
    browser.screenshot("cluster-desktop");
    browser.click_text("Jobs");
    browser.click(".job-line");
    browser.wait_for_text("✓ even");
    browser.screenshot("job-cluster-desktop");
    browser.resize(400, 850);
    browser.prefer("dark");
    browser.screenshot("job-cluster-phone");
    browser.click_text("Cluster");
    browser.wait_for("the lanes", "document.querySelectorAll('[data-lane]').length >= 6");
    browser.screenshot("cluster-phone");
    browser.is_clean();
}
