//! Which cluster.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::key::Key;

/// Names a cluster: 16 hexadecimal digits. Processes that carry another one are never touched, their messages not heard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ClusterId(String);

impl ClusterId {
    /// A new one.
    pub fn random() -> Result<Self, Error> {
        let mut bytes = [0; 8];
        getrandom::fill(&mut bytes).map_err(|error| Error::Random(error.to_string()))?;
        Ok(Self::from_bytes(bytes))
    }

    /// The one that everybody who has the key knows: for processes that were told no other.
    pub fn of(key: &Key) -> Self {
        let seal = key.seal("tenaz cluster id", &[]);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&seal[..8]);
        Self::from_bytes(bytes)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(format!("{:016x}", u64::from_be_bytes(bytes)))
    }

    pub(crate) fn to_bytes(&self) -> [u8; 8] {
        u64::from_str_radix(&self.0, 16).expect("checked when it was made").to_be_bytes()
    }
}

impl TryFrom<String> for ClusterId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        // Small letters only: an id is compared as text where it marks processes.
        let digits = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 16 && text.bytes().all(digits) { Ok(Self(text)) } else { Err(Error::NotAClusterId(text)) }
    }
}

impl FromStr for ClusterId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::try_from(text.to_owned())
    }
}

impl From<ClusterId> for String {
    fn from(id: ClusterId) -> String {
        id.0
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_sixteen_small_digits() {
        let id = ClusterId::random().unwrap();
        assert_eq!(id.as_str().parse::<ClusterId>().unwrap(), id);
        assert_eq!(ClusterId::from_bytes(id.to_bytes()), id);
        for bad in ["", "0123", "0123456789ABCDEF", "0123456789abcdeg", "0123456789abcdef0", "+123456789abcdef"] {
            assert!(bad.parse::<ClusterId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_key_gives_one_id() {
        let key = Key::from_bytes([7; 32]);
        assert_eq!(ClusterId::of(&key), ClusterId::of(&Key::from_bytes([7; 32])));
        assert_ne!(ClusterId::of(&key), ClusterId::of(&Key::from_bytes([8; 32])));
    }
}
