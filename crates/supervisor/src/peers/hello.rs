//! The first words of a connection: who is there, and a number that nobody has used before.
//!
//! ```text
//! "TNZP" 2 | cluster (16) | kind (1) | id (2) | nonce (32)
//! ```
//!
//! They prove nothing by themselves. The keys of the connection are made from both of them and the cluster's key, one for each
//! direction; whoever then encrypts a frame has that key, and what was recorded on another connection fails here.

use tenaz_core::SupervisorId;
use tenaz_vitals::{ClusterId, Key};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::PeerRefusal;
use super::frame::{Broken, FrameReader, FrameWriter};
use crate::limits::HELLO_DEADLINE;

const HEAD: &[u8; 5] = b"TNZP\x02";
const CLUSTER_BYTES: usize = 16;
const NONCE_BYTES: usize = 32;
pub(super) const HELLO_BYTES: usize = HEAD.len() + CLUSTER_BYTES + 1 + 2 + NONCE_BYTES;
const CONTEXT: &str = "tenaz peer connection";

/// Who is at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Party {
    /// A supervisor of this cluster.
    Supervisor(SupervisorId),
    /// Somebody who wants to know how the cluster is.
    Reader,
}

/// Both ends of a connection that was opened with the cluster's key.
pub(super) struct Opened<R, W> {
    pub(super) party: Party,
    pub(super) reader: FrameReader<R>,
    pub(super) writer: FrameWriter<W>,
}

/// What both sides must know.
#[derive(Debug, Clone)]
pub(super) struct Credentials {
    pub(super) party: Party,
    pub(super) key: Key,
    pub(super) cluster: ClusterId,
}

/// Exchanges first words. `dialled`: whether this side has opened the connection.
pub(super) async fn greet<R, W>(
    credentials: &Credentials,
    dialled: bool,
    mut from: R,
    mut to: W,
) -> Result<Opened<R, W>, Broken>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let ours = hello(credentials)?;
    let mut theirs = [0; HELLO_BYTES];
    let exchange = async {
        to.write_all(&ours).await?;
        to.flush().await?;
        from.read_exact(&mut theirs).await.map(drop)
    };
    match tokio::time::timeout(HELLO_DEADLINE, exchange).await {
        Ok(done) => done?,
        Err(_) => return Err(Broken::Refused(PeerRefusal::Slow)),
    }
    let party = read(&theirs, &credentials.cluster).map_err(Broken::Refused)?;
    let (first, second) = if dialled { (&ours, &theirs) } else { (&theirs, &ours) };
    let key = |direction: &[u8]| credentials.key.derive(CONTEXT, &[first, second, direction]);
    let (there, back) = (key(b"there"), key(b"back"));
    let (reading, writing) = if dialled { (back, there) } else { (there, back) };
    Ok(Opened { party, reader: FrameReader::new(from, &reading), writer: FrameWriter::new(to, &writing) })
}

fn hello(credentials: &Credentials) -> Result<[u8; HELLO_BYTES], Broken> {
    let mut nonce = [0; NONCE_BYTES];
    getrandom::fill(&mut nonce).map_err(|error| Broken::Closed(std::io::Error::other(error.to_string())))?;
    let (kind, id) = match credentials.party {
        Party::Supervisor(id) => (0, id.0),
        Party::Reader => (1, 0),
    };
    let parts = [HEAD, credentials.cluster.as_str().as_bytes(), &[kind], &id.to_be_bytes(), &nonce].concat();
    Ok(parts.try_into().expect("a cluster's id has 16 digits, and the other parts have fixed lengths"))
}

fn read(hello: &[u8; HELLO_BYTES], cluster: &ClusterId) -> Result<Party, PeerRefusal> {
    let (head, rest) = hello.split_at(HEAD.len());
    let (theirs, rest) = rest.split_at(CLUSTER_BYTES);
    if head != HEAD {
        return Err(PeerRefusal::Malformed);
    }
    if theirs != cluster.as_str().as_bytes() {
        return Err(PeerRefusal::OtherCluster);
    }
    match rest[0] {
        0 => Ok(Party::Supervisor(SupervisorId(u16::from_be_bytes([rest[1], rest[2]])))),
        1 => Ok(Party::Reader),
        _ => Err(PeerRefusal::Malformed),
    }
}
