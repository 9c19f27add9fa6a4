//! Heartbeats over real sockets: good ones come through, whatever else is sent.

#![allow(clippy::unwrap_used, missing_docs)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use tenaz_core::{Incarnation, ProcessRole};
use tenaz_vitals::{ClusterId, Heard, Heartbeat, HeartbeatListener, Identity, Key, Vitals, VitalsSettings};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Far longer than anything takes: a test that fails says so instead of hanging.
const PATIENCE: Duration = Duration::from_secs(60);

fn key() -> Key {
    Key::from_bytes([5; 32])
}

fn cluster() -> ClusterId {
    "00112233445566ff".parse().unwrap()
}

fn identity(name: &str, incarnation: u64) -> Identity {
    Identity {
        cluster: cluster(),
        name: name.parse().unwrap(),
        role: ProcessRole::Worker,
        incarnation: Incarnation(incarnation),
    }
}

async fn listen(addr: SocketAddr) -> HeartbeatListener {
    HeartbeatListener::bind(addr, key(), cluster()).await.unwrap()
}

async fn live(identity: Identity, key: Key, supervisors: &[SocketAddr]) -> Arc<Vitals> {
    let settings = VitalsSettings {
        identity,
        key: Some(key),
        supervisors: supervisors.iter().map(ToString::to_string).collect(),
        every: Duration::from_millis(20),
        http: None,
    };
    Vitals::start(settings).await.unwrap()
}

async fn next(listener: &mut HeartbeatListener) -> Heard {
    tokio::time::timeout(PATIENCE, listener.next()).await.expect("a heartbeat comes")
}

/// The first heartbeat for which `holds`.
async fn until(listener: &mut HeartbeatListener, holds: impl Fn(&Heartbeat) -> bool) -> Heartbeat {
    let search = async {
        loop {
            let heard = listener.next().await;
            if holds(&heard.heartbeat) {
                return heard.heartbeat;
            }
        }
    };
    tokio::time::timeout(PATIENCE, search).await.expect("such a heartbeat comes")
}

#[tokio::test]
async fn every_supervisor_hears_who_it_is_and_how_it_is() {
    let (mut first, mut second) = (listen(ANY).await, listen(ANY).await);
    let addrs = [first.local_addr().unwrap(), second.local_addr().unwrap()];
    let vitals = live(identity("worker-1", 7), key(), &addrs).await;
    for listener in [&mut first, &mut second] {
        let heard = next(listener).await;
        assert_eq!(heard.heartbeat.identity, identity("worker-1", 7));
        assert_eq!(heard.heartbeat.pid, std::process::id());
        assert!(!heard.heartbeat.ready && !heard.heartbeat.draining);
        assert!(heard.from.ip().is_loopback());
    }
    let worker = vitals.metrics().worker();
    worker.rows_accepted.inc_by(3);
    worker.rows_rejected.inc_by(1);
    vitals.set_ready(true);
    vitals.set_url("http://127.0.0.1:7400".to_owned());
    vitals.set_http("0.0.0.0:7401".parse().unwrap());
    for listener in [&mut first, &mut second] {
        let heard = until(listener, |heartbeat| heartbeat.ready && heartbeat.http.is_some()).await;
        assert_eq!(heard.counters.rows, 4);
        assert_eq!(heard.url.as_deref(), Some("http://127.0.0.1:7400"));
        assert_eq!(next(listener).await.http(), Some("127.0.0.1:7401".parse().unwrap()));
    }
    vitals.set_draining();
    until(&mut first, |heartbeat| heartbeat.draining).await;
    assert!(first.refused().unchallenged.get() >= 1, "the first one could not know the challenge");
    drop(vitals);
    // What was under way may still come, then it is quiet: the thread has been waited for.
    while tokio::time::timeout(Duration::from_millis(200), first.next()).await.is_ok() {}
}

#[tokio::test]
async fn a_change_is_told_at_once() {
    let mut listener = listen(ANY).await;
    let settings = VitalsSettings {
        identity: identity("worker-1", 1),
        key: Some(key()),
        supervisors: vec![listener.local_addr().unwrap().to_string()],
        // Longer than the test's patience.
        every: Duration::from_secs(60),
        http: None,
    };
    let short = Duration::from_secs(20);
    let vitals = Vitals::start(settings).await.unwrap();
    tokio::time::timeout(short, listener.next()).await.expect("the first, and again when the challenge is known");
    vitals.set_ready(true);
    let heard = tokio::time::timeout(short, listener.next()).await.expect("at once");
    assert!(heard.heartbeat.ready);
    vitals.set_draining();
    let heard = tokio::time::timeout(short, listener.next()).await.expect("at once");
    assert!(heard.heartbeat.draining);
}

