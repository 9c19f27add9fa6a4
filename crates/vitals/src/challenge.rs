//! The challenge: a supervisor's answer to a heartbeat that does not carry the number that its life has drawn.
//!
//! A heartbeat that carries it was made after this supervisor was started, so what was recorded before cannot be played
//! to it. What was recorded since has a sequence that has been seen. No clock is needed.

use tenaz_core::Incarnation;

use crate::cluster_id::ClusterId;
use crate::error::{Error, Refusal};
use crate::heartbeat::{Heartbeat, close, open};
use crate::key::Key;
use crate::wire::{Reader, Writer};

const HEAD: &[u8; 5] = b"TNZC\x02";
const CONTEXT: &str = "tenaz challenge";

/// What a supervisor wants to see in heartbeats, and which heartbeat it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The number of the supervisor's life.
    pub(crate) nonce: u64,
    /// Of the heartbeat that is answered.
    pub(crate) incarnation: Incarnation,
    /// Of the heartbeat that is answered.
    pub(crate) token: u64,
    /// Of the heartbeat that is answered.
    pub(crate) sequence: u64,
}

impl Challenge {
    pub(crate) fn answering(heartbeat: &Heartbeat, nonce: u64) -> Self {
        Self {
            nonce,
            incarnation: heartbeat.identity.incarnation,
            token: heartbeat.token,
            sequence: heartbeat.sequence,
        }
    }

    pub(crate) fn encode(&self, key: &Key, cluster: &ClusterId) -> Result<Vec<u8>, Error> {
        let mut to = Writer::default();
        for number in [self.nonce, self.incarnation.0, self.token, self.sequence] {
            to.u64(number);
        }
        close(to.0, HEAD, CONTEXT, key, cluster)
    }

    pub(crate) fn decode(bytes: &[u8], key: &Key, cluster: &ClusterId) -> Result<Self, Refusal> {
        let body = open(bytes, HEAD, CONTEXT, key, cluster)?;
        Self::read(&body).ok_or(Refusal::Malformed)
    }

    fn read(body: &[u8]) -> Option<Self> {
        let mut from = Reader(body);
        let (nonce, incarnation) = (from.u64()?, Incarnation(from.u64()?));
        let (token, sequence) = (from.u64()?, from.u64()?);
        from.end()?;
        Some(Self { nonce, incarnation, token, sequence })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_only_what_was_sealed_as_one() {
        let key = Key::from_bytes([3; 32]);
        let cluster: ClusterId = "00000000000000aa".parse().unwrap();
        let challenge = Challenge { nonce: 1, incarnation: Incarnation(2), token: 3, sequence: 4 };
        let bytes = challenge.encode(&key, &cluster).unwrap();
        assert_eq!(Challenge::decode(&bytes, &key, &cluster), Ok(challenge));
        for at in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[at / 8] ^= 1 << (at % 8);
            assert!(Challenge::decode(&bad, &key, &cluster).is_err());
        }
        assert_eq!(Challenge::decode(&bytes, &Key::from_bytes([4; 32]), &cluster), Err(Refusal::Forged));
        assert_eq!(Heartbeat::decode(&bytes, &key, &cluster), Err(Refusal::Malformed));
    }
}
