//! Supervisors among themselves: paused, forged, closed.

use std::io::Write;
use std::net::{TcpStream, UdpSocket};

use rustix::process::Signal;

use crate::harness::{Upped, Wanted, assert_same_results, coffee, shared, wait_for};

fn listen_of(upped: &Upped, name: &str) -> String {
    let id = name.strip_prefix("supervisor-").expect("a supervisor");
    let text = std::fs::read_to_string(upped.home.join("cluster.toml")).expect("a description");
    let (_, rest) = text.split_once(&format!("id = {id}\n")).expect("the supervisor");
    let (_, rest) = rest.split_once("listen = \"").expect("its address");
    rest.split('"').next().expect("its end").to_owned()
}

#[test]
fn a_leader_that_slept_through_an_election_leads_no_longer() {
    let Some(url) = shared() else { return };
    let wanted = Wanted { broker: Some(&url), worker_options: &["--faults", "slow=30"], ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let (client, out) = upped.submit(coffee(), "job");
    let old = upped.leader();
    let term = |status: &serde_json::Value| status["term"]["round"].as_u64();
    let before = upped.wait("a term", term);
    upped.signal(&old, Signal::STOP);
    let new = upped.wait("another one leads", |status| {
        status["leader"].as_str().filter(|leader| *leader != old).map(str::to_owned)
    });
    assert!(upped.wait("a term", term) > before, "a new term");
    // Whoever hangs is replaced, even a former leader; woken or anew, it follows.
    let pid = upped.process(&old)["pid"].as_i64();
    if let Some(pid) = pid.and_then(|pid| rustix::process::Pid::from_raw(pid as i32)) {
        // It may have been killed meanwhile.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
    upped.wait_until_well();
    client.succeeds();
    assert_same_results(coffee(), &out);
    let elected: Vec<String> = upped
        .events()
        .iter()
        .filter(|event| event["event"] == "elected")
        .map(|event| event["term"].to_string())
        .collect();
    let mut once = elected.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), elected.len(), "nobody leads twice in a term: {elected:?}");
    assert!(!new.is_empty());
}

#[test]
fn forged_and_broken_messages_are_ignored_and_counted() {
    let Some(url) = shared() else { return };
    let wanted = Wanted { workers: 1, broker: Some(&url), ..Wanted::default() };
    let Some(upped) = Upped::start(&wanted) else { return };
    let leader = upped.leader();
    let address = listen_of(&upped, &leader);
    let lives = |status: &serde_json::Value| -> Vec<u64> {
        let processes = status["processes"].as_array().into_iter().flatten();
        processes.filter_map(|process| process["incarnation"].as_u64()).collect()
    };
    let before = upped.wait("a status", |status| Some(lives(status)));
    let refused = |status: &serde_json::Value, what: &str| -> u64 {
        let counts = status["counters"][what].as_object().into_iter().flatten();
        counts.filter_map(|(_, count)| count.as_u64()).sum()
    };
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    wait_for("nonsense is counted", || {
        for size in [0_usize, 1, 40, 400, 1400] {
            socket.send_to(&vec![0x5a; size], &address).expect("sent");
        }
        let mut stream = TcpStream::connect(&address).expect("it listens");
        // Whether it takes all of it or closes the connection at once is its business.
        let _ = stream.write_all(&[0xff; 4096]);
        let status = upped.status()?;
        (refused(&status, "heartbeats_refused") > 0 && refused(&status, "peer_messages_refused") > 0).then_some(())
    });
    upped.wait_until_well();
    assert_eq!(upped.leader(), leader, "nothing has changed");
    assert_eq!(upped.wait("a status", |status| Some(lives(status))), before, "nobody was started again");
}
