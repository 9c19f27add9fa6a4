//! Asks a process how it is, when its heartbeats do not come.

use std::net::SocketAddr;
use std::time::Duration;

use tenaz_core::{Incarnation, ProcessName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::health::Health;
use crate::limits::MAX_PROBE_BYTES;

/// What a process answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Its name. Not sealed: compare it with whom you meant to ask.
    pub name: ProcessName,
    /// Which of its lives this is.
    pub incarnation: Incarnation,
    /// Moves on while all its loops turn.
    pub pulse: u64,
    /// Whether it does what it is there for.
    pub ready: bool,
}

/// `GET /healthz` of the process at `addr`, answered within the deadline.
pub async fn probe(addr: SocketAddr, deadline: Duration) -> Result<Probed, Error> {
    let failed = |detail: String| Error::Probe { addr, detail };
    let answer = tokio::time::timeout(deadline, exchange(addr, "/healthz")).await;
    let answer = answer.map_err(|_| failed(format!("no answer within {deadline:?}")))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    read(&answer).map_err(failed)
}

/// The status of the answer to `GET path` of the process at `host`, for health checks of containers.
pub async fn status_of(host: &str, path: &str, deadline: Duration) -> Result<u16, Error> {
    let unknown = |error: std::io::Error| Error::NoHost { host: host.to_owned(), detail: error.to_string() };
    let found = tokio::net::lookup_host(host).await.map_err(unknown)?.next();
    let addr = found.ok_or_else(|| unknown(std::io::Error::from(std::io::ErrorKind::NotFound)))?;
    let failed = |detail: String| Error::Probe { addr, detail };
    let answer = tokio::time::timeout(deadline, exchange(addr, path)).await;
    let answer = answer.map_err(|_| failed(format!("no answer within {deadline:?}")))?;
    let answer = answer.map_err(|error| failed(error.to_string()))?;
    let status =
        answer.strip_prefix(b"HTTP/1.").and_then(|rest| std::str::from_utf8(rest.get(2..5)?).ok()?.parse().ok());
    status.ok_or_else(|| failed("the answer is no HTTP".to_owned()))
}

async fn exchange(addr: SocketAddr, path: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(addr).await?;
    // HTTP/1.0: the answer comes in one piece, and the connection ends after it.
    let request = format!("GET {path} HTTP/1.0\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_PROBE_BYTES as u64).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn read(answer: &[u8]) -> Result<Probed, String> {
    let text = std::str::from_utf8(answer).map_err(|_| "the answer is no text".to_owned())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| "the answer is no HTTP".to_owned())?;
    let status = head.lines().next().unwrap_or_default();
    if !status.starts_with("HTTP/1.") || status.split(' ').nth(1) != Some("200") {
        return Err(format!("it says {:?}", status.chars().take(80).collect::<String>()));
    }
    let health: Health = serde_json::from_str(body).map_err(|error| format!("its health is not readable: {error}"))?;
    Ok(Probed { name: health.name, incarnation: health.incarnation, pulse: health.pulse, ready: health.ready })
}
