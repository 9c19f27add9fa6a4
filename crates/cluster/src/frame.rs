//! A message: a small header in JSON, then bytes.
//!
//! ```text
//!  ┌ 1 byte ┐┌ 3 bytes ┐┌── header ──┐┌── payload ──┐
//!  │ format ││ length  ││    JSON    ││             │
//!  └────────┘└─────────┘└────────────┘└─────────────┘
//! ```
//!
//! The first byte tells which form the rest has. (Before there was one, it was the upper byte of the length, and 0.)

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenaz_core::{ChunkDigest, TableId};

use crate::Error;

/// The form of messages that this code writes and reads. Raise it with every change of a header or of what follows it.
const FORMAT: u8 = 2;

/// How a payload is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// Not at all.
    #[default]
    Identity,
    /// An lz4 frame.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// The header of a chunk in a work queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkHeader {
    /// The table.
    pub table: TableId,
    /// The chunk's number within the table.
    pub number: u64,
    /// The file it was cut from, for messages.
    pub file: String,
    /// Where it begins in the file.
    pub byte: u64,
    /// The 1-based line where it begins.
    pub line: u64,
    /// Records in it, as whoever cut it counted.
    pub records: Option<u64>,
    /// How the payload is compressed.
    pub encoding: Encoding,
    /// Bytes of the payload once decompressed.
    pub raw_bytes: u64,
    /// The digest of the payload once decompressed.
    pub digest: ChunkDigest,
}

/// A message taken apart.
#[derive(Debug)]
pub struct Framed<'a, H> {
    /// Its header.
    pub header: H,
    /// The rest.
    pub payload: &'a [u8],
}

/// Puts a message together. `parts` follow each other.
pub fn frame<H: Serialize>(header: &H, parts: &[&[u8]]) -> Vec<u8> {
    let header = serde_json::to_vec(header).expect("headers are plain data");
    let payload: usize = parts.iter().map(|part| part.len()).sum();
    let mut message = Vec::with_capacity(4 + header.len() + payload);
    let length = header.len() as u32;
    assert!(length < 1 << 24, "headers are far below 16 MiB");
    message.extend_from_slice(&(u32::from(FORMAT) << 24 | length).to_be_bytes());
    message.extend_from_slice(&header);
    parts.iter().for_each(|part| message.extend_from_slice(part));
    message
}

/// Takes a message apart; `place` names its queue or log in errors.
pub fn unframe<'a, H: DeserializeOwned>(place: &str, message: &'a [u8]) -> Result<Framed<'a, H>, Error> {
    let bad = |detail: String| Error::BadMessage { place: place.to_owned(), detail };
    let (length, rest) = message.split_first_chunk::<4>().ok_or_else(|| bad("it is too short".to_owned()))?;
    let [format, length @ ..] = *length;
    if format != FORMAT {
        return Err(bad(format!("it has format {format}, and this build reads format {FORMAT}")));
    }
    let length = length.into_iter().fold(0, |length, byte| length << 8 | usize::from(byte));
    let (header, payload) = rest.split_at_checked(length).ok_or_else(|| bad("its header is cut off".to_owned()))?;
    let header = serde_json::from_slice(header).map_err(|error| bad(error.to_string()))?;
    Ok(Framed { header, payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_together_comes_apart_again() {
        let message = frame(&("chunk", 7), &[b"ab", b"", b"c"]);
        let framed: Framed<'_, (String, u32)> = unframe("q", &message).expect("a whole message");
        assert_eq!(framed.header, ("chunk".to_owned(), 7));
        assert_eq!(framed.payload, b"abc");
        for cut in 0..message.len() - 3 {
            assert!(unframe::<(String, u32)>("q", &message[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_message_of_another_format_is_refused_by_name() {
        let mut message = frame(&("chunk", 7), &[b"ab"]);
        message[0] = 0;
        let error = unframe::<(String, u32)>("q", &message).expect_err("another format").to_string();
        assert!(error.contains("format 0") && error.contains("another version"), "{error}");
    }
}
