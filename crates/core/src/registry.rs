//! The registry of jobs: an event log that every process reads to the same state.
//!
//! ```text
//!  Created ──▶ (being made) ──Prepared──▶ Open ──Ended──▶ Done | Failed | Cancelled | Expired ──Removed──▶ (nothing)
//! ```
//!
//! The log is bounded, so a job that is still there is written down again before its last mention could be cut off
//! ([`Registry::stale`]). Nothing grows with the number of jobs that are gone.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{JobId, TableId};

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum End {
    /// All answers are in the results log.
    Done,
    /// It could not succeed.
    Failed {
        /// A stable word for programs.
        code: String,
        /// For people: what happened, and what to do.
        reason: String,
    },
    /// A client cancelled it.
    Cancelled,
    /// No client came back in time.
    Expired,
}

/// What everybody must know of a job to find and clean up all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobCard {
    /// The job.
    pub id: JobId,
    /// Who it belongs to.
    pub tenant: String,
    /// The workload's name, for people.
    pub workload: String,
    /// How many partitions it has.
    pub partitions: u16,
    /// How many waves of chunks.
    pub waves: u16,
    /// The tables that its queries read: the upload is complete when these are.
    pub tables: BTreeSet<TableId>,
    /// Digest of all that was asked: creating the same job again is harmless, another with the same id is refused.
    pub spec_digest: String,
    /// When it was created, in milliseconds since 1970, for people.
    pub created_ms: u64,
}

/// An event of the registry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum RegistryEvent {
    /// A job exists. Written before anything of it is made, so that whatever is made is known to somebody.
    Created {
        /// The job.
        card: JobCard,
    },
    /// All queues and logs of the job exist: they may be read. (A broker may crash a connection that reads a stream which is
    /// just being made.)
    Prepared {
        /// The job.
        id: JobId,
    },
    /// A job has ended. The first end counts.
    Ended {
        /// The job.
        id: JobId,
        /// How.
        end: End,
    },
    /// All that belonged to the job is gone.
    Removed {
        /// The job.
        id: JobId,
    },
    /// Nothing: a process that reads its own mark has read all that was written before.
    Mark {
        /// Whose mark.
        number: u64,
    },
    /// A job that is still there, as known to the writer: keeps it from being forgotten.
    Still {
        /// The job.
        card: JobCard,
        /// How it ended, if it did.
        end: Option<End>,
        /// Whether all its queues and logs exist.
        prepared: bool,
    },
}

/// A job of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is known of it.
    pub card: JobCard,
    /// How it ended, if it did.
    pub end: Option<End>,
    /// Whether all its queues and logs exist.
    pub prepared: bool,
    mentioned_at: u64,
}

/// All jobs that are there.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    jobs: BTreeMap<JobId, Entry>,
    next_offset: u64,
    bytes_read: u64,
}

/// What an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing new.
    Nothing,
    /// A job that was not there before.
    Opened(JobId),
    /// All queues and logs of a job exist.
    Prepared(JobId),
    /// A job has ended.
    Ended(JobId),
    /// A job is gone.
    Removed(JobId),
}

impl Registry {
    /// Takes the event at `offset` in, which took `bytes` in the log.
    pub fn apply(&mut self, offset: u64, bytes: u64, event: RegistryEvent) -> Change {
        if offset < self.next_offset {
            return Change::Nothing;
        }
        self.next_offset = offset + 1;
        self.bytes_read += bytes;
        let mentioned_at = self.bytes_read;
        match event {
            RegistryEvent::Created { card } => self.mention(card, None, false, mentioned_at),
            RegistryEvent::Still { card, end, prepared } => self.mention(card, end, prepared, mentioned_at),
            RegistryEvent::Prepared { id } => match self.jobs.get_mut(&id) {
                Some(entry) if !entry.prepared => {
                    entry.prepared = true;
                    Change::Prepared(id)
                }
                _ => Change::Nothing,
            },
            RegistryEvent::Ended { id, end } => match self.jobs.get_mut(&id) {
                Some(entry) if entry.end.is_none() => {
                    entry.end = Some(end);
                    Change::Ended(id)
                }
                _ => Change::Nothing,
            },
            RegistryEvent::Mark { .. } => Change::Nothing,
            RegistryEvent::Removed { id } => match self.jobs.remove(&id) {
                Some(_) => Change::Removed(id),
                None => Change::Nothing,
            },
        }
    }

