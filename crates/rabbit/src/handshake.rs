//! What the broker says before the login: its version.
//!
//! lapin does not pass on the server's properties, so the first connection of this process to an address begins twice:
//! once to read the greeting, then for good. The broker logs the first as closed early; it happens once per process and
//! address.

use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{AsyncReadExt, AsyncWriteExt};
use lapin::tcp::{AMQPUriTcpExt, OwnedTLSConfig};

use crate::{
    error::{Error, Result},
    lapin_errors::while_connecting,
    settings::BrokerUrl,
};

const NEEDED: Version = Version { major: 3, minor: 10 };
const NEEDED_TEXT: &str = "3.10";
/// A greeting is about 500 bytes; anything much larger is not RabbitMQ.
const GREETING_LIMIT_BYTES: usize = 64 * 1024;

static KNOWN: Mutex<Option<HashMap<String, Version>>> = Mutex::new(None);

/// The version of a broker, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The version at this address, if it is recent enough.
pub(crate) async fn checked_version(
    url: &BrokerUrl,
    uri: &lapin::uri::AMQPUri,
    tls: &OwnedTLSConfig,
) -> Result<Version> {
    let address = url.address();
    let known =
        KNOWN.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|map| map.get(&address).copied());
    if let Some(version) = known {
        return Ok(version);
    }
    let greeting = read_greeting(uri, tls).await.map_err(|error| while_connecting(url, Arc::new(error)))?;
    let text = version_text(&greeting).ok_or_else(|| Error::Refused {
        address: address.clone(),
        detail: "its greeting is not that of RabbitMQ".to_owned(),
    })?;
    let version = parse_version(&text).filter(|version| *version >= NEEDED).ok_or_else(|| Error::WrongVersion {
        address: address.clone(),
        found: text,
        needed: NEEDED_TEXT,
    })?;
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(address, version);
    Ok(version)
}

async fn read_greeting(uri: &lapin::uri::AMQPUri, tls: &OwnedTLSConfig) -> io::Result<Vec<u8>> {
    let runtime = lapin::runtime::default_runtime().map_err(io::Error::other)?;
    let mut stream = uri.connect_with_config_async(tls.as_ref(), &runtime).await?;
    stream.write_all(b"AMQP\x00\x00\x09\x01").await?;
    stream.flush().await?;
    // Frame: type, channel (2), size (4); then the payload.
    let mut head = [0; 7];
    stream.read_exact(&mut head).await?;
    let size = u32::from_be_bytes([head[3], head[4], head[5], head[6]]) as usize;
    if head[0] != 1 || size > GREETING_LIMIT_BYTES {
        return Ok(Vec::new());
    }
    let mut payload = vec![0; size];
    stream.read_exact(&mut payload).await?;
    Ok(payload)
}

/// Finds the entry `version` in the table of server properties: a short string as key, then `S` and a long string.
fn version_text(greeting: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"\x07versionS";
    let start = greeting.windows(KEY.len()).position(|window| window == KEY)? + KEY.len();
    let (size, rest) = greeting.get(start..)?.split_at_checked(4)?;
    let size = u32::from_be_bytes(size.try_into().ok()?) as usize;
    String::from_utf8(rest.get(..size)?.to_vec()).ok()
}

/// `3.10.8`, `4.0.0-rc.1`, `4.3.0+exp`.
fn parse_version(text: &str) -> Option<Version> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    Some(Version { major: numbers.next()?.parse().ok()?, minor: numbers.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_found_in_a_greeting() {
        let mut greeting = b"\x00\x0a\x00\x0a\x00\x09\x00\x00\x00\x40\x07productS\x00\x00\x00\x08RabbitMQ".to_vec();
        greeting.extend_from_slice(b"\x07versionS\x00\x00\x00\x063.10.8\x08platform");
        assert_eq!(version_text(&greeting).as_deref(), Some("3.10.8"));
        greeting.truncate(greeting.len() - 12);
        assert_eq!(version_text(&greeting), None);
        assert_eq!(version_text(b""), None);
    }

    #[test]
    fn versions_compare_as_numbers() {
        assert!(parse_version("3.10.8").expect("a version") >= NEEDED);
        assert!(parse_version("4.0.0-rc.1").expect("a version") >= NEEDED);
        assert!(parse_version("3.9.29").expect("a version") < NEEDED);
        assert_eq!(parse_version("unknown"), None);
    }
}
