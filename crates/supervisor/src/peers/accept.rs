//! Connections that others have opened: their words are events, their requests get answers.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use tenaz_core::SupervisorId;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::frame::{Broken, FrameReader, FrameWriter};
use super::hello::{Credentials, Opened, Party, greet};
use super::message::{Answer, Frame, Request};
use super::{PeerEvent, PeerRefusal, PeerRefusals};
use crate::limits::{ACCEPT_AGAIN, HELLO_DEADLINE, IDLE_DEADLINE, MAX_PEER_CONNECTIONS, MAX_STRANGERS, OPEN_ANSWERS};

/// What every accepted connection needs.
struct Door {
    credentials: Credentials,
    known: BTreeSet<SupervisorId>,
    events: mpsc::Sender<PeerEvent>,
    refusals: Arc<PeerRefusals>,
    room: Arc<Semaphore>,
}

pub(super) async fn accept_all(
    listener: TcpListener,
    credentials: Credentials,
    known: BTreeSet<SupervisorId>,
    events: mpsc::Sender<PeerEvent>,
    refusals: Arc<PeerRefusals>,
) {
    let room = Arc::new(Semaphore::new(MAX_PEER_CONNECTIONS));
    let door = Arc::new(Door { credentials, known, events, refusals, room });
    let mut connections = JoinSet::new();
    // Those who have not shown yet that they have the key. The oldest makes room: a friend needs a moment only.
    let mut strangers: VecDeque<AbortHandle> = VecDeque::new();
    let (introduced, mut done) = mpsc::unbounded_channel::<tokio::task::Id>();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let (server, introduced) = (Arc::clone(&door), introduced.clone());
                    strangers.push_back(connections.spawn(async move { server.serve(stream, &introduced).await }));
                    if strangers.len() > MAX_STRANGERS && let Some(oldest) = strangers.pop_front() {
                        oldest.abort();
                        door.refusals.count(PeerRefusal::Crowded);
                    }
                }
                Err(error) => {
                    // No more files, say: it will not be better at once.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            },
            Some(id) = done.recv() => strangers.retain(|stranger| stranger.id() != id),
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Door {
    async fn serve(&self, stream: TcpStream, introduced: &mpsc::UnboundedSender<tokio::task::Id>) {
        let opened = self.open(stream).await;
        if let Some(id) = tokio::task::try_id() {
            // The receiver lives as long as this task does.
            let _ = introduced.send(id);
        }
        let served = match opened {
            Ok(opened) => self.converse(opened).await,
            Err(broken) => Err(broken),
        };
        if let Err(Broken::Refused(refusal)) = served {
            self.refusals.count(refusal);
            tracing::debug!(%refusal, "a connection was closed");
        }
    }

    /// Whoever has said a first sealed word is known.
    async fn open(&self, stream: TcpStream) -> Result<Opened<OwnedReadHalf, OwnedWriteHalf>, Broken> {
        stream.set_nodelay(true)?;
        let (from, to) = stream.into_split();
        let mut opened = greet(&self.credentials, false, from, to).await?;
        if let Party::Supervisor(id) = opened.party
            && !self.known.contains(&id)
        {
            return Err(Broken::Refused(PeerRefusal::UnknownPeer));
        }
        match opened.reader.next(HELLO_DEADLINE).await? {
            Frame::Ping => opened.writer.send(&Frame::Pong).await?,
            _ => return Err(Broken::Refused(PeerRefusal::Malformed)),
        }
        Ok(opened)
    }

    async fn converse(&self, opened: Opened<OwnedReadHalf, OwnedWriteHalf>) -> Result<(), Broken> {
        let Ok(_place) = self.room.try_acquire() else { return Err(Broken::Refused(PeerRefusal::Crowded)) };
        let Opened { party, mut reader, writer } = opened;
        let (answers, outgoing) = mpsc::channel(OPEN_ANSWERS);
        let mut tasks = JoinSet::new();
        tasks.spawn(write_all(writer, outgoing));
        tokio::select! {
            result = read_all(self, party, &mut reader, &answers) => result,
            // Nothing can be said any more.
            _ = tasks.join_next() => Ok(()),
        }
    }

    /// What came is passed on. Waits when the supervisor is behind, and so does whoever sends.
    async fn pass_on(&self, party: Party, frame: Frame, answers: &mpsc::Sender<Outgoing>) -> Result<(), Broken> {
        let gone = || Broken::Closed(std::io::ErrorKind::ConnectionAborted.into());
        match (party, frame) {
            (_, Frame::Ping) => answers.send(Outgoing::Pong).await.map_err(|_| gone()),
            (_, Frame::Request { number, request }) => {
                if party == Party::Reader && !matches!(request, Request::Status) {
                    return Err(Broken::Refused(PeerRefusal::NotAllowed));
                }
                // Nobody orders in the name of another one.
                if let (Party::Supervisor(from), Request::Order { term, .. }) = (party, &request)
                    && term.leader != from
                {
                    return Err(Broken::Refused(PeerRefusal::NotAllowed));
                }
                let (answer, answered) = oneshot::channel();
                self.tell(PeerEvent::Asked { request, answer }).await?;
                answers.send(Outgoing::Answer { number, answered }).await.map_err(|_| gone())
            }
            (Party::Supervisor(from), Frame::Election(message)) => {
                self.tell(PeerEvent::Election { from, message }).await
            }
            (Party::Supervisor(from), Frame::Changed) => self.tell(PeerEvent::Changed { from }).await,
            (Party::Reader, Frame::Election(_) | Frame::Changed) => Err(Broken::Refused(PeerRefusal::NotAllowed)),
            (_, Frame::Pong | Frame::Answer { .. }) => Err(Broken::Refused(PeerRefusal::Malformed)),
        }
    }

    async fn tell(&self, event: PeerEvent) -> Result<(), Broken> {
        let told = self.events.send(event).await;
        told.map_err(|_| Broken::Closed(std::io::ErrorKind::ConnectionAborted.into()))
    }
}

enum Outgoing {
    Pong,
    Answer { number: u64, answered: oneshot::Receiver<Answer> },
}

async fn read_all(
    door: &Door,
    party: Party,
    reader: &mut FrameReader<OwnedReadHalf>,
    answers: &mpsc::Sender<Outgoing>,
) -> Result<(), Broken> {
    loop {
        let frame = match reader.next(IDLE_DEADLINE).await {
            Ok(frame) => frame,
            // The usual end.
            Err(Broken::Closed(_)) => return Ok(()),
            Err(refused) => return Err(refused),
        };
        door.pass_on(party, frame, answers).await?;
    }
}

/// Answers go out as they are ready: a slow order does not hold up a look.
async fn write_all(mut writer: FrameWriter<OwnedWriteHalf>, mut outgoing: mpsc::Receiver<Outgoing>) {
    let mut waiting = JoinSet::new();
    loop {
        let frame = tokio::select! {
            next = outgoing.recv(), if waiting.len() < OPEN_ANSWERS => match next {
                None => return,
                Some(Outgoing::Pong) => Frame::Pong,
                Some(Outgoing::Answer { number, answered }) => {
                    waiting.spawn(async move { (number, answered.await) });
                    continue;
                }
            },
            Some(done) = waiting.join_next() => match done {
                Ok((number, Ok(answer))) => Frame::Answer { number, answer: Box::new(answer.fitting()) },
                Ok((number, Err(_))) => {
                    let answer = Box::new(Answer::Failed("the supervisor did not answer".to_owned()));
                    Frame::Answer { number, answer }
                }
                Err(_) => continue,
            },
        };
        if writer.send(&frame).await.is_err() {
            return;
        }
    }
}
