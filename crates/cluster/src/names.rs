//! What things are called on the broker. Two deployments with different prefixes can share one.

use tenaz_core::{JobId, Log, MemberId};

use crate::Error;
use crate::limits::MAX_PREFIX_CHARS;

/// Names with a deployment's prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Names that begin with `prefix`: letters, digits, `-` and `_`.
    pub fn new(prefix: &str) -> Result<Self, Error> {
        let plain = prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if prefix.is_empty() || prefix.len() > MAX_PREFIX_CHARS || !plain {
            return Err(Error::BadPrefix(prefix.to_owned()));
        }
        Ok(Self { prefix: prefix.to_owned() })
    }

    /// The prefix.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The registry of jobs: a stream.
    pub fn registry(&self) -> String {
        format!("{}.jobs", self.prefix)
    }

    /// What has happened in the cluster: a stream.
    pub fn events(&self) -> String {
        format!("{}.events", self.prefix)
    }

    /// Heartbeats: a fanout exchange.
    pub fn members(&self) -> String {
        format!("{}.members", self.prefix)
    }

    /// The queue that only this member reads, and that is gone at once when it dies.
    pub fn member(&self, member: MemberId) -> String {
        format!("{}.member.{member}", self.prefix)
    }

    /// A log of a job: a stream.
    pub fn log(&self, job: &JobId, log: Log) -> String {
        format!("{}.job.{job}.{log}", self.prefix)
    }

    /// The work queue of one wave of a job's chunks: a quorum queue.
    pub fn chunks(&self, job: &JobId, wave: usize) -> String {
        format!("{}.job.{job}.chunks.{wave}", self.prefix)
    }

    /// The queue by which a gateway finds out whether the broker stores messages.
    pub fn probe(&self, job: &JobId) -> String {
        format!("{}.job.{job}.probe", self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenaz_core::Partition;

    #[test]
    fn every_name_carries_the_prefix() {
        let names = Names::new("blue").expect("a good prefix");
        let job = JobId::from_bytes([0xab; 8]);
        assert_eq!(names.registry(), "blue.jobs");
        assert_eq!(names.log(&job, Log::Partition(Partition(3))), "blue.job.abababababababab.3");
        assert_eq!(names.log(&job, Log::Results), "blue.job.abababababababab.results");
        assert_eq!(names.chunks(&job, 1), "blue.job.abababababababab.chunks.1");
        assert_eq!(names.probe(&job), "blue.job.abababababababab.probe");
        assert!(Names::new("a.b").is_err());
        assert!(Names::new("").is_err());
    }
}
