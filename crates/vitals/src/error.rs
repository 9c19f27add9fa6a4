//! What can go wrong, and why a message is not believed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass};

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A key file cannot be read or written.
    #[error("the key file {path} cannot be {what}: {source}", path = path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// `read` or `written`.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// There is a key already: overwriting it would lock out every process that has the old one.
    #[error("there is a key in {path} already; delete it first if no process uses it any more", path = path.display())]
    KeyExists {
        /// The file.
        path: PathBuf,
    },
    /// What is in the file is no key.
    #[error("{path} holds no key: {found}; a key is 64 hexadecimal digits, `openssl rand -hex 32` makes one", path = path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// What is there instead.
        found: String,
    },
    /// Others could read or replace the key.
    #[error("the key file {path} has mode {mode:03o}, so that others can use it; run `chmod 600 {path}`", path = path.display())]
    KeyExposed {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Not a cluster's id.
    #[error("{0:?} is no cluster id: it has 16 hexadecimal digits, as in the file `id` of the cluster's directory")]
    NotAClusterId(String),
    /// Heartbeats without a key would prove nothing.
    #[error("heartbeats to supervisors need the cluster's key: give its file, too")]
    NoKey,
    /// A setting is out of its bounds.
    #[error("{what}")]
    Setting {
        /// What is wrong, and what would be right.
        what: String,
    },
    /// An address cannot be listened on.
    #[error("cannot listen on {addr} ({protocol}): {source}")]
    Listen {
        /// The address.
        addr: SocketAddr,
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The system does not give what a process needs to send heartbeats.
    #[error("heartbeats cannot be sent: {0}")]
    Sending(io::Error),
    /// The system has no random numbers.
    #[error("no random numbers from the system: {0}")]
    Random(String),
    /// There is no such host.
    #[error("there is no host {host:?}: {detail}; write HOST:PORT")]
    NoHost {
        /// What was asked for.
        host: String,
        /// The system's reason.
        detail: String,
    },
    /// A process did not answer a probe as one of ours does.
    #[error("{addr} does not answer as a process of a cluster: {detail}")]
    Probe {
        /// Where it was asked.
        addr: SocketAddr,
        /// What happened instead.
        detail: String,
    },
}

/// Why a message is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// The seal is not made with our key, or not of this message.
    Forged,
    /// Seen before, or older than what was seen.
    Replayed,
    /// Not of our format.
    Malformed,
    /// Of another cluster.
    OtherCluster,
    /// It does not carry the challenge of this listener's life; its sender has been told what that is.
    Unchallenged,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Forged, Self::Replayed, Self::Malformed, Self::OtherCluster, Self::Unchallenged];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forged => "forged",
            Self::Replayed => "replayed",
            Self::Malformed => "malformed",
            Self::OtherCluster => "other_cluster",
            Self::Unchallenged => "unchallenged",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::KeyFile { source, .. } | Self::Listen { source, .. } => {
                FaultClass::of_system_error(source, FaultClass::Query)
            }
            Self::KeyExists { .. }
            | Self::NotAKey { .. }
            | Self::KeyExposed { .. }
            | Self::NotAClusterId(_)
            | Self::NoKey
            | Self::Setting { .. }
            | Self::NoHost { .. } => FaultClass::Query,
            Self::Sending(_) | Self::Random(_) => FaultClass::Process,
            // The process that was asked, or the network between.
            Self::Probe { .. } => FaultClass::Broker,
        }
    }
}
