//! Which chunks are meant.

use serde::Deserialize;

/// Ranges of chunk numbers, `[first, end)`, as gateways write them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// These ranges.
    pub fn new(ranges: Vec<(u64, u64)>) -> Self {
        Self(ranges)
    }

    /// Whether there is no number in them.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|(first, end)| first >= end)
    }

    /// Whether a number is in one of them.
    pub fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|(first, end)| (*first..*end).contains(&number))
    }

    /// The numbers below `limit`.
    pub fn numbers(&self, limit: u64) -> impl Iterator<Item = u64> + '_ {
        self.0.iter().flat_map(move |(first, end)| *first..(*end).min(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_before_their_end() {
        let ranges = Ranges::new(vec![(0, 2), (5, 6), (7, 7)]);
        assert_eq!(ranges.numbers(100).collect::<Vec<_>>(), [0, 1, 5]);
        assert_eq!(ranges.numbers(1).collect::<Vec<_>>(), [0]);
        assert!(ranges.contains(5) && !ranges.contains(2) && !ranges.contains(7));
        assert!(!ranges.is_empty() && Ranges::new(vec![(3, 3)]).is_empty());
    }
}
