//! The connection to one peer: dialled again and again until it stands, and again when it breaks.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenaz_core::{ElectionMessage, SupervisorId};
use tenaz_vitals::{ClusterId, Key};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::frame::{Broken, FrameReader};
use super::hello::{Credentials, Opened, Party, greet};
use super::message::{Answer, Frame, Request};
use super::{PeerEvent, PeerRefusal, PeerRefusals};
use crate::limits::{DIAL_AGAIN, DIAL_AGAIN_CAP, HELLO_DEADLINE, IDLE_DEADLINE, PEER_QUEUE, PING_EVERY};

/// The way to one peer.
#[derive(Debug, Clone)]
pub(super) struct Link {
    outgoing: mpsc::Sender<Outgoing>,
    up: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Outgoing {
    Election(ElectionMessage),
    Changed,
    Request { request: Request, answer: oneshot::Sender<Answer> },
}

impl Link {
    /// The way, and what keeps it open.
    pub(super) fn new(
        id: SupervisorId,
        addr: SocketAddr,
        credentials: Credentials,
        events: mpsc::Sender<PeerEvent>,
        refusals: Arc<PeerRefusals>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, outgoing) = mpsc::channel(PEER_QUEUE);
        let up = Arc::new(AtomicBool::new(false));
        let dialler = Dialler { id, addr, credentials, events, refusals, up: Arc::clone(&up), outgoing };
        (Self { outgoing: sender, up }, dialler.run())
    }

    pub(super) fn is_up(&self) -> bool {
        self.up.load(Ordering::SeqCst)
    }

    /// What cannot be sent now is lost: it would be old news later.
    pub(super) fn send(&self, message: ElectionMessage) {
        if self.is_up() {
            let _ = self.outgoing.try_send(Outgoing::Election(message));
        }
    }

    pub(super) fn tell_changed(&self) {
        if self.is_up() {
            let _ = self.outgoing.try_send(Outgoing::Changed);
        }
    }

    pub(super) async fn ask(&self, request: Request, deadline: Duration) -> Result<Answer, String> {
        if !self.is_up() {
            return Err("it cannot be reached".to_owned());
        }
        let (answer, answered) = oneshot::channel();
        let exchange = async {
            let sent = self.outgoing.send(Outgoing::Request { request, answer }).await;
            sent.map_err(|_| "this supervisor is ending".to_owned())?;
            answered.await.map_err(|_| "the connection broke".to_owned())
        };
        tokio::time::timeout(deadline, exchange).await.unwrap_or_else(|_| Err(format!("no answer within {deadline:?}")))
    }
}

struct Dialler {
    id: SupervisorId,
    addr: SocketAddr,
    credentials: Credentials,
    events: mpsc::Sender<PeerEvent>,
    refusals: Arc<PeerRefusals>,
    up: Arc<AtomicBool>,
    outgoing: mpsc::Receiver<Outgoing>,
}

