//! Questions on a cluster without a workload file: the same answers as on this machine.

use std::path::Path;
use std::process::Command;

use crate::harness::Cluster;

/// An export of a German shop, in the encoding, marks and numbers of its country.
fn export(dir: &Path) {
    let mut bytes = b"Datum;K\xe4ufer;Betrag\r\n".to_vec();
    for n in 0..3000 {
        let line = format!("{:02}.03.2025;Kunde {};1.{:03},{:02}\r\n", 1 + n % 28, n % 7, n % 1000, n % 100);
        bytes.extend_from_slice(line.as_bytes());
    }
    std::fs::write(dir.join("umsatz.csv"), bytes).expect("a file");
}

fn ask(data: &Path, out: &Path, more: &[&str]) {
    let question = "CREATE VIEW v AS SELECT käufer, sum(betrag) AS summe, today() AS heute FROM umsatz \
                    WHERE datum > now() - INTERVAL '10 days' GROUP BY käufer; \
                    SELECT * FROM v ORDER BY summe DESC; -- name: first\n\
                    SELECT datum, betrag FROM umsatz WHERE betrag > 1500 LIMIT 700";
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenaz"));
    command.args(["sql", "--data"]).arg(data).args(["--out"]).arg(out).args([
        "--now",
        "2025-03-28T12:00:00Z",
        question,
    ]);
    let done = command.args(more).output().expect("it runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn questions_without_a_workload_file_are_answered_as_on_one_machine() {
    let Some(cluster) = Cluster::shared() else { return };
    let cluster = cluster.start(2, 1, "");
    let data = tempfile::tempdir().expect("a directory");
    export(data.path());
    let (here, there) = (cluster.out("here"), cluster.out("there"));
    ask(data.path(), &here, &["--threads", "2"]);
    ask(data.path(), &there, &["--gateway", &cluster.gateway_urls(), "--chunk-size", "8K"]);
    for name in ["q1.csv", "first.csv"] {
        let read = |dir: &Path| std::fs::read_to_string(dir.join(name)).expect("an answer");
        assert!(read(&here).lines().count() > 5, "{}", read(&here));
        assert_eq!(read(&here), read(&there), "{name}");
    }
    let summary = std::fs::read_to_string(there.join("summary.json")).expect("a summary");
    assert!(summary.contains("\"now\": \"2025-03-28T12:00:00Z\""), "{summary}");
}
