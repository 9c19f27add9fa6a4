//! With real sockets: whatever strangers do is counted and changes nothing for friends.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenaz_core::{ElectionMessage, SupervisorId};
use tenaz_vitals::{ClusterId, Key};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::hello::{Credentials, HELLO_BYTES, Party, greet};
use super::message::{Answer, Frame, Request};
use super::*;
use crate::testing::{PATIENCE, free_addr, until};

const ONE: SupervisorId = SupervisorId(1);
const TWO: SupervisorId = SupervisorId(2);

fn key() -> Key {
    Key::from_bytes([5; 32])
}

fn cluster() -> ClusterId {
    "0123456789abcdef".parse().unwrap()
}

fn credentials(party: Party) -> Credentials {
    Credentials { party, key: key(), cluster: cluster() }
}

struct Side {
    peers: Peers,
    events: mpsc::Receiver<PeerEvent>,
    refusals: Arc<PeerRefusals>,
    addr: SocketAddr,
}

impl Side {
    async fn open(me: SupervisorId, listen: SocketAddr, others: &[(SupervisorId, SocketAddr)]) -> Self {
        let refusals = Arc::new(PeerRefusals::default());
        let peers: BTreeMap<_, _> = others.iter().copied().collect();
        let settings = PeerSettings { me, listen, peers, key: key(), cluster: cluster() };
        let (peers, events) = Peers::open(settings, Arc::clone(&refusals)).await.unwrap();
        Self { peers, events, refusals, addr: listen }
    }

    async fn next(&mut self) -> PeerEvent {
        tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("in time").expect("open")
    }

    async fn counted(&self, refusal: PeerRefusal, times: u64) {
        until(async || self.refusals.of(refusal) >= times).await;
        assert_eq!(self.refusals.of(refusal), times, "{refusal}");
    }

    /// Answers everything until it has answered somebody.
    async fn answer_one(&mut self) {
        loop {
            if let PeerEvent::Asked { answer, .. } = self.next().await {
                answer.send(Answer::Inspected(vec![])).unwrap();
                return;
            }
        }
    }
}

async fn pair() -> (Side, Side) {
    let (a, b) = (free_addr(), free_addr());
    (Side::open(ONE, a, &[(TWO, b)]).await, Side::open(TWO, b, &[(ONE, a)]).await)
}