impl Dialler {
    async fn run(mut self) {
        let mut wait = DIAL_AGAIN;
        loop {
            let broken = match open(&self.credentials, self.addr).await {
                Ok(opened) if opened.party == Party::Supervisor(self.id) => {
                    wait = DIAL_AGAIN;
                    self.connected(opened).await
                }
                Ok(_) => Broken::Refused(PeerRefusal::UnknownPeer),
                Err(broken) => broken,
            };
            tracing::debug!(peer = %self.id, %broken, "no connection");
            if let Broken::Refused(refusal) = broken {
                self.refusals.count(refusal);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(DIAL_AGAIN_CAP);
            self.forget_the_old();
        }
    }

    /// What was to be sent over the connection that broke.
    fn forget_the_old(&mut self) {
        while self.outgoing.try_recv().is_ok() {}
    }

    async fn connected(&mut self, opened: Opened<OwnedReadHalf, OwnedWriteHalf>) -> Broken {
        self.forget_the_old();
        self.up.store(true, Ordering::SeqCst);
        let broken = match self.events.send(PeerEvent::Up(self.id)).await {
            Ok(()) => self.converse(opened).await,
            Err(_) => Broken::Closed(std::io::ErrorKind::ConnectionAborted.into()),
        };
        self.up.store(false, Ordering::SeqCst);
        // If nobody hears it, the supervisor is ending.
        let _ = self.events.send(PeerEvent::Down(self.id)).await;
        broken
    }

    async fn converse(&mut self, opened: Opened<OwnedReadHalf, OwnedWriteHalf>) -> Broken {
        let Opened { reader, mut writer, .. } = opened;
        let (incoming, mut frames) = mpsc::channel(PEER_QUEUE);
        // In a task of its own, because half a frame must not be forgotten.
        let mut reading = JoinSet::new();
        reading.spawn(read_all(reader, incoming));
        let mut open: HashMap<u64, oneshot::Sender<Answer>> = HashMap::new();
        let mut number = 0;
        let mut ping = tokio::time::interval(PING_EVERY);
        loop {
            let frame = tokio::select! {
                outgoing = self.outgoing.recv() => match outgoing {
                    None => return Broken::Closed(std::io::ErrorKind::ConnectionAborted.into()),
                    Some(Outgoing::Election(message)) => Frame::Election(message),
                    Some(Outgoing::Changed) => Frame::Changed,
                    Some(Outgoing::Request { request, answer }) => {
                        number += 1;
                        open.insert(number, answer);
                        Frame::Request { number, request }
                    }
                },
                frame = frames.recv() => match frame {
                    Some(Ok(Frame::Pong)) => continue,
                    Some(Ok(Frame::Answer { number, answer })) => {
                        // Whoever asked may have stopped waiting.
                        if let Some(waiting) = open.remove(&number) {
                            let _ = waiting.send(*answer);
                        }
                        continue;
                    }
                    Some(Ok(_)) => return Broken::Refused(PeerRefusal::Malformed),
                    Some(Err(broken)) => return broken,
                    None => return Broken::Closed(std::io::ErrorKind::ConnectionAborted.into()),
                },
                _ = ping.tick() => {
                    open.retain(|_, waiting| !waiting.is_closed());
                    Frame::Ping
                }
            };
            if let Err(broken) = writer.send(&frame).await {
                return broken;
            }
        }
    }
}

async fn read_all(mut reader: FrameReader<OwnedReadHalf>, incoming: mpsc::Sender<Result<Frame, Broken>>) {
    loop {
        let frame = reader.next(IDLE_DEADLINE).await;
        let over = frame.is_err();
        if incoming.send(frame).await.is_err() || over {
            return;
        }
    }
}

/// A connection whose other end has shown that it has the key.
async fn open(credentials: &Credentials, addr: SocketAddr) -> Result<Opened<OwnedReadHalf, OwnedWriteHalf>, Broken> {
    let timed_out = |_| Broken::Closed(std::io::ErrorKind::TimedOut.into());
    let stream = tokio::time::timeout(HELLO_DEADLINE, TcpStream::connect(addr)).await.map_err(timed_out)??;
    stream.set_nodelay(true)?;
    let (from, to) = stream.into_split();
    let mut opened = greet(credentials, true, from, to).await?;
    opened.writer.send(&Frame::Ping).await?;
    match opened.reader.next(HELLO_DEADLINE).await? {
        Frame::Pong => Ok(opened),
        _ => Err(Broken::Refused(PeerRefusal::Malformed)),
    }
}

/// Asks a supervisor once, as a reader. The error is for people.
pub(crate) async fn ask_once(
    addr: SocketAddr,
    key: &Key,
    cluster: &ClusterId,
    request: Request,
    deadline: Duration,
) -> Result<Answer, String> {
    let credentials = Credentials { party: Party::Reader, key: key.clone(), cluster: cluster.clone() };
    let exchange = async {
        let mut opened = open(&credentials, addr).await?;
        opened.writer.send(&Frame::Request { number: 1, request }).await?;
        match opened.reader.next(deadline).await? {
            Frame::Answer { number: 1, answer } => Ok(*answer),
            _ => Err(Broken::Refused(PeerRefusal::Malformed)),
        }
    };
    match tokio::time::timeout(deadline, exchange).await {
        Ok(answer) => answer.map_err(|broken: Broken| broken.to_string()),
        Err(_) => Err(format!("no answer within {deadline:?}")),
    }
}
