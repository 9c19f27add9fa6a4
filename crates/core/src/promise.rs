//! How many chunks a table has: the one thing that only whoever has the files can say.

use serde::{Deserialize, Serialize};

use crate::limits::MAX_CHUNKS;
use crate::{Error, IntervalSet};

/// The chunk numbers of a complete table: one run from 0, or one run per file where files are sent on their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Promise {
    ranges: Vec<(u64, u64)>,
}

impl Promise {
    /// Chunks 0 to `chunks`.
    pub fn count(chunks: u64) -> Self {
        Self::runs(vec![(0, chunks)])
    }

    /// Several runs of numbers, each as (first, end). Their order does not matter.
    pub fn runs(runs: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut set = IntervalSet::default();
        for (first, end) in runs {
            set.insert_range(first, end);
        }
        Self { ranges: set.ranges().collect() }
    }

    /// The runs, as (first, end) pairs.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }

    /// The numbers, in their order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.ranges.iter().flat_map(|&(first, end)| first..end)
    }

    /// This and more.
    pub fn with(&self, runs: &[(u64, u64)]) -> Self {
        Self::runs(self.ranges.iter().chain(runs).copied())
    }

    /// How many chunks are promised.
    pub fn len(&self) -> u64 {
        self.ranges.iter().map(|(first, end)| end - first).sum()
    }

    /// Whether no chunk is promised.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether this chunk is one of them.
    pub fn has(&self, number: u64) -> bool {
        self.ranges.iter().any(|&(first, end)| (first..end).contains(&number))
    }

    /// The promised chunks that are not in `arrived`, as (first, end) pairs.
    pub fn missing_from(&self, arrived: &IntervalSet) -> Vec<(u64, u64)> {
        self.ranges.iter().flat_map(|&(first, end)| arrived.gaps_within(first, end)).collect()
    }

    /// A chunk in `arrived` that was not promised.
    pub fn stray(&self, arrived: &IntervalSet) -> Option<u64> {
        let mut promised = IntervalSet::default();
        self.ranges.iter().for_each(|&(first, end)| promised.insert_range(first, end));
        arrived.ranges().find_map(|(first, end)| promised.gaps_within(first, end).first().map(|gap| gap.0))
    }

    /// Checks the limit on chunks.
    pub fn check(&self) -> Result<(), Error> {
        let found = self.len();
        if found > MAX_CHUNKS {
            return Err(Error::Limit { what: "the number of chunks of a table", found, limit: MAX_CHUNKS });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_sent_on_their_own_have_runs_of_their_own() {
        let promise = Promise::runs([(1 << 32, (1 << 32) + 2), (0, 3)]);
        assert_eq!(promise.len(), 5);
        let mut arrived = IntervalSet::default();
        arrived.insert_range(0, 2);
        arrived.insert(1 << 32);
        assert_eq!(promise.missing_from(&arrived), vec![(2, 3), ((1 << 32) + 1, (1 << 32) + 2)]);
        assert_eq!(promise.stray(&arrived), None);
        arrived.insert(3);
        assert_eq!(promise.stray(&arrived), Some(3));
    }
}