/// Friends go on talking, whatever happened before.
async fn assert_friends(one: &mut Side, two: &mut Side) {
    until(async || one.peers.is_up(TWO)).await;
    let message = ElectionMessage::Ask { round: 7 };
    one.peers.send(TWO, message);
    loop {
        match two.next().await {
            PeerEvent::Election { from, message: heard } => {
                assert_eq!((from, heard), (ONE, message));
                break;
            }
            PeerEvent::Up(_) | PeerEvent::Changed { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    let asked = tokio::spawn(one.peers.ask(TWO, Request::Inspect, PATIENCE));
    two.answer_one().await;
    assert!(matches!(asked.await.unwrap(), Ok(Answer::Inspected(_))));
}

#[tokio::test]
async fn friends_talk_and_notice_when_the_other_one_goes_and_comes() {
    let (mut one, mut two) = pair().await;
    assert_friends(&mut one, &mut two).await;
    let (addr, home) = (two.addr, one.addr);
    drop(two);
    until(async || !one.peers.is_up(TWO)).await;
    while !matches!(one.next().await, PeerEvent::Down(TWO)) {}
    assert!(one.peers.ask(TWO, Request::Inspect, PATIENCE).await.is_err(), "at once, not after a while");
    let mut two = Side::open(TWO, addr, &[(ONE, home)]).await;
    while !matches!(one.next().await, PeerEvent::Up(TWO)) {}
    assert_friends(&mut one, &mut two).await;
    assert!(PeerRefusal::ALL.iter().all(|refusal| one.refusals.of(*refusal) == 0));
}

#[tokio::test]
async fn who_has_another_key_or_is_of_another_cluster_or_unknown_is_refused() {
    let (mut one, mut two) = pair().await;
    let ask = |key: Key, cluster: ClusterId| async move {
        ask_once(one.addr, &key, &cluster, Request::Status, PATIENCE).await.map(drop)
    };
    assert!(ask(Key::from_bytes([6; 32]), cluster()).await.is_err());
    one.counted(PeerRefusal::Forged, 1).await;
    assert!(ask(key(), "fedcba9876543210".parse().unwrap()).await.is_err());
    one.counted(PeerRefusal::OtherCluster, 1).await;
    for stranger in [SupervisorId(9), ONE] {
        let (from, to) = TcpStream::connect(one.addr).await.unwrap().into_split();
        let mut opened = greet(&credentials(Party::Supervisor(stranger)), true, from, to).await.unwrap();
        // It may be closed already.
        let _ = opened.writer.send(&Frame::Ping).await;
        assert!(opened.reader.next::<Frame>(PATIENCE).await.is_err());
    }
    one.counted(PeerRefusal::UnknownPeer, 2).await;
    let mut stream = TcpStream::connect(one.addr).await.unwrap();
    stream.write_all(&[b'G'; HELLO_BYTES]).await.unwrap();
    one.counted(PeerRefusal::Malformed, 1).await;
    assert_friends(&mut one, &mut two).await;
}

#[tokio::test]
async fn a_reader_may_only_read() {
    let (mut one, mut two) = pair().await;
    assert!(ask_once(one.addr, &key(), &cluster(), Request::Inspect, PATIENCE).await.is_err());
    one.counted(PeerRefusal::NotAllowed, 1).await;
    let (from, to) = TcpStream::connect(one.addr).await.unwrap().into_split();
    let mut opened = greet(&credentials(Party::Reader), true, from, to).await.unwrap();
    opened.writer.send(&Frame::Ping).await.unwrap();
    opened.writer.send(&Frame::Election(ElectionMessage::Ask { round: 1 })).await.unwrap();
    one.counted(PeerRefusal::NotAllowed, 2).await;
    assert_friends(&mut one, &mut two).await;
}

/// Passes bytes on between a client and `to`; `change` sees what the client sends, in pieces, with their place.
async fn proxy(
    to: SocketAddr,
    change: impl Fn(usize, &mut [u8]) + Send + 'static,
) -> (SocketAddr, mpsc::Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (recorded, record) = mpsc::channel(1000);
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (client, _) = listener.accept().await.unwrap();
        let server = TcpStream::connect(to).await.unwrap();
        let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
            (client.into_split(), server.into_split());
        tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
        let (mut at, mut bytes) = (0, [0; 4096]);
        while let Ok(length @ 1..) = from_client.read(&mut bytes).await {
            let piece = &mut bytes[..length];
            change(at, piece);
            at += length;
            recorded.send(piece.to_vec()).await.unwrap();
            if to_server.write_all(piece).await.is_err() {
                break;
            }
        }
    });
    (addr, record)
}

#[tokio::test]
async fn what_was_recorded_on_one_connection_says_nothing_on_another() {
    let (mut one, mut two) = pair().await;
    let (addr, mut record) = proxy(one.addr, |_, _| {}).await;
    let asking = tokio::spawn(async move { ask_once(addr, &key(), &cluster(), Request::Status, PATIENCE).await });
    one.answer_one().await;
    assert!(asking.await.unwrap().is_ok(), "what is replayed was good");
    let mut bytes = Vec::new();
    while let Some(piece) = record.recv().await {
        bytes.extend(piece);
    }
    let mut stream = TcpStream::connect(one.addr).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    one.counted(PeerRefusal::Forged, 1).await;
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert_eq!(rest.len(), HELLO_BYTES, "nothing but a first word was answered");
    assert_friends(&mut one, &mut two).await;
}

#[tokio::test]
async fn a_repeated_or_corrupted_frame_ends_its_connection() {
    let (mut one, mut two) = pair().await;
    // Every bit beyond the first words counts: of the length, the payload and the seal of the first frame.
    let mut forged = 0;
    for at in [HELLO_BYTES + 4, HELLO_BYTES + 5, HELLO_BYTES + 12, HELLO_BYTES + 25] {
        let flip = move |from: usize, piece: &mut [u8]| {
            if let Some(byte) = at.checked_sub(from).and_then(|at| piece.get_mut(at)) {
                *byte ^= 1;
            }
        };
        let (addr, _record) = proxy(one.addr, flip).await;
        assert!(ask_once(addr, &key(), &cluster(), Request::Status, PATIENCE).await.is_err());
        forged += 1;
        one.counted(PeerRefusal::Forged, forged).await;
    }
    // The same frame twice, by somebody who only sees the bytes.
    let mut stream = TcpStream::connect(one.addr).await.unwrap();
    let (mine, theirs) = tokio::io::duplex(1 << 16);
    let mut hello = [0; HELLO_BYTES];
    stream.read_exact(&mut hello).await.unwrap();
    let (mut tap, (from, to)) = (theirs, tokio::io::split(mine));
    tap.write_all(&hello).await.unwrap();
    let mut opened = greet(&credentials(Party::Reader), true, from, to).await.unwrap();
    opened.writer.send(&Frame::Ping).await.unwrap();
    let mut bytes = vec![0; 4096];
    let mut length = 0;
    while length < HELLO_BYTES + 4 + 6 + 16 {
        length += tap.read(&mut bytes[length..]).await.unwrap();
    }
    stream.write_all(&bytes[..length]).await.unwrap();
    stream.write_all(&bytes[HELLO_BYTES..length]).await.unwrap();
    one.counted(PeerRefusal::Forged, forged + 1).await;
    assert_friends(&mut one, &mut two).await;
}

#[tokio::test]
async fn frames_that_are_too_large_are_not_waited_for() {
    let (mut one, mut two) = pair().await;
    let mut stream = TcpStream::connect(one.addr).await.unwrap();
    let hello = [b"TNZP\x02".as_slice(), cluster().as_str().as_bytes(), &[1, 0, 0], &[7; 32]].concat();
    stream.write_all(&hello).await.unwrap();
    stream.write_all(&u32::MAX.to_be_bytes()).await.unwrap();
    one.counted(PeerRefusal::Oversize, 1).await;
    // With the key, too. What is sealed beforehand is refused on the way out.
    let (from, to) = TcpStream::connect(one.addr).await.unwrap().into_split();
    let mut opened = greet(&credentials(Party::Reader), true, from, to).await.unwrap();
    opened.writer.send(&Frame::Ping).await.unwrap();
    let long = Frame::Answer { number: 1, answer: Box::new(Answer::Failed("x".repeat(2 << 20))) };
    assert!(opened.writer.send(&long).await.is_err());
    assert_friends(&mut one, &mut two).await;
}

#[tokio::test]
async fn a_crowd_that_says_nothing_keeps_nobody_out() {
    let (mut one, mut two) = pair().await;
    let mut crowd = Vec::new();
    for i in 0..100 {
        let mut stream = TcpStream::connect(one.addr).await.unwrap();
        // Some say half a word.
        let _ = stream.write_all(&b"TNZP\x02"[..i % 5]).await;
        crowd.push(stream);
    }
    let asking = {
        let addr = one.addr;
        tokio::spawn(async move { ask_once(addr, &key(), &cluster(), Request::Status, PATIENCE).await })
    };
    one.answer_one().await;
    assert!(asking.await.unwrap().is_ok());
    until(async || one.refusals.of(PeerRefusal::Crowded) > 0 && one.refusals.of(PeerRefusal::Slow) > 0).await;
    assert_friends(&mut one, &mut two).await;
    until(async || {
        let refused = [PeerRefusal::Crowded, PeerRefusal::Slow].map(|refusal| one.refusals.of(refusal));
        refused.iter().sum::<u64>() == 100
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_accepts_and_says_nothing_is_dialled_again() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let one = Side::open(ONE, free_addr(), &[(TWO, silent.local_addr().unwrap())]).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        held.push(tokio::time::timeout(PATIENCE, silent.accept()).await.unwrap().unwrap());
    }
    assert!(!one.peers.is_up(TWO));
    assert!(one.refusals.of(PeerRefusal::Slow) > 0);
    let error = one.peers.ask(TWO, Request::Inspect, Duration::from_secs(1)).await.unwrap_err();
    assert_eq!(error, "it cannot be reached");
}

/// What a friend may send after its seal was believed: a supervisor of another version, or a broken one.
#[test]
fn any_bytes_are_a_frame_or_refused() {
    let frames = [
        Frame::Ping,
        Frame::Election(ElectionMessage::Ask { round: 7 }),
        Frame::Request { number: 1, request: Request::Status },
        Frame::Answer { number: 1, answer: Box::new(Answer::Inspected(vec![])) },
        Frame::Answer { number: u64::MAX, answer: Box::new(Answer::Failed("no".to_owned())) },
    ];
    let target = tenaz_fuzz::Target::new("peer_frames", env!("CARGO_MANIFEST_DIR"));
    let target = frames.iter().fold(target, |target, frame| target.seed(serde_json::to_vec(frame).unwrap()));
    target.run(|input| match serde_json::from_slice::<Frame>(input) {
        Ok(frame) => {
            let again = serde_json::to_vec(&frame).unwrap();
            assert_eq!(serde_json::to_vec(&serde_json::from_slice::<Frame>(&again).unwrap()).unwrap(), again);
            format!("{frame:.30?}")
        }
        Err(error) => format!("{:?}", error.classify()),
    });
}