    fn mention(&mut self, card: JobCard, end: Option<End>, prepared: bool, mentioned_at: u64) -> Change {
        let id = card.id.clone();
        match self.jobs.get_mut(&id) {
            None => {
                self.jobs.insert(id.clone(), Entry { card, end, prepared, mentioned_at });
                Change::Opened(id)
            }
            Some(entry) => {
                entry.mentioned_at = mentioned_at;
                match (&entry.end, end) {
                    (None, Some(end)) => {
                        entry.end = Some(end);
                        Change::Ended(id)
                    }
                    _ => Change::Nothing,
                }
            }
        }
    }

    /// A job.
    pub fn get(&self, id: &JobId) -> Option<&Entry> {
        self.jobs.get(id)
    }

    /// All jobs.
    pub fn jobs(&self) -> impl Iterator<Item = &Entry> {
        self.jobs.values()
    }

    /// Jobs that have not ended.
    pub fn open_jobs(&self) -> impl Iterator<Item = &Entry> {
        self.jobs.values().filter(|entry| entry.end.is_none())
    }

    /// The offset to read from next.
    pub fn next_offset(&self) -> u64 {
        self.next_offset
    }

    /// Jobs to be written down again, because their last mention lies more than `bytes` back. The log keeps several times
    /// as much, so whoever writes the events that push it out has written this first.
    pub fn stale(&self, bytes: u64) -> Vec<RegistryEvent> {
        let old = self.jobs.values().filter(|entry| self.bytes_read - entry.mentioned_at > bytes);
        old.map(|entry| RegistryEvent::Still {
            card: entry.card.clone(),
            end: entry.end.clone(),
            prepared: entry.prepared,
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(n: u8) -> JobCard {
        JobCard {
            id: JobId::from_bytes([n; 8]),
            tenant: "public".to_owned(),
            workload: "coffee".to_owned(),
            partitions: 1,
            waves: 1,
            tables: BTreeSet::new(),
            spec_digest: String::new(),
            created_ms: 0,
        }
    }

    #[test]
    fn the_first_end_counts_and_a_removed_job_leaves_nothing() {
        let mut registry = Registry::default();
        let id = card(1).id;
        assert_eq!(registry.apply(0, 10, RegistryEvent::Created { card: card(1) }), Change::Opened(id.clone()));
        assert_eq!(registry.apply(1, 10, RegistryEvent::Created { card: card(1) }), Change::Nothing);
        let ended = |end| RegistryEvent::Ended { id: card(1).id, end };
        assert_eq!(registry.apply(2, 10, ended(End::Done)), Change::Ended(id.clone()));
        assert_eq!(registry.apply(3, 10, ended(End::Cancelled)), Change::Nothing);
        assert_eq!(registry.get(&id).and_then(|entry| entry.end.clone()), Some(End::Done));
        assert_eq!(registry.apply(4, 10, RegistryEvent::Removed { id: id.clone() }), Change::Removed(id.clone()));
        assert_eq!(registry.apply(5, 10, ended(End::Expired)), Change::Nothing);
        assert_eq!(registry.jobs().count(), 0);
    }

    #[test]
    fn a_job_that_is_still_there_is_written_down_again_before_the_log_forgets_it() {
        let mut registry = Registry::default();
        registry.apply(0, 100, RegistryEvent::Created { card: card(1) });
        registry.apply(1, 100, RegistryEvent::Created { card: card(2) });
        assert!(registry.stale(150).is_empty());
        registry.apply(2, 100, RegistryEvent::Removed { id: card(2).id });
        let stale = registry.stale(150);
        assert_eq!(stale, vec![RegistryEvent::Still { card: card(1), end: None, prepared: false }]);
        for event in stale {
            registry.apply(3, 100, event);
        }
        assert!(registry.stale(150).is_empty());
        // Whoever starts reading later, after the beginning was cut off, knows the job all the same.
        let mut late = Registry::default();
        late.apply(3, 100, RegistryEvent::Still { card: card(1), end: None, prepared: false });
        assert!(late.get(&card(1).id).is_some());
    }
}
