//! Offsets of a log at which something stands, kept as few ranges that cover them.
//!
//! A reader that wants only these messages jumps from range to range. The ranges may cover more than was put in, never
//! less: two that lie close together become one, because reading over a small gap costs less than a jump, and so do the
//! two closest of too many.

use serde::{Deserialize, Serialize};

use crate::limits::{MAX_OFFSET_RANGES, OFFSET_JUMP};

/// A bounded list of half-open ranges of offsets, in order, at least [`OFFSET_JUMP`] apart from each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OffsetRanges {
    ranges: Vec<(u64, u64)>,
}

impl OffsetRanges {
    /// Covers `offset`, too.
    pub fn insert(&mut self, offset: u64) {
        let end = offset + 1;
        // The first range that does not lie wholly, and by a jump or more, before the offset.
        let place = self.ranges.partition_point(|range| range.1 + OFFSET_JUMP <= offset);
        match self.ranges.get_mut(place) {
            Some(range) if range.0 < end + OFFSET_JUMP => *range = (range.0.min(offset), range.1.max(end)),
            _ => self.ranges.insert(place, (offset, end)),
        }
        let touches_next = |next: &(u64, u64)| next.0 < self.ranges[place].1 + OFFSET_JUMP;
        if self.ranges.get(place + 1).is_some_and(touches_next) {
            self.merge_with_next(place);
        }
        if self.ranges.len() > MAX_OFFSET_RANGES {
            let gap = |index: &usize| self.ranges[index + 1].0 - self.ranges[*index].1;
            let closest = (0..self.ranges.len() - 1).min_by_key(gap).expect("there are more than two ranges");
            self.merge_with_next(closest);
        }
    }

    fn merge_with_next(&mut self, place: usize) {
        let next = self.ranges.remove(place + 1);
        self.ranges[place].1 = self.ranges[place].1.max(next.1);
    }

    /// The ranges as (first, end) pairs, in order.
    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(offsets: impl IntoIterator<Item = u64>) -> OffsetRanges {
        let mut ranges = OffsetRanges::default();
        offsets.into_iter().for_each(|offset| ranges.insert(offset));
        ranges
    }

    #[test]
    fn what_lies_close_together_is_one_range_and_what_lies_apart_is_not() {
        let apart = 10 + OFFSET_JUMP;
        assert_eq!(of([3, 9, 5, apart]).ranges(), [(3, 10), (apart, apart + 1)]);
        assert_eq!(of([3, 9, apart - 1]).ranges(), [(3, apart)]);
        let bridged = of([0, 2 * OFFSET_JUMP, OFFSET_JUMP]);
        assert_eq!(bridged.ranges(), [(0, 2 * OFFSET_JUMP + 1)], "the one between touches both");
    }

    #[test]
    fn of_too_many_ranges_the_closest_two_become_one() {
        let far = |n: u64| n * 10 * OFFSET_JUMP;
        let many = of((0..MAX_OFFSET_RANGES as u64).map(far));
        assert_eq!(many.ranges().len(), MAX_OFFSET_RANGES);
        let mut more = many.clone();
        more.insert(far(3) + 2 * OFFSET_JUMP);
        assert_eq!(more.ranges().len(), MAX_OFFSET_RANGES);
        assert!(more.ranges().contains(&(far(3), far(3) + 2 * OFFSET_JUMP + 1)), "{more:?}");
    }

    #[test]
    fn a_hundred_scattered_messages_are_found_without_reading_what_lies_between() {
        let covered: u64 = of((0..100).map(|n| n * 10_000)).ranges().iter().map(|range| range.1 - range.0).sum();
        assert_eq!(covered, 100);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn everything_is_covered_by_few_ranges_in_order(
            offsets in prop::collection::vec(0u64..2_000_000, 0..2 * MAX_OFFSET_RANGES),
        ) {
            let ranges = of(offsets.iter().copied());
            let found = ranges.ranges();
            prop_assert!(found.len() <= MAX_OFFSET_RANGES);
            prop_assert!(found.iter().all(|range| range.0 < range.1));
            prop_assert!(found.windows(2).all(|two| two[0].1 + OFFSET_JUMP <= two[1].0), "{:?}", found);
            for offset in &offsets {
                prop_assert!(found.iter().any(|range| (range.0..range.1).contains(offset)), "{} in {:?}", offset, found);
            }
            // Not more than needed: the first and the last offset of a range were put in.
            for range in found {
                prop_assert!(offsets.contains(&range.0) && offsets.contains(&(range.1 - 1)));
            }
        }
    }
}
