//! Why a connection, or what came over it, was not believed.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use tenaz_vitals::SupervisorMetrics;

/// Why something of a peer was not believed. The connection is closed then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PeerRefusal {
    /// Not sealed with this connection's key: forged, corrupted, repeated, or of another connection.
    Forged,
    /// Not of our format.
    Malformed,
    /// Of another cluster.
    OtherCluster,
    /// No supervisor of this cluster, or not the one that was called.
    UnknownPeer,
    /// A reader wanted more than to read.
    NotAllowed,
    /// Larger than anything that we say.
    Oversize,
    /// It took longer than anybody needs.
    Slow,
    /// So many others came at the same time that it had to go.
    Crowded,
}

impl PeerRefusal {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Forged,
        Self::Malformed,
        Self::OtherCluster,
        Self::UnknownPeer,
        Self::NotAllowed,
        Self::Oversize,
        Self::Slow,
        Self::Crowded,
    ];

    /// Its name in metrics and status.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forged => "forged",
            Self::Malformed => "malformed",
            Self::OtherCluster => "other_cluster",
            Self::UnknownPeer => "unknown_peer",
            Self::NotAllowed => "not_allowed",
            Self::Oversize => "oversize",
            Self::Slow => "slow",
            Self::Crowded => "crowded",
        }
    }
}

impl fmt::Display for PeerRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often that happened.
#[derive(Debug, Default)]
pub struct PeerRefusals {
    counts: [AtomicU64; PeerRefusal::ALL.len()],
    metrics: SupervisorMetrics,
}

impl PeerRefusals {
    /// Counts into these metrics, too.
    pub fn counting_into(metrics: SupervisorMetrics) -> Self {
        Self { metrics, ..Self::default() }
    }

    /// So many.
    pub fn of(&self, refusal: PeerRefusal) -> u64 {
        self.counts[refusal as usize].load(Ordering::Relaxed)
    }

    pub(super) fn count(&self, refusal: PeerRefusal) {
        self.counts[refusal as usize].fetch_add(1, Ordering::Relaxed);
        self.metrics.peer_message_refused(refusal.as_str());
    }
}
