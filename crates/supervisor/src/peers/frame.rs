//! Frames: a length and an encrypted payload, under the key of one direction of one connection and its place there.
//!
//! ```text
//! length (4) | ChaCha20-Poly1305 of the payload, its number in the connection as nonce | tag (16)
//! ```

use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenaz_vitals::{Cipher, Key, TAG_BYTES};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::PeerRefusal;
use crate::limits::{FRAME_DEADLINE, MAX_FIRST_FRAME_BYTES, MAX_FRAME_BYTES};

/// A connection that is over.
#[derive(Debug)]
pub(super) enum Broken {
    /// It is closed, or was never there.
    Closed(io::Error),
    /// What came was not believed.
    Refused(PeerRefusal),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Closed(error)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed(error) => write!(f, "{error}"),
            Self::Refused(refusal) => write!(f, "what came was not believed: {refusal}"),
        }
    }
}

/// Reads frames of one direction of one connection.
pub(super) struct FrameReader<R> {
    from: R,
    cipher: Cipher,
    counter: u64,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(from: R, key: &Key) -> Self {
        Self { from, cipher: key.cipher(), counter: 0 }
    }

    /// The next frame, which must begin within `idle`.
    pub(super) async fn next<T: DeserializeOwned>(&mut self, idle: Duration) -> Result<T, Broken> {
        let slow = |_| Broken::Refused(PeerRefusal::Slow);
        let length = tokio::time::timeout(idle, self.from.read_u32()).await.map_err(slow)??;
        // Whoever has not shown yet that it has the key gets no memory.
        let most = if self.counter == 0 { MAX_FIRST_FRAME_BYTES } else { MAX_FRAME_BYTES };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if length > most {
            return Err(Broken::Refused(PeerRefusal::Oversize));
        }
        let mut bytes = vec![0; length + TAG_BYTES];
        tokio::time::timeout(FRAME_DEADLINE, self.from.read_exact(&mut bytes)).await.map_err(slow)??;
        let shown = self.cipher.show(self.counter, &[], &mut bytes);
        let payload = shown.ok_or(Broken::Refused(PeerRefusal::Forged))?;
        self.counter += 1;
        serde_json::from_slice(payload).map_err(|_| Broken::Refused(PeerRefusal::Malformed))
    }
}

/// Writes frames of one direction of one connection.
pub(super) struct FrameWriter<W> {
    to: W,
    cipher: Cipher,
    counter: u64,
}

impl<W: AsyncWrite + Unpin> FrameWriter<W> {
    pub(super) fn new(to: W, key: &Key) -> Self {
        Self { to, cipher: key.cipher(), counter: 0 }
    }

    /// Sends a frame, within the time that one may take.
    pub(super) async fn send<T: Serialize>(&mut self, message: &T) -> Result<(), Broken> {
        let mut payload = serde_json::to_vec(message).map_err(io::Error::from)?;
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= MAX_FRAME_BYTES);
        let Some(length) = length else { return Err(Broken::Refused(PeerRefusal::Oversize)) };
        self.cipher.hide(self.counter, &[], &mut payload);
        self.counter += 1;
        let frame = [&length.to_be_bytes()[..], &payload].concat();
        let write = async {
            self.to.write_all(&frame).await?;
            self.to.flush().await
        };
        match tokio::time::timeout(FRAME_DEADLINE, write).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(Broken::Closed(io::ErrorKind::TimedOut.into())),
        }
    }
}
