//! Hears heartbeats, and believes only those that are ours and new.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prometheus_client::metrics::counter::Counter;
use tenaz_core::{Incarnation, ProcessName};
use tokio::net::UdpSocket;

use crate::challenge::Challenge;
use crate::cluster_id::ClusterId;
use crate::error::{Error, Refusal};
use crate::heartbeat::Heartbeat;
use crate::key::Key;
use crate::limits::{MAX_HEARTBEAT_BYTES, MAX_PROCESSES};
use crate::metrics::SupervisorMetrics;

/// A heartbeat that is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// What the process said.
    pub heartbeat: Heartbeat,
    /// From where it came.
    pub from: SocketAddr,
    /// When it came.
    pub at: Instant,
}

impl Heard {
    /// Where the process can be probed: one that listens on all addresses is reached where its heartbeat came from.
    pub fn http(&self) -> Option<SocketAddr> {
        self.heartbeat.http.map(|http| match http.ip() {
            ip if ip.is_unspecified() => SocketAddr::new(self.from.ip(), http.port()),
            IpAddr::V4(_) | IpAddr::V6(_) => http,
        })
    }
}

/// How many messages were not believed, and why. Clones count into the same.
#[derive(Debug, Clone, Default)]
pub struct Refused {
    /// Not sealed with our key.
    pub forged: Counter,
    /// Seen before.
    pub replayed: Counter,
    /// Not of our format.
    pub malformed: Counter,
    /// Of another cluster.
    pub other_cluster: Counter,
    /// Without this listener's challenge. Each process's first heartbeat is one of these.
    pub unchallenged: Counter,
}

impl Refused {
    /// The counter for a reason.
    pub fn of(&self, refusal: Refusal) -> &Counter {
        match refusal {
            Refusal::Forged => &self.forged,
            Refusal::Replayed => &self.replayed,
            Refusal::Malformed => &self.malformed,
            Refusal::OtherCluster => &self.other_cluster,
            Refusal::Unchallenged => &self.unchallenged,
        }
    }
}

/// Hears heartbeats.
#[derive(Debug)]
pub struct HeartbeatListener {
    socket: UdpSocket,
    key: Key,
    cluster: ClusterId,
    /// What heartbeats must carry: drawn by each listener, so that what others heard is not believed here.
    nonce: u64,
    latest: HashMap<ProcessName, (Incarnation, u64)>,
    heartbeats: Counter,
    refused: Arc<Refused>,
}

impl HeartbeatListener {
    /// Listens for this cluster's heartbeats.
    pub async fn bind(addr: SocketAddr, key: Key, cluster: ClusterId) -> Result<Self, Error> {
        let socket = UdpSocket::bind(addr).await;
        let socket = socket.map_err(|source| Error::Listen { addr, protocol: "UDP", source })?;
        let nonce = crate::vitals::draw()?;
        let refused = Arc::new(Refused::default());
        Ok(Self { socket, key, cluster, nonce, latest: HashMap::new(), heartbeats: Counter::default(), refused })
    }

    /// Counts into a supervisor's metrics from now on.
    pub fn counting_into(mut self, metrics: &SupervisorMetrics) -> Self {
        self.heartbeats = metrics.heartbeats.clone();
        self.refused = Arc::new(metrics.heartbeats_refused.clone());
        self
    }

    /// The next heartbeat that is believed. Others are counted; who does not know the challenge is told it. Can be
    /// given up at any time without losing one.
    pub async fn next(&mut self) -> Heard {
        let mut buffer = [0; MAX_HEARTBEAT_BYTES + 1];
        loop {
            let (length, from) = match self.socket.recv_from(&mut buffer).await {
                Ok(received) => received,
                Err(error) => {
                    // An error of an earlier send, or memory is short: none of a heartbeat that is there.
                    tracing::debug!(%error, "receiving a heartbeat failed");
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            };
            match self.judge(&buffer[..length], from) {
                Ok(heartbeat) => {
                    self.heartbeats.inc();
                    return Heard { heartbeat, from, at: Instant::now() };
                }
                Err(refusal) => {
                    self.refused.of(refusal).inc();
                    tracing::debug!(%from, %refusal, "a heartbeat is not believed");
                }
            }
        }
    }

    /// How many were not believed.
    pub fn refused(&self) -> Arc<Refused> {
        Arc::clone(&self.refused)
    }

    /// Where it listens.
    pub fn local_addr(&self) -> Result<SocketAddr, Error> {
        self.socket.local_addr().map_err(Error::Sending)
    }

    fn judge(&mut self, bytes: &[u8], from: SocketAddr) -> Result<Heartbeat, Refusal> {
        let heartbeat = Heartbeat::decode(bytes, &self.key, &self.cluster)?;
        if heartbeat.challenge != self.nonce {
            // If it cannot be sent now, the next heartbeat asks again.
            if let Ok(challenge) = Challenge::answering(&heartbeat, self.nonce).encode(&self.key, &self.cluster) {
                let _ = self.socket.try_send_to(&challenge, from);
            }
            return Err(Refusal::Unchallenged);
        }
        let name = &heartbeat.identity.name;
        let this = (heartbeat.identity.incarnation, heartbeat.sequence);
        let latest = self.latest.get(name);
        if latest.is_some_and(|latest| this <= *latest) {
            return Err(Refusal::Replayed);
        }
        if latest.is_none() && self.latest.len() >= MAX_PROCESSES {
            tracing::warn!(%name, "more processes than a cluster can have: this one is not heard");
            return Err(Refusal::Malformed);
        }
        self.latest.insert(name.clone(), this);
        Ok(heartbeat)
    }
}
