//! The heartbeat: what a process says of itself to every supervisor, twice a second.
//!
//! ```text
//! "TNZH" 2 | cluster (8) | salt (24) | name, role, incarnation, …, encrypted with a key made of the cluster's and the salt | tag (16)
//! ```

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tenaz_core::{Incarnation, ProcessName, ProcessRole};

use crate::cipher::TAG_BYTES;
use crate::cluster_id::ClusterId;
use crate::error::{Error, Refusal};
use crate::key::Key;
use crate::limits::{MAX_ADDRESS_BYTES, MAX_HEARTBEAT_BYTES, MAX_URL_BYTES};
use crate::wire::{Reader, Writer};

const HEAD: &[u8; 5] = b"TNZH\x02";
const CONTEXT: &str = "tenaz heartbeat";
/// Drawn for each message, so that its key is used once.
const SALT_BYTES: usize = 24;

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its name there.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Which of its lives this is.
    pub incarnation: Incarnation,
}

impl Identity {
    /// Of a process that belongs to no cluster with supervisors: a name that no other process of this machine has, the
    /// time as its life.
    pub fn alone(role: ProcessRole) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            cluster: ClusterId::from_bytes([0; 8]),
            name: ProcessName::numbered(role, std::process::id()),
            role,
            incarnation: Incarnation(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

/// What a process has done since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Chunks worked off, or taken in by a gateway.
    pub chunks: u64,
    /// Rows read.
    pub rows: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Jobs that it works for now.
    pub jobs: u64,
}

/// What a process says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heartbeat {
    /// Who it is.
    pub identity: Identity,
    /// Drawn by each start: a challenge that answered another life is not taken for one that answers this.
    pub token: u64,
    /// Its process id.
    pub pid: u32,
    /// Higher than in any heartbeat of this life before.
    pub sequence: u64,
    /// The challenge of the supervisor that it is sent to; 0 if it is not known yet.
    pub challenge: u64,
    /// Whether it does what it is there for.
    pub ready: bool,
    /// Whether it has been told to end.
    pub draining: bool,
    /// Moves on while all its loops turn.
    pub pulse: u64,
    /// What it has done.
    pub counters: Counters,
    /// Where it answers `/healthz`.
    pub http: Option<SocketAddr>,
    /// Where clients reach it.
    pub url: Option<String>,
    /// Milliseconds since it was started.
    pub up_ms: u64,
}

impl Heartbeat {
    /// As it travels, sealed. A URL that is too long is left out.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn encode(&self, key: &Key) -> Result<Vec<u8>, Error> {
        let mut to = Writer::default();
        to.text(self.identity.name.as_str(), ProcessName::MAX_BYTES);
        to.u8(role_number(self.identity.role));
        to.u64(self.identity.incarnation.0);
        to.u64(self.token);
        to.u32(self.pid);
        to.u64(self.sequence);
        to.u64(self.challenge);
        to.u8(u8::from(self.ready) | u8::from(self.draining) << 1);
        to.u64(self.pulse);
        for count in [self.counters.chunks, self.counters.rows, self.counters.bytes, self.counters.jobs] {
            to.u64(count);
        }
        to.text(&self.http.map(|addr| addr.to_string()).unwrap_or_default(), MAX_ADDRESS_BYTES);
        to.text(self.url.as_deref().unwrap_or_default(), MAX_URL_BYTES);
        to.u64(self.up_ms);
        let sealed = close(to.0, HEAD, CONTEXT, key, &self.identity.cluster)?;
        debug_assert!(sealed.len() <= MAX_HEARTBEAT_BYTES);
        Ok(sealed)
    }

    /// From what came over the network: any bytes at all.
    ///
    /// Whether it is fresh (challenge, sequence) is for the listener to say.
    pub fn decode(bytes: &[u8], key: &Key, cluster: &ClusterId) -> Result<Self, Refusal> {
        let body = open(bytes, HEAD, CONTEXT, key, cluster)?;
        Self::read(&body, cluster).ok_or(Refusal::Malformed)
    }

    fn read(body: &[u8], cluster: &ClusterId) -> Option<Self> {
        let mut from = Reader(body);
        let name = from.text(ProcessName::MAX_BYTES)?.parse().ok()?;
        let role = role_of(from.u8()?)?;
        let incarnation = Incarnation(from.u64()?);
        let token = from.u64()?;
        let pid = from.u32()?;
        let (sequence, challenge) = (from.u64()?, from.u64()?);
        let flags = from.u8()?;
        let pulse = from.u64()?;
        let counters = Counters { chunks: from.u64()?, rows: from.u64()?, bytes: from.u64()?, jobs: from.u64()? };
        let http = match from.text(MAX_ADDRESS_BYTES)? {
            "" => None,
            text => Some(text.parse().ok()?),
        };
        let url = Some(from.text(MAX_URL_BYTES)?).filter(|url| !url.is_empty()).map(str::to_owned);
        let up_ms = from.u64()?;
        from.end()?;
        if flags > 0b11 {
            return None;
        }
        Some(Self {
            identity: Identity { cluster: cluster.clone(), name, role, incarnation },
            token,
            pid,
            sequence,
            challenge,
            ready: flags & 1 != 0,
            draining: flags & 2 != 0,
            pulse,
            counters,
            http,
            url,
            up_ms,
        })
    }
}

