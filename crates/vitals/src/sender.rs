//! Sends heartbeats, from a thread of its own: they go on when the rest of the process stands.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::challenge::Challenge;
use crate::error::Error;
use crate::key::Key;
use crate::limits::{MAX_HEARTBEAT_BYTES, RECENT_HEARTBEATS};
use crate::resolve::Addresses;
use crate::vitals::Shared;

/// The sending thread, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Sender {
    signal: Arc<Signal>,
    addresses: Arc<Addresses>,
    thread: Option<JoinHandle<()>>,
}

impl Sender {
    /// Starts it; the first heartbeats go out at once.
    pub(crate) fn start(
        shared: Arc<Shared>,
        key: Key,
        supervisors: Vec<String>,
        every: Duration,
    ) -> Result<Self, Error> {
        let (woken, wake) = io::pipe().map_err(Error::Sending)?;
        let signal = Arc::new(Signal { pending: AtomicBool::new(false), ended: AtomicBool::new(false), wake });
        let addresses = Addresses::start(supervisors.clone())?;
        let heart = Heart {
            shared,
            key,
            every,
            addresses: Arc::clone(&addresses),
            peers: supervisors.iter().map(|_| Peer { challenge: 0, due: Instant::now() }).collect(),
            sequence: 0,
            recent: VecDeque::with_capacity(RECENT_HEARTBEATS),
            sockets: Sockets::default(),
            signal: Arc::clone(&signal),
            woken,
        };
        let thread = thread::Builder::new().name("heartbeats".to_owned()).spawn(move || heart.run());
        Ok(Self { signal, addresses, thread: Some(thread.map_err(Error::Sending)?) })
    }

    /// Something worth telling has changed: heartbeats go out now.
    pub(crate) fn tell(&self) {
        self.signal.give();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.addresses.end();
        self.signal.ended.store(true, Ordering::SeqCst);
        self.signal.give();
        if let Some(thread) = self.thread.take() {
            // It never blocks on anything but the pipe that was just written to.
            let _ = thread.join();
        }
    }
}

/// Wakes the thread.
#[derive(Debug)]
struct Signal {
    /// At most one byte is in the pipe, so writing never blocks.
    pending: AtomicBool,
    ended: AtomicBool,
    wake: PipeWriter,
}

impl Signal {
    fn give(&self) {
        if !self.pending.swap(true, Ordering::SeqCst) {
            let _ = (&self.wake).write_all(&[1]);
        }
    }
}

/// A supervisor, as its heartbeats' sender knows it.
#[derive(Debug)]
struct Peer {
    challenge: u64,
    due: Instant,
}

/// What the thread owns.
struct Heart {
    shared: Arc<Shared>,
    key: Key,
    every: Duration,
    addresses: Arc<Addresses>,
    peers: Vec<Peer>,
    /// Each datagram has its own, so that an answer tells which supervisor it comes from.
    sequence: u64,
    /// Sequences sent last, and to whom.
    recent: VecDeque<(u64, usize)>,
    sockets: Sockets,
    signal: Arc<Signal>,
    woken: PipeReader,
}

impl Heart {
    fn run(mut self) {
        loop {
            if self.signal.ended.load(Ordering::SeqCst) {
                self.send_where(|_| true);
                return;
            }
            let now = Instant::now();
            self.send_where(|peer| peer.due <= now);
            self.wait();
            self.hear();
        }
    }

    /// Heartbeats to those supervisors for which `wanted` holds.
    fn send_where(&mut self, wanted: impl Fn(&Peer) -> bool) {
        if !self.peers.iter().any(&wanted) {
            return;
        }
        let addresses = self.addresses.now();
        let mut heartbeat = self.shared.heartbeat();
        for (at, peer) in self.peers.iter_mut().enumerate() {
            if !wanted(peer) {
                continue;
            }
            peer.due = Instant::now() + self.every;
            let Some(to) = addresses[at] else { continue };
            self.sequence += 1;
            heartbeat.sequence = self.sequence;
            heartbeat.challenge = peer.challenge;
            if self.recent.len() == RECENT_HEARTBEATS {
                self.recent.pop_front();
            }
            self.recent.push_back((self.sequence, at));
            let sealed = match heartbeat.encode(&self.key) {
                Ok(sealed) => sealed,
                Err(error) => {
                    tracing::warn!(%error, "a heartbeat could not be sealed");
                    continue;
                }
            };
            if let Err(error) = self.sockets.send(&sealed, to) {
                tracing::debug!(%error, supervisor = %to, "a heartbeat could not be sent");
                self.addresses.doubt();
            }
        }
    }

    /// Until a heartbeat is due, an answer came, or there is something to tell.
    fn wait(&mut self) {
        let now = Instant::now();
        let due = self.peers.iter().map(|peer| peer.due.saturating_duration_since(now)).min();
        let due = due.unwrap_or(self.every);
        let timeout = Timespec { tv_sec: due.as_secs().cast_signed(), tv_nsec: i64::from(due.subsec_nanos()) };
        let mut watched = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for socket in self.sockets.all() {
            watched.push(PollFd::new(socket, PollFlags::IN));
        }
        if let Err(error) = poll(&mut watched, Some(&timeout))
            && error != rustix::io::Errno::INTR
        {
            tracing::debug!(%error, "waiting for challenges failed");
            thread::sleep(due.min(self.every));
        }
        let told = !watched[0].revents().is_empty();
        if told {
            // Before the heartbeat is made: whoever changes something after that writes another byte.
            let _ = (&self.woken).read(&mut [0; 1]);
            self.signal.pending.store(false, Ordering::SeqCst);
            let now = Instant::now();
            self.peers.iter_mut().for_each(|peer| peer.due = now);
        }
    }

    /// Takes all challenges that have come.
    fn hear(&mut self) {
        let mut buffer = [0; MAX_HEARTBEAT_BYTES + 1];
        let cluster = &self.shared.identity.cluster;
        for socket in self.sockets.all() {
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let Ok(challenge) = Challenge::decode(&buffer[..length], &self.key, cluster) else {
                    tracing::debug!(%from, "what came instead of a challenge is ignored");
                    continue;
                };
                let ours =
                    challenge.token == self.shared.token && challenge.incarnation == self.shared.identity.incarnation;
                let answered = self.recent.iter().find(|(sequence, _)| ours && *sequence == challenge.sequence);
                let Some((_, at)) = answered else {
                    tracing::debug!(%from, "an old challenge is ignored");
                    continue;
                };
                let peer = &mut self.peers[*at];
                if peer.challenge != challenge.nonce {
                    peer.challenge = challenge.nonce;
                    peer.due = Instant::now();
                }
            }
        }
    }
}

/// A socket for each kind of address, opened when it is needed first. They never block.
#[derive(Debug, Default)]
struct Sockets {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Sockets {
    fn send(&mut self, bytes: &[u8], to: SocketAddr) -> io::Result<()> {
        let (socket, any) = match to {
            SocketAddr::V4(_) => (&mut self.v4, SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
            SocketAddr::V6(_) => (&mut self.v6, SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))),
        };
        let socket = match socket {
            Some(socket) => socket,
            none => {
                let opened = UdpSocket::bind(any)?;
                opened.set_nonblocking(true)?;
                none.insert(opened)
            }
        };
        match socket.send_to(bytes, to) {
            Ok(_) => Ok(()),
            // The next one goes out soon; this one is lost as any datagram may be.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn all(&self) -> impl Iterator<Item = &UdpSocket> {
        self.v4.iter().chain(&self.v6)
    }
}
