use std::net::SocketAddr;
use std::path::PathBuf;

use tenaz_core::{Classified, FaultClass};

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Anybody could reach it and nobody would have to say who they are.
    #[error(
        "{0} can be reached from other machines, and there are no tokens: listen on 127.0.0.1, or give a tokens file"
    )]
    Unsafe(SocketAddr),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The tokens file cannot be read.
    #[error("cannot read the tokens file {}: {source}", .path.display())]
    TokensUnreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The tokens file is wrong.
    #[error("{}:{line}: {problem}; write one `tenant:sha256-of-the-token` per line", .path.display())]
    Tokens {
        /// The file.
        path: PathBuf,
        /// 1-based line.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A file of the certificate cannot be read.
    #[error("cannot read {}: {source}; --tls-cert names the certificate and --tls-key its key, both in PEM", .path.display())]
    CertificateUnreadable {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The certificate or its key is wrong.
    #[error("{}: {problem}; --tls-cert names the certificate and --tls-key its key, both in PEM", .path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The process cannot show itself.
    #[error(transparent)]
    Vitals(#[from] tenaz_vitals::Error),
    /// The cluster's fault, or the broker's.
    #[error(transparent)]
    Cluster(#[from] tenaz_cluster::Error),
}

impl Classified for Error {
    fn class(&self) -> FaultClass {
        match self {
            Self::Cluster(error) => error.class(),
            Self::Vitals(error) => error.class(),
            Self::Listen { source, .. }
            | Self::TokensUnreadable { source, .. }
            | Self::CertificateUnreadable { source, .. } => FaultClass::of_system_error(source, FaultClass::Query),
            Self::Unsafe(_) | Self::Tokens { .. } | Self::Certificate { .. } => FaultClass::Query,
        }
    }
}