/// Encrypts a message under a key that is made for it alone.
pub(crate) fn close(
    mut message: Vec<u8>,
    head: &[u8; 5],
    context: &str,
    key: &Key,
    cluster: &ClusterId,
) -> Result<Vec<u8>, Error> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| Error::Random(error.to_string()))?;
    let mut in_clear = Writer::default();
    in_clear.bytes(head);
    in_clear.bytes(&cluster.to_bytes());
    in_clear.bytes(&salt);
    key.derive(context, &[&salt]).cipher().hide(0, &in_clear.0, &mut message);
    in_clear.bytes(&message);
    Ok(in_clear.0)
}

/// Checks everything around a message: what was encrypted comes back.
///
/// The cluster is looked at before the seal, because another cluster has another key: its processes are lost, not forgers.
pub(crate) fn open(
    bytes: &[u8],
    head: &[u8; 5],
    context: &str,
    key: &Key,
    cluster: &ClusterId,
) -> Result<Vec<u8>, Refusal> {
    if bytes.len() > MAX_HEARTBEAT_BYTES {
        return Err(Refusal::Malformed);
    }
    let mut from = Reader(bytes);
    if from.take(head.len()) != Some(head) {
        return Err(Refusal::Malformed);
    }
    let theirs = from.eight().ok_or(Refusal::Malformed)?;
    if theirs != cluster.to_bytes() {
        return Err(Refusal::OtherCluster);
    }
    let salt = from.take(SALT_BYTES).ok_or(Refusal::Malformed)?;
    let mut hidden = from.0.to_vec();
    if hidden.len() < TAG_BYTES {
        return Err(Refusal::Malformed);
    }
    let in_clear = &bytes[..bytes.len() - hidden.len()];
    let shown = key.derive(context, &[salt]).cipher().show(0, in_clear, &mut hidden).map(<[u8]>::len);
    hidden.truncate(shown.ok_or(Refusal::Forged)?);
    Ok(hidden)
}

fn role_number(role: ProcessRole) -> u8 {
    match role {
        ProcessRole::Supervisor => 0,
        ProcessRole::Broker => 1,
        ProcessRole::Worker => 2,
        ProcessRole::Gateway => 3,
    }
}