#[tokio::test]
async fn heartbeats_come_while_the_process_stands_but_its_pulse_does_not_move() {
    let mut listener = listen(ANY).await;
    let vitals = live(identity("worker-1", 1), key(), &[listener.local_addr().unwrap()]).await;
    let (turning, standing) = (vitals.pulse(), vitals.pulse());
    let beat = |times: usize| {
        for _ in 0..times {
            turning.beat();
        }
    };
    let start = next(&mut listener).await.heartbeat.pulse;
    standing.beat();
    beat(1);
    let moved = until(&mut listener, |heartbeat| {
        beat(1);
        standing.beat();
        heartbeat.pulse > start + 3
    })
    .await;
    // Now one of the two loops stands.
    let at = until(&mut listener, |heartbeat| heartbeat.sequence > moved.sequence + 3).await.pulse;
    for _ in 0..5 {
        beat(1);
        assert_eq!(next(&mut listener).await.heartbeat.pulse, at);
    }
    drop(standing);
    until(&mut listener, |heartbeat| {
        beat(1);
        heartbeat.pulse > at
    })
    .await;
}

#[tokio::test]
async fn a_supervisor_that_comes_back_is_told_at_once() {
    let mut listener = listen(ANY).await;
    let addr = listener.local_addr().unwrap();
    let _vitals = live(identity("worker-1", 1), key(), &[addr]).await;
    let before = next(&mut listener).await.heartbeat;
    drop(listener);
    let mut listener = listen(addr).await;
    let after = next(&mut listener).await.heartbeat;
    assert!(after.sequence > before.sequence);
    assert_ne!(after.challenge, before.challenge);
}

#[tokio::test]
async fn another_life_replaces_the_one_before_and_never_the_other_way_round() {
    let mut listener = listen(ANY).await;
    let addr = listener.local_addr().unwrap();
    let _old = live(identity("worker-1", 1), key(), &[addr]).await;
    next(&mut listener).await;
    let _new = live(identity("worker-1", 2), key(), &[addr]).await;
    until(&mut listener, |heartbeat| heartbeat.identity.incarnation == Incarnation(2)).await;
    let replayed = listener.refused().replayed.get();
    while listener.refused().replayed.get() < replayed + 3 {
        let heard = next(&mut listener).await;
        assert_eq!(heard.heartbeat.identity.incarnation, Incarnation(2));
    }
}

/// Between a process and a supervisor: keeps what passes, as somebody who listens on the network does.
struct Tap {
    socket: UdpSocket,
    to: SocketAddr,
    process: Option<SocketAddr>,
    heartbeats: Vec<Vec<u8>>,
    challenges: Vec<Vec<u8>>,
}

impl Tap {
    fn before(to: SocketAddr) -> Self {
        let socket = UdpSocket::bind(ANY).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { socket, to, process: None, heartbeats: Vec::new(), challenges: Vec::new() }
    }

