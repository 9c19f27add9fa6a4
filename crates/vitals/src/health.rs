//! What `/healthz` and `/readyz` say.

use serde::{Deserialize, Serialize};
use tenaz_core::{Incarnation, ProcessName, ProcessRole};

/// What `/healthz` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// `up`, always: one that is not does not answer.
    pub status: String,
    /// The process's name.
    pub name: ProcessName,
    /// What it does.
    pub role: ProcessRole,
    /// Which of its lives this is.
    pub incarnation: Incarnation,
    /// Moves on while all its loops turn.
    pub pulse: u64,
    /// Whether it does what it is there for.
    pub ready: bool,
}

/// What `/readyz` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status")]
pub enum Readiness {
    /// It does what it is there for.
    #[serde(rename = "ready")]
    Ready,
    /// Not yet, or not just now.
    #[serde(rename = "not ready")]
    NotReady,
    /// It has been told to end.
    #[serde(rename = "draining")]
    Draining,
}
