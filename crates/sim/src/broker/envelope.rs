//! What is published.

use std::fmt;

use tenaz_core::{Fact, Log, RegistryEvent, Source};

use super::Job;
use crate::rows::Message;
use crate::scenario::Version;

/// A chunk as it was sent: one number may come in two versions of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChunkCopy {
    /// The chunk.
    pub(crate) source: Source,
    /// Which version of its bytes.
    pub(crate) version: Version,
}

/// Something in a control log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ControlEntry {
    /// A fact.
    Fact(Fact),
    /// What the job asks.
    Spec,
    /// The mark of a reader.
    Mark(u64),
}

/// Something that is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// A chunk for the work queue of a wave.
    Chunk {
        /// The job.
        job: Job,
        /// The wave.
        wave: usize,
        /// The chunk.
        chunk: ChunkCopy,
    },
    /// Rows for a log.
    Rows(Job, Log, Message),
    /// Something for the control log.
    Control(Job, ControlEntry),
    /// An event for the registry, of so many bytes.
    Registry(RegistryEvent, u64),
}

impl fmt::Display for Envelope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunk { job, wave, chunk } => {
                write!(f, "{} {:?} for wave {wave} of job {job}", chunk.source, chunk.version)
            }
            Self::Rows(job, log, Message { header, rows, .. }) => {
                let (source, part, parts) = (header.source, header.part, header.parts);
                write!(f, "{source} {part}/{parts} for {log} of job {job}: {} rows", rows.len())
            }
            Self::Control(job, entry) => write!(f, "{entry:?} of job {job}"),
            Self::Registry(event, bytes) => write!(f, "{event:?} ({bytes} bytes)"),
        }
    }
}