    fn addr(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Passes on until so many heartbeats with the supervisor's challenge have passed.
    fn pass(mut self, heartbeats: usize) -> Self {
        let mut buffer = [0; 2000];
        let mut passed = 0;
        while passed < heartbeats {
            let (length, from) = self.socket.recv_from(&mut buffer).unwrap();
            let bytes = buffer[..length].to_vec();
            if from == self.to {
                self.socket.send_to(&bytes, self.process.unwrap()).unwrap();
                self.challenges.push(bytes);
            } else {
                self.process = Some(from);
                self.socket.send_to(&bytes, self.to).unwrap();
                let heartbeat = Heartbeat::decode(&bytes, &key(), &cluster()).unwrap();
                passed += usize::from(heartbeat.challenge != 0);
                self.heartbeats.push(bytes);
            }
        }
        self
    }
}

#[tokio::test]
async fn whatever_else_is_sent_is_counted_and_the_good_ones_come_through() {
    let mut listener = listen(ANY).await;
    let addr = listener.local_addr().unwrap();
    let tap = Tap::before(addr);
    let tapped = live(identity("worker-1", 1), key(), &[tap.addr()]).await;
    let passing = tokio::task::spawn_blocking(move || tap.pass(6));
    next(&mut listener).await;
    let tap = tokio::time::timeout(PATIENCE, async {
        // The listener must go on answering while the tap passes on.
        let mut passing = passing;
        loop {
            tokio::select! {
                done = &mut passing => return done.unwrap(),
                _ = listener.next() => {}
            }
        }
    });
    let tap = tap.await.unwrap();
    drop(tapped);
    let captured = tap.heartbeats.last().unwrap().clone();

    let refused = listener.refused();
    let attacker = UdpSocket::bind(ANY).unwrap();
    let send = |bytes: &[u8]| assert_eq!(attacker.send_to(bytes, addr).unwrap(), bytes.len());
    let before = [&refused.replayed, &refused.forged, &refused.malformed, &refused.other_cluster].map(|c| c.get());
    // Replayed: the very datagrams, in any order.
    tap.heartbeats.iter().for_each(|bytes| send(bytes));
    // Corrupted, truncated, oversized, nothing at all, noise.
    let mut corrupted = captured.clone();
    corrupted[60] ^= 1;
    send(&corrupted);
    send(&captured[..captured.len() - 1]);
    send(&captured[..20]);
    send(&[captured.as_slice(), &[0; 3000]].concat());
    send(&[]);
    send(b"GET / HTTP/1.0");
    // A supervisor's own challenge, sent back to it.
    send(tap.challenges.first().expect("the first heartbeat was challenged"));
    // Forged: well made, with another key.
    let other_key = live(identity("worker-1", 9), Key::from_bytes([6; 32]), &[addr]).await;
    // Of another cluster, even with our key.
    let lost = Identity { cluster: ClusterId::random().unwrap(), ..identity("worker-1", 9) };
    let other_cluster = live(lost, key(), &[addr]).await;

    let good = live(identity("worker-2", 1), key(), &[addr]).await;
    let enough = || {
        refused.replayed.get() >= before[0] + 5
            && refused.forged.get() > before[1] + 2
            && refused.malformed.get() >= before[2] + 5
            && refused.other_cluster.get() > before[3]
    };
    let mut heard = 0;
    while !enough() || heard < 5 {
        let heartbeat = next(&mut listener).await.heartbeat;
        // The tapped process may have said a last word when it ended; nothing is heard in its name with another life.
        assert!(heartbeat.identity.name.as_str() == "worker-2" || heartbeat.identity.incarnation == Incarnation(1));
        heard += usize::from(heartbeat.identity.name.as_str() == "worker-2");
    }
    drop((other_key, other_cluster, good, listener));

    // A supervisor that is started anew with the same key does not believe what the first one did.
    let mut anew = listen(addr).await;
    tap.heartbeats.iter().for_each(|bytes| send(bytes));
    let refused = anew.refused();
    let counted = async {
        while refused.unchallenged.get() < tap.heartbeats.len() as u64 {
            tokio::select! {
                heard = anew.next() => panic!("believed {heard:?}"),
                () = tokio::time::sleep(Duration::from_millis(5)) => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("all are counted");
}

#[tokio::test]
async fn false_and_old_challenges_do_not_silence_a_process() {
    let mut listener = listen(ANY).await;
    let addr = listener.local_addr().unwrap();
    // An earlier life's challenge is captured.
    let tap = Tap::before(addr);
    let earlier = live(identity("worker-1", 1), key(), &[tap.addr()]).await;
    let passing = tokio::task::spawn_blocking(move || tap.pass(3));
    next(&mut listener).await;
    let old = passing.await.unwrap().challenges.first().unwrap().clone();
    drop(earlier);
    drop(listener);
    let mut listener = listen(addr).await;

    let tap = Tap::before(addr);
    let vitals = live(identity("worker-1", 2), key(), &[tap.addr()]).await;
    let passing = tokio::task::spawn_blocking(move || tap.pass(4));
    let first = next(&mut listener).await.heartbeat;
    let tap = passing.await.unwrap();
    let process = tap.process.unwrap();
    let mut flipped = tap.challenges.first().unwrap().clone();
    flipped[14] ^= 1;
    for bytes in [old.as_slice(), &flipped, b"noise", &[]] {
        tap.socket.send_to(bytes, process).unwrap();
    }
    let unchallenged = listener.refused().unchallenged.get();
    let passing = tokio::task::spawn_blocking(move || tap.pass(20));
    for _ in 0..10 {
        assert_eq!(next(&mut listener).await.heartbeat.challenge, first.challenge);
    }
    assert_eq!(listener.refused().unchallenged.get(), unchallenged);
    passing.await.unwrap();
    drop(vitals);
}
