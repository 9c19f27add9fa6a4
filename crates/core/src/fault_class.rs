//! Whose fault an error is. Retries, exit codes and what a worker does next follow from it, never from a text.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The party that has to change something before the same work can succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultClass {
    /// The data: a record, a file or an upload is not what it should be. Trying again gives the same error.
    Data,
    /// The query, an option or a request. Trying again gives the same error.
    Query,
    /// This process or its machine: a full disk, too little memory, a file that cannot be opened. Another process may
    /// succeed with the same work.
    Process,
    /// The broker, a gateway or the network between. Trying again later may succeed.
    Broker,
    /// A defect of tenaz.
    Bug,
}

impl FaultClass {
    /// The name that stands in messages, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Query => "query",
            Self::Process => "process",
            Self::Broker => "broker",
            Self::Bug => "bug",
        }
    }

    /// Whether the same work may succeed without a change of data, query or program.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Process | Self::Broker)
    }
}

impl fmt::Display for FaultClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error that knows whose fault it is.
pub trait Classified {
    /// The class of this error.
    fn class(&self) -> FaultClass;
}