fn role_of(number: u8) -> Option<ProcessRole> {
    ProcessRole::ALL.into_iter().find(|role| role_number(*role) == number)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key() -> Key {
        Key::from_bytes([9; 32])
    }

    fn cluster() -> ClusterId {
        "0123456789abcdef".parse().unwrap()
    }

    fn any_heartbeat() -> impl Strategy<Value = Heartbeat> {
        let identity = ("[a-z][a-z0-9-]{0,63}", 0..4_usize, any::<u64>());
        let state = (any::<u32>(), any::<[u64; 5]>(), any::<[bool; 2]>(), any::<[u64; 4]>());
        let places = (any::<Option<([u16; 8], u16)>>(), proptest::option::of(".{1,120}"), any::<u64>());
        (identity, state, places).prop_map(|((name, role, life), (pid, numbers, flags, counts), (http, url, up_ms))| {
            let [sequence, challenge, pulse, token, _] = numbers;
            let [chunks, rows, bytes, jobs] = counts;
            Heartbeat {
                identity: Identity {
                    cluster: cluster(),
                    name: name.parse().unwrap(),
                    role: ProcessRole::ALL[role],
                    incarnation: Incarnation(life),
                },
                token,
                pid,
                sequence,
                challenge,
                ready: flags[0],
                draining: flags[1],
                pulse,
                counters: Counters { chunks, rows, bytes, jobs },
                http: http.map(|(ip, port)| SocketAddr::from((ip, port))),
                url: url.filter(|url| url.len() <= MAX_URL_BYTES),
                up_ms,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_said_is_heard(heartbeat in any_heartbeat()) {
            let bytes = heartbeat.encode(&key()).unwrap();
            prop_assert!(bytes.len() <= MAX_HEARTBEAT_BYTES);
            prop_assert_eq!(Heartbeat::decode(&bytes, &key(), &cluster()), Ok(heartbeat));
        }

        #[test]
        fn any_flipped_bit_is_refused(heartbeat in any_heartbeat(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
            let mut bytes = heartbeat.encode(&key()).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            prop_assert!(Heartbeat::decode(&bytes, &key(), &cluster()).is_err());
        }

        #[test]
        fn any_part_of_it_is_refused(heartbeat in any_heartbeat(), length in any::<prop::sample::Index>()) {
            let bytes = heartbeat.encode(&key()).unwrap();
            let part = &bytes[..length.index(bytes.len())];
            prop_assert!(Heartbeat::decode(part, &key(), &cluster()).is_err());
        }

        #[test]
        fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert!(Heartbeat::decode(&bytes, &key(), &cluster()).is_err());
        }

        #[test]
        fn any_sealed_bytes_do_not_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let bytes = close(body, HEAD, CONTEXT, &key(), &cluster()).unwrap();
            prop_assert_ne!(Heartbeat::decode(&bytes, &key(), &cluster()).err(), Some(Refusal::Forged));
        }
    }

    #[test]
    fn nobody_reads_along() {
        let heartbeat = Heartbeat {
            identity: Identity { cluster: cluster(), ..Identity::alone(ProcessRole::Gateway) },
            token: 1,
            pid: 1,
            sequence: 1,
            challenge: 1,
            ready: true,
            draining: true,
            pulse: 1,
            counters: Counters::default(),
            http: None,
            url: Some("http://secret-host:7400".to_owned()),
            up_ms: 1,
        };
        let (one, other) = (heartbeat.encode(&key()).unwrap(), heartbeat.encode(&key()).unwrap());
        assert!(!one.windows(6).any(|part| part == b"secret" || part == b"gatewa"));
        assert_ne!(one[13..], other[13..], "each under a key of its own");
    }

    #[test]
    fn the_longest_one_fits_a_datagram() {
        let heartbeat = Heartbeat {
            identity: Identity {
                cluster: cluster(),
                name: "x".repeat(ProcessName::MAX_BYTES).parse().unwrap(),
                role: ProcessRole::Gateway,
                incarnation: Incarnation(u64::MAX),
            },
            token: 1,
            pid: 1,
            sequence: 1,
            challenge: 1,
            ready: true,
            draining: true,
            pulse: 1,
            counters: Counters::default(),
            http: Some("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535".parse().unwrap()),
            url: Some("u".repeat(MAX_URL_BYTES)),
            up_ms: 1,
        };
        let bytes = heartbeat.encode(&key()).unwrap();
        assert!(bytes.len() <= MAX_HEARTBEAT_BYTES, "{}", bytes.len());
        assert_eq!(Heartbeat::decode(&bytes, &key(), &cluster()), Ok(heartbeat.clone()));
        let long = Heartbeat { url: Some("u".repeat(MAX_URL_BYTES + 1)), ..heartbeat.clone() };
        let without = Heartbeat { url: None, ..heartbeat };
        assert_eq!(Heartbeat::decode(&long.encode(&key()).unwrap(), &key(), &cluster()), Ok(without));
    }
}
